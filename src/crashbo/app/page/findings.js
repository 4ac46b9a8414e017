// What was found: the best trial beside the recommendation, and the thresholds in sentences.

import { el, number, percent, setting, show } from "./dom.js";
import { onFront, part, several } from "./goals.js";
import { named } from "./outcome.js";

export function findings(card, host, state) {
  const { study, insight } = state, best = state.trials.find((t) => t.number === state.best), told = insight?.recommended;
  const leaders = state.trials.filter((t) => onFront(state).has(t.number));
  card.hidden = !best && !leaders.length;
  if (card.hidden) return;
  if (several(study)) return show(host, el("div", { cls: "two" }, front(study, leaders, told), sentences(study, insight, "repeat a point of the front, or stop")));
  const row = (name, left, right, cls = "") => el("tr", { cls }, el("th", { scope: "row" }, name), el("td", {}, left), told ? el("td", {}, right) : null);
  show(host, el("div", { cls: "two" },
    el("table", { cls: "findings" },
      el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, `best, trial ${best.number}`), told ? el("th", { scope: "col" }, "recommended") : null)),
      el("tbody", {}, study.compared ? null : row(named(study.cost, study.cost.label), number(best.cost), told?.cost ? `${number(told.cost[0])} ± ${number(told.cost[2] - told.cost[0], 2)}` : ""),
        row("P(safe)", "succeeded", told ? percent(told.p_safe) : ""),
        study.parameters.map((p, i) => row(named(p), p.name in best.params ? setting(best.params[p.name], p) : "", told && p.name in told.params ? setting(told.params[p.name], p) : "", i ? "" : "rule")))),
    sentences(study, insight, "repeat the best, or stop")));
}

const sentences = (study, insight, remedy) => el("div", { cls: "sentences" },
  insight?.exhausted ? el("p", { cls: "done" }, `Nothing is left to gain: ${remedy}.`) : null,
  Object.entries(insight?.levels ?? {}).map(([name, l]) => el("p", {}, el("b", {}, name), l.value === null ? " " : l.interval?.includes(null) ? ": threshold " : `: crashes ${study.constraints.find((c) => c.name === name)?.side ?? "above"} `, l.words)));

// The ends of every goal on the front, and a compromise between them.
function front(study, leaders, told) {
  const sign = (g) => (g.direction === "maximize" ? -1 : 1);
  const bestOf = (g) => leaders.reduce((a, b) => (sign(g) * part(b.cost, g) < sign(g) * part(a.cost, g) ? b : a));
  const heads = study.goals.map((g) => [`${g.direction === "maximize" ? "highest" : "lowest"} ${g.label}, trial ${bestOf(g).number}`, bestOf(g)]);
  const row = (name, cells, cls = "") => el("tr", { cls }, el("th", { scope: "row" }, name), cells.map((c) => el("td", {}, c)));
  const cells = (of, more) => [...heads.map(([, t]) => of(t)), ...(told ? [more] : [])];
  return el("div", { cls: "sideways", tabindex: 0 }, el("table", { cls: "findings" },
    el("thead", {}, el("tr", {}, el("td", {}), heads.map(([words]) => el("th", { scope: "col" }, words)), told ? el("th", { scope: "col" }, "a compromise") : null)),
    el("tbody", {}, study.goals.map((g) => row(named(g, g.label), cells((t) => number(part(t.cost, g)), told?.cost ? `${number(told.cost[g.name][0])} ± ${number(told.cost[g.name][2] - told.cost[g.name][0], 2)}` : ""))),
      row("P(safe)", cells(() => "succeeded", told ? percent(told.p_safe) : "")),
      study.parameters.map((p, i) => row(named(p), cells((t) => (p.name in t.params ? setting(t.params[p.name], p) : ""), told && p.name in told.params ? setting(told.params[p.name], p) : ""), i ? "" : "rule")))));
}
