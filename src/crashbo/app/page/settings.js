// The fields in which a setting is typed, for trials that are added or corrected; values beyond the bounds are marked.

import { el, number } from "./dom.js";
import { decimal, named } from "./outcome.js";
import { numberIn, typed } from "./typed.js";

const bounds = (p) => `${number(p.low)} to ${number(p.high)}`;
const isBeyond = (p, value) => p.kind !== "choice" && p.kind !== "context" && typeof value === "number" && (value < p.low || value > p.high);

// Whether a parameter exists beside the values of others: some do only then.
const exists = (p, params) => Object.entries(p.when ?? {}).every(([parent, values]) => values.some((v) => v === params[parent]));
const words = (p) => Object.entries(p.when ?? {}).map(([parent, values]) => `when ${parent} is ${values.join(" or ")}`).join(" and ");

export function settingFields(study, params = {}) {
  const field = (p) => {
    const value = params[p.name];
    if (p.kind === "choice") return el("label", { cls: "field", title: words(p) }, el("span", { cls: "label" }, p.name), el("select", { name: `p:${p.name}` }, p.options.map((o, i) => el("option", { value: i, selected: o === value }, String(o)))));
    const node = decimal(`p:${p.name}`, named(p), value === undefined ? "" : String(value)), hint = el("span", { cls: "hint" }, bounds(p));
    node.append(hint);
    node.querySelector("input").addEventListener("input", (event) => mark(node, hint, p, typed(event.target.value).value));
    mark(node, hint, p, value);
    return node;
  };
  return el("div", { cls: "fields" }, study.parameters.map(field));
}

function mark(node, hint, p, value) {
  const beyond = isBeyond(p, value);
  node.classList.toggle("beyond", beyond);
  hint.textContent = [beyond ? `beyond ${bounds(p)}` : bounds(p), words(p)].filter(Boolean).join(", ");
}

// The setting in the fields, and which of its values lie beyond their bounds, in words.
export function settingIn(form, study) {
  const params = {}, beyond = [];
  const left = [...study.parameters];
  const first = () => left.findIndex((p) => !left.some((q) => q.name in (p.when ?? {}))); // what others depend on comes before them
  while (left.length) {
    const [p] = left.splice(Math.max(0, first()), 1);
    if (!exists(p, params)) continue;
    const input = form.elements[`p:${p.name}`];
    const value = p.kind === "choice" ? p.options[Number(input.value)] : numberIn(input, p.name);
    if (value === undefined) { input.focus(); throw new Error(`${p.name} must have a value.`); }
    if (p.kind === "int" && !Number.isInteger(value)) { input.focus(); throw new Error(`${p.name} must be a whole number; got ${value}.`); }
    if (isBeyond(p, value)) beyond.push(`${p.name} ${number(value)} (${bounds(p)})`);
    params[p.name] = value;
  }
  return { params, beyond: beyond.join(", ") };
}
