// What in the trials speaks against the models, and advice: a plain list.

import { el, show } from "./dom.js";

const FEW = 6; // trials that are linked

export function checkList(host, state, point) {
  const found = state.insight?.findings ?? [];
  const links = (f) => (f.trials.length > FEW ? [] : f.trials.filter((n) => state.trials[n]));
  host.closest("section").hidden = !found.length;
  show(host, el("ul", { cls: "second-look" }, found.map((f) => el("li", { cls: f.advice ? "advice" : "against" },
    el("span", {}, f.words), ` ${f.remedy}`,
    links(f).map((n) => el("button", { type: "button", cls: "quiet", onclick: () => point(n) }, `#${n}`))))));
}
