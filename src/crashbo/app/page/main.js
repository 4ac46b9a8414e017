// The page: fetches the state whenever the server says that it changed, and draws it.

import { call, enter, insist, listen, newState, Refused, requestId } from "./api.js";
import { blameTable, costChart, levelChart, matterBars } from "./charts.js";
import { checkList } from "./checks.js";
import { lastOf, preference, ranking } from "./compare.js";
import { importDialog, nameDialog, studiesDialog, tokenDialog, trialDialog } from "./dialogs.js";
import { byId, el, number, show, when, withUnit } from "./dom.js";
import { findings } from "./findings.js";
import { frontChart } from "./front.js";
import { several, wanted } from "./goals.js";
import { logTable } from "./log.js";
import { Now } from "./now.js";
import { Slices } from "./slices.js";
import { looks, STATES } from "./states.js";
import { useTheme } from "./theme.js";

let state = null, pointed = null, level = null, lastTold = null, preparing = false;
const kept = (key, start) => (value) => { if (value !== undefined) localStorage.setItem(key, value ? "yes" : "no"); return (localStorage.getItem(key) ?? start) === "yes"; };
const goesOn = kept("crashbo-go-on", "yes"), prepares = kept("crashbo-ahead", "no");
const who = (name) => { if (name !== undefined) localStorage.setItem("crashbo-who", name); return localStorage.getItem("crashbo-who") ?? ""; };
const now = new Now(byId("now"), { next, tell, compare, choose, copy, undo, repeatBest, goesOn, prepares: (v) => { const on = prepares(v); if (v) prepare(); return on; }, correct: (trial, typedIn) => fix(trial, typedIn), notice: (text) => toast(text) });
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
    state = await newState(state);
    byId("trouble").hidden = true;
    draw();
    prepare();
  } catch (error) {
    if (!(error instanceof Refused)) return; // the link tells when the server is away
    if (error.status === 401) return tokenDialog();
    byId("trouble").textContent = error.message;
    byId("trouble").hidden = false;
  }
}

const open = () => state?.trials.filter((t) => t.open) ?? [];

function draw() {
  const { study, trials } = state;
  document.body.classList.toggle("compared", study.compared);
  now.update(state);
  state.current = now.trial;
  document.title = now.trial ? `#${now.trial.number} · ${study.name} · crashbo` : `${study.name} · crashbo`;
  byId("study-name").textContent = byId("study-name").title = study.name;
  byId("study-goal").textContent = `${study.compared ? "the better of two" : wanted(study)}${riskWords(study.risk)}`;
  byId("costs").hidden = study.compared;
  ranking(byId("ranked"), byId("ranking"), state, point);
  byId("h-cost").textContent = several(study) ? "Front" : `${study.cost.label[0].toUpperCase()}${study.cost.label.slice(1)} over trials`;
  byId("thinking").hidden = !state.thinking;
  counts(study, trials);
  around();
  findings(byId("found"), byId("findings"), state);
  (several(study) ? frontChart : costChart)(byId("chart-cost"), state, point);
  drawLevels();
  checkList(byId("checks"), state, point);
  slices.update(state, now.trial);
  matterBars(byId("chart-matter"), state);
  blameTable(byId("chart-blame"), state, point);
  logTable(byId("log"), state, pointed, { fix, undo });
}

function riskWords(risk) {
  if (risk?.kind === "Price") return `, a crash costs ${risk.crash} trials`;
  if (risk?.kind === "MinSafe") return `, P(safe) at least ${Math.round(100 * risk.p)} %`;
  if (risk?.kind === "Budget") return `, at most ${risk.crashes} crashes${risk.trials ? ` in ${risk.trials} trials` : ""}`;
  return "";
}

