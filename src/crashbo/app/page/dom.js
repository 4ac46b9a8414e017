// Small helpers. Text is always set as text, never as HTML: names and reasons come from people.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(name === "cls" ? "class" : name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);
export const show = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));

export function number(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e6 || size < 1e-4) return x.toExponential(2).replace("e+", "e").replace("-", "−");
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return x.toFixed(Math.min(decimals, 8)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "").replace("-", "−");
}

// A parameter's value with as many decimals as its range deserves.
export function setting(value, parameter) {
  if (typeof value !== "number") return String(value);
  if (parameter.kind === "int") return String(value).replace("-", "−");
  if (parameter.log) return number(value, 4);
  const decimals = Math.min(8, Math.max(0, 4 - Math.ceil(Math.log10(parameter.high - parameter.low))));
  return value.toFixed(decimals).replace("-", "−");
}

export const percent = (p) => (p === null || p === undefined ? "–" : p > 0.995 && p < 1 ? "> 99 %" : p > 0 && p < 0.005 ? "< 1 %" : `${Math.round(100 * p)} %`);
export const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);

// A moment, given in seconds since 1970: the time, with its day if that is another.
export function when(seconds) {
  const at = new Date(1000 * seconds), time = `${at.getHours()}:${String(at.getMinutes()).padStart(2, "0")}`;
  return at.toDateString() === new Date().toDateString() ? time : `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")} ${time}`;
}

export const duration = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${number(seconds / 3600, 2)} h`);

let tip = null;
export function tooltip(node, words) {
  const place = (event) => {
    tip ??= document.body.appendChild(el("div", { cls: "tip", role: "tooltip" }));
    tip.textContent = typeof words === "function" ? words(event) : words;
    tip.hidden = !tip.textContent;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6))}px`;
    tip.style.top = `${event.clientY - height - 12 < 4 ? event.clientY + 18 : event.clientY - height - 12}px`;
  };
  node.addEventListener("pointermove", place);
  node.addEventListener("pointerdown", place);
  node.addEventListener("pointerleave", () => { if (tip) tip.hidden = true; });
  node.addEventListener("focus", () => { // by keyboard: beside what is marked
    const box = node.getBoundingClientRect();
    if (node.matches(":focus-visible")) place({ clientX: box.right, clientY: box.top + 20 });
  });
  node.addEventListener("blur", () => { if (tip) tip.hidden = true; });
  return node;
}
