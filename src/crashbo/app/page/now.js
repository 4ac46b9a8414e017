// The next setting in big figures, how risky it is, the form in which its result is told, and the bar of verdicts.
//
// A form belongs to one trial. While that is under way it stays, whatever others ask, tell or undo. When somebody else
// tells it, the form says so and keeps what was typed. After every change of trial no verdict is taken for a second.

import { isVerdict, lastOf, Pair, rivalOf, VERDICTS as COMPARED, verdictWords, waits } from "./compare.js";
import { el, number, percent, setting, show, when, withUnit } from "./dom.js";
import { costWords, part, several } from "./goals.js";
import { decimal, named, outcomeFields, outcomeIn } from "./outcome.js";
import { looks } from "./states.js";
import { complaint, numberIn } from "./typed.js";

const ORIGINS = { design: "to fill the space", start: "as you wished", confirm: "a repeat", told: "" };
const REST = 1000; // ms without a verdict after a change of trial
const VERDICTS = [["success", "Success", "S or ⏎"], ["crash", "Crash", "C"], ["void", "Void", "V"]];
const FAULTS = VERDICTS.slice(1), LATER = [["skip", "Compare it later", "L"]];

export class Now {
  constructor(host, doing) {
    this.host = host;
    this.doing = doing; // { next, tell, compare, choose, copy, undo, correct, repeatBest, goesOn, prepares }
    this.pair = new Pair(); // where trials are compared, this one and its rival
    this.later = new Set(); // successes that are not to be compared now
    this.number = null; // of the trial that the form belongs to
    this.drafts = new Map(); // what was typed, by trial
    this.resting = 0;
    this.context = el("form", { cls: "tell", id: "context", novalidate: true, autocomplete: "off", onsubmit: (e) => { e.preventDefault(); this.doing.next(); } });
    this.head = el("div", { cls: "now-top" });
    this.form = el("form", { cls: "tell", id: "tell-form", novalidate: true, autocomplete: "off", onsubmit: (e) => e.preventDefault(), oninput: () => this.keep() });
    this.form.addEventListener("keydown", (event) => this.key(event));
    this.words = el("div", { cls: "say", id: "form-error", role: "alert" });
    this.bar = el("div", { cls: "verdicts" });
    this.buttons = [];
    this.last = el("div", { cls: "last", id: "last" });
    this.before = el("div"); // of two films, which are what one looks at
    this.after = el("div"); // what to compare it with, while there is no film of it
    show(host, el("div", { cls: "now-scroll", tabindex: -1 }, this.before, this.head, this.form, this.after), el("div", { cls: "verdict-bar" }, this.words, this.bar, this.last));
    this.offer(VERDICTS);
  }

  // The verdicts that this trial can get. They are made anew only where they change.
  offer(kinds) {
    const names = kinds.map(([kind]) => kind).join();
    if (names === this.offered) return;
    this.offered = names;
    const small = (kind) => kinds.length > 3 && !isVerdict(kind);
    this.buttons = kinds.map(([kind, label, kbd]) => el("button", { type: "button", cls: `big ${kind === "skip" ? "void skip" : kind}${small(kind) ? " small" : ""}`, id: `tell-${kind}`, disabled: true, onclick: () => this.send(kind) }, label, el("kbd", {}, kbd)));
    this.bar.classList.toggle("compare", kinds.length > 3);
    show(this.bar, this.buttons);
  }

  verdicts() {
    const { state, trial } = this;
    if (!state.study.compared || !trial || !rivalOf(state, trial)) return VERDICTS;
    return [...COMPARED, ...(this.isWaiting(trial) ? LATER : FAULTS)];
  }

  isWaiting(trial) { return waits(this.state, trial) && !this.later.has(trial.number); }

  // ---- which trial

  get trial() { return this.state?.trials.find((t) => t.number === this.number) ?? null; }
  get isElsewhere() { return Boolean(this.trial && !this.trial.open && !this.trial.late && !this.isWaiting(this.trial)); }
  get takes() { return Boolean(this.trial && !this.isElsewhere && !this.busy && !this.state.read_only && performance.now() >= this.resting); }

  update(state) {
    const before = this.state;
    this.state = state;
    const open = this.open();
    if (this.isElsewhere && !this.isTyped()) {
      const { trial } = this;
      this.doing.notice(`Trial ${trial.number} was told elsewhere: ${this.said(trial)}`);
      this.drafts.delete(this.number);
      this.number = null;
    }
    if (this.trial === null) this.turn(open[0]?.number ?? null);
    else if (!before || JSON.stringify(before.study) !== JSON.stringify(state.study) || this.isWaiting(this.trial) !== this.waited) this.fields();
    this.draw(open);
  }

