"""minimize on a Dask client's executor."""

import time

import pytest

import crashbo

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")

pytestmark = pytest.mark.filterwarnings("default")  # Dask's own


@pytest.fixture(scope="module")
def client():
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=3, dashboard_address=None) as client:
        yield client


def test_crashes_and_outcomes_come_back_whole(client):
    def experiment(params):
        if params["x"] > 0.6:
            raise crashbo.Crash("too far", blame="load", measured={"load": params["x"]})
        return crashbo.Outcome((params["x"] - 0.5) ** 2, measured={"load": params["x"]})

    executor = client.get_executor(pure=False, retries=0)
    result = crashbo.minimize(
        experiment, {"x": (0, 1)}, constraints=["load"], trials=10, executor=executor, n_parallel=3, progress=False
    )
    crash = next(t for t in result.trials if t.state == "crash")
    assert (crash.reason, crash.blame, crash.measured) == ("too far", ("load",), {"load": crash.params["x"]})
    assert result.best.cost < 0.02


def test_a_repeat_is_run_again(client):
    def experiment(params):
        return float(time.perf_counter_ns())

    executor = client.get_executor(pure=False, retries=0)
    start = [{"x": 0.25}] * 3
    result = crashbo.minimize(
        experiment, {"x": (0, 1)}, trials=3, start=start, executor=executor, n_parallel=3, progress=False
    )
    assert len({t.cost for t in result.trials}) == 3  # Dask answers a pure function's repeat without running it
