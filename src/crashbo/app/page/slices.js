// Slices of cost and P(safe) through the space, with sliders for the parameters that are held.

import { call } from "./api.js";
import { describe, key, scale, stateKey, ticks } from "./charts.js";
import { contour, legend, paint } from "./colours.js";
import { el, number, percent, setting, show, svg, tooltip, withUnit } from "./dom.js";
import { part } from "./goals.js";
import { named } from "./outcome.js";
import { reachable } from "./reach.js";
import { cross, looks, mark } from "./states.js";
import { foremost, thinned } from "./thin.js";

const SAFE = 0.9;

export class Slices {
  constructor(host) {
    this.host = host;
    this.axes = null;
    this.at = {};
    this.follows = true; // held parameters follow the next setting until somebody moves a slider
    this.controls = el("div", { cls: "slice-controls" });
    this.maps = el("div", { cls: "slice-maps" });
    show(host, this.controls, this.maps);
  }

  update(state, current) {
    this.state = state;
    const parameters = state.study.parameters;
    if (this.axes === null || this.axes.some((a) => !parameters.some((p) => p.name === a))) {
      this.axes = this.mostImportant().slice(0, 2);
      this.at = {};
    }
    const from = current ?? state.trials.find((t) => t.number === state.best) ?? null;
    for (const p of parameters) {
      if (this.follows && from && p.name in from.params) this.at[p.name] = from.params[p.name];
      this.at[p.name] ??= p.kind === "choice" ? p.options[0] : middle(p);
    }
    const shape = JSON.stringify([this.axes, parameters]);
    if (shape !== this.shape) { this.shape = shape; this.draw_controls(); }
    this.show_held();
    this.ask();
  }

  mostImportant() {
    const influence = this.state.insight?.influence ?? {};
    const weight = (p) => Math.max(0, ...Object.values(influence).map((of) => of[p.name] ?? 0));
    return [...this.state.study.parameters].sort((a, b) => weight(b) - weight(a)).map((p) => p.name);
  }

  draw_controls() {
    const parameters = this.state.study.parameters;
    const choose = (which, label) => el("label", {}, label, el("select", { "aria-label": label, onchange: (e) => this.turn(which, e.target.value) },
      parameters.map((p) => el("option", { value: p.name, selected: this.axes[which] === p.name }, p.name))));
    this.held = new Map();
    const slider = (p) => {
      const output = el("output");
      const input = p.kind === "choice"
        ? el("select", { "aria-label": p.name, onchange: (e) => this.hold(p, p.options[e.target.selectedIndex]) }, p.options.map((o) => el("option", {}, String(o))))
        : el("input", { type: "range", min: 0, max: 1000, "aria-label": p.name, oninput: (e) => this.hold(p, placed(p, e.target.value / 1000)) });
      this.held.set(p.name, { p, input, output });
      return el("label", {}, el("span", { cls: "slider-head" }, el("span", {}, p.name), output), input);
    };
    const others = parameters.filter((p) => !this.axes.includes(p.name));
    show(this.controls, choose(0, "across"), this.axes.length > 1 ? choose(1, "up") : null, others.map(slider),
      others.length ? el("button", { type: "button", cls: "quiet", onclick: () => { this.follows = true; this.update(this.state, this.state.current); } }, "Back to the next setting") : null);
  }

  show_held() {
    for (const { p, input, output } of this.held.values()) {
      const value = this.at[p.name];
      if (p.kind === "choice") input.selectedIndex = p.options.indexOf(value);
      else if (document.activeElement !== input) input.value = 1000 * share(p, value);
      output.textContent = p.kind === "choice" ? "" : withUnit(setting(value, p), p.unit);
    }
  }

  turn(which, name) {
    const other = this.axes[1 - which];
    this.axes = [...this.axes];
    if (other === name) this.axes[1 - which] = this.axes[which];
    this.axes[which] = name;
    this.update(this.state, this.state.current);
  }

  hold(p, value) {
    this.follows = false;
    this.at[p.name] = value;
    this.show_held();
    this.ask();
  }

  // One question at a time; the last one asked is the one that counts.
  async ask() {
    if (!this.state.insight) { show(this.maps, el("p", { cls: "empty" }, "Appears after the first results.")); return; }
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    try {
      const found = await call("/api/slice", { axes: this.axes, at: this.at, size: this.axes.length > 1 ? 41 : 81 });
      if (found) { this.found = found; this.draw(); }
    } catch { /* the link tells when the server is away */ } finally {
      this.asking = false;
      if (this.again) { this.again = false; this.ask(); }
    }
  }

