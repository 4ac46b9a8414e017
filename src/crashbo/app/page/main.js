// The page: fetches the state whenever the server says that it changed, and draws it.

import { call, enter, insist, listen, Refused, requestId } from "./api.js";
import { blameTable, costChart, levelChart, matterBars } from "./charts.js";
import { checkList } from "./checks.js";
import { byId, el, number, percent, setting, show, withUnit } from "./dom.js";
import { logTable, trialDialog } from "./log.js";
import { Now } from "./now.js";
import { Slices } from "./slices.js";

let state = null, chosen = null, level = null, lastTold = null;
const now = new Now(byId("now"), { next, tell, choose, copy, goesOn });
const slices = new Slices(byId("slices"));

// ---- state

// Resolves when the state is newer than the call: one that is under way may have begun before.
let running = null, again = null;
function refresh() {
  if (again) return again;
  if (running) {
    again = running.then(() => { again = null; return refresh(); });
    return again;
  }
  running = fetchState().finally(() => { running = null; });
  return running;
}

async function fetchState() {
  try {
    state = await call("/api/state");
    draw();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) await askToken();
  }
}

const open = () => state?.trials.filter((t) => t.open) ?? [];
const current = () => open().find((t) => t.number === chosen) ?? open()[0] ?? null;

function draw() {
  const { study, trials } = state, t = current();
  state.current = t;
  document.title = t ? `#${t.number} · ${study.name} · crashbo` : `${study.name} · crashbo`;
  byId("study-name").textContent = study.name;
  byId("study-goal").textContent = `${study.direction === "maximize" ? "highest" : "lowest"} ${study.cost.label}${riskWords(study.risk)}`;
  byId("cost-title").textContent = study.cost.label[0].toUpperCase() + study.cost.label.slice(1);
  byId("thinking").hidden = !state.thinking;
  counts(study, trials);
  now.update(state, t);
  findings();
  costChart(byId("chart-cost"), state, point);
  drawLevels();
  checkList(byId("checks"), state, point);
  slices.update(state, t);
  matterBars(byId("chart-matter"), state);
  blameTable(byId("chart-blame"), state, point);
  logTable(byId("log"), state, chosen, { fix, undo });
}

function riskWords(risk) {
  if (risk?.kind === "Price") return `, a crash costs ${risk.crash} trials`;
  if (risk?.kind === "MinSafe") return `, P(safe) at least ${Math.round(100 * risk.p)} %`;
  if (risk?.kind === "Budget") return `, at most ${risk.crashes} crashes`;
  return "";
}

function counts(study, trials) {
  const count = (s) => trials.filter((t) => t.state === s).length, best = trials.find((t) => t.number === state.best);
  const item = (name, value, cls = "") => el("div", { cls }, el("dt", {}, name), el("dd", {}, value));
  show(byId("counts"), item("successes", String(count("success"))), item("crashes", String(count("crash")), "crash"), item("voids", String(count("void"))),
    item("best", best ? [withUnit(number(best.cost), study.cost.unit), el("small", {}, ` #${best.number}`)] : "–"));
}

function findings() {
  const { study, insight } = state, best = state.trials.find((t) => t.number === state.best), told = insight?.recommended;
  byId("found").hidden = !best;
  if (!best) return;
  const row = (name, left, right, cls = "") => el("tr", { cls }, el("th", { scope: "row" }, name), el("td", {}, left), told ? el("td", {}, right) : null);
  show(byId("findings"), el("table", { cls: "findings" },
    el("thead", {}, el("tr", {}, el("th", {}), el("th", { scope: "col" }, `best, trial ${best.number}`), told ? el("th", { scope: "col" }, "recommended") : null)),
    el("tbody", {}, row(withUnit(study.cost.label, study.cost.unit && `(${study.cost.unit})`), number(best.cost), told?.cost ? `${number(told.cost[0])} ± ${number(told.cost[2] - told.cost[0], 2)}` : ""),
      row("P(safe)", "succeeded", told ? percent(told.p_safe) : ""),
      study.parameters.map((p, i) => row(withUnit(p.name, p.unit && `(${p.unit})`), p.name in best.params ? setting(best.params[p.name], p) : "", told && p.name in told.params ? setting(told.params[p.name], p) : "", i ? "" : "rule")))),
    insight?.exhausted ? el("p", {}, "Nothing is left to gain: repeat the best, or stop.") : null);
}

function drawLevels() {
  const names = state.study.constraints.filter((c) => c.measured).map((c) => c.name);
  if (!names.includes(level)) level = names[0] ?? null;
  show(byId("level-choices"), names.length > 1 ? names.map((n) => el("button", { type: "button", "aria-pressed": String(n === level), onclick: () => { level = n; drawLevels(); } }, n)) : []);
  levelChart(byId("chart-level"), state, level, point);
}

// ---- what the operator does

// Asks for a trial; returns its number, or null if there is none.
async function next() {
  let asked = null;
  now.busy = true;
  now.complain("");
  now.update(state, current());
  try {
    asked = chosen = (await insist("/api/ask", { request: requestId() })).number;
  } catch (error) {
    setTimeout(() => now.complain(error.message), 0);
  }
  now.busy = false;
  await refresh();
  return asked;
}

