"""Models of many trials: which of them they know, and how near they come to models that know all."""

import json
from dataclasses import replace

import numpy as np
import pytest

import crashbo
from crashbo.models import hyperpriors, latent, thresholds
from crashbo.models.crash import CrashModel
from crashbo.optimizer import saving
from crashbo.optimizer.journal import Journal
from crashbo.optimizer.observed import observations
from crashbo.optimizer.view import View
from crashbo.search import fitting, selection
from crashbo.search.acquisition import LogGamma
from crashbo.search.fitting import _of_all, fit_surrogates

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
FEW, BOUNDARY, KNOWN, EXACT, SMALL = 30, 30, 60, 70, 40


def outcome(params, rng, constraints=("load",)):
    x, y = params["x"], params["y"]
    readings = {"load": x + 0.5 * y + 0.2 * np.sin(6.0 * x), "heat": y + 0.3 * np.cos(5.0 * x)}
    if readings["load"] > 1.1 or ("heat" in constraints and readings["heat"] > 1.0):
        return {"crash": True}
    noise = 0.01 * rng.standard_normal(2)
    measured = {name: readings[name] + noise[0] for name in constraints}
    return {"cost": (x - 0.7) ** 2 + (y - 0.4) ** 2 + noise[1], "measured": measured}


def told(n, constraints=("load",), seed=0):
    """A study of trials that no search chose: some all over, the others about the best place."""
    rng, optimizer = np.random.default_rng(seed), crashbo.Optimizer(SPACE, constraints, seed=0)
    for i in range(n):
        point = rng.random(2) if i % 2 else np.clip([0.7, 0.4] + 0.1 * rng.standard_normal(2), 0.0, 1.0)
        params = dict(zip(SPACE, map(float, point), strict=True))
        optimizer.tell(params, **outcome(params, rng, constraints))
    return optimizer


def step(optimizer, rng):
    trial = optimizer.ask()
    optimizer.tell(trial, **outcome(trial.params, rng))
    return trial


@pytest.fixture
def soon(monkeypatch):
    """As if a few dozen trials were many."""
    for name, size in (("FEW", FEW), ("BOUNDARY", BOUNDARY), ("KNOWN", KNOWN), ("EXACT", EXACT), ("SMALL", SMALL)):
        monkeypatch.setattr(selection, name, size)


def seen_by(optimizer):
    return observations(optimizer.study, optimizer.trials)


def exact(seen):
    D = seen.X.shape[1]
    return _of_all(seen, None, hyperpriors.of_cost(D), hyperpriors.of_crash(D), "marginal", True)


