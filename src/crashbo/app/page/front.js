// The front of several goals: one goal against another, what is on the front joined, crashes beside it.

import { describe, ends, key, scale, stateKey, ticks } from "./charts.js";
import { el, number, setting, show, svg, tooltip } from "./dom.js";
import { onFront, part } from "./goals.js";
import { named } from "./outcome.js";
import { reachable } from "./reach.js";
import { looks, mark } from "./states.js";

let pair = [0, 1];

const settings = (t, study) => study.parameters.filter((p) => p.name in t.params).map((p) => `${named(p)} ${setting(t.params[p.name], p)}`);

export function frontChart(host, state, onChoose) {
  const { study, trials } = state, goals = study.goals;
  if (!trials.some((t) => t.state !== "pending")) return show(host, el("p", { cls: "empty" }, "Nothing told yet. The first results will appear here."));
  const [across, up] = pair.map((i) => goals[Math.min(i, goals.length - 1)]);
  const told = trials.filter((t) => t.state === "success" && part(t.cost, across) !== undefined && part(t.cost, up) !== undefined);
  const bare = trials.filter((t) => looks(t.state).rail && t.state !== "void"), members = onFront(state);
  const width = Math.max(300, host.clientWidth || 600), height = 320, left = 52, right = width - 14, top = 26, bottom = height - 58;
  const xs = told.map((t) => part(t.cost, across)), ys = told.map((t) => part(t.cost, up)), on = told.filter((t) => members.has(t.number));
  const xEnds = ends(xs, on.map((t) => part(t.cost, across))), yEnds = ends(ys, on.map((t) => part(t.cost, up)));
  const clamp = (f, low, high) => (v) => Math.max(low, Math.min(high, f(v)));
  const x = clamp(scale(...xEnds, left, right), left, right), y = clamp(scale(...yEnds, bottom, top), top, bottom);
  const at = (t) => [x(part(t.cost, across)), y(part(t.cost, up))];
  const plot = svg("svg", { cls: "plot", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${up.label} against ${across.label}` });
  plot.append(svg("text", { cls: "axis-name", x: 2, y: 11 }, named(up, up.label)), svg("text", { cls: "axis-name", x: right, y: height - 1, "text-anchor": "end" }, named(across, across.label)));
  for (const t of ticks(...yEnds, 5)) plot.append(svg("line", { cls: "grid", x1: left, x2: right, y1: y(t), y2: y(t) }), svg("text", { x: left - 7, y: y(t) + 4, "text-anchor": "end" }, number(t)));
  for (const t of ticks(...xEnds, width < 480 ? 4 : 7)) plot.append(svg("text", { x: x(t), y: height - 14, "text-anchor": "middle" }, number(t)));
  plot.append(svg("rect", { cls: "rail", x: left, y: bottom + 4, width: right - left, height: 20, rx: 4 }), svg("text", { x: left - 7, y: bottom + 18, "text-anchor": "end" }, "none"));
  const joined = [...on].sort((a, b) => part(a.cost, across) - part(b.cost, across)).map((t) => at(t).join(" "));
  if (goals.length === 2 && joined.length > 1) plot.append(svg("path", { cls: "best-line", d: `M${joined.join("L")}` }));
  const railX = scale(-0.5, Math.max(bare.length - 0.5, 9.5), left + 4, right - 4);
  const places = new Map([...told.map((t) => [t, at(t)]), ...bare.map((t, i) => [t, [railX(i), bottom + 14]])]);
  for (const [t, [cx, cy]] of places) plot.append(members.has(t.number) ? svg("circle", { cls: "best-dot", cx, cy, r: 6 }) : mark(t.state, cx, cy));
  const shown = el("p", { cls: "setting-of", id: "front-setting", "aria-live": "polite" }, host.dataset.shown ?? "Choose a point to see its setting.");
  const choose = (n) => {
    const t = trials.find((k) => k.number === n);
    shown.textContent = host.dataset.shown = `Trial ${n}: ${settings(t, study).join(", ")}`;
    onChoose(n);
  };
  const words = (t) => `${describe(t, study)}${members.has(t.number) ? "\non the front" : ""}\n${settings(t, study).join("\n")}`;
  const hits = [...places].sort(([a], [b]) => a.number - b.number).map(([t, [cx, cy]]) => tooltip(svg("circle", { cls: "hit", "data-number": t.number, "aria-label": words(t).replaceAll("\n", ", "), cx, cy, r: 10, onclick: () => choose(t.number) }), words(t)));
  plot.append(...hits);
  const volume = state.insight?.front, pairs = goals.length > 2 ? [[0, 1], [0, 2], [1, 2]] : [];
  show(host, pairs.length ? el("div", { cls: "choices", role: "group", "aria-label": "Goals" }, pairs.map(([i, j]) => el("button", { type: "button", "aria-pressed": String(pair[0] === i && pair[1] === j), onclick: () => { pair = [i, j]; frontChart(host, state, onChoose); } }, `${goals[j].label} against ${goals[i].label}`))) : null,
    plot, shown, el("div", { cls: "key" }, key("best-line", volume ? `the front: ${volume.trials.length} trials that no other beats in all goals, hypervolume ${number(volume.hypervolume)}` : "the front"), stateKey("success", "beaten"), bare.length ? stateKey("crash", "crash, without any") : null));
  reachable(host, plot, hits, choose);
}
