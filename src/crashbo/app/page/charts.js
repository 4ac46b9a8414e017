// Pictures over trials: cost, thresholds; bars of influence; the table of blame.

import { el, number, percent, show, svg, tooltip, withUnit } from "./dom.js";
import { costWords } from "./goals.js";
import { named } from "./outcome.js";
import { reachable } from "./reach.js";
import { looks, mark, STATES, wordFor } from "./states.js";
import { columns, size, thinned } from "./thin.js";

export function scale(low, high, from, to) {
  const span = high - low || 1;
  return (x) => from + ((x - low) / span) * (to - from);
}

export function ticks(low, high, count = 5) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((m) => m * power >= raw) * power;
  const out = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * span; x += step) out.push(Math.abs(x) < step * 1e-9 ? 0 : x);
  return out;
}

// Ends that hold the bulk of the values: one huge cost must not flatten all others.
export function ends(values, always = []) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return [0, 1];
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  const spread = Math.max(at(0.75) - at(0.25), (at(0.9) - at(0.1)) / 2);
  let low = Math.max(sorted[0], at(0.25) - 4 * spread), high = Math.min(sorted.at(-1), at(0.75) + 4 * spread);
  for (const x of always) if (Number.isFinite(x)) { low = Math.min(low, x); high = Math.max(high, x); }
  const pad = (high - low || Math.abs(high) || 1) * 0.08;
  return [low - pad, high + pad];
}