class TestSelection:
    def test_half_of_them_are_the_nearest_to_the_best_and_the_others_fill_the_space(self):
        seen = seen_by(told(200))
        rows = selection.about_the_best(seen, 60, np.array([1.0, 1.0]))
        assert len(rows) == len(set(rows.tolist())) == 60
        assert np.array_equal(rows, np.sort(rows))
        best = np.argsort(np.where(np.isnan(seen.cost), np.inf, seen.cost))[: selection._BEST]
        gaps = np.min(np.linalg.norm(seen.X[:, None] - seen.X[best], axis=2), axis=1)
        assert set(np.argsort(gaps)[:30].tolist()) <= set(rows.tolist())
        left = np.setdiff1d(np.arange(200), rows)
        hole = np.min(np.linalg.norm(seen.X[left][:, None] - seen.X[rows], axis=2), axis=1).max()
        at_random = np.random.default_rng(0).permutation(200)[:60]
        others = np.setdiff1d(np.arange(200), at_random)
        assert hole < np.min(np.linalg.norm(seen.X[others][:, None] - seen.X[at_random], axis=2), axis=1).max()

    def test_each_is_the_farthest_from_those_before_it(self):
        U, kept = np.random.default_rng(0).random((40, 3)), np.array([3, 17])
        rows = selection._spread(U, 10, kept).tolist()
        for k, row in enumerate(rows):
            before = [*kept.tolist(), *rows[:k]]
            gaps = np.min(np.linalg.norm(U[:, None] - U[before], axis=2), axis=1)
            assert row == int(np.argmax(gaps))

    def test_repeats_and_few_trials_are_no_trouble(self):
        seen = seen_by(told(12))
        same = replace(seen, X=np.full_like(seen.X, 0.5))
        for trials in (seen, same, replace(seen, cost=np.full(12, np.nan))):
            assert np.array_equal(selection.about_the_best(trials, 12, np.ones(2)), np.arange(12))
            assert len(selection.about_the_best(trials, 9, np.ones(2))) <= 12
            assert len(selection.about_the_boundary(trials, 9, np.ones(2), np.zeros(12))) <= 12

    def test_what_was_read_does_not_decide_which_trials_tell_of_a_threshold(self):
        seen = seen_by(told(100))
        log_odds = np.random.default_rng(1).standard_normal(100)
        rows = selection.about_the_boundary(seen, 40, np.ones(2), log_odds)
        lifted = replace(seen, Y=seen.Y + np.random.default_rng(2).standard_normal(seen.Y.shape))
        assert np.array_equal(rows, selection.about_the_boundary(lifted, 40, np.ones(2), log_odds))

    def test_no_kind_of_trial_is_left_out_altogether(self):
        seen = seen_by(told(150))
        Y, crashed = np.full_like(seen.Y, np.nan), np.zeros(150, dtype=bool)
        Y[:4], crashed[9] = seen.Y[:4], True
        rows = selection.about_the_best(replace(seen, Y=Y, crashed=crashed), 40, np.ones(2))
        assert {0, 1, 2, 3, 9} <= set(rows.tolist())


class TestAgainstTheExactModel:
    def test_the_last_steps_of_a_fit_lead_from_a_few_trials_to_the_fit_of_all(self, monkeypatch):
        seen = seen_by(told(240, seed=3))
        monkeypatch.setattr(selection, "SMALL", 200)
        monkeypatch.setattr(selection, "FEW", 80)
        many, all_at_once = fit_surrogates(seen), exact(seen)
        Z = np.random.default_rng(0).random((400, 2))
        gaps = np.abs(np.exp(LogGamma(many.ensemble)(Z)) - np.exp(LogGamma(all_at_once.ensemble)(Z)))
        assert np.mean(gaps < 0.02) > 0.95
        assert many.cost.predict(0, Z)[0] == pytest.approx(all_at_once.cost.predict(0, Z)[0], abs=0.01)

    def test_half_of_the_trials_say_almost_all(self, monkeypatch):
        seen = seen_by(told(240, seed=3))
        for name, size in (("SMALL", 100), ("FEW", 80), ("EXACT", 120), ("KNOWN", 120)):
            monkeypatch.setattr(selection, name, size)
        many, all_at_once = fit_surrogates(seen), exact(seen)
        assert len(many.known.numbers) == 120
        Z = np.random.default_rng(0).random((400, 2))
        gaps = np.abs(np.exp(LogGamma(many.ensemble)(Z)) - np.exp(LogGamma(all_at_once.ensemble)(Z)))
        assert np.mean(gaps < 0.02) > 0.9

    def test_the_median_of_a_sharp_threshold_agrees_with_a_fine_grid(self):
        fitted = exact(seen_by(told(320, seed=5))).fitted
        post, p = fitted.posterior, fitted.parametrisations[0]
        median, std = thresholds.centre_and_spread(post, p, 0)
        grid, logs, start = np.linspace(median - 6.0 * std, median + 6.0 * std, 41), [], post.sites()
        for c in grid:
            moved = replace(post.hypers[0], threshold=float(c))
            found = latent.condition(post.data, (moved,), start=start, grams=post.grams, tolerance=1e-4)
            logs.append(found.log_evidence + p.log_prior(p.inside(moved))[0])
        mass = np.cumsum(np.exp(np.array(logs) - max(logs)))
        below, middle, above = np.interp([0.16, 0.5, 0.84], (mass - 0.5 * np.diff(mass, prepend=0.0)) / mass[-1], grid)
        assert median == pytest.approx(middle, abs=0.1 * std)
        assert std == pytest.approx(0.5 * (above - below), rel=0.15)

    @pytest.mark.parametrize("constraints", [("load",), ("load", "heat")])
    def test_the_blame_of_crashes_that_were_left_out_is_that_of_a_comparison_with_them(self, constraints, monkeypatch):
        optimizer = told(70, constraints)
        whole = optimizer.blames()
        monkeypatch.setattr(selection, "BOUNDARY", 50)
        view = View(optimizer.study, tuple(optimizer.trials), replace(optimizer.view.models))
        assert len(view.causes.numbers) < len(view.seen.numbers)
        blames = view.blames()
        assert blames.keys() == whole.keys()
        gaps = [abs(blames[i][name] - whole[i][name]) for i in whole for name in constraints]
        assert np.quantile(gaps, 0.9) < 0.1


