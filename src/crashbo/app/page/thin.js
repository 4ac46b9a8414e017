// Of many trials, those that are drawn: more would only lie on top of each other, and keep the page busy.

export const MANY = 600; // trials up to which all are drawn
const CELL = 6; // pixels

// One item per state and cell of the picture, the latest; `at` gives an item's place, [x, y].
export function thinned(items, at, stateOf = (t) => t.state) {
  if (items.length <= MANY) return items;
  const latest = new Map();
  for (const item of items) {
    const [x, y] = at(item);
    latest.set(`${stateOf(item)} ${Math.round(x / CELL)} ${Math.round(y / CELL)}`, item);
  }
  return [...latest.values()];
}

// The size of their marks, in pixels.
export const size = (trials) => (trials.length <= MANY ? 4 : 2.5);

// Trials in columns of the picture: each column is an array, in order.
export function columns(trials, x) {
  if (trials.length <= MANY) return trials.map((t) => [t]);
  const found = new Map();
  for (const t of trials) {
    const column = Math.round(x(t.number) / CELL);
    found.has(column) ? found.get(column).push(t) : found.set(column, [t]);
  }
  return [...found.values()];
}

// The items of highest rank, in their old order; `always` are kept in any case.
export function foremost(items, rank, always, most = MANY / 2) {
  if (items.length <= MANY) return items;
  const kept = new Set([...items].sort((a, b) => rank(b) - rank(a)).slice(0, most));
  return items.filter((t) => kept.has(t) || always(t));
}
