"""A study by CSV and by hand, on the command line.

Somebody tunes a 3D printer. There is a table of what was tried last year, with prints that failed; from there on
`crashbo ask` says what to print next, and `crashbo tell` takes what came of it. Everything is in one SQLite file, and
everything comes out as CSV: the picture is drawn from that alone. Each line of `say` can be typed in a terminal, with
`crashbo` before it; the printer is simulated so that this runs by itself. Needs `pip install 'crashbo[app]'`.

    python examples/lab_by_hand.py [--trials 16] [--output lab_by_hand.png]
"""

import argparse
import contextlib
import csv
import io
import json
import os
import shlex
import tempfile
from pathlib import Path

from crashbo.app import plots, sketches
from crashbo.app.cli import main as crashbo

STUDY = """\
direction = "minimize"
risk = {crashes = 4, trials = 22}   # a clogged nozzle takes an afternoon

[cost]
label = "time"
unit = "min"

[parameters]
speed = {low = 20, high = 140, unit = "mm/s"}
heat = {low = 190, high = 250, unit = "C"}

[constraints]
force = {unit = "N"}                # of the extruder, read off its display; it skips at some level
"""

LAST_YEAR = """\
speed,heat,cost,force,state,reason
30,200,149.5,12.3,success,
50,210,90.1,17.0,success,
50,195,,,void,filament was empty
120,200,,,crash,the extruder skipped
60,230,76.0,16.2,success,
"""


def say(*words):
    """`crashbo ...` in a terminal, and what it answers."""
    print("$ crashbo", shlex.join(words))
    answer = io.StringIO()
    with contextlib.redirect_stdout(answer):
        if crashbo(list(words)):
            raise SystemExit("that did not work; see above")
    return answer.getvalue()


def printer(speed, heat):
    """What you would see: minutes and newtons, or None where the extruder skips."""
    force = 0.42 * speed * (1 + ((240 - heat) / 45) ** 2) / (1 + (heat - 190) / 60) + 4
    return None if force > 31.5 else (4400 / speed + 0.02 * max(heat - 225, 0) ** 2 + 2.5, force)


def draw(table, output):
    """All rows of the table: where they lie and what came of them."""
    rows = list(csv.DictReader(io.StringIO(table)))
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        plots.dress(axes)
    plots.title(left, "Time", "crosses skipped, the ring is void")
    done = [(int(r["number"]), float(r["cost"])) for r in rows if r["cost"]]
    best = [min(cost for number, cost in done if number <= n) for n, _ in done]
    left.step([n for n, _ in done], best, where="post", color=plots.MODEL, linewidth=1.8)
    left.axvspan(-0.5, 4.5, color="#E6E6E6", alpha=0.6, linewidth=0)
    sketches.note(left, "last year's", (2, max(c for _, c in done)), (0, 4), color="#4D4D4D", ha="center")
    sketches.mark_trials(left, [(r["state"], int(r["number"]), float(r["cost"] or 10)) for r in rows])
    left.set(xlabel="trial", ylabel="minutes per part")
    plots.title(right, "Settings", "the star is the best")
    sketches.mark_trials(right, [(r["state"], float(r["speed"]), float(r["heat"])) for r in rows])
    winner = min((r for r in rows if r["cost"]), key=lambda r: float(r["cost"]))
    at = float(winner["speed"]), float(winner["heat"])
    right.plot(*at, "*", color="#F0E442", markeredgecolor="black", markersize=15, zorder=6)
    right.set(xlabel="speed (mm/s)", ylabel="heat (°C)", xlim=(20, 140), ylim=(190, 250))
    plots.save(figure, output)


def main():
    """A day at the printer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--output", type=Path, default="lab_by_hand.png")
    options = parser.parse_args()
    output = options.output.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CRASHBO_STORE"] = str(Path(folder, "crashbo.db"))  # or --store with every command
        Path(folder, "prints.toml").write_text(STUDY)
        Path(folder, "last-year.csv").write_text(LAST_YEAR)
        say("new", f"{folder}/prints.toml")
        print(say("trials", "--import", f"{folder}/last-year.csv"), end="")
        for _ in range(options.trials):
            trial = json.loads(say("ask", "--json"))
            seen = printer(**trial["params"])
            if seen is None:
                say("tell", str(trial["number"]), "--crash", "the extruder skipped")
            else:
                say("tell", str(trial["number"]), "--cost", f"{seen[0]:.1f}", "--measured", f"force={seen[1]:.1f}")
        print(say("best"), say("thresholds"), sep="", end="")
        draw(say("trials", "--csv"), output)


if __name__ == "__main__":
    main()