// A frame with axes; the x axis counts trials.
function frame(host, { height = 264, yEnds, last, yName, rail }) {
  const width = Math.max(300, host.clientWidth || 600);
  const left = 52, right = width - 14, top = 26, bottom = height - 34 - (rail ? 24 : 0);
  const x = scale(-0.6, Math.max(last, 4) + 0.6, left, right), y = scale(yEnds[0], yEnds[1], bottom, top);
  const plot = svg("svg", { cls: "plot", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${yName} over trials` });
  plot.append(svg("text", { cls: "axis-name", x: 2, y: 11 }, yName));
  for (const t of ticks(...yEnds, 5)) {
    plot.append(svg("line", { cls: "grid", x1: left, x2: right, y1: y(t), y2: y(t) }), rail && y(t) > bottom - 7 ? "" : svg("text", { x: left - 7, y: y(t) + 4, "text-anchor": "end" }, number(t)));
  }
  if (rail) plot.append(svg("rect", { cls: "rail", x: left, y: bottom + 4, width: right - left, height: 20, rx: 4 }), svg("text", { x: left - 7, y: bottom + 18, "text-anchor": "end" }, rail));
  for (const t of ticks(0, Math.max(last, 4), width < 480 ? 5 : 9).filter(Number.isInteger)) {
    plot.append(svg("text", { x: x(t), y: height - 14, "text-anchor": "middle" }, String(t)));
  }
  plot.append(svg("text", { cls: "axis-name", x: right, y: height - 1, "text-anchor": "end" }, "trial"));
  show(host, plot);
  return { plot, x, y, left, right, top, bottom, railY: bottom + 14, clampY: (v) => Math.max(top, Math.min(bottom, y(v))) };
}

export function describe(trial, study) {
  const lines = [`Trial ${trial.number}: ${wordFor(trial)}`];
  if (trial.cost !== null) lines.push(costWords(trial.cost, study));
  for (const c of study.constraints) if (c.name in trial.measured) lines.push(`${c.name} ${withUnit(number(trial.measured[c.name]), c.unit)}`);
  if (trial.reason) lines.push(trial.reason);
  if (trial.p_safe !== null) lines.push(`P(safe) was ${percent(trial.p_safe)}`);
  return lines.join("\n");
}

export function costChart(host, state, onChoose) {
  const { study, trials, insight } = state;
  const told = trials.filter((t) => t.cost !== null && t.state === "success");
  const open = trials.filter((t) => t.open && insight?.expected?.[t.number]?.cost);
  const best = trials.find((t) => t.number === state.best);
  if (!trials.some((t) => t.state !== "pending")) return show(host, el("p", { cls: "empty" }, "Nothing told yet. The first results will appear here."));
  const f = frame(host, {
    yEnds: ends(told.map((t) => t.cost), [best?.cost]), last: trials.length - 1, yName: named(study.cost, study.cost.label), rail: "none",
  });
  const sign = study.direction === "maximize" ? -1 : 1;
  let path = "", top = Infinity;
  for (const t of told) {
    if (sign * t.cost < top) { top = sign * t.cost; path += path ? `H${f.x(t.number)}V${f.clampY(t.cost)}` : `M${f.x(t.number)} ${f.clampY(t.cost)}`; }
  }
  if (path) f.plot.append(svg("path", { cls: "best-line", d: `${path}H${f.right}` }));
  for (const t of open) {
    const [mean, low, high] = insight.expected[t.number].cost;
    f.plot.append(svg("line", { cls: "pending-bar", x1: f.x(t.number), x2: f.x(t.number), y1: f.clampY(low), y2: f.clampY(high) }), svg("circle", { cls: "pending", cx: f.x(t.number), cy: f.clampY(mean), r: 5 }));
  }
  const y = (t) => (looks(t.state).rail || t.cost === null ? f.railY : f.clampY(t.cost));
  for (const t of thinned(trials.filter((q) => q.state !== "pending" && q !== best), (q) => [f.x(q.number), y(q)])) f.plot.append(mark(t.state, f.x(t.number), y(t), size(trials)));
  if (best) f.plot.append(svg("circle", { cls: "best-dot", cx: f.x(best.number), cy: f.clampY(best.cost), r: 6.5 }));
  hits(host, f, trials, onChoose, (t) => describe(t, study));
  host.append(el("div", { cls: "key" }, key("best-line", "best so far"), seen(trials).map((s) => stateKey(s)), open.length ? key("pending", "under way, with what is expected") : null));
}

export function levelChart(host, state, name, onChoose) {
  const { study, trials, insight } = state;
  const c = study.constraints.find((k) => k.name === name);
  if (!c) return show(host, el("p", { cls: "empty" }, "No constraint is measured: crashes are learnt from their settings alone."));
  const measured = trials.filter((t) => name in t.measured && t.state !== "void" && t.state !== "pending");
  const bare = trials.filter((t) => looks(t.state).rail && t.state !== "void" && !(name in t.measured));
  const levels = (insight?.history?.[name] ?? []).filter((l) => l.value !== null);
  if (!measured.length && !levels.length) return show(host, el("p", { cls: "empty" }, `No ${name} measured yet.`));
  const latest = levels.at(-1);
  // Beside the picture, not in it: there it would lie on the points that matter.
  const level = latest ? withUnit(number(latest.value), c.unit) : "", isOpen = latest?.interval?.includes(null);
  const said = !latest ? "threshold" : el("b", { cls: "said" }, isOpen ? latest.words : latest.learned ? `crashes ${c.side} ${level}` : `known: crashes ${c.side} ${level}`);
  const f = frame(host, {
    yEnds: ends(measured.map((t) => t.measured[name]), [latest?.value, ...(latest?.interval ?? []).filter((x) => x !== null)]), last: trials.length - 1, yName: named(c), rail: "none",
  });
  const banded = levels.filter((l) => l.interval);
  if (banded.length) {
    const high = (l) => f.clampY(l.interval[1] ?? Infinity), low = (l) => f.clampY(l.interval[0] ?? -Infinity);  // an open end is null
    const upper = banded.map((l) => `${f.x(l.number)} ${high(l)}`), lower = banded.map((l) => `${f.x(l.number)} ${low(l)}`).reverse();
    const end = banded.at(-1);
    f.plot.append(svg("path", { cls: "level-band", d: `M${upper.join("L")}L${f.right} ${high(end)}L${f.right} ${low(end)}L${lower.join("L")}Z` }));
  }
  if (levels.length) f.plot.append(svg("path", { cls: "level", d: `M${levels.map((l) => `${f.x(l.number)} ${f.clampY(l.value)}`).join("L")}H${f.right}` }));
  const y = (t) => (name in t.measured ? f.clampY(t.measured[name]) : f.railY);
  for (const t of thinned([...measured, ...bare], (q) => [f.x(q.number), y(q)])) f.plot.append(mark(t.state, f.x(t.number), y(t), size(trials)));
  const byNumber = new Map(levels.map((l) => [l.number, l]));
  const learnt = (level) => (level ? `\nlearnt by then: ${level.words}` : "");
  hits(host, f, trials, onChoose, (t) => describe(t, study) + learnt(byNumber.get(t.number)));
  host.append(el("div", { cls: "key" }, key("level", said), key("level-band", isOpen ? "its 90 % interval, open at one end" : "its 90 % interval"), seen([...measured, ...bare]).map((s) => stateKey(s, s === "success" ? `${c.name} of a success` : `${looks(s).word}, where measured at its value`))));
}

// What catches pointer and keyboard: one column per trial, or per few of very many.
function hits(host, f, trials, onChoose, words) {
  const step = Math.max(6, f.x(1) - f.x(0));
  const made = columns(trials, f.x).map((some) => {
    const t = some.at(-1), text = (some.length > 1 ? `Trials ${some[0].number} to ${t.number}, the last of them:\n` : "") + words(t);
    return tooltip(svg("rect", { cls: "hit", "data-number": t.number, "aria-label": text.replaceAll("\n", ", "), x: f.x(t.number) - step / 2, y: f.top, width: step, height: f.railY - f.top + 12, rx: 3, onclick: () => onChoose(t.number) }), text);
  });
  f.plot.append(...made);
  reachable(host, f.plot, made, onChoose);
}

const seen = (trials) => Object.keys(STATES).filter((s) => s !== "pending" && trials.some((t) => t.state === s));

export function stateKey(state, words = looks(state).word) {
  return el("span", {}, svg("svg", { cls: "plot", style: { width: "18px", height: "12px" }, viewBox: "0 0 18 12", "aria-hidden": "true" }, mark(state, 9, 6, 3.4)), words);
}

export function key(cls, words) {
  const shapes = {
    pending: () => svg("circle", { cls, cx: 9, cy: 6, r: 4 }), "level-band": () => svg("rect", { cls, x: 0, y: 1, width: 18, height: 10 }),
  };
  const shape = shapes[cls] ?? (() => svg("path", { cls, d: "M0 6H18" }));
  return el("span", {}, svg("svg", { cls: "plot", viewBox: "0 0 18 12", style: { width: "18px", height: "12px" }, "aria-hidden": "true" }, shape()), words);
}

export function matterBars(host, state) {
  const influence = state.insight?.influence;
  if (!influence || !Object.keys(influence).length) return show(host, el("p", { cls: "empty" }, "Appears after the first results."));
  const kinds = [...state.study.goals.map((g, i) => [g.name, g.label, ["var(--model)", "var(--level)", "var(--crash)"][i]]), ["safety", "P(safe)", "var(--next)"]].filter(([kind]) => influence[kind]);
  const names = state.study.parameters.map((p) => p.name).filter((n) => n in influence[kinds[0][0]]);
  names.sort((a, b) => Math.max(...kinds.map(([k]) => influence[k][b])) - Math.max(...kinds.map(([k]) => influence[k][a])));
  const row = (name) => el("div", { cls: "bar-row" }, el("span", { title: name }, name),
    el("div", { cls: "bar-pair" }, kinds.map(([kind, , tint]) => el("div", { cls: "bar" }, el("i", { style: { width: `${80 * influence[kind][name]}%`, "--tint": tint } }), percent(influence[kind][name])))));
  show(host, el("div", { cls: "bars" }, names.map(row)),
    el("div", { cls: "key", style: { "margin-top": ".7rem" } }, kinds.map(([, label, tint]) => el("span", {}, el("i", { style: { width: "14px", height: "9px", "border-radius": "3px", background: tint } }), `share of the variation of ${label}`))));
}

export function blameTable(host, state, onChoose) {
  const crashes = state.trials.filter((t) => t.state === "crash").reverse();
  if (!crashes.length) return show(host, el("p", { cls: "empty" }, "No crash yet."));
  const names = state.study.constraints.map((c) => c.name), blame = state.insight?.blame ?? {};
  const cell = (t, name) => {
    const p = blame[t.number]?.[name];
    const told = t.blame.includes(name);
    return el("td", { cls: "share" }, el("i", { style: { width: `${100 * (p ?? 0)}%` } }), el("span", { title: told ? "as told" : "as the model infers" }, p === undefined ? "…" : percent(p), told ? " ✓" : ""));
  };
  const rows = crashes.slice(0, 12).map((t) => [
    el("tr", {}, el("td", {}, el("button", { type: "button", cls: "quiet", onclick: () => onChoose(t.number) }, `#${t.number}`)), names.map((n) => cell(t, n))),
    t.reason ? el("tr", {}, el("td"), el("td", { cls: "words", colspan: names.length }, t.reason)) : null,
  ]);
  show(host, el("div", { cls: "sideways" }, el("table", { cls: "blame" }, el("thead", {}, el("tr", {}, el("th", {}, "crash"), names.map((n) => el("th", {}, n)))), el("tbody", {}, rows))),
    el("p", { cls: "key" }, names.length > 1 ? "How likely each constraint was violated; they need not sum to one." : "How likely it was violated; the rest is of causes that nobody measures.",
      crashes.length > 12 ? ` The latest 12 of ${crashes.length}.` : ""));
}
