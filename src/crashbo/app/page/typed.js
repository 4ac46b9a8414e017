// Numbers as people type them. A comma is never guessed at: 1,234 may be 1.234 or 1234.

// { value }, { empty }, { ask: [one, other] } or { wrong }.
export function typed(raw) {
  const text = raw.trim().replace(/^[−–]/, "-").replace(/[\s\u00a0\u202f'’](?=\d{3}(\D|$))/g, "");
  if (!text) return { empty: true };
  if (/^[+-]?[1-9]\d{0,2},\d{3}$/.test(text)) return { ask: [text.replace(",", "."), text.replace(",", "")] };
  if (/^[+-]?\d*,\d+([eE][+-]?\d+)?$/.test(text)) return plain(text.replace(",", "."), raw);
  if (text.includes(",")) return { wrong: `"${raw.trim()}" can be read in two ways. Write it with a point and without groups, as 1234.5.` };
  return plain(text, raw);
}

function plain(text, raw) {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : NaN;
  return Number.isFinite(value) ? { value } : { wrong: `"${raw.trim()}" is not a number.` };
}

export class Asks extends Error {
  constructor(input, label, options) {
    super(`Is ${label} ${options[0]} or ${options[1]}?`);
    Object.assign(this, { input, options });
  }
}

// The number in a field, undefined where it is empty. What is wrong with it is thrown in words, its field marked.
export function numberIn(input, label) {
  const found = typed(input.value);
  const bad = found.wrong || found.ask;
  input.setAttribute("aria-invalid", String(Boolean(bad)));
  if (bad) input.focus();
  if (found.ask) throw new Asks(input, label, found.ask);
  if (found.wrong) throw new Error(`${label}: ${found.wrong}`);
  return found.value;
}

// Shows what is wrong; of a number that can be read in two ways, as a question with both as answers.
export function complaint(error, el) {
  if (!(error instanceof Asks)) return [error.message];
  const answer = (text) => el("button", { type: "button", cls: "answer", onclick: () => { error.input.value = text; error.input.dispatchEvent(new Event("input", { bubbles: true })); error.input.setAttribute("aria-invalid", "false"); error.input.focus(); } }, text);
  return [error.message, " ", ...error.options.map(answer)];
}