  redraw() { if (this.found) this.draw(); }

  draw() {
    const { found, state } = this;
    if (found.axes.length === 1) return this.draw_line();
    const { study } = state;
    const maps = []; // the marks of each are its own
    for (const goal of found.cost ? study.goals : []) {
      const cost = part(found.cost, goal), flat = cost.flat(), low = Math.min(...flat), high = Math.max(...flat), most = goal.direction === "maximize";
      // The better, the brighter.
      const shares = cost.map((row) => row.map((v) => (high > low ? (most ? v - low : high - v) / (high - low) : 0.5)));
      maps.push(this.map(`Expected ${goal.label}`, "cost", shares, [number(most ? low : high), withUnit(number(most ? high : low), goal.unit)], (i, j) => withUnit(number(cost[j][i]), goal.unit)));
    }
    maps.push(this.map("P(safe)", "safe", found.p_safe, ["0", "1"], (i, j) => percent(found.p_safe[j][i])));
    show(this.maps, maps.map((m) => m.node), this.key());
    for (const m of maps) m.place();
  }

  // What the marks mean: the same in both maps.
  key() {
    const on = (shape, words) => el("span", {}, svg("svg", { cls: "plot swatch", viewBox: "0 0 18 14", style: { width: "18px", height: "14px" }, "aria-hidden": "true" }, shape), words);
    return el("div", { cls: "key full-row" },
      on([svg("path", { cls: "contour-under", d: "M0 7H18" }), svg("path", { cls: "contour", d: "M0 7H18" })], `P(safe) = ${SAFE}`),
      on(svg("circle", { cls: "best-map", cx: 9, cy: 7, r: 5 }), "best"), on(svg("circle", { cls: "on-map", cx: 9, cy: 7, r: 3.8 }), "success"),
      on([cross(9, 7, 4, "cross-map"), cross(9, 7, 4, "cross-map-top")], "crash"), this.state.trials.some((t) => t.state === "stopped") ? on(stop(9, 7), "stopped") : null, on([svg("circle", { cls: "next-map", cx: 9, cy: 7, r: 5 }), svg("circle", { cls: "next-map-top", cx: 9, cy: 7, r: 5 })], "under way"),
      this.found.forbidden?.some((row) => row.some(Boolean)) ? on(svg("rect", { x: 2, y: 2, width: 14, height: 10, fill: "rgb(150 150 150)" }), "a rule forbids it") : null,
      el("span", {}, "Pale marks lie far from this slice."));
  }