function counts(study, trials) {
  const count = (s) => trials.filter((t) => t.state === s).length, best = trials.find((t) => t.number === state.best);
  const item = (name, value, cls = "") => el("div", { cls }, el("span", { cls: "dd" }, value), el("span", { cls: "dt" }, name));
  const left = study.risk?.kind === "Budget" ? Math.max(0, study.risk.crashes - count("crash")) : null;
  const shown = Object.keys(STATES).filter((s) => s !== "pending" && (STATES[s].counted || count(s)));
  show(byId("counts"), shown.map((s) => item(looks(s).many, String(count(s)), s)),
    left === null ? null : item("crashes left", `${left} of ${study.risk.crashes}`, left ? "" : "crash"),
    several(study) ? [item("on the front", String(state.insight?.front?.trials.length ?? 0)), item("hypervolume", number(state.insight?.front?.hypervolume))]
      : item(best && best.cost !== null ? `best, #${best.number}` : "best", best ? (best.cost === null ? `#${best.number}` : withUnit(number(best.cost), study.cost.unit)) : "–"));
}

function around() {
  const { halted, read_only: readOnly } = state;
  byId("who").textContent = who() ? who() : "Who?";
  byId("who").setAttribute("aria-label", who() ? `At the bench: ${who()}` : "Who is at the bench?");
  byId("halt").hidden = Boolean(halted) || readOnly;
  byId("halted").hidden = !halted;
  if (halted) show(byId("halted"), el("span", {}, `No trials are handed out since ${when(halted.at)}${halted.who ? `, by ${halted.who}` : ""}${halted.why ? `: ${halted.why}` : ""}. Results can still be told.`), readOnly ? null : el("button", { type: "button", cls: "answer", id: "resume", onclick: resume }, "Resume"));
  for (const id of ["add", "import"]) byId(id).hidden = readOnly;
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
  now.update(state);
  try {
    asked = (await insist("/api/ask", { request: requestId(), context: now.met() })).number;
  } catch (error) {
    setTimeout(() => now.complain(error.message), 0);
  }
  now.busy = false;
  await refresh();
  return asked;
}

// The next setting, chosen while the machine runs: without the result of this one, since that is not known yet.
async function prepare() {
  if (!prepares() || preparing || state.halted || state.read_only || open().length !== 1 || state.trials.some((t) => t.choosing || t.queued)) return;
  preparing = true;
  try { await call("/api/ask", { request: requestId(), context: now.met() }); } catch { /* asked for again with the next change */ } finally { preparing = false; }
}

async function repeatBest() {
  const best = state.trials.find((t) => t.number === state.best);
  const chosen = Object.fromEntries(Object.entries(best.params).filter(([name]) => state.study.parameters.find((p) => p.name === name)?.kind !== "context"));
  try { await insist("/api/wish", { params: chosen, beyond: true }); await next(); } catch (error) { now.complain(error.message); }
}

let sent = null; // what was sent last: once more after a lost answer, it has the same request id
async function tell(trial, body) {
  const key = JSON.stringify([trial.number, body]);
  if (sent?.key !== key) sent = { key, request: requestId() };
  now.busy = true;
  now.arm();
  try {
    const said = await insist(`/api/trials/${trial.number}/tell`, { ...body, who: who(), request: sent.request });
    const mine = { number: said.number, asked: null }; // asked: a promise, since an undo may come before its answer
    lastTold = mine;
    now.told(said.number);
    document.activeElement?.blur();
    now.busy = false;
    await refresh();
    if (goesOn() && !state.halted && !open().some((t) => t.number !== said.number)) await (mine.asked = next());
  } catch (error) {
    now.busy = false;
    now.complain(error instanceof Refused ? error.message : "The server does not answer. What you typed is kept: press it again.");
    if (error instanceof Refused && error.status === 409) await refresh();
    now.arm();
  }
}

// A verdict: the trial succeeded, if nobody has told so yet, and was better, as good or worse than its rival.
async function compare(trial, body, verdict, rival) {
  const said = preference(verdict, trial, rival), key = JSON.stringify([trial.number, body, said]);
  if (sent?.key !== key) sent = { key, request: requestId() };
  now.busy = true;
  now.arm();
  try {
    if (body) await insist(`/api/trials/${trial.number}/tell`, { ...body, who: who(), request: sent.request });
    await insist("/api/prefer", { ...said, who: who(), request: sent.request });
    const mine = { number: trial.number, asked: null, compared: !body };
    lastTold = mine;
    now.told(trial.number);
    document.activeElement?.blur();
    now.busy = false;
    await refresh();
    if (goesOn() && !state.halted && !now.open().length) await (mine.asked = next());
  } catch (error) {
    now.busy = false;
    now.complain(error instanceof Refused ? error.message : "The server does not answer. What you typed is kept: press it again.");
    if (error instanceof Refused) await refresh();
    now.arm();
  }
}