def test_what_the_others_say_of_a_trial_is_what_a_model_without_it_says():
    seen = seen_by(told(25))
    post = exact(seen).fitted.posterior
    said = np.exp(post.log_p_safe_by_the_others())
    for i in (0, 7, 13, 24):
        rest = seen.only(np.delete(np.arange(25), i))
        h = post.hypers[0]
        without = CrashModel.condition(
            rest.X,
            rest.Y,
            rest.crashed,
            parts=[
                {
                    "lengthscales": h.lengthscales,
                    "outputscale": h.outputscale,
                    "mean": h.mean,
                    "noise_std": h.noise_std,
                    "threshold": h.threshold,
                    "crash_noise_std": h.crash_noise_std,
                }
            ],
        )
        assert said[i] == pytest.approx(without.p_safe(seen.X[i : i + 1])[0], abs=0.02)


class TestStudiesOfMany:
    def test_every_question_is_answered_and_counts_are_of_all(self, soon):
        optimizer = told(90, ("load", "heat"))
        trial = optimizer.ask()
        models = optimizer.view.models
        assert len(models.known.numbers) == KNOWN
        assert models.known.count == 90
        assert optimizer.best.cost == min(t.cost for t in optimizer.trials if t.cost is not None)
        crashes = [t.number for t in optimizer.trials if t.state == "crash"]
        assert sorted(optimizer.blames()) == crashes
        assert all(0.0 <= p <= 1.0 for number in crashes for p in optimizer.blame(number).values())
        assert len(optimizer.table()) == 91
        assert 0.0 < trial.p_safe <= 1.0
        assert optimizer.recommend() is not None
        assert optimizer.gain_left() >= 0.0
        assert isinstance(optimizer.check(), list)
        for level in optimizer.thresholds.values():
            assert level.interval[0] <= level.value <= level.interval[1]

    def test_the_memory_stays_the_same_until_the_next_fit_and_new_trials_are_known_at_once(self, soon):
        optimizer, rng = told(100), np.random.default_rng(7)
        step(optimizer, rng)
        memory = optimizer._memory
        for _ in range(2):
            number = step(optimizer, rng).number
            assert optimizer._memory is memory
        models = optimizer.view.models
        assert number in models.known.numbers
        assert not set(memory.left_out) & set(models.known.numbers)
        for _ in range(4):
            step(optimizer, rng)
        assert optimizer._memory.fitted_at > memory.fitted_at

    def test_where_ep_came_far_the_memory_takes_its_sites_and_no_other_hyperparameters(self, soon, monkeypatch):
        monkeypatch.setattr(fitting, "_NEARBY", 0)
        optimizer, rng = told(100), np.random.default_rng(7)
        step(optimizer, rng)
        memory = optimizer._memory
        step(optimizer, rng)
        later = optimizer._memory
        assert len(later.numbers) == len(memory.numbers) + 1 == later.crash.sites.tau.shape[1]
        assert (later.fitted_at, later.left_out) == (memory.fitted_at, memory.left_out)
        assert repr(later.ensemble) == repr(memory.ensemble)
        assert later.told != memory.told
        again = crashbo.Optimizer.from_json(optimizer.to_json())
        assert again.ask().params == optimizer.ask().params

    def test_a_correction_of_a_trial_that_was_left_out_is_learnt_from_at_once(self, soon):
        optimizer = told(100)
        optimizer.ask()
        memory = optimizer._memory
        number = next(i for i in memory.left_out if optimizer.trials[i].state == "success")
        optimizer.tell(number, crash=True, replace=True)
        optimizer.ask()
        assert optimizer._memory.told != memory.told
        assert optimizer._memory.fitted_at == 100

    def test_a_saved_study_goes_on_with_the_same_proposals(self, soon):
        optimizer, rng = told(100), np.random.default_rng(7)
        step(optimizer, rng)
        again = crashbo.Optimizer.from_json(optimizer.to_json())
        for _ in range(2):
            assert again.ask().params == optimizer.ask().params

    def test_a_memory_without_sites_is_held_all_the_same(self, soon):
        optimizer = told(100)
        optimizer.ask()
        saved = json.loads(json.dumps(saving.light(saving.memory_out(optimizer._memory)), default=saving.plain))
        memory = saving.memory_in(saved)
        assert memory.crash.sites is None
        assert memory.left_out == optimizer._memory.left_out
        seen = seen_by(optimizer)
        models = fit_surrogates(seen, memory)
        assert models.fitted is None
        assert models.memory.crash.sites is not None
        Z = np.random.default_rng(0).random((50, 2))
        other = optimizer.view.models
        p, p_other = (np.exp(LogGamma(each.ensemble)(Z)) for each in (models, other))
        assert p == pytest.approx(p_other, abs=1e-3)

    def test_a_journal_has_each_memory_once(self, soon, tmp_path):
        def experiment(params):
            said = outcome(params, np.random.default_rng(1))
            if "crash" in said:
                raise crashbo.Crash
            return crashbo.Outcome(said["cost"], said["measured"])

        path = tmp_path / "journal"
        crashbo.minimize(
            experiment, SPACE, constraints=["load"], trials=SMALL + 5, seed=0, journal=path, progress=False
        )
        asks = [event for event in map(json.loads, path.read_text().splitlines()) if event.get("event") == "ask"]
        late = ["memory" in event["state"] for event in asks[SMALL + 1 :]]
        assert 0 < sum(late) < len(late)
        resumed = crashbo.minimize(
            experiment, SPACE, constraints=["load"], trials=SMALL + 7, seed=0, journal=path, progress=False
        )
        whole = crashbo.minimize(experiment, SPACE, constraints=["load"], trials=SMALL + 7, seed=0, progress=False)
        assert [t.params for t in resumed.trials] == [t.params for t in whole.trials]
        journal = Journal(path)
        optimizer = journal.open_study(crashbo.Optimizer(SPACE, ["load"], seed=0))
        journal.close()
        assert optimizer._memory is not None

    @pytest.mark.parametrize("kind", ["labels", "crashes", "successes", "one place"])
    def test_odd_studies_are_no_trouble(self, soon, kind):
        rng = np.random.default_rng(0)
        optimizer = crashbo.Optimizer(SPACE, None if kind == "labels" else ["load"], seed=0)
        for i in range(SMALL + 25):
            params = (
                {"x": 0.5, "y": 0.5} if kind == "one place" else dict(zip(SPACE, rng.random(2).tolist(), strict=True))
            )
            crash = kind == "crashes" or (kind in ("labels", "one place") and i % 3 == 0)
            measured = None if kind == "labels" else {"load": params["x"]}
            optimizer.tell(params, **({"crash": True} if crash else {"cost": params["y"], "measured": measured}))
        trial = optimizer.ask()
        assert 0.0 <= trial.p_safe <= 1.0
        assert len(optimizer.blames()) == sum(t.state == "crash" for t in optimizer.trials)
        assert all(level.interval is None or len(level.interval) == 2 for level in optimizer.thresholds.values())


@pytest.mark.parametrize("numbers", [(), (0,), (3, 8, 1000), tuple(range(17))])
def test_numbers_survive_as_bits(numbers):
    assert saving._numbers_in(saving._numbers_out(numbers)) == numbers