  map(title, colours, shares, words, value) {
    const { found, state } = this, [px, py] = found.axes.map((a) => state.study.parameters.find((p) => p.name === a));
    const bar = el("canvas", { "aria-hidden": "true" });
    legend(bar, colours, false);
    const heat = el("canvas", { cls: "heat", "aria-hidden": "true" });
    paint(heat, colours, found.forbidden ? shares.map((row, j) => row.map((v, i) => (found.forbidden[j][i] ? null : v))) : shares);
    heat.style.imageRendering = px.kind === "choice" || py.kind === "choice" ? "pixelated" : "auto";
    const box = el("div", { cls: "frame" });
    const node = el("div", { cls: "map" }, el("h3", {}, title, el("span", { cls: "legend" }, words[0], bar, words[1])), box);
    const place = () => {
      const width = box.clientWidth || 380, height = Math.round(Math.min(width * 0.78, 340));
      const left = 46, right = width - 8, top = 6, bottom = height - 36;
      const x = along(px, found.grid[0].length, left, right), y = along(py, found.grid[1].length, bottom, top);
      const plot = svg("svg", { cls: "plot", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${title} over ${px.name} and ${py.name}` });
      Object.assign(heat.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
      axis(plot, px, x, (at) => ({ x: at, y: bottom + 15, "text-anchor": "middle" }));
      axis(plot, py, y, (at) => ({ x: left - 6, y: at + 4, "text-anchor": "end" }));
      plot.append(svg("text", { cls: "axis-name", x: right, y: height - 2, "text-anchor": "end" }, named(px)),
        svg("text", { cls: "axis-name", x: 12, y: top, transform: `rotate(-90 12 ${top})`, "text-anchor": "end" }, named(py)));
      if (px.kind !== "choice" && py.kind !== "choice") {
        const at = (i, j) => [left + (i / (found.grid[0].length - 1)) * (right - left), bottom + (j / (found.grid[1].length - 1)) * (top - bottom)];
        const line = contour(found.p_safe, SAFE, at);
        plot.append(svg("path", { cls: "contour-under", d: line }), svg("path", { cls: "contour", d: line }));
      }
      const placed = this.marks(plot, px, py, x, y);
      const cell = (event) => {
        const r = plot.getBoundingClientRect(), k = width / r.width;
        const u = ((event.clientX - r.left) * k - left) / (right - left), v = 1 - ((event.clientY - r.top) * k - top) / (bottom - top);
        if (u < 0 || u > 1 || v < 0 || v > 1) return "";
        const near = this.near(event, plot, placed);
        const i = index(u, found.grid[0].length, px), j = index(v, found.grid[1].length, py);
        return near ?? `${px.name} ${setting(found.grid[0][i], px)}, ${py.name} ${setting(found.grid[1][j], py)}\n${found.forbidden?.[j][i] ? "a rule forbids it" : `${title} ${value(i, j)}`}`;
      };
      show(box, heat, tooltip(plot, cell));
      reachable(box, plot, placed.map((m) => m.hit), () => {});
    };
    return { node, place };
  }

  marks(plot, px, py, x, y) {
    const placed = [], all = this.state.trials.filter((t) => looks(t.state).order !== null && px.name in t.params && py.name in t.params);
    const drawn = foremost(all, (t) => this.nearness(t, px, py), (t) => t.open || t.number === this.state.best);
    for (const t of [...drawn].sort((a, b) => looks(a.state).order - looks(b.state).order)) {
      if (t.state === "pending" && !t.open) continue;
      if ([px, py].some((p) => share(p, t.params[p.name]) < 0 || share(p, t.params[p.name]) > 1)) continue; // told from outside the bounds
      const cx = x(t.params[px.name]), cy = y(t.params[py.name]), near = this.nearness(t, px, py), best = t.number === this.state.best;
      const group = svg("g", { opacity: t.state === "pending" ? 1 : 0.25 + 0.75 * near });
      if (looks(t.state).shape === "cross") for (const cls of ["cross-map", "cross-map-top"]) group.append(cross(cx, cy, 4, cls));
      else if (t.state === "pending") for (const cls of ["next-map", "next-map-top"]) group.append(svg("circle", { cls, cx, cy, r: 8 }));
      else if (looks(t.state).shape === "square") group.append(stop(cx, cy));
      else group.append(svg("circle", { cls: best ? "best-map" : "on-map", cx, cy, r: best ? 6 : 3.8 }));
      const hit = tooltip(svg("circle", { cls: "hit", cx, cy, r: 9, "data-number": t.number, "aria-label": describe(t, this.state.study).replaceAll("\n", ", ") }), describe(t, this.state.study));
      placed.push({ t, cx, cy, hit });
      plot.append(group);
    }
    plot.append(...placed.map((m) => m.hit));
    return placed;
  }

  near(event, plot, placed) {
    const r = plot.getBoundingClientRect(), k = plot.viewBox.baseVal.width / r.width;
    const at = [(event.clientX - r.left) * k, (event.clientY - r.top) * k];
    const hit = placed.find(({ cx, cy }) => Math.hypot(cx - at[0], cy - at[1]) < 8);
    return hit ? describe(hit.t, this.state.study) : null;
  }

  // How close a trial lies to the slice, from 1 (in it) to 0.
  nearness(t, px, py) {
    let d = 0;
    for (const p of this.state.study.parameters) {
      if (p === px || p === py || !(p.name in t.params)) continue;
      d = Math.max(d, p.kind === "choice" ? (t.params[p.name] === this.at[p.name] ? 0 : 1) : Math.abs(share(p, t.params[p.name]) - share(p, this.at[p.name])));
    }
    return Math.max(0, 1 - 2 * d);
  }

  draw_line() {
    const { found, state } = this, p = state.study.parameters.find((q) => q.name === found.axes[0]);
    const panel = (title, unit, mean, half, cls, ends, dots) => {
      const box = el("div", { cls: "frame" });
      const place = () => {
        const width = box.clientWidth || 380, height = 244, left = 46, right = width - 8, top = 22, bottom = height - 34;
        const n = found.grid[0].length, x = along(p, n, left, right), y = scale(...ends, bottom, top);
        const plot = svg("svg", { cls: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title} over ${p.name}` });
        for (const t of ticks(...ends, 4)) plot.append(svg("line", { cls: "grid", x1: left, x2: right, y1: y(t), y2: y(t) }), svg("text", { x: left - 6, y: y(t) + 4, "text-anchor": "end" }, number(t)));
        axis(plot, p, x, (at) => ({ x: at, y: bottom + 15, "text-anchor": "middle" }));
        plot.append(svg("text", { cls: "axis-name", x: right, y: height - 2, "text-anchor": "end" }, named(p)), svg("text", { cls: "axis-name", x: 2, y: 11 }, unit));
        const at = found.grid[0].map((v) => x(v)), line = (values) => values.map((v, i) => `${at[i].toFixed(1)} ${y(v).toFixed(1)}`);
        if (half) plot.append(svg("path", { cls: "mean-band", d: `M${line(mean.map((v, i) => v + 1.645 * half[i])).join("L")}L${line(mean.map((v, i) => v - 1.645 * half[i])).reverse().join("L")}Z` }));
        plot.append(svg("path", { cls, d: `M${line(mean).join("L")}` }));
        for (const [t, value] of dots.filter(([q]) => p.name in q.params)) plot.append(svg("circle", { cls: "success", cx: x(t.params[p.name]), cy: y(value), r: 4 }));
        for (const t of thinned(state.trials.filter((q) => (q.state === "crash" || q.state === "stopped") && p.name in q.params), (q) => [x(q.params[p.name]), 0])) plot.append(mark(t.state, x(t.params[p.name]), bottom - 6, 3.5));
        for (const t of state.trials.filter((q) => q.open && p.name in q.params)) plot.append(svg("line", { cls: "pending-bar", x1: x(t.params[p.name]), x2: x(t.params[p.name]), y1: top, y2: bottom }));
        show(box, plot);
      };
      return { node: el("div", { cls: "map" }, el("h3", {}, title), box), place };
    };
    const panels = [];
    for (const goal of found.cost ? state.study.goals : []) {
      const cost = part(found.cost, goal), std = part(found.cost_std, goal);
      const dots = state.trials.filter((t) => t.state === "success" && part(t.cost, goal) !== undefined).map((t) => [t, part(t.cost, goal)]);
      const all = [...dots.map(([, value]) => value), ...cost.flatMap((v, i) => [v - 1.645 * std[i], v + 1.645 * std[i]])];
      panels.push(panel(`Expected ${goal.label}, 90 % interval`, named(goal, goal.label), cost, std, "mean", [Math.min(...all), Math.max(...all)], dots));
    }
    panels.push(panel("P(safe)", "probability", found.p_safe, null, "safe", [0, 1], []));
    show(this.maps, panels.map((m) => m.node), el("div", { cls: "key full-row" }, key("mean", `expected ${state.study.goals.map((g) => g.label).join(", ")}`), key("mean-band", "its 90 % interval"), key("safe", "P(safe)"), ["success", "crash", "stopped"].filter((s) => looks(s).counted || state.trials.some((t) => t.state === s)).map((s) => stateKey(s)), key("pending-bar", "under way")));
    for (const m of panels) m.place();
  }
}

