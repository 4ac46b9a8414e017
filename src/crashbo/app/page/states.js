// The states of trials, in one table: what each is called and how it looks. A new state is one more row here, its
// colours in style.css (.state.NAME) and its mark in `mark`. The same words and colours stand in states.py, for report and plots.
//   word, many: in sentences and counts;  counted: whether the header counts it even if there is none
//   shape: of its mark;  cls: of that mark in charts;  rail: whether it stands below the values, where it has none
//   order: in maps, what lies above what (null: not drawn);  told: what the dialog offers

import { svg } from "./dom.js";

export const STATES = {
  success: { word: "success", many: "successes", counted: true, shape: "dot", cls: "success", rail: false, order: 0, told: true },
  crash: { word: "crash", many: "crashes", counted: true, shape: "cross", cls: "cross", rail: true, order: 1, told: true },
  stopped: { word: "stopped", many: "stopped", counted: false, shape: "square", cls: "stopped", rail: true, order: 1, told: true },
  void: { word: "void", many: "voids", counted: true, shape: "ring", cls: "ring", rail: true, order: null, told: true },
  pending: { word: "pending", many: "pending", counted: false, shape: "circle", cls: "pending", rail: false, order: 2, told: false },
};
const UNKNOWN = { word: "?", many: "others", counted: false, shape: "ring", cls: "ring", rail: true, order: null, told: false };

export const looks = (state) => STATES[state] ?? { ...UNKNOWN, word: state, many: state };
export const wordFor = (trial) => (trial.queued ? "queued" : trial.choosing ? "choosing" : looks(trial.state).word);
export const isTold = (trial) => trial.state !== "pending";

export function cross(x, y, r, cls) {
  return svg("path", { d: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`, cls });
}

// The mark of a state in a chart.
export function mark(state, x, y, r = 4) {
  const { shape, cls } = looks(state);
  if (shape === "cross") return cross(x, y, r + 0.5, cls);
  if (shape === "square") return svg("rect", { cls, x: x - r, y: y - r, width: 2 * r, height: 2 * r });
  return svg("circle", { cls, cx: x, cy: y, r: shape === "circle" ? r + 1 : r });
}
