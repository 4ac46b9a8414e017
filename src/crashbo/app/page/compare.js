// Trials that are compared: which with which, side by side in pictures and settings; the verdicts; the ranking.

import { el, number, setting, show } from "./dom.js";
import { named } from "./outcome.js";

export const VERDICTS = [["better", "Better", "B"], ["same", "About the same", "S"], ["worse", "Worse", "W"]];
export const isVerdict = (kind) => VERDICTS.some(([name]) => name === kind);
const FILMS = /\.(mp4|webm)$/i;

const standing = (state) => state.comparisons.filter((c) => !c.undone);
const success = (state, n) => state.trials.find((t) => t.number === n && t.state === "success") ?? null;

// What a trial is to be compared with: the winner when it was asked, else the one by now.
export function rivalOf(state, trial) {
  const others = [trial.against, state.best].filter((n) => n !== null && n !== undefined && n !== trial.number);
  return others.map((n) => success(state, n)).find(Boolean) ?? null;
}

// Whether a trial succeeded and nobody has compared it yet.
export function waits(state, trial) {
  if (!state.study.compared || trial.state !== "success" || trial.cost !== null || !rivalOf(state, trial)) return false;
  return !standing(state).some((c) => c.better === trial.number || c.worse === trial.number);
}

// What was said of a trial and others, in words.
export function verdictWords(state, number) {
  const of = { "better than": [], "as good as": [], "worse than": [] };
  for (const c of standing(state)) {
    if (c.better !== number && c.worse !== number) continue;
    of[c.tie ? "as good as" : c.better === number ? "better than" : "worse than"].push(c.better === number ? c.worse : c.better);
  }
  return Object.entries(of).filter(([, others]) => others.length).map(([word, others]) => `${word} ${others.join(", ")}`).join("; ");
}

// The comparison that undo takes back: the last one that stands of this trial and an earlier one.
export const lastOf = (state, number) => standing(state).filter((c) => Math.max(c.better, c.worse) === number).at(-1) ?? null;

export const preference = (verdict, trial, rival) =>
  ({ better: verdict === "worse" ? rival.number : trial.number, worse: verdict === "worse" ? trial.number : rival.number, tie: verdict === "same" });

// Two trials side by side. Drawn again only when something in it changed: a film must not begin anew.
export class Pair {
  constructor() {
    this.node = el("div", { cls: "pair-of-trials", id: "pair" });
    this.key = "";
  }

  update(state, trial, rival) {
    const films = [trial, rival].map((t) => state.films[t.number]);
    const key = JSON.stringify([trial.number, rival.number, rival.params, films, state.study.parameters]);
    if (key !== this.key) {
      this.key = key;
      show(this.node, films.some(Boolean) ? el("div", { cls: "films" }, figure(trial, films[0], "new"), figure(rival, films[1], "so far the best")) : null, settings(state.study, trial, rival));
    }
    return this.node;
  }
}

function figure(trial, url, word) {
  const label = `Film of trial ${trial.number}`, gone = (event) => event.target.replaceWith(el("div", { cls: "no-film" }, "no film"));
  const film = !url ? el("div", { cls: "no-film" }, "no film yet")
    : FILMS.test(url.split(/[?#]/)[0]) ? el("video", { src: url, autoplay: true, loop: true, muted: true, playsinline: true, controls: true, "aria-label": label, onerror: gone })
      : el("img", { src: url, alt: label, onerror: gone });
  if (film.tagName === "VIDEO") film.muted = true; // browsers start nothing that is loud
  return el("figure", {}, film, el("figcaption", {}, el("b", {}, `Trial ${trial.number}`), ` ${word}`));
}

function settings(study, trial, rival) {
  const cell = (t, p) => el("td", {}, p.name in t.params ? setting(t.params[p.name], p) : "");
  return el("table", { cls: "against", "aria-label": `Settings of trials ${trial.number} and ${rival.number}` },
    el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, `trial ${trial.number}`), el("th", { scope: "col" }, `trial ${rival.number}`))),
    el("tbody", {}, study.parameters.map((p) => el("tr", {}, el("th", { scope: "row", title: named(p) }, named(p)), cell(trial, p), cell(rival, p))),
      rival.reason ? el("tr", {}, el("th", { scope: "row" }, "note"), el("td", {}), el("td", { cls: "words" }, rival.reason)) : null));
}

// The ranking with its uncertainty, and who beat whom.
export function ranking(card, host, state, onChoose) {
  const rows = state.insight?.ranking ?? [];
  card.hidden = !rows.length && !state.study.compared;
  if (!rows.length) return show(host, el("p", { cls: "empty" }, "Nothing was compared yet."));
  const ends = [Math.min(...rows.map((r) => r.mean - 2 * r.std)), Math.max(...rows.map((r) => r.mean + 2 * r.std))];
  const at = (x) => `${(100 * (x - ends[0])) / (ends[1] - ends[0] || 1)}%`;
  const bar = (r) => el("div", { cls: "spread", title: `${number(r.mean, 3)} ± ${number(r.std, 2)}` }, el("i", { style: { left: at(r.mean - r.std), width: at(ends[0] + 2 * r.std) } }), el("b", { style: { left: at(r.mean) } }));
  const top = host.scrollTop;
  show(host, el("table", { cls: "ranking" },
    el("thead", {}, el("tr", {}, ["", "trial", "hidden cost, ± standard deviation", "was found"].map((h, i) => el("th", { scope: "col", cls: i === 3 ? "words" : "" }, h || el("span", { cls: "unseen" }, "rank"))))),
    el("tbody", {}, rows.map((r, i) => el("tr", { cls: r.number === state.best ? "best" : "" }, el("td", {}, String(i + 1)), el("td", {}, el("button", { type: "button", cls: "quiet", onclick: () => onChoose(r.number) }, `#${r.number}`)), el("td", { cls: "wide-cell" }, bar(r)), el("td", { cls: "words" }, verdictWords(state, r.number)))))));
  host.scrollTop = top;
}
