// What in the trials speaks against the models, and advice: a plain list.

import { el, show } from "./dom.js";

export function checkList(host, state, point) {
  const found = state.insight?.findings ?? [];
  const trials = (f) => f.trials.filter((n) => n < state.trials.length);
  show(host, found.length ? el("h3", {}, "Second look") : null, found.length ? el("ul", { cls: "checks" }, found.map((f) =>
    el("li", { cls: f.advice ? "advice" : "against" }, el("span", {}, f.words), " ", el("span", { cls: "soft" }, f.remedy),
      trials(f).length ? el("button", { type: "button", cls: "quiet", onclick: () => point(trials(f)[0]) }, `trial ${trials(f)[0]}`) : null))) : null);
}
