// All trials, newest first, and the dialog in which one is corrected or added.

import { el, number, percent, setting, show, withUnit } from "./dom.js";
import { cutOff } from "./now.js";

export function logTable(host, state, chosen, doing) {
  const { study, trials } = state, measured = study.constraints.filter((c) => c.measured);
  if (!trials.length) return show(host, el("p", { cls: "empty" }, "None yet."));
  const head = ["#", "", ...study.parameters.map((p) => withUnit(p.name, p.unit && `(${p.unit})`)), withUnit(study.cost.label, study.cost.unit && `(${study.cost.unit})`), ...measured.map((c) => withUnit(c.name, c.unit && `(${c.unit})`)), "P(safe)", "note", ""];
  const row = (t) => el("tr", { cls: [t.number === state.best ? "best" : "", t.number === chosen ? "chosen" : ""].join(" "), id: `trial-${t.number}` },
    el("td", {}, String(t.number)),
    el("td", { cls: "words", style: { "min-width": "0" } }, el("span", { cls: `state ${t.state}` }, t.queued ? "queued" : t.choosing ? "choosing" : t.state)),
    study.parameters.map((p) => el("td", { title: String(t.params[p.name] ?? "") }, p.name in t.params ? setting(t.params[p.name], p) : "")),
    el("td", {}, t.cost === null ? "" : number(t.cost, 5)),
    measured.map((c) => el("td", {}, c.name in t.measured ? `${t.censored.includes(c.name) ? (c.side === "below" ? "≤ " : "≥ ") : ""}${number(t.measured[c.name], 5)}` : "")),
    el("td", { title: t.p_model === null ? "" : `${percent(t.p_model)} by the model alone` }, t.p_safe === null ? "" : percent(t.p_safe)),
    el("td", { cls: "words" }, [t.reason, t.blame.length ? `blamed on ${t.blame.join(" and ")}` : "", t.corrections ? `corrected ${t.corrections}×` : ""].filter(Boolean).join("; ")),
    el("td", {}, t.state === "pending" ? null : [el("button", { type: "button", cls: "quiet", onclick: () => doing.fix(t), "aria-label": `Correct trial ${t.number}` }, "Correct"), el("button", { type: "button", cls: "quiet", onclick: () => doing.undo(t.number), "aria-label": `Undo trial ${t.number}` }, "Undo")]));
  const top = host.scrollTop;
  show(host, el("table", {}, el("thead", {}, el("tr", {}, head.map((h, i) => el("th", { cls: h === "note" || i === 1 ? "words" : "", style: i === 1 ? { "min-width": "0" } : {} }, h)))), el("tbody", {}, [...trials].reverse().map(row))));
  host.scrollTop = top;
}

// The dialog: corrects `trial`, or adds one where it is null. `send(body)` may throw; its words are shown.
export function trialDialog(dialog, study, trial, send) {
  const value = (x) => (x === undefined || x === null ? "" : String(x));
  const field = (name, label, text, more = {}) => el("label", { cls: "field" }, label, el("input", { name, value: text, autocomplete: "off", ...more }));
  const decimal = { inputmode: "decimal" };
  const kind = trial?.state ?? "success";
  const complaint = el("p", { cls: "error", role: "alert" });
  const options = ["success", "crash", "void"].map((k) => el("option", { value: k, selected: k === kind }, k));
  const form = el("form", { cls: "tell", novalidate: true },
    el("h3", {}, trial ? `Correct trial ${trial.number}` : "A trial that was made by hand"),
    trial ? null : el("div", { cls: "fields" }, study.parameters.map((p) => p.kind === "choice"
      ? el("label", { cls: "field" }, p.name, el("select", { name: `p:${p.name}` }, p.options.map((o, i) => el("option", { value: i }, String(o)))))
      : field(`p:${p.name}`, withUnit(p.name, p.unit && `(${p.unit})`), "", decimal))),
    el("div", { cls: "fields" }, el("label", { cls: "field" }, "outcome", el("select", { name: "kind" }, options)), field("cost", withUnit(study.cost.label, study.cost.unit && `(${study.cost.unit})`), value(trial?.cost), decimal)),
    el("div", { cls: "fields" }, study.constraints.filter((c) => c.measured).map((c) => el("div", { cls: "with-cut" }, field(`m:${c.name}`, withUnit(c.name, c.unit && `(${c.unit})`), value(trial?.measured[c.name]), decimal), cutOff(c, trial?.censored.includes(c.name))))),
    study.constraints.length > 1 ? el("div", { cls: "checks" }, "a crash was by", study.constraints.map((c) => el("label", {}, el("input", { type: "checkbox", name: "blame", value: c.name, checked: trial?.blame.includes(c.name) }), c.name))) : null,
    field("note", "note", trial?.reason ?? "", { maxlength: 500 }),
    complaint,
    el("div", { cls: "verdicts", style: { "grid-template-columns": "1fr 1fr" } }, el("button", { type: "submit", cls: "big success" }, trial ? "Correct" : "Add"), el("button", { type: "button", cls: "big void", onclick: () => dialog.close() }, "Cancel")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await send(read(form, study, trial));
      dialog.close();
    } catch (error) {
      complaint.textContent = error.message;
    }
  });
  show(dialog, form);
  dialog.showModal();
}

function read(form, study, trial) {
  const decimal = (name, label) => {
    const text = form.elements[name].value.trim().replace("−", "-").replace(",", ".");
    if (text && !Number.isFinite(Number(text))) throw new Error(`${label} must be a number; got "${text}".`);
    return text ? Number(text) : undefined;
  };
  const kind = form.elements.kind.value, note = form.elements.note.value.trim(), body = { measured: {} };
  if (!trial) {
    body.params = {};
    for (const p of study.parameters) {
      body.params[p.name] = p.kind === "choice" ? p.options[Number(form.elements[`p:${p.name}`].value)] : decimal(`p:${p.name}`, p.name);
      if (body.params[p.name] === undefined) throw new Error(`${p.name} must have a value.`);
    }
  }
  for (const c of study.constraints.filter((k) => k.measured)) {
    const x = decimal(`m:${c.name}`, c.name);
    if (x !== undefined) body.measured[c.name] = x;
  }
  const cut = [...form.querySelectorAll("input[name=cut]:checked")].map((i) => i.value).filter((name) => name in body.measured);
  if (cut.length && kind !== "void") body.censored = cut;
  if (kind === "success") {
    body.cost = decimal("cost", study.cost.label);
    if (body.cost === undefined) throw new Error("A success has a value. If there was none, it is a crash or a void.");
  } else {
    body[kind] = note || true;
    if (kind === "crash") body.blame = [...form.querySelectorAll("input[name=blame]:checked")].map((i) => i.value);
  }
  return body;
}