  // Another trial: its own draft, and a second in which a click meant for the last one does nothing.
  turn(number) {
    if (number !== this.number) { // else news of other trials: what was said of this one stays
      this.resting = performance.now() + REST;
      this.complain("");
    }
    this.number = number;
    this.fields();
    clearTimeout(this.waking);
    this.waking = setTimeout(() => this.arm(), REST + 20);
  }

  told(number) { // by this page
    this.drafts.delete(number);
    this.store();
    if (this.number === number) { this.number = null; this.resting = performance.now() + REST; this.complain(""); }
  }

  choose(number) { this.turn(number); this.draw(this.open()); }

  // What waits for a word: first successes that are to be compared, then the trials that are under way.
  open() { return [...this.state.trials.filter((t) => this.isWaiting(t)), ...this.state.trials.filter((t) => t.open)]; }

  // ---- what was typed

  fields() {
    const { study } = this.state;
    this.waited = Boolean(this.trial && this.isWaiting(this.trial));
    show(this.form, this.trial && !this.waited ? outcomeFields(study, null, !study.compared) : null);
    delete this.form.dataset.sure;
    for (const [name, value] of Object.entries(this.draft())) {
      const inputs = this.form.elements[name] instanceof RadioNodeList ? [...this.form.elements[name]] : [this.form.elements[name]].filter(Boolean);
      for (const input of inputs) if (input.type === "checkbox") input.checked = value.includes(input.value); else input.value = value;
    }
  }

  draft() {
    try { this.drafts.size || (this.drafts = new Map(JSON.parse(sessionStorage.getItem(this.drawer()) ?? "[]"))); } catch { /* nothing was kept */ }
    return this.drafts.get(this.number) ?? {};
  }

  keep() {
    delete this.form.dataset.sure;
    const out = {};
    for (const input of this.form.querySelectorAll("input")) {
      if (input.type === "checkbox") { if (input.checked) (out[input.name] ??= []).push(input.value); } else if (input.value) out[input.name] = input.value;
    }
    this.drafts.set(this.number, out);
    this.store();
  }

  drawer() { return `crashbo-typed:${this.state.study.name}`; }
  store() { try { sessionStorage.setItem(this.drawer(), JSON.stringify([...this.drafts])); } catch { /* full or forbidden: kept in memory alone */ } }
  isTyped() { return Object.keys(this.draft()).length > 0; }

  // ---- drawing

  draw(open) {
    const { state, trial } = this;
    this.offer(this.verdicts());
    this.drawPair(trial);
    show(this.head, open.length > 1 ? this.tabs(open) : null, trial ? this.setting(trial) : this.asking());
    this.form.setAttribute("aria-label", trial ? `Result of trial ${trial.number}` : "No trial");
    if (this.isElsewhere) this.elsewhere(trial);
    else if (this.saysElsewhere) this.complain("");
    show(this.last, this.lastTold(state));
    this.arm();
  }

  arm() { for (const b of this.buttons) b.disabled = !this.takes; }

  tabs(open) {
    return el("div", { cls: "tabs", role: "group", "aria-label": "Trials under way" },
      open.map((t) => el("button", { type: "button", "aria-pressed": String(t.number === this.number), onclick: () => this.doing.choose(t.number) }, `Trial ${t.number}`)));
  }

  setting(trial) {
    const { study, insight } = this.state, many = study.parameters.length > 4;
    const figure = (p) => {
      const text = setting(trial.params[p.name], p);
      return el("div", {}, el("dt", { title: named(p) }, named(p)), el("dd", { cls: text.length > 8 ? "long" : "", title: String(trial.params[p.name]) }, text));
    };
    const rival = study.compared ? rivalOf(this.state, trial) : null;
    if (this.isWaiting(trial)) return el("div", { cls: "now-head" }, el("strong", {}, `Trial ${trial.number}`), el("span", { cls: "why" }, `succeeded. Was it better than trial ${rival.number}?`));
    const why = trial.late ? "its lease ran out: a result still counts" : trial.admissible ? (insight?.exhausted ? "nothing is left to gain: repeat the best, or stop" : (ORIGINS[trial.origin] ?? "")) : "nothing is as safe as you ask for: this is the safest";
    return [
      el("div", { cls: "now-head" }, el("strong", {}, `Trial ${trial.number}`), el("span", { cls: trial.admissible ? "why" : "why warn" }, why || " "), this.lease(trial), el("button", { type: "button", cls: "quiet", onclick: () => this.doing.copy(trial), "aria-label": "Copy setting" }, "Copy")),
      el("dl", { cls: many ? "setting many" : "setting", id: "setting" }, study.parameters.filter((p) => p.name in trial.params).map(figure)),
      this.odds(study, trial, insight),
      study.compared ? el("p", { cls: "why to-do" }, rival ? `Run it, then compare it with trial ${rival.number}, so far the best.` : "Run it. Before the first success there is nothing to compare it with.") : null,
    ];
  }

