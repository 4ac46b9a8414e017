// Points of a chart by keyboard: one stop of the tab key per chart, arrows from point to point, Enter to choose.

export function reachable(host, plot, hits, onChoose) {
  if (!hits.length) return;
  const kept = host.dataset.at === undefined ? -1 : hits.findIndex((h) => h.dataset.number === host.dataset.at);
  let at = kept < 0 ? hits.length - 1 : kept;
  const move = (to) => {
    hits[at].setAttribute("tabindex", "-1");
    at = Math.max(0, Math.min(hits.length - 1, to));
    hits[at].setAttribute("tabindex", "0");
    hits[at].focus();
  };
  hits.forEach((hit, i) => {
    hit.setAttribute("tabindex", i === at ? "0" : "-1");
    hit.setAttribute("role", "button");
    hit.addEventListener("focus", () => { host.dataset.at = hit.dataset.number; });
    // A point that is removed loses the focus while it still stands in the page: ask once that is over.
    hit.addEventListener("blur", () => setTimeout(() => { if (plot.isConnected && !plot.contains(document.activeElement)) delete host.dataset.at; }));
    hit.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: hits.length - 1 }[event.key];
      if (to !== undefined) move(to);
      else if (event.key === "Enter" || event.key === " ") onChoose(Number(hit.dataset.number));
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  });
  if (kept >= 0) hits[at].focus({ preventScroll: true }); // it was drawn anew under the reader's hand
}
