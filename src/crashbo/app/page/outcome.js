// The fields in which an outcome is told, for the form of the next trial and for the dialog; and how they are read.

import { el, withUnit } from "./dom.js";
import { fieldName, part, several } from "./goals.js";
import { numberIn } from "./typed.js";

export const named = (thing, name = thing.name) => withUnit(name, thing.unit && `(${thing.unit})`);

export const decimal = (name, label, value = "") =>
  el("label", { cls: "field", title: label }, el("span", { cls: "label" }, label), el("input", { name, value, inputmode: "decimal", autocomplete: "off", enterkeyhint: "done" }));

// A tick beside a measurement: the machine stopped measuring before it got there.
function cutOff(c, checked) {
  return el("label", { cls: "cut", title: `The true value lies there or ${c.side === "below" ? "below" : "above"}: the reading was cut off` },
    el("input", { type: "checkbox", name: "cut", value: c.name, checked, "aria-label": `${c.name} was cut off` }), "cut off");
}

// What was met, where it differed from what was given, and what was run: left empty, it was as given.
function asRun(study, trial) {
  const met = study.parameters.filter((p) => p.kind === "context"), knobs = study.parameters.filter((p) => p.kind === "float" || p.kind === "int");
  const field = (p) => decimal(`r:${p.name}`, `${named(p)} as ${p.kind === "context" ? "met" : "run"}`, trial?.as_run?.[p.name] === undefined || trial.as_run[p.name] === trial.params[p.name] ? "" : String(trial.as_run[p.name]));
  return [met.length ? el("div", { cls: "fields" }, met.map(field)) : null,
    knobs.length ? el("details", { cls: "as-run" }, el("summary", {}, "It ran at another setting"), el("div", { cls: "fields" }, knobs.map(field))) : null];
}

const text = (x) => (x === undefined || x === null ? "" : String(x));
const measuredOf = (study) => study.constraints.filter((c) => c.measured);

// Where trials are compared, only the dialog asks for a cost: some may have one.
export function outcomeFields(study, trial = null, withCost = true) {
  const label = named(study.cost, study.compared ? `${study.cost.label}, if there is one` : study.cost.label);
  return [
    el("div", { cls: "fields" }, withCost ? study.goals.map((g) => decimal(fieldName(g), study.compared ? label : named(g, g.label), text(part(trial?.cost, g)))) : null,
      measuredOf(study).map((c) => el("div", { cls: "with-cut" }, decimal(`m:${c.name}`, named(c), text(trial?.measured[c.name])), cutOff(c, trial?.censored.includes(c.name))))),
    asRun(study, trial),
    study.constraints.length > 1 ? el("div", { cls: "checks" }, "a crash was by", study.constraints.map((c) => el("label", {}, el("input", { type: "checkbox", name: "blame", value: c.name, checked: trial?.blame.includes(c.name) }), c.name))) : null,
    el("label", { cls: "field note" }, el("span", { cls: "label" }, "note"), el("input", { name: "note", value: trial?.reason ?? "", maxlength: 500, autocomplete: "off" })),
  ];
}

const ticked = (form, name) => [...form.querySelectorAll(`input[name=${name}]:checked`)].map((i) => i.value);

// What the fields say, as the body of a tell. What is wrong is thrown in words, and nothing is sent.
export function outcomeIn(form, study, kind) {
  const body = { measured: {} }, note = form.elements.note.value.trim();
  const costs = {}, first = form.elements[fieldName(study.goals[0])], what = study.goals.map((g) => g.label).join(" or ");
  for (const g of study.goals) {
    const x = form.elements[fieldName(g)] ? numberIn(form.elements[fieldName(g)], g.label) : undefined;
    if (x !== undefined) costs[g.name] = x;
  }
  const known = Object.keys(costs).length > 0;
  for (const c of measuredOf(study)) {
    const x = numberIn(form.elements[`m:${c.name}`], c.name);
    if (x !== undefined) body.measured[c.name] = x;
  }
  for (const p of study.parameters) {
    const input = form.elements[`r:${p.name}`], x = input && numberIn(input, p.name);
    if (x !== undefined) (body[p.kind === "context" ? "context" : "ran"] ??= {})[p.name] = x;
  }
  const cut = ticked(form, "cut"), bare = cut.find((name) => !(name in body.measured));
  if (bare !== undefined && kind !== "void") throw new Error(`${bare} must have a value to be cut off.`);
  if (cut.length && kind !== "void") body.censored = cut;
  if (kind === "success" && study.compared && !known) {
    body.success = true;
    if (note) body.note = note;
  } else if (kind === "success") {
    if (!known) { first.setAttribute("aria-invalid", "true"); first.focus(); throw new Error("A success has a value. If there was none, it is a crash or a void."); }
    body.cost = several(study) ? costs : costs.cost;
    if (note) body.note = note;
  } else {
    if (known && form.dataset.sure !== kind) { form.dataset.sure = kind; throw new Error(`A ${kind} has no ${what}. Press ${kind} again to leave it out.`); }
    if (kind === "stopped") {
      if (!Object.keys(body.measured).length) throw new Error("A stopped trial has a reading: the one at which it was stopped.");
      delete body.censored;
      const { measured, ...rest } = body;
      return { ...rest, stopped: measured, ...(note ? { note } : {}) };
    }
    body[kind] = note || true;
    if (kind === "crash") body.blame = ticked(form, "blame");
  }
  return body;
}
