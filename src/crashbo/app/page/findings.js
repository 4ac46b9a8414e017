// What was found: the best trial beside the recommendation, and the thresholds in sentences.

import { el, number, percent, setting, show } from "./dom.js";
import { named } from "./outcome.js";

export function findings(card, host, state) {
  const { study, insight } = state, best = state.trials.find((t) => t.number === state.best), told = insight?.recommended;
  card.hidden = !best;
  if (!best) return;
  const row = (name, left, right, cls = "") => el("tr", { cls }, el("th", { scope: "row" }, name), el("td", {}, left), told ? el("td", {}, right) : null);
  show(host, el("div", { cls: "two" },
    el("table", { cls: "findings" },
      el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, `best, trial ${best.number}`), told ? el("th", { scope: "col" }, "recommended") : null)),
      el("tbody", {}, row(named(study.cost, study.cost.label), number(best.cost), told?.cost ? `${number(told.cost[0])} ± ${number(told.cost[2] - told.cost[0], 2)}` : ""),
        row("P(safe)", "succeeded", told ? percent(told.p_safe) : ""),
        study.parameters.map((p, i) => row(named(p), p.name in best.params ? setting(best.params[p.name], p) : "", told && p.name in told.params ? setting(told.params[p.name], p) : "", i ? "" : "rule")))),
    el("div", { cls: "sentences" },
      insight?.exhausted ? el("p", { cls: "done" }, "Nothing is left to gain: repeat the best, or stop.") : null,
      Object.entries(insight?.levels ?? {}).map(([name, l]) => el("p", {}, el("b", {}, name), l.value === null ? " " : l.interval?.includes(null) ? ": threshold " : `: crashes ${study.constraints.find((c) => c.name === name)?.side ?? "above"} `, l.words)))));
}
