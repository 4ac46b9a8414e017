"""A stirred reactor that is shut down for two reasons, and does not say which.

A reaction that heats itself runs in a cooled tank. Too hot, and it runs away; too much gas, and the relief valve
opens: either way the plant shuts down, and the log says "shutdown". Temperature and pressure are measured as long as
it runs. Wanted: the highest yield. Learnt on the way: both limits, and of every shutdown which of the two it was.

    python examples/reactor.py [--trials 50] [--output reactor.png]
"""

import argparse
import math
from pathlib import Path

import crashbo
from crashbo.app import plots, sketches

HOT, TIGHT = 412.0, 6.2  # K and bar at which it shuts down; nobody tells crashbo


def run(params):
    """Yield per hour, highest temperature and pressure of ten hours; and why it shut down, for the picture."""
    feed, concentration, coolant = params["feed"], params["concentration"], params["coolant"]
    c, product, T, step = concentration, 0.0, coolant, 0.01
    hottest, tightest = T, 1.0
    for _ in range(round(10 / step)):
        rate = 8.0e7 * math.exp(-6200 / T) * c
        c += step * (feed * (concentration - c) - rate)
        product += step * (rate - feed * product)
        T += step * (feed * (305 - T) + 28 * rate - 1.8 * (T - coolant))
        pressure = 1 + 0.55 * c * T / 350 + 1.35 * feed * product
        hottest, tightest = max(hottest, T), max(tightest, pressure)
        if hottest > HOT or tightest > TIGHT:
            return None, hottest, tightest, ("temperature" if hottest > HOT else "pressure")
    return feed * product, hottest, tightest, ""


def experiment(params):
    """What a trial yields, and what was measured of it; or that it shut down, for whatever reason."""
    gained, hottest, tightest, cause = run(params)
    if cause:
        raise crashbo.Crash("shutdown")
    return crashbo.Outcome(gained, measured={"temperature": hottest, "pressure": tightest})


def draw(result, output):
    """The yield over trials, and the blame of each shutdown beside its true cause."""
    figure = plots.Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.2, 1.0])
    plots.title(left, "Yield", "crosses shut down")
    sketches.draw_course(left, result.trials, up=True)
    left.set_ylabel("mol per litre and hour")
    plots.dress(right)
    plots.title(right, "Blame", "P(too hot | shutdown)")
    crashes = [t for t in result.trials if t.state == "crash"]
    for row, trial in enumerate(crashes):
        hot = run(trial.params)[-1] == "temperature"
        colour = plots.CRASH if hot else plots.MODEL
        right.plot(result.blame(trial)["temperature"], row, "o" if hot else "s", color=colour, markersize=8)
    right.plot([], [], "o", color=plots.CRASH, label="in truth too hot")
    right.plot([], [], "s", color=plots.MODEL, label="in truth too much pressure")
    right.set_yticks(range(len(crashes)), [f"trial {t.number}" for t in crashes])
    right.set_xlim(-0.05, 1.05)
    right.invert_yaxis()
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    plots.save(figure, output)


def main():
    """Tune, say what was learnt, draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--output", type=Path, default="reactor.png")
    options = parser.parse_args()
    result = crashbo.minimize(
        experiment,
        {"feed": (0.2, 2.0), "concentration": (0.5, 4.0), "coolant": (300.0, 380.0)},
        constraints=["temperature", "pressure"],
        direction="maximize",
        units={"temperature": "K", "pressure": "bar"},
        trials=options.trials,
        seed=0,
    )
    print(f"best: {result.best.cost:.2f} mol per litre and hour with {result.best.params}")
    for name, threshold in result.thresholds.items():
        print(f"{name}: {threshold.words}")
    draw(result, options.output)


if __name__ == "__main__":
    main()
