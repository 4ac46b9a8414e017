// All trials, newest first, a page at a time; on paper all at once.

import { duration, el, number, percent, setting, show, when } from "./dom.js";
import { onFront, part } from "./goals.js";
import { verdictWords } from "./compare.js";
import { named } from "./outcome.js";
import { isTold, wordFor } from "./states.js";

const PAGE = 100; // trials
let page = 0, shown = null, printing = false, last = null;

// The trials of the present page; the page is that of a trial which was chosen just now.
function paged(trials, chosen) {
  if (chosen !== shown && chosen !== null) page = Math.floor((trials.length - 1 - chosen) / PAGE);
  shown = chosen;
  page = Math.max(0, Math.min(page, Math.ceil(trials.length / PAGE) - 1));
  const newest = [...trials].reverse();
  return printing ? newest : newest.slice(page * PAGE, (page + 1) * PAGE);
}

function pager(trials, some) {
  if (trials.length <= PAGE || printing) return null;
  const turn = (by, words, possible) => el("button", { type: "button", cls: "quiet", disabled: !possible, onclick: () => { page += by; last[0].scrollTop = 0; logTable(...last); } }, words);
  return el("div", { cls: "pager" }, turn(-1, "Newer", page > 0), el("span", {}, `trials ${some.at(-1).number} to ${some[0].number} of ${trials.length}`), turn(1, "Older", (page + 1) * PAGE < trials.length));
}

for (const [event, now] of [["beforeprint", true], ["afterprint", false]]) addEventListener(event, () => { printing = now; if (last) logTable(...last); });
// What was run, where it was told to differ.
const ranOf = (t, p) => (t.as_run?.[p.name] === undefined || t.as_run[p.name] === t.params[p.name] ? null : el("small", {}, ` ran ${typeof t.as_run[p.name] === "number" ? number(t.as_run[p.name], 5) : t.as_run[p.name]}`));

export function logTable(host, state, chosen, doing) {
  last = [host, state, chosen, doing];
  const { study, trials } = state, measured = study.constraints.filter((c) => c.measured);
  if (!trials.length) return show(host, el("p", { cls: "empty" }, "None yet."));
  const costs = study.compared && trials.every((t) => t.cost === null) ? [] : study.goals;
  const head = [["#"], ["state", "words"], ...study.parameters.map((p) => [named(p)]), ...costs.map((g) => [named(g, g.label)]), ...measured.map((c) => [named(c)]), ["P(safe)"], ["note", "words"], ["told", "words"], ["took"], ["actions", "hidden"]];
  const reading = (t, c) => (c.name in t.measured ? `${t.censored.includes(c.name) ? (c.side === "below" ? "≤ " : "≥ ") : ""}${number(t.measured[c.name], 5)}` : "");
  const beyond = (t, p) => p.kind !== "choice" && p.kind !== "context" && (t.params[p.name] < p.low || t.params[p.name] > p.high);
  const leaders = onFront(state);
  const row = (t) => el("tr", { cls: [t.number === state.best || leaders.has(t.number) ? "best" : "", t.number === chosen ? "chosen" : ""].join(" "), id: `trial-${t.number}` },
    el("td", {}, String(t.number)),
    el("td", { cls: "words short" }, el("span", { cls: `state ${t.state}` }, wordFor(t))),
    study.parameters.map((p) => el("td", { cls: beyond(t, p) ? "beyond" : "", title: beyond(t, p) ? `${t.params[p.name]}: beyond the bounds` : String(t.params[p.name] ?? "") }, p.name in t.params ? [setting(t.params[p.name], p), ranOf(t, p)] : "")),
    costs.map((g) => el("td", {}, part(t.cost, g) === undefined ? "" : number(part(t.cost, g), 5))),
    measured.map((c) => el("td", {}, reading(t, c))),
    el("td", { title: t.p_model === null ? "" : `${percent(t.p_model)} by the model alone` }, t.p_safe === null ? "" : percent(t.p_safe)),
    el("td", { cls: "words" }, [t.reason, t.blame.length ? `blamed on ${t.blame.join(" and ")}` : "", verdictWords(state, t.number)].filter(Boolean).join("; ")),
    el("td", { cls: "words short" }, isTold(t) && t.ended ? [when(t.ended), t.who ? ` ${t.who}` : ""] : "", t.corrections ? el("small", {}, ` changed ${t.corrections}×`) : null),
    el("td", {}, isTold(t) && t.began && t.ended >= t.began ? duration(t.ended - t.began) : ""),
    el("td", {}, isTold(t) && !state.read_only ? [el("button", { type: "button", cls: "quiet", onclick: () => doing.fix(t), "aria-label": `Correct trial ${t.number}` }, "Correct"), el("button", { type: "button", cls: "quiet", onclick: () => doing.undo(t.number), "aria-label": `Undo trial ${t.number}` }, "Undo")] : null));
  const top = host.scrollTop;
  const title = ([text, cls]) => el("th", { scope: "col", cls: cls === "words" ? "words short" : "" }, cls === "hidden" ? el("span", { cls: "unseen" }, text) : text);
  const some = paged(trials, chosen);
  show(host, pager(trials, some), el("table", {}, el("thead", {}, el("tr", {}, head.map(title))), el("tbody", {}, some.map(row))));
  host.scrollTop = top;
}