async function tell(trial, body) {
  const buttons = byId("now").querySelectorAll("button");
  buttons.forEach((b) => { b.disabled = true; });
  try {
    const said = await insist(`/api/trials/${trial.number}/tell`, { ...body, request: requestId() });
    const mine = { number: said.number, asked: null }; // asked: a promise, since an undo may come before its answer
    lastTold = mine;
    toast(words(said), "Undo", () => undo(said.number));
    document.activeElement?.blur();
    chosen = null;
    await refresh();
    if (goesOn() && !open().some((t) => t.number !== said.number)) await (mine.asked = next());
  } catch (error) {
    now.complain(error.message);
    buttons.forEach((b) => { b.disabled = false; });
  }
}

function words(t) {
  const { study } = state;
  return t.state === "success" ? `Trial ${t.number}: ${study.cost.label} ${withUnit(number(t.cost), study.cost.unit)}` : `Trial ${t.number}: ${t.state}${t.reason ? `, ${t.reason}` : ""}`;
}

// Takes the last word on a trial back. What was asked for because of it, and was not told, is withdrawn.
async function undo(number) {
  const target = number ?? lastTold?.number ?? latestTold();
  if (target === undefined) return;
  try {
    await insist(`/api/trials/${target}/undo`, {});
    const asked = lastTold?.number === target ? await lastTold.asked : null;
    if (asked !== null && state.trials[asked]?.open) await insist(`/api/trials/${asked}/void`, { reason: `withdrawn: trial ${target} was undone` });
    lastTold = null;
    chosen = target;
    toast(`Trial ${target}: last word taken back`);
  } catch (error) {
    toast(error.message);
  }
  await refresh();
}

function latestTold() {
  const told = state.trials.filter((t) => t.state !== "pending");
  return told.length ? told.reduce((a, b) => (b.at > a.at ? b : a)).number : undefined;
}

function fix(trial) {
  trialDialog(byId("dialog"), state.study, trial, async (body) => { await insist(`/api/trials/${trial.number}/fix`, body); toast(`Trial ${trial.number} corrected`, "Undo", () => undo(trial.number)); await refresh(); });
}

byId("add").addEventListener("click", () => trialDialog(byId("dialog"), state.study, null, async (body) => {
  const said = await insist("/api/trials", { ...body, request: requestId() });
  toast(words(said));
  await refresh();
}));

function choose(number) { chosen = number; draw(); }
function point(number) {
  chosen = number;
  draw();
  byId(`trial-${number}`)?.scrollIntoView({ block: "nearest" });
}

async function copy(trial) {
  try {
    await navigator.clipboard.writeText(JSON.stringify(trial.params));
    toast("Setting copied as JSON");
  } catch {
    toast(JSON.stringify(trial.params));
  }
}

function goesOn(value) {
  if (value !== undefined) localStorage.setItem("crashbo-go-on", value ? "yes" : "no");
  return localStorage.getItem("crashbo-go-on") !== "no";
}

async function askToken() {
  const dialog = byId("dialog");
  if (dialog.open) return;
  await new Promise((done) => {
    const input = el("input", { name: "token", type: "password", autocomplete: "current-password", "aria-label": "token" }), complaint = el("p", { cls: "error", role: "alert" });
    const form = el("form", { cls: "tell" }, el("h3", {}, "This bench asks for its token"), el("label", { cls: "field" }, "token", input), complaint, el("button", { type: "submit", cls: "big success" }, "Enter"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try { await call("/api/session", { token: input.value }); dialog.close(); location.reload(); done(); } catch (error) { complaint.textContent = error.message; }
    });
    show(dialog, form);
    dialog.showModal();
  });
}

// ---- around it

let hiding = 0;
function toast(text, action, act) {
  const box = byId("toast");
  show(box, el("span", {}, text), action ? el("button", { type: "button", id: "toast-action", onclick: () => { box.hidden = true; act(); } }, action) : el("span"));
  box.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { box.hidden = true; }, 12000);
}

function theme(value) {
  document.documentElement.dataset.theme = value;
  if (state) { draw(); slices.redraw(); }
}
const preferred = () => localStorage.getItem("crashbo-theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
function turnTheme() {
  localStorage.setItem("crashbo-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme(preferred());
}
byId("theme").addEventListener("click", turnTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(preferred()));
theme(preferred());

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("dialog").open) return;
  if (event.target.matches("input:not([type=checkbox]):not([type=range]), select")) { if (event.key === "Escape") event.target.blur(); return; }
  const press = { n: "next", s: "tell-success", c: "tell-crash", v: "tell-void" }[event.key.toLowerCase()];
  const cost = byId("now").querySelector("input[name=cost]");
  if (event.key.toLowerCase() === "u") undo();
  else if (event.key.toLowerCase() === "d") turnTheme();
  else if (press === "tell-success" && cost && !cost.value) cost.focus();
  else if (press) byId(press)?.click();
  else return;
  event.preventDefault();
});

let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => { if (state) { draw(); slices.redraw(); } }, 150); });
setInterval(() => { if (state) now.update(state, current()); }, 30000);

function link(to) {
  const badge = byId("link");
  badge.dataset.state = to;
  badge.textContent = to === "live" ? "live" : "reconnecting";
  byId("offline").hidden = to === "live";
}

let asked = 0;
await enter().catch(() => {});
await refresh();
listen(() => {
  clearTimeout(asked);
  asked = setTimeout(refresh, 60);
}, link);
