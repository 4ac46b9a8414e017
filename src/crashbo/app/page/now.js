// The next setting in big figures, how risky it is, and the form in which its result is told.

import { el, number, percent, setting, show, withUnit } from "./dom.js";

const ORIGINS = { design: "to fill the space", start: "as you wished", confirm: "a repeat", told: "" };

// A tick beside a measurement: the machine stopped measuring before it got there.
export function cutOff(c, checked = false) {
  return el("label", { cls: "cut", title: `The true value lies there or ${c.side === "below" ? "below" : "above"}: the reading was cut off` }, el("input", { type: "checkbox", name: "cut", value: c.name, checked }), "cut off");
}

export class Now {
  constructor(host, doing) {
    this.host = host;
    this.doing = doing; // { next, tell, choose }
    this.head = el("div");
    this.form = el("div");
    show(host, this.head, this.form);
    this.drawn = undefined;
  }

  update(state, current) {
    const open = state.trials.filter((t) => t.open);
    show(this.head, open.length > 1 ? this.tabs(open, current) : null, current ? this.setting(state, current) : null);
    const key = JSON.stringify([current?.number ?? null, current?.corrections, state.study.constraints, state.trials.some((t) => t.choosing), this.busy]);
    if (key !== this.drawn) { // what somebody is typing must stay
      this.drawn = key;
      show(this.form, current ? this.tellForm(state.study, current) : this.askForm(state));
    }
  }

  tabs(open, current) {
    return el("div", { cls: "tabs", role: "group", "aria-label": "Trials under way" },
      open.map((t) => el("button", { type: "button", "aria-pressed": String(t === current), onclick: () => this.doing.choose(t.number) }, `Trial ${t.number}`)));
  }

  setting(state, trial) {
    const { study, insight } = state, expected = insight?.expected?.[trial.number];
    const many = study.parameters.length > 6;
    const figure = (p) => {
      const text = setting(trial.params[p.name], p);
      return el("div", {}, el("dt", { title: p.name }, p.name), el("dd", { cls: text.length > 9 ? "long" : "", title: String(trial.params[p.name]) }, text, p.unit ? el("small", {}, p.unit) : null));
    };
    const why = trial.late ? "its lease ran out" : (ORIGINS[trial.origin] ?? "");
    return [
      el("div", { cls: "now-head" }, el("strong", {}, `Trial ${trial.number}`), why ? el("span", { cls: "why" }, why) : null, this.lease(trial)),
      el("dl", { cls: many ? "setting many" : "setting", id: "setting" }, study.parameters.filter((p) => p.name in trial.params).map(figure)),
      this.odds(study, trial, expected, insight),
    ];
  }

  lease(trial) {
    if (!trial.lease) return null;
    const left = trial.lease - Date.now() / 1000;
    return el("span", { cls: "why" }, left > 0 ? `given up in ${left > 5400 ? `${Math.round(left / 3600)} h` : `${Math.max(1, Math.round(left / 60))} min`}` : "its lease ran out");
  }

  odds(study, trial, expected, insight) {
    const p = trial.p_safe ?? expected?.p_safe, model = trial.p_model;
    if (p === null || p === undefined) return el("div", { cls: "odds" }, el("div", { cls: "cap" }, "P(safe)"), el("div", { cls: "cap" }, "not known before the first results"));
    const tone = p >= 0.85 ? "var(--next)" : p >= 0.5 ? "var(--level)" : "var(--crash)";
    const lines = [];
    if (typeof model === "number" && percent(model) !== percent(p)) lines.push(el("span", { title: "P(safe) is that of the moment when the setting was chosen: the model's, corrected by how earlier proposals turned out" }, "by the model alone ", el("b", {}, percent(model))));
    if (expected?.cost) lines.push(el("span", {}, `expected ${study.cost.label} `, el("b", {}, withUnit(number(expected.cost[0], 3), study.cost.unit)), ` (${number(expected.cost[1], 3)} to ${number(expected.cost[2], 3)})`));
    for (const c of study.constraints) {
      const e = expected?.measured?.[c.name], level = insight?.levels?.[c.name]?.value;
      if (e) lines.push(el("span", {}, `expected ${c.name} `, el("b", {}, withUnit(number(e[0], 3), c.unit)), level ? `, crashes ${c.side} ${number(level, 3)}` : ""));
    }
    return [
      el("div", { cls: "odds", style: { "--tone": tone } },
        el("div", {}, el("div", { cls: "cap" }, "P(safe)"), el("div", { cls: "big", id: "p-safe" }, percent(p))),
        el("div", {}, el("div", { cls: "gauge", role: "meter", "aria-label": "P(safe)", "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": p.toFixed(3) }, el("i", { style: { width: `${100 * p}%` } })), el("div", { cls: "expect" }, lines))),
      trial.admissible ? null : el("p", { cls: "warn" }, "Nothing is as safe as you ask for: this is the safest setting."),
    ];
  }