  drawPair(trial) {
    const rival = this.state.study.compared && trial && !this.isElsewhere ? rivalOf(this.state, trial) : null;
    const pair = rival ? this.pair.update(this.state, trial, rival) : null, first = Boolean(rival && this.state.films[trial.number]);
    for (const [place, wanted] of [[this.before, first ? pair : null], [this.after, first ? null : pair]]) if (place.firstChild !== wanted) show(place, wanted);
  }

  lease(trial) {
    if (!trial.lease || !trial.open) return null;
    const left = trial.lease - Date.now() / 1000;
    return el("span", { cls: "why" }, left > 0 ? `given up in ${left > 5400 ? `${Math.round(left / 3600)} h` : `${Math.max(1, Math.round(left / 60))} min`}` : "its lease ran out");
  }

  // Every line has its place before its value is known, so that nothing moves when it comes.
  odds(study, trial, insight) {
    const expected = insight?.expected?.[trial.number], p = trial.p_safe ?? expected?.p_safe ?? null, model = trial.p_model;
    const tone = p === null ? "var(--soft)" : p >= 0.85 ? "var(--next)" : p >= 0.5 ? "var(--level)" : "var(--crash)";
    const differs = typeof model === "number" && percent(model) !== percent(p);
    const row = (name, e, more = []) => el("tr", {}, el("th", { scope: "row", title: name }, name), el("td", {}, e ? number(e[0], 3) : "–"), el("td", { cls: "range" }, e ? `${number(e[1], 2)} to ${number(e[2], 2)}` : ""), el("td", { cls: "limit", title: more[1] ?? "" }, more[0] ?? ""));
    const limit = (c) => {
      const level = insight?.levels?.[c.name], end = level?.interval?.find((x) => x !== null);
      return level?.value === null || level?.value === undefined ? [] : [level.interval?.includes(null) ? `${c.side === "below" ? "≤" : "≥"} ${number(end, 3)}` : number(level.value, 3), level.words];
    };
    return el("div", { cls: "odds", style: { "--tone": tone } },
      el("div", { cls: "odds-top" }, el("div", {}, el("div", { cls: "cap" }, "P(safe)"), el("div", { cls: "figure", id: "p-safe" }, p === null ? "–" : percent(p))),
        el("div", { cls: "odds-side" }, el("div", { cls: "gauge", role: "meter", "aria-label": "P(safe)", "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": (p ?? 0).toFixed(3), "aria-valuetext": p === null ? "not known yet" : percent(p) }, el("i", { style: { width: `${100 * (p ?? 0)}%` } })),
          el("div", { cls: "cap", id: "p-crash" }, p === null ? "how likely it is to crash is not known yet" : `crashes with ${percent(1 - p)}${differs ? `; ${percent(1 - model)} by the model alone` : ""}`))),
      el("table", { cls: "expect", "aria-label": "What is expected" }, el("thead", {}, el("tr", {}, ["expected", "", "90 %", "threshold"].map((h) => (h ? el("th", { scope: "col" }, h) : el("td", {}))))), el("tbody", {},
        study.compared ? null : study.goals.map((g) => row(named(g, g.label), part(expected?.cost, g))),
        study.constraints.filter((c) => c.measured).map((c) => row(named(c), expected?.measured?.[c.name], limit(c))))));
  }

  asking() {
    const { state } = this, choosing = this.busy || state.trials.some((t) => t.choosing), none = !state.trials.some((t) => t.state !== "pending");
    const done = state.insight?.exhausted && (state.best !== null || several(state.study)), one = done && state.best !== null;
    const words = state.halted ? "No trials are handed out until they are resumed." : state.read_only ? "This store is read-only: it can be looked at." : done ? `Nothing is left to gain: repeat ${one ? "the best" : "a point of the front"}, or stop.` : none ? "Nothing was told yet. The first settings fill the space; after them the search takes over." : "The models have taken in all results so far.";
    return [
      el("div", { cls: "now-head" }, el("strong", {}, choosing ? "Choosing the next setting …" : done ? "Nothing is left to gain" : none ? "Ready to begin" : "Ready for the next trial")),
      el("p", { cls: "empty" }, words),
      this.contexts(state),
      el("button", { type: "button", cls: "big next", id: "next", disabled: choosing || Boolean(state.halted) || state.read_only, onclick: () => this.doing.next() }, "Next trial", el("kbd", {}, "N")),
      one && !state.halted && !state.read_only ? el("button", { type: "button", cls: "big void wide-button", id: "repeat-best", disabled: choosing, onclick: () => this.doing.repeatBest() }, `Repeat the best, trial ${state.best}`) : null,
    ];
  }

