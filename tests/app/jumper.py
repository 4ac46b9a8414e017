"""The machine that the tests of the bench tune: what is said of it, and how it answers."""

SAID = {
    "name": "jump",
    "direction": "maximize",
    "parameters": {"knee": [0.0, 1.0], "hip": {"low": 0.0, "high": 1.0, "unit": "rad"}},
    "constraints": {"current": {"unit": "A"}},
    "cost": {"label": "height", "unit": "m"},
}


def current_of(params):
    return 60 + 45 * params["knee"] + 40 * params["knee"] * params["hip"]


def height_of(params):
    return 0.35 + 0.4 * params["knee"] - 0.5 * (params["hip"] - 0.6) ** 2
