// The documentation of the service, drawn from its own OpenAPI document: nothing is loaded from elsewhere.

import { byId, el, show } from "./dom.js";
import { preferred } from "./theme.js";

document.documentElement.dataset.theme = preferred();
const api = await (await fetch("/api/openapi.json")).json();

const named = (schema) => schema?.$ref?.split("/").at(-1);
const found = (schema) => (schema?.$ref ? api.components.schemas[named(schema)] : schema);

// A schema in a few words: "number or null", "list of TrialAnswer".
function words(schema) {
  if (!schema || !Object.keys(schema).length) return "anything";
  if (schema.$ref) return named(schema);
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return [...new Set(options.map(words))].join(" or ");
  if (schema.type === "array") return `list of ${words(schema.items)}`;
  if (schema.type === "object" && schema.additionalProperties) return `object of ${words(schema.additionalProperties)}`;
  return schema.type ?? "anything";
}

function limits(schema) {
  const parts = [schema, ...(schema.anyOf ?? [])];
  const one = (name, text) => { const p = parts.find((q) => q[name] !== undefined); return p ? `${text} ${p[name]}` : null; };
  return [one("minimum", "from"), one("maximum", "to"), one("exclusiveMinimum", "above"), one("maxLength", "up to characters:"), one("maxItems", "up to items:")].filter(Boolean).join(", ");
}

function fields(schema) {
  const properties = found(schema)?.properties;
  if (!properties) return null;
  const needed = found(schema).required ?? [];
  return el("div", { cls: "sideways", tabindex: 0 }, el("table", { cls: "fields-table" }, el("tbody", {}, Object.entries(properties).map(([name, p]) =>
    el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), el("td", {}, words(p)), el("td", {}, needed.includes(name) ? "required" : ""), el("td", {}, [p.description, limits(p)].filter(Boolean).join(" ")))))));
}

function example(schema) {
  const sample = found(schema)?.examples?.[0] ?? found(found(schema)?.items)?.examples?.[0];
  return sample ? el("pre", { tabindex: 0 }, JSON.stringify(sample, null, 2)) : null;
}

function route(path, method, operation) {
  const sent = operation.requestBody?.content?.["application/json"]?.schema;
  const good = Object.entries(operation.responses).find(([code]) => code.startsWith("2"));
  const media = Object.keys(good?.[1].content ?? {})[0], got = good?.[1].content?.[media]?.schema;
  const body = sent?.anyOf ? sent.anyOf.find((s) => s.$ref) : sent;
  const id = `${method}-${path}`.replace(/[^a-z0-9]+/gi, "-");
  return el("section", { cls: "card route", "aria-labelledby": id },
    el("h2", { id }, el("span", { cls: `method ${method}` }, method.toUpperCase()), el("code", {}, path)),
    el("p", {}, operation.summary),
    body ? [el("h3", {}, "Send"), fields(body), example(body)] : null,
    el("h3", {}, "Get"), el("p", {}, `${good?.[0] ?? ""} ${media ?? "no body"}`, got && Object.keys(got).length ? `: ${words(got)}` : ""),
    got ? el("details", {}, el("summary", {}, "Its fields"), fields(got.anyOf ? got.anyOf.find((s) => s.$ref) : got.items ?? got) ?? el("p", {}, words(got)), example(got)) : null);
}

byId("version").textContent = `${api.info.title} ${api.info.version}`;
byId("wait").hidden = true;
show(byId("routes"),
  el("p", { cls: "intro" }, "Bodies and answers are JSON. A request that is refused gets 4xx, one that a store in trouble cannot take 5xx, each with ", el("code", {}, '{"error": "one sentence"}'), ". ",
    api.security?.length ? ["Every request carries ", el("code", {}, "Authorization: Bearer TOKEN"), "."] : "This server needs no token."),
  Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => route(path, method, operation))));
