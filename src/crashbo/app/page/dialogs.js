// What opens over the page: correct or add a trial, import a table, the studies of the store, the operator's name, the token.

import { call, insist } from "./api.js";
import { byId, el, number, setting, show, when } from "./dom.js";
import { costWords, part, several } from "./goals.js";
import { outcomeFields, outcomeIn } from "./outcome.js";
import { settingFields, settingIn } from "./settings.js";
import { looks, STATES } from "./states.js";
import { complaint } from "./typed.js";

const buttons = (label, id = "dialog-do") => el("div", { cls: "pair" }, el("button", { type: "submit", cls: "big success", id }, label),
  el("button", { type: "button", cls: "big void", onclick: () => byId("dialog").close() }, "Cancel"));

// A dialog with a form; `send(form)` may throw, and its words are shown. Closes when it is done.
function ask(title, children, send, ...more) {
  const dialog = byId("dialog"), wrong = el("p", { cls: "error", role: "alert" });
  const form = el("form", { cls: "tell", novalidate: true, "aria-labelledby": "dialog-title" }, el("h2", { id: "dialog-title" }, title), children, wrong, more);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    show(wrong);
    try { if (await send(form) !== false) dialog.close(); } catch (error) { show(wrong, complaint(error, el)); }
  });
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.name === "note") event.preventDefault(); });
  dialog.setAttribute("aria-labelledby", "dialog-title");
  show(dialog, form);
  if (!dialog.open) dialog.showModal();
  return form;
}

// Corrects `trial`, or adds one where it is null; `typedIn` are values of a form to begin with.
export function trialDialog(study, trial, who, done, typedIn = null) {
  const kind = trial && STATES[trial.state]?.told ? trial.state : "success";
  const kinds = Object.keys(STATES).filter((k) => STATES[k].told);
  const sure = el("label", { cls: "sure", hidden: true }, el("input", { type: "checkbox", name: "beyond" }), el("span"));
  const form = ask(trial ? `Correct trial ${trial.number}` : "A trial that was made by hand", [
    settingFields(study, trial?.params),
    el("label", { cls: "field" }, el("span", { cls: "label" }, "outcome"), el("select", { name: "kind" }, kinds.map((k) => el("option", { value: k, selected: k === kind }, looks(k).word)))),
    outcomeFields(study, trial), sure, trial?.history.length ? past(study, trial) : null,
  ], async (form) => {
    const { params, beyond } = settingIn(form, study), body = outcomeIn(form, study, form.elements.kind.value);
    if (beyond && !form.elements.beyond.checked) {
      sure.hidden = false;
      sure.lastChild.textContent = `It really ran beyond the bounds: ${beyond}`;
      throw new Error(`Beyond the bounds: ${beyond}. Mend it, or say that it really ran there.`);
    }
    await done({ ...body, params, beyond: Boolean(beyond), who });
  }, buttons(trial ? "Correct" : "Add"));
  for (const [name, value] of Object.entries(typedIn ?? {})) if (form.elements[name] && typeof value === "string") form.elements[name].value = value;
}

const VERBS = { tell: "told again", fix: "corrected", undo: "undone" };

// What was said of a trial before, oldest first.
export function past(study, trial) {
  const line = (said) => el("li", {}, `${said.state === "pending" ? "pending" : looks(said.state).word}${said.cost !== null && said.cost !== undefined ? ` ${several(study) ? costWords(said.cost, study) : `${number(said.cost)} ${study.cost.unit}`}` : ""}${said.reason ? `, ${said.reason}` : ""}${said.params ? `, ran at ${Object.values(said.params).map((v) => (typeof v === "number" ? number(v) : v)).join(", ")}` : ""}${said.who ? `, by ${said.who}` : ""}`,
    el("small", {}, ` ${VERBS[said.by] ?? said.by} ${when(said.until)}${said.by_whom ? ` by ${said.by_whom}` : ""}`));
  return el("div", { cls: "past" }, el("h3", {}, "Said of it before"), el("ol", {}, trial.history.map(line)));
}