  askForm(state) {
    const choosing = this.busy || state.trials.some((t) => t.choosing);
    const none = !state.trials.some((t) => t.state !== "pending");
    return [
      el("div", { cls: "now-head" }, el("strong", {}, choosing ? "Choosing the next setting …" : none ? "Ready to begin" : "Ready for the next trial")),
      el("p", { cls: "empty" }, none ? "Nothing was told yet. The first settings fill the space; after them the search takes over." : "The models have taken in all results so far."),
      el("button", { type: "button", cls: "big next", id: "next", disabled: choosing, onclick: () => this.doing.next() }, "Next trial", el("kbd", {}, "N")),
      el("p", { cls: "error", id: "form-error", role: "alert" }),
    ];
  }

  tellForm(study, trial) {
    const measured = study.constraints.filter((c) => c.measured);
    const decimal = (name, label, unit) => el("label", { cls: "field" }, unit ? `${label} (${unit})` : label, el("input", { name, inputmode: "decimal", autocomplete: "off", enterkeyhint: "done" }));
    const verdict = (kind, label, kbd) => el("button", { type: kind === "success" ? "submit" : "button", cls: `big ${kind}`, id: `tell-${kind}`, onclick: kind === "success" ? undefined : () => this.send(form, trial, kind) }, label, el("kbd", {}, kbd));
    const form = el("form", { cls: "tell", novalidate: true, autocomplete: "off", "aria-label": `Result of trial ${trial.number}`, onsubmit: (e) => { e.preventDefault(); this.send(form, trial, "success"); } },
      el("div", { cls: "fields" }, decimal("cost", study.cost.label, study.cost.unit), measured.map((c) => el("div", { cls: "with-cut" }, decimal(`m:${c.name}`, c.name, c.unit), cutOff(c))),
        el("label", { cls: "field note" }, "note, kept with a crash or a void", el("input", { name: "note", maxlength: 500, autocomplete: "off" }))),
      study.constraints.length > 1 ? el("div", { cls: "checks" }, "a crash was by", study.constraints.map((c) => el("label", {}, el("input", { type: "checkbox", name: "blame", value: c.name }), c.name))) : null,
      el("div", { cls: "verdicts" }, verdict("success", "Success", "S or ⏎"), verdict("crash", "Crash", "C"), verdict("void", "Void", "V")),
      el("p", { cls: "error", id: "form-error", role: "alert" }));
    return [form, el("div", { cls: "after" }, el("div", { cls: "checks" }, el("label", {}, el("input", { type: "checkbox", id: "go-on", checked: this.doing.goesOn(), onchange: (e) => this.doing.goesOn(e.target.checked) }), "then ask for the next at once")),
      el("button", { type: "button", cls: "quiet", onclick: () => this.doing.copy(trial) }, "Copy setting"))];
  }

  // Reads the form; what is wrong is said and nothing is sent.
  send(form, trial, kind) {
    const body = { measured: {} };
    this.complain("");
    for (const input of form.querySelectorAll("input[inputmode=decimal]")) {
      const text = input.value.trim().replace("−", "-").replace(",", "."), value = Number(text);
      const wrong = text ? !Number.isFinite(value) : input.name === "cost" && kind === "success";
      input.setAttribute("aria-invalid", String(wrong));
      if (wrong) { input.focus(); return this.complain(text ? `${input.parentElement.firstChild.textContent} must be a number; got "${text}".` : "A success has a value. If there was none, it is a crash or a void."); }
      if (text && input.name === "cost" && kind === "success") body.cost = value;
      if (text && input.name.startsWith("m:")) body.measured[input.name.slice(2)] = value;
    }
    const cut = [...form.querySelectorAll("input[name=cut]:checked")].map((i) => i.value), bare = cut.find((name) => !(name in body.measured));
    if (bare !== undefined && kind !== "void") return this.complain(`${bare} must have a value to be cut off.`);
    if (cut.length && kind !== "void") body.censored = cut;
    const note = form.elements.note.value.trim();
    if (kind === "crash") { body.crash = note || true; body.blame = [...form.querySelectorAll("input[name=blame]:checked")].map((i) => i.value); }
    if (kind === "void") body.void = note || true;
    return this.doing.tell(trial, body);
  }

  complain(words) {
    const place = this.host.querySelector("#form-error");
    if (place) place.textContent = words;
  }
}
