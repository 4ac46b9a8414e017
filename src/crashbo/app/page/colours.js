// Colour scales of the maps, as stops from 0 to 1.

const STOPS = {
  cost: ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"],
  safe: ["#7a2400", "#b84300", "#e2762f", "#f2b583", "#eee9e2", "#9ecbe0", "#559fc6", "#1f74a6", "#08507c"],
};

const FORBIDDEN = [150, 150, 150];
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const TABLES = Object.fromEntries(Object.entries(STOPS).map(([name, stops]) => {
  const colours = stops.map(rgb);
  return [name, Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (colours.length - 1), k = Math.min(Math.floor(at), colours.length - 2), u = at - k;
    return colours[k].map((c, j) => Math.round(c + u * (colours[k + 1][j] - c)));
  })];
}));

export const colour = (name, share) => TABLES[name][Math.max(0, Math.min(255, Math.round(255 * share)))];

export function paint(canvas, name, shares) {
  // shares: rows from bottom to top, of values from 0 to 1; null where a rule forbids it
  const rows = shares.length, columns = shares[0].length;
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const share = shares[rows - 1 - r][c], [red, green, blue] = share === null ? FORBIDDEN : colour(name, share);
      image.data.set([red, green, blue, 255], 4 * (r * columns + c));
    }
  }
  context.putImageData(image, 0, 0);
}

export function legend(canvas, name, turned) {
  paint(canvas, name, [Array.from({ length: 64 }, (_, i) => (turned ? 1 - i / 63 : i / 63))]);
}

// Where a field on a grid crosses a level: marching squares, as an SVG path. Points are given by px(i, j).
export function contour(field, level, px) {
  const out = [], rows = field.length, columns = field[0].length;
  const cut = (a, b, va, vb) => { const u = (level - va) / (vb - va); return [a[0] + u * (b[0] - a[0]), a[1] + u * (b[1] - a[1])]; };
  for (let r = 0; r + 1 < rows; r++) {
    for (let c = 0; c + 1 < columns; c++) {
      const corners = [[c, r], [c + 1, r], [c + 1, r + 1], [c, r + 1]];
      const values = corners.map(([i, j]) => field[j][i]), hits = [];
      for (let k = 0; k < 4; k++) {
        const a = values[k], b = values[(k + 1) % 4];
        if (a < level !== b < level) hits.push(cut(px(...corners[k]), px(...corners[(k + 1) % 4]), a, b));
      }
      for (let k = 0; k + 1 < hits.length; k += 2) out.push(`M${hits[k][0].toFixed(1)} ${hits[k][1].toFixed(1)}L${hits[k + 1][0].toFixed(1)} ${hits[k + 1][1].toFixed(1)}`);
    }
  }
  return out.join("");
}