export function importDialog(study, who, done) {
  const file = el("input", { type: "file", accept: ".csv,text/csv", name: "file", id: "import-file" }), plan = el("div", { cls: "plan", id: "import-plan", "aria-live": "polite" });
  let text = null, found = null;
  const preview = async () => {
    show(plan);
    text = found = null;
    if (!file.files[0]) return;
    const read = await file.files[0].text();
    try { found = await call("/api/import", { csv: read }); text = read; show(plan, planned(study, found)); } catch (error) { show(plan, el("p", { cls: "error", role: "alert" }, error.message)); }
  };
  file.addEventListener("change", preview);
  ask("Import a table of trials", [
    el("p", { cls: "empty" }, "A CSV with a column per parameter and the cost, as the export has them. What is there already is left out."),
    el("label", { cls: "field" }, el("span", { cls: "label" }, "file"), file), plan,
  ], async (form) => {
    if (!found) throw new Error("Choose a file that can be read first.");
    if (found.beyond.length && !form.elements.beyond?.checked) throw new Error("Some rows lie beyond the bounds. Mend them, or say that they really ran there.");
    if (found.new) await done(await insist("/api/import", { csv: text, apply: true, beyond: Boolean(found.beyond.length), who }));
  }, buttons("Import", "import-do"));
}

function planned(study, plan) {
  const rows = plan.rows.slice(0, 8), cell = (row, p) => (typeof row.params[p.name] === "number" ? setting(row.params[p.name], p) : String(row.params[p.name]));
  return [
    el("p", {}, el("b", {}, `${plan.new} new`), `, ${plan.known} there already.`, plan.new ? "" : " Nothing will be added."),
    plan.changed.length ? el("p", { cls: "warn" }, `${plan.changed.length} of them say otherwise by now and stay as they are: trial ${plan.changed.slice(0, 8).map((c) => c.number).join(", ")}.`) : null,
    plan.beyond.length ? [el("p", { cls: "warn" }, `Beyond the bounds: ${plan.beyond.slice(0, 5).map((b) => `line ${b.line}, ${b.words}`).join("; ")}${plan.beyond.length > 5 ? " …" : ""}.`), el("label", { cls: "sure" }, el("input", { type: "checkbox", name: "beyond" }), el("span", {}, "They really ran there"))] : null,
    plan.notes.length ? el("p", { cls: "key" }, `${plan.notes.slice(0, 5).map((n) => `line ${n.line}: ${n.words}`).join("; ")}${plan.notes.length > 5 ? " …" : ""}.`) : null,
    rows.length ? el("div", { cls: "sideways", tabindex: 0 }, el("table", { cls: "rows" },
      el("thead", {}, el("tr", {}, ["line", ...study.parameters.map((p) => p.name), "", ...study.goals.map((g) => g.label)].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, rows.map((r) => el("tr", {}, el("td", {}, String(r.line)), study.parameters.map((p) => el("td", {}, cell(r, p))), el("td", {}, looks(r.state).word), study.goals.map((g) => el("td", {}, part(r.cost, g) === undefined ? "" : number(part(r.cost, g))))))))) : null,
    plan.new > rows.length ? el("p", { cls: "key" }, `and ${plan.new - rows.length} more`) : null,
  ];
}

export async function studiesDialog() {
  const list = await call("/api/studies");
  ask("Studies in this store", el("ul", { cls: "studies" }, list.map((s) => el("li", {}, el("b", {}, s.name), ` ${s.trials} trials`, s.began ? `, since ${when(s.began)}` : "", s.here ? el("span", { cls: "why" }, " this one") : el("code", {}, `crashbo serve --study ${JSON.stringify(s.name)}`)))),
    () => true, el("button", { type: "submit", cls: "big void" }, "Close"));
}

export function nameDialog(who, done) {
  ask("Who is at the bench?", el("label", { cls: "field" }, el("span", { cls: "label" }, "Your name, kept with what you tell"), el("input", { name: "who", value: who, maxlength: 80, autocomplete: "name" })),
    (form) => done(form.elements.who.value.trim()), buttons("Keep"));
}

export function tokenDialog() {
  if (byId("dialog").open) return null;
  return new Promise((entered) => ask("This bench asks for its token", el("label", { cls: "field" }, el("span", { cls: "label" }, "token"), el("input", { name: "token", type: "password", autocomplete: "current-password" })),
    async (form) => { await call("/api/session", { token: form.elements.token.value }); location.reload(); entered(); }, el("button", { type: "submit", cls: "big success" }, "Enter")));
}