// A trial that was stopped, on a map.
const stop = (x, y) => svg("rect", { cls: "stop-map", x: x - 3.6, y: y - 3.6, width: 7.2, height: 7.2 });

// Between a parameter's value and its place from 0 to 1.
export function share(p, value) {
  if (p.kind === "choice") return p.options.indexOf(value) / Math.max(1, p.options.length - 1);
  return p.log ? Math.log(value / p.low) / Math.log(p.high / p.low) : (value - p.low) / (p.high - p.low);
}
function placed(p, u) {
  const value = p.log ? p.low * (p.high / p.low) ** u : p.low + u * (p.high - p.low);
  const held = Math.max(p.low, Math.min(p.high, value));
  if (p.step) return Math.min(p.high, p.low + p.step * Math.round((held - p.low) / p.step));
  return p.kind === "int" ? Math.round(held) : held;
}
const middle = (p) => placed(p, 0.5);

// Pixels along an axis; options stand in the middle of their cell.
function along(p, count, from, to) {
  if (p.kind === "choice") return (value) => from + ((p.options.indexOf(value) + 0.5) / count) * (to - from);
  return (value) => from + share(p, value) * (to - from);
}
const index = (u, count, p) => Math.max(0, Math.min(count - 1, p.kind === "choice" ? Math.floor(u * count) : Math.round(u * (count - 1))));

function axis(plot, p, at, place) {
  const marks = p.kind === "choice" ? p.options : p.log ? decades(p.low, p.high) : ticks(p.low, p.high, 4);
  for (const m of marks) plot.append(svg("text", place(at(m)), p.kind === "choice" ? String(m).slice(0, 9) : number(m, 3)));
}
function decades(low, high) {
  const out = [];
  for (let k = Math.ceil(Math.log10(low) - 1e-9); 10 ** k <= high * 1.000001; k++) out.push(10 ** k);
  return out.length > 1 ? out : [low, high];
}