  // What is met, to be given with the next trial; it begins with what was met last.
  contexts(state) {
    const met = state.study.parameters.filter((p) => p.kind === "context"), last = state.trials.at(-1);
    if (!met.length) return null;
    const names = met.map((p) => p.name).join();
    if (this.context.dataset.names !== names) {
      this.context.dataset.names = names;
      show(this.context, el("div", { cls: "fields" }, met.map((p) => decimal(`x:${p.name}`, named(p), String((last?.as_run?.[p.name] ?? last?.params[p.name]) ?? "")))));
    }
    return this.context;
  }

  // The context in those fields; undefined where the study has none. What is wrong is thrown in words.
  met() {
    const out = {};
    for (const p of this.state.study.parameters.filter((q) => q.kind === "context")) {
      this.contexts(this.state);
      const input = this.context.elements[`x:${p.name}`], x = numberIn(input, p.name);
      if (x === undefined) { input.focus(); throw new Error(`${p.name} must have a value: it is met, not chosen.`); }
      out[p.name] = x;
    }
    return Object.keys(out).length ? out : undefined;
  }

  // The last word of anybody, with its undo: it stays for as long as it is the last.
  lastTold(state) {
    const told = state.trials.filter((t) => t.state !== "pending" && !t.late), at = (t) => Math.max(t.at, lastOf(state, t.number)?.at ?? 0), last = told.length ? told.reduce((a, b) => (at(b) > at(a) ? b : a)) : null;
    const choice = (id, label, get, title) => el("label", { title }, el("input", { type: "checkbox", id, checked: get(), onchange: (e) => get(e.target.checked) }), label);
    return [
      el("div", { cls: "last-words" }, el("span", { title: last ? this.said(last) : "" }, last ? `Trial ${last.number}: ${this.said(last)}` : "Nothing told yet"),
        el("button", { type: "button", cls: "quiet", id: "undo", disabled: !last || state.read_only, onclick: () => this.doing.undo(last.number) }, "Undo", el("kbd", {}, "U"))),
      el("div", { cls: "checks" }, choice("go-on", "next at once", this.doing.goesOn, "Ask for the next trial as soon as one is told"),
        choice("ahead", "prepare it meanwhile", this.doing.prepares, "The next setting is chosen before this result is told, and so without it")),
    ];
  }

  said(t) {
    const { study } = this.state;
    const what = t.state === "success" && t.cost !== null ? costWords(t.cost, study) : verdictWords(this.state, t.number) || looks(t.state).word;
    return [what, t.reason, t.who ? `by ${t.who}` : "", t.ended ? when(t.ended) : ""].filter(Boolean).join(", ");
  }

  elsewhere(trial) {
    if (this.saysElsewhere === trial.at) return;
    this.saysElsewhere = trial.at;
    show(this.words, el("span", {}, `Trial ${trial.number} was told elsewhere: ${this.said(trial)}. What you typed is kept.`),
      el("button", { type: "button", cls: "answer", id: "leave", onclick: () => { this.drafts.delete(this.number); this.store(); this.number = null; this.saysElsewhere = null; this.update(this.state); } }, "Leave it"),
      el("button", { type: "button", cls: "answer", id: "correct-it", onclick: () => this.doing.correct(trial, this.draft()) }, "Correct it"));
  }

  // ---- verdicts

  key(event) {
    if (event.key !== "Enter" || event.target.type === "checkbox") return;
    event.preventDefault();
    if (event.target.name !== "note" && this.buttons[0].id === "tell-success") this.send("success"); // who writes a note has not judged yet
  }

  send(kind) {
    const { trial } = this;
    if (trial && performance.now() < this.resting) this.complain(`This is trial ${trial.number} since a moment ago. Press once more.`);
    if (!this.takes) return;
    try {
      if (kind === "skip") { this.later.add(trial.number); this.number = null; return this.update(this.state); }
      const body = this.isWaiting(trial) ? null : outcomeIn(this.form, this.state.study, isVerdict(kind) ? "success" : kind);
      this.complain("");
      if (isVerdict(kind)) this.doing.compare(trial, body, kind, rivalOf(this.state, trial));
      else this.doing.tell(trial, body);
    } catch (error) {
      show(this.words, complaint(error, el));
    }
  }

  complain(words) {
    this.saysElsewhere = null;
    show(this.words, words);
  }
}
