"""Families: what they promise of every member, and optima against another brute force."""

import pickle
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import label

from crashbo import Choice, Crash, Float, Int, Optimizer
from crashbo.problems import families
from crashbo.problems.families import brute_force, stored

NAMES = families.names()
SMALLEST = [(name, families.family(name).dimensions[0]) for name in NAMES]


def members(name, seeds=range(6), dimension=None):
    dimension = dimension or families.family(name).dimensions[0]
    return [drawn(name, dimension, seed) for seed in seeds]


@cache
def drawn(name, dimension, seed):
    return families.draw(name, dimension, seed)


def test_all_that_the_field_needs_is_there():
    dimensions = {dimension for name in NAMES for dimension in families.family(name).dimensions}
    assert {2, 4, 8, 16, 24, 40, 60} <= dimensions
    assert len(NAMES) == len(set(NAMES)) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_the_docs_say_what_a_family_is_about_and_in_which_dimensions(name):
    family = families.family(name)
    dimensions = ", ".join(map(str, family.dimensions))
    row = f"| `{name}` | {family.what} | {dimensions} ({family.most}) |"
    assert row in Path("docs/benchmark.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "dimension"), SMALLEST)
def test_a_member_is_a_problem_that_any_study_can_run(name, dimension):
    problem = families.get(name, dimension, 0)
    assert problem.name == f"{name}-{dimension}d-0"
    assert len(problem.space) == dimension
    optimizer = Optimizer(problem.space, problem.constraints, start=[problem.optimum])
    outcome = problem.evaluate(optimizer.ask().params, np.random.default_rng(0))
    assert set(outcome.measured) == {limit.name for limit in problem.limits}
    assert pickle.loads(pickle.dumps(problem)).truth(problem.optimum) == problem.truth(problem.optimum)


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_safe_and_nothing_that_is_drawn_is_lower(name):
    for dimension in families.family(name).dimensions[:2]:
        problem, member = families.get(name, dimension, 1), families.draw(name, dimension, 1)
        truth = problem.truth(problem.optimum)
        assert not truth.crashed
        assert truth.cost == pytest.approx(problem.constrained_minimum, abs=1e-6 * abs(member.median - truth.cost))
        U = member.uniform(5000, np.random.default_rng(5))
        safe = member.excess(U).max(axis=1) <= 0.0
        rounding = 1e-12 * abs(truth.cost)
        assert problem.minimum <= problem.constrained_minimum <= member.cost(U)[safe].min() + rounding
        assert problem.minimum <= member.cost(U).min()


def test_what_does_not_exist_makes_no_difference():
    problem, member = families.get("conditional", 4, 1), families.draw("conditional", 4, 1)
    U = member.uniform(50, np.random.default_rng(0))
    there = [set(member.params(u)) for u in U]
    assert len({frozenset(names) for names in there}) > 1
    for u in U:
        assert problem.truth(member.params(u)).cost == pytest.approx(float(member.cost(u[None])[0]), rel=1e-9)
    assert Optimizer(problem.space).space.accepts(problem.optimum)


def test_rules_in_words_are_those_of_the_machine():
    problem, member = families.get("ruled", 3, 1), families.draw("ruled", 3, 1)
    space = Optimizer(problem.space, rules=problem.rules).space
    U = np.random.default_rng(0).random((400, 3))
    kept = [space.accepts(member.params(u)) for u in U]
    assert kept == list(member.forbidden(U).max(axis=1) <= 0.0)
    assert 0.15 < np.mean(kept) < 0.75
    assert space.accepts(problem.optimum)


@pytest.mark.parametrize("name", NAMES)
def test_no_point_of_a_fine_grid_is_lower(name):
    """Another brute force, and one that misses nothing: in two dimensions, levels of whole numbers and options all."""
    member = families.draw(name, 2, 7)
    axes = [np.linspace(0.0, 1.0, 201) if levels is None else levels for _, levels in member.columns]
    U = np.array(list(product(*axes)))
    lowest = brute_force.lowest(member)
    span = member.median - lowest.safe
    for violated, known in ((member.excess, lowest.safe), (member.forbidden, lowest.overall)):
        assert -1e-6 <= (lowest_on(zoomed(member, violated, U), member, violated) - known) / span < 0.05


def lowest_on(U, member, violated):
    return member.cost(U)[violated(U).max(axis=1) <= 0.0].min()


def zoomed(member, violated, U):
    """The points and, as a cusp is narrow, finer ones about the best of them; of parameters with levels, none."""
    allowed = U[violated(U).max(axis=1) <= 0.0]
    best = allowed[np.argsort(member.cost(allowed))[:5]]
    steps = np.linspace(-0.005, 0.005, 41)
    axes = [steps if levels is None else [0.0] for _, levels in member.columns]
    finer = [np.clip(u + np.array(list(product(*axes))), 0.0, 1.0) for u in best]
    return np.vstack([U, *finer])


@pytest.mark.parametrize("name", NAMES)
def test_vectorised_and_single_runs_agree(name):
    problem, member = families.get(name, families.family(name).dimensions[0], 2), members(name, [2])[0]
    for u in member.uniform(30, np.random.default_rng(3)):
        params = member.params(u)
        np.testing.assert_allclose(member.point(params)[0], u, atol=1e-9)
        truth = problem.truth(params)
        assert truth.cost == pytest.approx(float(member.cost(u[None])[0]), rel=1e-9)
        assert truth.crashed == bool(member.excess(u[None]).max() > 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_shares_medians_and_starts_are_as_they_say(name):
    shares, starts = [], []
    for member in members(name):
        U = member.uniform(5000, np.random.default_rng(1))
        crashed = member.excess(U).max(axis=1) > 0.0
        assert crashed.mean() == pytest.approx(member.share, abs=0.03)
        costs = member.cost(U)[~crashed]
        chance = 2.0 / np.sqrt(len(costs))  # four standard errors
        assert np.mean(costs < member.median) < 0.51 + chance  # a plateau has many that are equal
        assert np.mean(costs <= member.median) > 0.49 - chance
        shares.append(member.share)
        starts.append(member.begin is not None)
        if member.begin is not None:
            assert member.excess(member.begin[None]).max() <= 0.0
            assert member.cost(member.begin[None])[0] > member.cost(U)[~crashed].min()
    assert min(shares) >= 0.09
    assert max(shares) <= 0.91
    assert any(starts)


def test_over_all_families_shares_reach_from_ten_to_ninety_percent_and_half_have_a_start():
    found = [member for name in NAMES for member in members(name)]
    shares = np.array([member.share for member in found])
    assert np.quantile(shares, 0.05) < 0.2
    assert np.quantile(shares, 0.95) > 0.8
    assert 0.4 < np.mean([member.begin is not None for member in found]) < 0.65
    assert 0.15 < np.mean([member.noise == 0.0 for member in found]) < 0.4


def test_a_seed_gives_the_same_machine_and_another_one_another():
    one, same, other = (families.draw("smooth", 3, seed) for seed in (4, 4, 5))
    U = one.uniform(50, np.random.default_rng(0))
    np.testing.assert_array_equal(one.cost(U), same.cost(U))
    assert not np.allclose(one.cost(U) / one.unit, other.cost(U) / other.unit)


class TestWhatEachFamilyIsAbout:
    def test_driven_has_its_optimum_on_the_boundary_or_in_a_corner(self):
        for seed in range(6):
            member = families.draw("driven", 4, seed)
            u = brute_force.lowest(member).point
            at_edge = np.any(np.minimum(u, 1.0 - u) < 1e-6)
            assert at_edge or member.excess(u[None]).max() > -1e-4

    @pytest.mark.parametrize("name", ["driven", "monotone"])
    def test_monotone_costs_are(self, name):
        for member in members(name, range(4), 5):
            U = member.uniform(200, np.random.default_rng(0))
            for d in range(5):
                ahead = U.copy()
                ahead[:, d] = np.minimum(U[:, d] + 0.05, 1.0)
                change = member.cost(ahead) - member.cost(U)
                assert np.all(change >= -1e-12) or np.all(change <= 1e-12)

    def test_additive_costs_have_no_mixed_differences(self):
        member = families.draw("additive", 6, 0)
        U = member.uniform(100, np.random.default_rng(0)) * 0.8
        a, b = np.eye(6)[0] * 0.1, np.eye(6)[3] * 0.1
        mixed = member.cost(U + a + b) - member.cost(U + a) - member.cost(U + b) + member.cost(U)
        np.testing.assert_allclose(mixed, 0.0, atol=1e-9 * member.unit)

    def test_most_parameters_of_irrelevant_are(self):
        member = families.draw("irrelevant", 24, 0)
        U = member.uniform(50, np.random.default_rng(0))
        matter = 0
        for d in range(24):
            other = U.copy()
            other[:, d] = 1.0 - U[:, d]
            matter += bool(np.any(member.cost(other) != member.cost(U)))
        assert matter in (2, 3)

    def test_bowls_are_safe_at_their_bottom(self):
        for member in members("bowl"):
            assert brute_force.lowest(member).safe == pytest.approx(0.0, abs=1e-9 * member.unit)

    @pytest.mark.parametrize("dimension", range(2, 7))
    def test_islands_do_not_touch(self, dimension):
        """On the straight line between two islands there is sea, a tenth of the space wide or more."""
        for member in members("islands", range(20), dimension):
            for one, other in combinations(member.landscape.hints, 2):
                line = one + np.linspace(0.0, 1.0, 400)[:, None] * (other - one)
                assert np.mean(member.excess(line)[:, 0] > 0.0) * np.linalg.norm(other - one) > 0.1

    def test_there_are_as_many_islands_as_centres(self):
        """Counted on a fine grid."""
        axis = (np.arange(200) + 0.5) / 200
        U = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        for member in members("islands", range(6), 2):
            safe = member.excess(U).max(axis=1).reshape(200, 200) <= 0.0
            assert label(safe)[1] == len(member.landscape.hints)

    @pytest.mark.parametrize("dimension", [2, 3])
    def test_cusps_are_sharp_at_the_optimum_which_is_not_where_a_start_is(self, dimension):
        """A thousandth away the cost has risen by far more than a smooth one could."""
        rng = np.random.default_rng(0)
        for member in members("cusps", range(6), dimension):
            lowest = brute_force.lowest(member)
            ways = rng.standard_normal((200, dimension))
            away = lowest.point + 1e-3 * ways / np.linalg.norm(ways, axis=1, keepdims=True)
            rises = (member.cost(away) - lowest.safe) / (member.median - lowest.safe)
            assert rises.min() > 1e-4
            assert lowest.overall < lowest.safe  # there is better, at sea
            if member.begin is not None:
                assert np.argmin(np.linalg.norm(member.landscape.hints[:-1] - member.begin, axis=1)) != 0

    @pytest.mark.parametrize("dimension", [2, 3])
    def test_islands_of_cusps_do_not_touch_and_each_has_its_own(self, dimension):
        for member in members("cusps", range(10), dimension):
            ashore = member.landscape.hints[:-1]
            assert member.excess(ashore).max() <= 0.0
            assert member.excess(member.landscape.hints[-1:]).max() > 0.0
            for one, other in combinations(ashore, 2):
                line = one + np.linspace(0.0, 1.0, 400)[:, None] * (other - one)
                assert member.excess(line).max() > 0.0

    @pytest.mark.parametrize("dimension", [2, 3, 4])
    def test_options_have_five_to_thirty_each_and_fail_as_often_as_was_asked(self, dimension):
        shares = []
        for seed in range(12):
            member = families.draw("options", dimension, seed)
            counts = [len(column.parameter.options) for column in member.columns]
            assert all(5 <= count <= 30 for count in counts)
            U = member.uniform(4000, np.random.default_rng(0))
            shares.append(float(np.mean(member.excess(U).max(axis=1) > 0.0)))
        assert min(shares) > 0.08
        assert max(shares) < 0.92
        assert np.ptp(shares) > 0.4

    def test_the_best_of_few_options_is_the_best_of_all_combinations(self):
        for seed in range(4):
            member = families.draw("options", 3, seed)
            U = np.array(list(product(*(levels for _, levels in member.columns))))
            safe = member.excess(U).max(axis=1) <= 0.0
            assert brute_force.lowest(member).safe == pytest.approx(member.cost(U)[safe].min(), rel=1e-12)

    def test_options_that_are_alike_in_their_descriptors_do_alike(self):
        """Smooth in what nobody is told: the nearest option by descriptors is nearer in cost than any other one."""
        near, far = [], []
        for seed in range(6):
            member = families.draw("options", 2, seed)
            table = member.landscape.cost.tables[0]
            levels = np.linspace(0.0, 1.0, len(table))
            U = np.column_stack([levels, np.full(len(table), member.columns[1].levels[0])])
            costs = member.cost(U)
            gaps = np.linalg.norm(table[:, None] - table, axis=2) + 9.0 * np.eye(len(table))
            near += list(np.abs(costs - costs[gaps.argmin(axis=1)]) / costs.std())
            far += list(np.abs(costs - costs[np.argmax(gaps * (gaps < 9.0), axis=1)]) / costs.std())
        assert np.mean(near) < 0.6 * np.mean(far)

    def test_a_corridor_can_be_followed_to_its_end(self):
        for member in members("corridor", range(6)):
            end, start = member.landscape.hints
            assert member.excess(np.stack([start, end])).max() <= 0.0
            line = start + np.linspace(0.0, 1.0, 200)[:, None] * (end - start)
            assert member.excess(line).max() > 0.0 or member.share < 0.82

    def test_plateaus_are_flat(self):
        for member in members("plateau", range(4), 6):
            costs = member.cost(member.uniform(5000, np.random.default_rng(0)))
            assert 0.6 < np.mean(costs == costs.max()) < 0.9

    @pytest.mark.parametrize("dimension", [3, 8])
    def test_costs_of_decades_span_several(self, dimension):
        for member in members("decades", range(20), dimension):
            costs = member.cost(member.uniform(5000, np.random.default_rng(0)))
            assert costs.max() / costs.min() > 100.0

    @pytest.mark.parametrize("name", ["jump", "kink", "saturation"])
    def test_readings_cross_their_threshold_where_the_machine_crashes(self, name):
        for member in members(name, range(4)):
            (gauge,) = member.gauges
            U = member.uniform(5000, np.random.default_rng(0))
            beyond = np.array([gauge.limit.violated(value) for value in gauge.read(U)])
            np.testing.assert_array_equal(beyond, member.excess(U)[:, 0] > 0.0)

    def test_a_jump_leaves_a_gap_about_the_threshold_and_a_smooth_load_does_not(self):
        def gap(name):
            (gauge,) = families.draw(name, 2, 3).gauges
            read = np.sort(gauge.read(np.random.default_rng(0).random((20_000, 2))))
            i = np.searchsorted(read, gauge.limit.threshold)
            return (read[i] - read[i - 1]) / (read[-1] - read[0])

        assert gap("jump") > 0.3
        assert gap("smooth") < 0.01

    @pytest.mark.parametrize(("name", "causes"), [("labels", {1}), ("causes", {2, 3})])
    def test_labels_only_measures_nothing(self, name, causes):
        assert {len(member.margins) for member in members(name)} == causes
        assert all(families.get(name, 3, seed).constraints == [] for seed in range(2))

    def test_several_causes_are_measured_all_or_in_part(self):
        assert {len(member.gauges) for member in members("several")} == {2, 3}
        assert {(len(member.gauges), len(member.hidden)) for member in members("partly")} == {(1, 1)}

    def test_every_cause_crashes_somewhere(self):
        for name in ("causes", "several", "partly"):
            for member in members(name):
                U = member.uniform(5000, np.random.default_rng(0))
                assert np.all(np.mean(member.excess(U) > 0.0, axis=0) > 0.01)

    def test_a_bystander_never_has_to_do_with_a_crash(self):
        problem, member = families.get("bystander", 3, 0), families.draw("bystander", 3, 0)
        assert all(limit.threshold == np.inf for limit in problem.limits)
        crashed = [u for u in member.uniform(200, np.random.default_rng(0)) if member.excess(u[None]).max() > 0.0]
        with pytest.raises(Crash) as crash:
            problem.evaluate(member.params(crashed[0]))
        assert not crash.value.measured

    def test_noisy_is_heavy(self):
        for seed in range(4):
            problem = families.get("noisy", 2, seed)
            assert 0.05 < problem.cost_noise / (problem.median_safe_cost - problem.constrained_minimum) < 0.35

    def test_mixed_has_floats_whole_numbers_and_options(self):
        for member in members("mixed"):
            assert {type(column.parameter) for column in member.columns} == {Float, Int, Choice}


def test_levels_of_many_parameters_are_searched_too():
    """Against another search: exchanges of levels at random, and small steps of the rest, from the best of many."""
    member, rng = families.draw("mixed", 8, 11), np.random.default_rng(4)
    real = np.array([column.levels is None for column in member.columns])
    U = member.uniform(20_000, rng)
    U = U[member.excess(U).max(axis=1) <= 0.0]
    best = U[np.argsort(member.cost(U))[:30]]
    for step in np.geomspace(0.3, 1e-4, 150):
        others = np.where(
            real,
            best[:, None] + step * rng.standard_normal((30, 30, 8)),
            rng.permuted(U, axis=0)[:900].reshape(30, 30, 8),
        )
        tried = np.clip(np.where(rng.random((30, 30, 8)) < 0.25, others, best[:, None]), 0.0, 1.0)
        costs = np.where(
            member.excess(tried.reshape(-1, 8)).max(axis=1) <= 0.0, member.cost(tried.reshape(-1, 8)), np.inf
        )
        chosen = tried[np.arange(30), np.argmin(costs.reshape(30, 30), axis=1)]
        better = np.where(member.excess(chosen).max(axis=1) <= 0.0, member.cost(chosen), np.inf) < member.cost(best)
        best = np.where(better[:, None], chosen, best)
    found = brute_force.lowest(member)
    assert found.safe <= member.cost(best).min() + 1e-6 * (member.median - found.safe)


class TestStored:
    def test_what_is_on_file_agrees_with_the_machines(self):
        """Otherwise it would silently not be used."""
        found = stored._all()
        for name in NAMES:
            rows = list(found[name].items())
            for key, row in (rows[0], rows[-1]):
                dimension, seed = map(int, key.split("/"))
                member = families.draw(name, dimension, seed)
                lowest = stored.lowest(member)
                assert lowest is not None
                assert (lowest.safe, lowest.overall) == (row[0], row[1])

    def test_what_does_not_agree_is_not_used(self, monkeypatch):
        member = families.draw("bowl", 4, 0)
        wrong = {"bowl": {"4/0": [1e9, 0.0, member.median, 0.5, 0.5, 0.5, 0.5]}}
        monkeypatch.setattr(stored, "_all", lambda: wrong)
        assert stored.lowest(member) is None

    def test_nor_is_the_optimum_of_a_machine_with_the_same_cost_that_crashes_elsewhere(self):
        member = families.draw("bowl", 4, 0)
        assert stored.lowest(member) is not None
        assert stored.lowest(replace(member, median=1.01 * member.median)) is None


class TestRefusals:
    def test_an_unknown_family_is_refused(self):
        with pytest.raises(ValueError, match=r"name must be one of smooth, .* got 'sphere'"):
            families.get("sphere", 2, 0)

    @pytest.mark.parametrize(("name", "dimension"), [("islands", 7), ("smooth", 1), ("driven", 61), ("bowl", 2.5)])
    def test_a_dimension_that_a_family_does_not_have_is_refused(self, name, dimension):
        with pytest.raises(ValueError, match=f"dimension must be a whole number from 2 to .* got {dimension}"):
            families.get(name, dimension, 0)

    @pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
    def test_a_seed_is_a_whole_number(self, seed):
        with pytest.raises(ValueError, match="seed must be a whole number from 0 on"):
            families.get("bowl", 2, seed)

    def test_reporting_seeds_are_refused_for_tuning(self):
        families.check_tuning(range(100))
        with pytest.raises(ValueError, match=r"seeds must be from 0 to 99 for tuning; got 100\. Those from 100 on"):
            families.check_tuning([3, 100])
