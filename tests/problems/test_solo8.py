"""Solo8's jump: the robot is the published one, physics holds, and the problem is what it says it is."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import crashbo
from crashbo import problems
from crashbo.optimizer.records import Constraint, Unmeasured

pytest.importorskip("mujoco")
from crashbo.problems.solo8 import camera, motors, robot
from crashbo.problems.solo8 import problem as solo8
from crashbo.problems.solo8.engine import mujoco
from crashbo.problems.solo8.jump import Gains, Tape, jump
from crashbo.problems.solo8.plan import FOOT_RADIUS, GRAVITY, LINK, MASS, TICK, Plan, reference

STIFF = {"p_knee": 0.95, "p_hip": 0.95, "d_knee": 0.3, "d_hip": 0.3}
LIMP = {"p_knee": 0.3, "p_hip": 0.0, "d_knee": 0.0, "d_hip": 0.6}
GENTLE = {"p_knee": 0.5, "p_hip": 0.5, "d_knee": 0.5, "d_hip": 0.5}


@pytest.fixture(scope="module")
def problem():
    return problems.get("solo8-jump")


@pytest.fixture(scope="module")
def tapes(problem) -> dict[str, Tape]:
    """A gentle jump, the best, and the fiercest there is, with boards that hold."""
    fierce = {"p_knee": 1.0, "p_hip": 1.0, "d_knee": 0.0, "d_hip": 0.0}
    xs = {"gentle": GENTLE, "best": problem.optimum, "fierce": fierce}
    return {k: jump(solo8.gains(x), solo8.SETUP.untrippable, record=True).tape for k, x in xs.items()}


def flight(tape):
    """Ticks of the flight proper: the longest stretch without contact, less a moment at either end."""
    first = np.flatnonzero(tape.contacts[: tape.end])[-1] + 1
    return slice(first + 3, tape.end - 3)


class TestRobot:
    def test_it_weighs_what_the_real_one_does(self):
        assert robot.build().body_mass.sum() == pytest.approx(2.178, abs=5e-4)
        assert pytest.approx(2.178, abs=5e-4) == MASS

    def test_it_stands_on_its_feet_at_rest(self):
        pose = np.concatenate([[0, 0, Plan().rest, 1, 0, 0, 0], reference(Plan(), 0.1).angles[0]])
        feet = robot.skeleton(pose)[:, 2]
        np.testing.assert_allclose(feet[:, 2], FOOT_RADIUS, atol=1e-9)
        np.testing.assert_allclose(np.abs(feet[:, 0]), 0.19 + Plan().foot_x, atol=1e-9)

    def test_the_skeleton_is_the_models(self):
        model = robot.build()
        data = mujoco.MjData(model)
        rng = np.random.default_rng(0)
        data.qpos[:] = rng.standard_normal(15)
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        mujoco.mj_kinematics(model, data)
        places = [[data.body(f"{leg}_{part}").xpos for part in ("upper", "lower", "foot")] for leg in robot.LEGS]
        np.testing.assert_allclose(robot.skeleton(data.qpos), places, atol=1e-12)

    def test_nothing_but_trunk_thighs_and_feet_meets_the_ground(self):
        model = robot.build()
        solid = {model.geom(i).name for i in range(model.ngeom) if model.geom_contype[i] == 2}
        assert solid == {"trunk"} | {f"{leg}_{part}" for leg in robot.LEGS for part in ("thigh", "sole")}


class TestMotors:
    @pytest.mark.parametrize(("current", "torque"), [(2.0, 0.45), (12.0, 2.5), (15.0, 2.7)])
    def test_torques_are_the_published_ones(self, current, torque):
        assert motors.torques(np.array([current, -current])) == pytest.approx([torque, -torque], rel=0.01)

    def test_more_current_never_gives_less_torque(self):
        assert np.all(np.diff(motors.torques(np.linspace(-24, 24, 500))) > 0)

    @pytest.mark.parametrize("speed", [0.0, 30.0, -60.0])
    def test_a_drive_keeps_within_current_and_voltage(self, speed):
        asked = np.linspace(-50, 50, 101)
        given = motors.currents(asked, np.full(101, speed))
        assert np.all(np.abs(given) <= motors.LIMIT)
        assert np.all(np.abs(motors.voltages(given, np.full(101, speed))) <= motors.SUPPLY + 1e-9)
        easy = np.abs(asked) < 0.5
        np.testing.assert_allclose(given[easy], asked[easy] / 0.225)


class TestPlan:
    def test_no_joint_jumps_nor_outruns_its_motor(self):
        speeds = np.diff(reference(Plan(), 1.6).angles, axis=0) / TICK
        assert np.abs(speeds).max() < motors.SUPPLY / (robot.GEAR * motors.TORQUE_CONSTANT)

    def test_the_feedforward_holds_a_share_of_the_standing_weight(self):
        planned = reference(Plan(), 0.1)
        hip, knee = planned.angles[0, :2]
        lever = -LINK * np.sin(hip + knee)  # foot before knee
        assert planned.torques[0, 1] == pytest.approx(Plan().feedforward * MASS * GRAVITY / 4 * lever)


class TestPhysics:
    @pytest.mark.parametrize("name", ["gentle", "best", "fierce"])
    def test_a_flight_is_ballistic(self, tapes, name):
        tape = tapes[name]
        z = tape.centre[flight(tape)]
        speed = (z[10] - z[0]) / (10 * TICK) + GRAVITY * 5 * TICK  # at z[0]
        assert z.max() - z[0] == pytest.approx(speed**2 / (2 * GRAVITY), rel=0.03)
        fall = np.polyfit(np.arange(len(z)) * TICK, z, 2)[0]
        assert -2 * fall == pytest.approx(GRAVITY, rel=0.01)

    @pytest.mark.parametrize("name", ["gentle", "best", "fierce"])
    def test_no_motor_is_beyond_its_limits(self, tapes, name):
        tape = tapes[name]
        assert np.abs(tape.current).max() <= motors.LIMIT
        # The drive sees the speed at the tick's beginning, as the tape does.
        assert np.abs(motors.voltages(tape.current, tape.speed)).max() <= motors.SUPPLY + 1e-9

    @pytest.mark.parametrize("name", ["gentle", "best", "fierce"])
    def test_feet_do_not_sink(self, tapes, name):
        tape = tapes[name]
        before = flight(tape).start
        assert tape.depth[:before].max() < 0.001
        assert tape.depth[: tape.end + 1].max() < 0.003

    @pytest.mark.parametrize("name", ["gentle", "best"])
    def test_the_motors_do_more_work_than_the_jump_needs(self, tapes, name):
        tape = tapes[name]
        low, top = tape.centre[: tape.end].argmin(), tape.centre[: tape.end].argmax()
        power = np.sum(motors.torques(tape.current) * tape.speed, axis=1)
        gained = MASS * GRAVITY * (tape.centre[top] - tape.centre[low])
        assert gained < np.sum(power[low:top]) * TICK < 3.0 * gained

    def test_a_robot_without_damping_rings_in_flight(self, tapes):
        def swing(d_knee):
            gains = Gains(4.5, 6.0, d_knee, 0.0)
            tape = jump(gains, solo8.SETUP.untrippable, record=True).tape
            return np.abs(tape.current[flight(tape)]).max()

        assert swing(0.0) > 1.3 * swing(0.03)


class TestProblem:
    def test_the_start_is_safe_and_low(self, problem):
        truth = problem.truth(solo8.START)
        assert not truth.crashed
        assert 0.25 < -truth.cost < 0.45
        assert truth.measured["current"] < 0.8 * solo8.SETUP.trip

    def test_the_best_jump_is_tall_next_to_tripping_inside_the_cube_and_can_be_repeated(self, problem):
        truth = problem.truth(problem.optimum)
        assert truth.cost == pytest.approx(problem.constrained_minimum, abs=0.001)
        assert 0.70 < -truth.cost < 0.85
        assert 0.9 * solo8.SETUP.trip < truth.measured["current"] < solo8.SETUP.trip
        assert all(0.05 < value < 0.95 for value in problem.optimum.values())
        rng = np.random.default_rng(0)
        heights = [-problem.evaluate(problem.optimum, rng).cost for _ in range(10)]
        assert min(heights) > 0.98 * -problem.constrained_minimum

    def test_stiff_legs_trip_the_boards(self, problem):
        with pytest.raises(crashbo.Crash, match=r"^boards tripped at 0\.\d\d s$") as caught:
            problem.evaluate(STIFF, np.random.default_rng(0))
        assert (caught.value.measured, caught.value.blame) == ({}, ())

    def test_limp_hips_make_it_fall(self, problem):
        with pytest.raises(crashbo.Crash, match=r"^fell: pitch \d\d deg$") as caught:
            problem.evaluate(LIMP, np.random.default_rng(0))
        assert (caught.value.measured, caught.value.blame) == ({}, ())
        assert problem.truth(LIMP).measured["current"] < solo8.SETUP.trip  # so that is not why

    def test_the_same_seed_gives_the_same_jump(self, problem):
        first, second, other = (problem.evaluate(GENTLE, np.random.default_rng(k)) for k in (1, 1, 2))
        assert first == second
        assert first != other
        assert problem.evaluate(GENTLE) == problem.evaluate(GENTLE)

    def test_noise_scatters_about_the_perfect_robot(self, problem):
        truth = problem.truth(GENTLE)
        rng = np.random.default_rng(3)
        outcomes = [problem.evaluate(GENTLE, rng) for _ in range(16)]
        costs = np.array([o.cost for o in outcomes]) - truth.cost
        currents = np.array([o.measured["current"] for o in outcomes]) - truth.measured["current"]
        assert 0.0005 < np.std(costs) < 0.006
        assert np.abs(np.mean(costs)) < 0.005
        assert 0.2 < np.std(currents) < 2.0
        assert np.abs(np.mean(currents)) < 1.5

    def test_a_crash_has_a_truth_and_the_informed_view_tells_it(self, problem):
        truth = problem.truth(STIFF)
        assert truth.crashed
        assert truth.measured["current"] > solo8.SETUP.trip
        plain, informed = np.random.default_rng(4), np.random.default_rng(4)
        with pytest.raises(crashbo.Crash):
            problem.evaluate(STIFF, plain)
        with pytest.raises(crashbo.Crash) as caught:
            problem.informed().evaluate(STIFF, informed)
        assert caught.value.measured["current"] == pytest.approx(truth.measured["current"], abs=6.0)
        assert plain.random() == informed.random()  # both views stay in step

    def test_constraints_say_nothing_of_the_trip_level(self, problem):
        assert problem.constraints == [Constraint("current"), Unmeasured("fall")]
        assert problem.informed().constraints[0].threshold == solo8.SETUP.trip

    def test_it_survives_pickling_and_refuses_what_lies_outside(self, problem):
        assert pickle.loads(pickle.dumps(problem)) == problem
        with pytest.raises(ValueError, match="p_hip must be a number from 0 to 1; got 2"):
            problem.evaluate(GENTLE | {"p_hip": 2.0})

    def test_a_short_study_runs(self, problem):
        result = crashbo.minimize(
            problem.evaluate,
            problem.space,
            constraints=problem.constraints,
            trials=3,
            start=[solo8.START],
            strategy="random",
            progress=False,
        )
        assert result.trials[0].params == solo8.START

    def test_what_was_fitted_is_said(self, problem):
        assert "fitted" in problem.source
        assert "fitted" in solo8.__doc__


class TestWithoutMujoco:
    def test_it_is_listed_and_asking_for_it_names_the_extra(self):
        code = (
            "import sys; sys.modules['mujoco'] = None\nimport crashbo\nprint('solo8-jump' in crashbo.problems.names())"
        )
        code += "\ntry: crashbo.problems.get('solo8-jump')\nexcept ModuleNotFoundError as error: print(error)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        listed, words = done.stdout.splitlines()
        assert listed == "True"
        assert words.endswith("which is not installed. Run: pip install 'crashbo[robot]'")

    def test_importing_crashbo_leaves_it_alone(self):
        code = "import sys, crashbo; assert 'mujoco' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True)


class TestGraphics:
    @pytest.mark.parametrize("said", ["osmesa", "nonsense"])
    def test_a_simulation_needs_none_and_leaves_the_users_choice_alone(self, said):
        code = (
            "import os, crashbo\nfrom crashbo.problems.solo8 import problem\n"
            "print(crashbo.problems.get('solo8-jump').evaluate(problem.START).cost < 0, os.environ['MUJOCO_GL'])"
        )
        environment = os.environ | {"MUJOCO_GL": said}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout.split() == ["True", said], done.stderr

    @pytest.mark.parametrize("said", ["disable", "disabled", "off", "0", "False"])
    def test_who_wants_none_gets_none_at_once(self, said, monkeypatch):
        monkeypatch.setenv("MUJOCO_GL", said)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a library was tried"))
        assert camera.film(np.zeros((1, 15))) is None

    @pytest.mark.parametrize(
        ("said", "tried"),
        [
            ("osmesa", ("osmesa", "egl")),
            ("egl", ("egl", "osmesa")),
            ("glfw", ("glfw", "egl", "osmesa")),
            ("nonsense", ("egl", "osmesa")),
            ("", ("egl", "osmesa")),
        ],
    )
    def test_the_users_choice_comes_first(self, said, tried, monkeypatch):
        monkeypatch.setenv("MUJOCO_GL", said)
        monkeypatch.setattr(camera, "LIBRARIES", ("egl", "osmesa"))
        assert camera.libraries() == tried


class TestCamera:
    def test_without_a_graphics_library_there_are_no_frames_and_no_error(self, monkeypatch):
        monkeypatch.delenv("MUJOCO_GL", raising=False)
        monkeypatch.setattr(camera, "LIBRARIES", ("nonsense",))
        assert camera.film(np.zeros((1, 15))) is None

    def test_where_there_is_one_frames_differ_as_the_poses_do(self):
        standing = np.concatenate([[0, 0, 0.25, 1, 0, 0, 0], reference(Plan(), 0.1).angles[0]])
        poses = np.array([standing, standing, standing + np.eye(15)[2] * 0.3])
        frames = camera.film(poses, 80, 60)
        if frames is None:
            pytest.skip("no graphics library here")
        assert frames.shape == (3, 60, 80, 3)
        np.testing.assert_array_equal(frames[0], frames[1])
        assert np.any(frames[1] != frames[2])


class TestGuard:
    def guard(self, limit):
        return crashbo.Guard({"current": limit}, {"current": "above"})

    def test_it_stops_a_jump_before_the_boards_trip(self):
        with pytest.raises(crashbo.Crash, match="boards tripped"):
            solo8.guarded(STIFF, np.random.default_rng(0), self.guard(np.inf))
        with pytest.raises(crashbo.Stopped) as stop:
            solo8.guarded(STIFF, np.random.default_rng(0), self.guard(105.0))
        assert 95.0 < stop.value.measured["current"] < 112.0

    def test_a_jump_that_stays_below_its_limit_is_the_same_with_a_guard(self):
        problem = crashbo.problems.get("solo8-jump")
        free = problem.evaluate(solo8.START, np.random.default_rng(3))
        assert solo8.guarded(solo8.START, np.random.default_rng(3), self.guard(100.0)) == free

    def test_a_recorded_jump_shows_where_it_was_stopped(self):
        watch = solo8.watcher(self.guard(105.0))
        flight = jump(solo8.gains(STIFF), solo8.SETUP, rng=np.random.default_rng(0), record=True, watch=watch)
        assert flight.stopped is not None
        assert not flight.crash
        assert not flight.tape.current[flight.tape.end :].any()  # the motors are off


def test_a_jump_with_two_goals_has_its_height_and_the_energy_that_it_drew(problem, tapes):
    outcome, tape = solo8.height_and_energy(GENTLE), tapes["gentle"]
    heat = motors.RESISTANCE * float(np.sum(tape.current[: tape.end] ** 2)) * TICK
    lifted = MASS * GRAVITY * (outcome.cost["height"] - Plan().rest)
    assert outcome.cost["height"] == pytest.approx(-problem.truth(GENTLE).cost)
    assert heat + lifted < outcome.cost["energy"] < 4.0 * (heat + lifted)  # there is friction, and it brakes
    with pytest.raises(crashbo.Crash, match="tripped"):
        solo8.height_and_energy(STIFF)