// Takes the last word on a trial back. What was asked for because of it, and was not told, is withdrawn.
async function undo(target) {
  if (target === undefined) return;
  const pair = lastOf(state, target), trial = state.trials[target];
  // What was compared later than it was told is taken back alone, unless one click here said both.
  const alone = pair && pair.at > trial.at && (lastTold?.number !== target || lastTold.compared);
  try {
    await (alone ? insist("/api/unprefer", { id: pair.id, who: who() }) : insist(`/api/trials/${target}/undo`, { who: who() }));
    const asked = lastTold?.number === target ? await lastTold.asked : null;
    if (asked !== null && state.trials[asked]?.open) await insist(`/api/trials/${asked}/void`, { reason: `withdrawn: trial ${target} was undone`, who: who() });
    lastTold = null;
    toast(`Trial ${target}: last word taken back`);
    await refresh();
    if (state.trials[target]?.open) choose(target);
  } catch (error) {
    toast(error.message);
    await refresh();
  }
}

function fix(trial, typedIn = null) {
  trialDialog(state.study, trial, who(), async (body) => {
    await insist(`/api/trials/${trial.number}/fix`, body);
    if (typedIn) now.told(trial.number);
    toast(`Trial ${trial.number} corrected`);
    await refresh();
  }, typedIn);
}

async function resume() {
  try { await insist("/api/resume", {}); } catch (error) { toast(error.message); }
  await refresh();
}

async function halt() {
  try { await insist("/api/halt", { who: who() }); toast("No more trials are handed out"); } catch (error) { toast(error.message); }
  await refresh();
}

async function report() {
  byId("report").disabled = true;
  toast("The report is being written. This may take a minute.");
  try {
    const answer = await fetch("/api/report.html");
    if (!answer.ok) throw new Error((await answer.json()).error);
    const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: answer.headers.get("content-disposition")?.match(/filename="(.+)"/)?.[1] ?? "report.html" });
    link.click();
    toast("The report is written");
  } catch (error) {
    toast(error.message);
  }
  byId("report").disabled = false;
}

function choose(number) { now.choose(number); draw(); }
function point(number) {
  pointed = number;
  if (state.trials[number]?.open) now.choose(number);
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

byId("add").addEventListener("click", () => trialDialog(state.study, null, who(), async (body) => { const t = await insist("/api/trials", { ...body, request: requestId() }); toast(`Trial ${t.number} added`); await refresh(); }));
byId("import").addEventListener("click", () => importDialog(state.study, who(), async (plan) => { toast(`${plan.new} trials added, ${plan.known} were there already`); await refresh(); }));
byId("report").addEventListener("click", report);
byId("studies").addEventListener("click", () => studiesDialog().catch((error) => toast(error.message)));
byId("who").addEventListener("click", () => nameDialog(who(), (name) => { who(name); around(); }));
byId("halt").addEventListener("click", halt);

// ---- around it

let hiding = 0;
function toast(text) {
  const box = byId("toast");
  show(box, el("span", {}, text));
  box.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { box.hidden = true; }, 6000);
}

const redraw = () => { if (state) { draw(); slices.redraw(); } };
const turnTheme = useTheme(redraw);
byId("theme").addEventListener("click", turnTheme);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || byId("dialog").open || !state) return;
  if (event.target.matches("input:not([type=checkbox]):not([type=range]), select")) { if (event.key === "Escape") event.target.blur(); return; }
  const press = { n: "next", s: byId("tell-same") ? "tell-same" : "tell-success", c: "tell-crash", v: "tell-void", u: "undo", b: "tell-better", w: "tell-worse", l: "tell-skip" }[event.key.toLowerCase()];
  const cost = byId("now").querySelector("input[name=cost], input[name^='c:']");
  if (event.key.toLowerCase() === "d") turnTheme();
  else if (press === "tell-success" && cost && !cost.value) cost.focus();
  else if (press) byId(press)?.click();
  else return;
  event.preventDefault();
});

let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(redraw, 150); });
setInterval(() => { if (state) now.update(state); }, 30000);

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
