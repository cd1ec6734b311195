"""clfuse arrays on workers of `dask.distributed`: two processes, one of which is killed."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clfuse

pytest.importorskip("distributed")
import dask
import dask.array as da
from distributed import Client, LocalCluster
from distributed.protocol import deserialize, serialize
from distributed.spill import SpillBuffer

from clfuse.dask import worker as workers
from clfuse.runtime.devices import selection

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning",
                                        "ignore::UserWarning", "ignore::RuntimeWarning")

WAIT_S = 60
"""Longest wait for something that takes a second or two."""

VALUES = np.random.default_rng(0).standard_normal((2000, 300))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        dask.config.set({"distributed.worker.preload": ["clfuse.dask"],
                         "distributed.comm.timeouts.connect": "30s"}),
        LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None,
                     env={"CLFUSE_HOST_US": "0"}) as cluster,
        Client(cluster) as client,
    ):
        yield client


def until(condition: Any) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.05)


def ours(values: Any, **options: Any) -> Any:
    return da.from_array(values, **options).to_backend("clfuse")


def test_every_worker_has_a_device_of_those_that_fit(client: Client) -> None:
    def device() -> tuple[int, str, str]:
        return os.getpid(), clfuse.get_device().index, workers._taken[os.getpid()][1].name

    found = list(client.run(device).values())
    assert len(found) == 2
    assert os.getpid() not in {pid for pid, _, _ in found}
    assert {index for _, index, _ in found} <= {d.index for d in selection.fitting(
        clfuse.config.settings.device)}
    assert len({file for _, _, file in found}) == 2


def test_results_of_two_processes_are_numpys(client: Client) -> None:
    x = ours(VALUES, chunks=(500, 300))
    for made, expected in (
        (((x - x.mean(axis=0)) / x.std(axis=0)).sum(axis=1),
         ((VALUES - VALUES.mean(axis=0)) / VALUES.std(axis=0)).sum(axis=1)),
        (x.T @ x, VALUES.T @ VALUES),
        (x.rechunk((2000, 100)).max(axis=1), VALUES.max(axis=1)),
        (da.percentile(x[:, 0], 50, method="nearest", internal_method="dask"), None),
    ):
        result = made.compute()
        if expected is not None:
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-10, atol=1e-10)
            assert type(result) is clfuse.ndarray


def test_what_a_task_returns_was_computed_by_fused_kernels(
    client: Client,
) -> None:
    def task(n: int) -> dict[str, Any]:
        x = clfuse.arange(float(n))
        before = clfuse.stats()["kernels_launched"]
        return {"pair": [x * 2 + 1, clfuse.sqrt(x) - x], "before": before}

    def look(result: dict[str, Any]) -> tuple[bool, int]:
        pending = [x._storage.node.buffer is None for x in result["pair"]]
        return any(pending), clfuse.stats()["kernels_launched"] - result["before"]

    (address, _) = client.scheduler_info()["workers"]
    made = client.submit(task, 50_000, workers=[address], pure=False)
    assert client.submit(look, made, workers=[address]).result() == (False, 1)
    np.testing.assert_array_equal(np.asarray(made.result()["pair"][0]), np.arange(5e4) * 2 + 1)


def test_an_error_of_the_device_is_the_tasks_error(client: Client) -> None:
    def too_large() -> Any:
        return clfuse.zeros(10 ** 13) + 1

    with pytest.raises(clfuse.AllocationError, match="bytes asked for"):
        client.submit(too_large).result()
    assert client.submit(lambda: int(clfuse.arange(3).sum())).result() == 3


def test_the_result_is_numpys_when_a_worker_is_killed(client: Client) -> None:
    def slow(chunk: Any) -> Any:
        time.sleep(0.1)
        return chunk * 2 + 1

    def removals(dask_scheduler: Any) -> int:
        return sum(event["action"] == "remove-worker"
                   for _, event in dask_scheduler.get_events("all") if "action" in event)

    before = client.run_on_scheduler(removals)
    x = ours(VALUES, chunks=(50, 300)).map_blocks(slow, dtype=float)
    # A sum of whole numbers: the same bits in whatever order they are added.
    future = client.compute((da.rint(x * 16).sum(axis=0)), optimize_graph=False)
    until(lambda: sum(len(keys) for keys in client.has_what().values()) >= 10)
    victim = next(iter(client.run(os.getpid).items()))
    os.kill(victim[1], signal.SIGKILL)
    result = future.result(timeout=WAIT_S)
    np.testing.assert_array_equal(np.asarray(result),
                                  np.rint((VALUES * 2 + 1) * 16).sum(axis=0))
    assert client.run_on_scheduler(removals) > before
    until(lambda: len(client.scheduler_info()["workers"]) == 2)
    places = client.run(lambda: workers._taken[os.getpid()][1].name)
    assert len(set(places.values())) == 2


def test_messages_hold_the_memory_itself() -> None:
    if not clfuse.get_device().traits.unified_memory:
        pytest.skip("the device copies")
    x = clfuse.array(np.arange(100_000.0)) * 2
    header, frames = serialize(x)
    assert max(memoryview(frame).nbytes for frame in frames) == x.nbytes
    assert any(np.shares_memory(np.frombuffer(frame, "u1"), np.asarray(x)) for frame in frames)
    before = clfuse.stats()["bytes_to_device"]
    made = deserialize(header, frames)
    np.testing.assert_array_equal(np.asarray(made), np.arange(1e5) * 2)
    assert clfuse.stats()["bytes_to_device"] == before


def test_what_is_too_large_for_memory_goes_to_disk_and_back(tmp_path: Path) -> None:
    kept = SpillBuffer(str(tmp_path), target=1_000_000)
    arrays = {f"chunk-{n}": clfuse.full((300, 100), n + 0.5)[::2] for n in range(12)}
    for key, x in arrays.items():
        kept[key] = x
    assert len(kept.slow) == 12 - len(kept.fast) > 0
    for key, x in arrays.items():
        np.testing.assert_array_equal(np.asarray(kept[key]), np.asarray(x))


def test_devices_are_handed_out_in_turn_and_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.tempfile, "tempdir", str(tmp_path))
    usable = selection.fitting("cpu")
    taken = [workers._free_device("cpu") for _ in range(2 * len(usable))]
    assert [device for device, _ in taken] == usable * 2
    taken[0][1].close()
    assert workers._free_device("cpu")[0] is usable[0]
    alone = selection.fitting("")
    assert {(d.kind, d.platform_name) for d in alone} == {(alone[0].kind, alone[0].platform_name)}
    with pytest.raises(clfuse.DeviceError, match="no OpenCL device fits"):
        workers._free_device("no such device")


def test_the_plugin_travels() -> None:
    made = pickle.loads(pickle.dumps(workers.Plugin("cpu")))
    assert made._spec == "cpu"
    assert made.name == "clfuse"
