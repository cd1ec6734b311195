"""Calls of the driver that fail: the right value or an error that says so, and work that goes on
afterwards."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

import clfuse as cf
from clfuse import config
from clfuse.counters import counters
from clfuse.engine.evaluate import forget_plans
from clfuse.errors import AllocationError, DeviceError, KernelBuildError
from clfuse.runtime.devices import selection
from clfuse.runtime.devices.device import Device
from clfuse.runtime.launches import launch
from clfuse.runtime.memory import blocks, buffers
from clfuse.tools.check import driver_faults
from clfuse.tools.check.driver_faults import failing
from tests.support.own_memory import own_memory
from tests.support.rounds import IS_LONG

pytestmark = pytest.mark.clfuse_only

#: Elements whose bytes are staged when they go up.
N = 50_000

NO_MEMORY, RESOURCES, QUEUE, OWN = -4, -5, -36, -9999


def fresh(known: Device) -> Device:
    """Another device for the same hardware, with a context of its own."""
    inline = known.inline and type(known.inline)(known.inline.handle)
    return Device(known.handle, known.handle.platform, known.index, inline)


MOST_ON_A_GPU = 8
"""Of the tests that lose a device, in one process on a real GPU: each makes two contexts there, of
half a gigabyte, and an H100's driver has none left after some hundred, whoever let go of them. What
fails is the table of functions, not the hardware: CPU devices, simulated ones too, run all."""

_lost_on_a_gpu = itertools.count()


@pytest.fixture
def victim(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device that may be lost: the other tests' is another one."""
    original = selection.get_device()
    is_a_gpu = original.kind == "gpu" and original.simulation is None
    if is_a_gpu and next(_lost_on_a_gpu) >= MOST_ON_A_GPU:
        pytest.skip(f"{MOST_ON_A_GPU} tests of this process have lost the GPU already")
    known = [fresh(each) if each is original else each for each in selection.listed()]
    monkeypatch.setattr(selection, "_listed", known)
    monkeypatch.setattr(selection, "_defaults", {})
    monkeypatch.setattr(selection, "_chosen", None)
    forget_plans()
    with config.override(host_us=0, build_after_ms=0, fallback="allow"):
        yield cf.set_device(original.index)
    forget_plans()
    for each in known:
        if each.index == original.index and not each.lost:
            each.finish()


# --- programs -------------------------------------------------------------------------------------


def data(number: int) -> Any:
    return np.random.default_rng(number).random(N)


def fused(m: Any) -> list[Any]:
    """Uploads, two kernels, downloads."""
    x, y = m.asarray(data(1)), m.asarray(data(2))
    z = m.sqrt(x * x + y * y) * 3 - x
    return [z, z.sum() > N, (z > 1).sum()]


def updated(m: Any) -> list[Any]:
    """A loop that is known from its second round on; what is written is read again."""
    x = m.asarray(data(3))
    for _ in range(8):
        x[1:] += x[:-1] * 0.5
        x *= 0.75
        float(x[7])
    return [x]


def short(m: Any) -> list[Any]:
    """What PoCL runs in the calling thread."""
    x = m.asarray(data(9)[:300])
    for _ in range(8):
        x *= 0.5
        x[1:] += x[:-1]
        float(x[7])
    return [x]


def replayed(m: Any) -> list[Any]:
    def step(x: Any, y: Any) -> Any:
        return m.maximum(x * 0.5 + y, y * y)

    step = cf.jit(step) if m is cf else step
    x, y = m.asarray(data(4)), m.asarray(data(5))
    for _ in range(4):
        x = step(x, y)
    return [x]


@cf.kernel
def rotate(i, x, y, c):
    x[i], y[i] = c * x[i] - y[i], c * y[i] + x[i]


def rotated(m: Any) -> list[Any]:
    """Kernels in Python, each looked at: they are launched ahead in the end."""
    x, y = m.asarray(data(6)), m.asarray(data(7))
    for _ in range(14):
        if m is cf:
            rotate(N, x, y, 0.5)
            cf.evaluate(x, y)
        else:
            x, y = 0.5 * x - y, 0.5 * y + x
    return [x, y]


def moved(m: Any) -> list[Any]:
    """Uploads and downloads that wait, copies, and a call of NumPy's."""
    x = m.asarray(np.tile(data(8), 2))
    y = x.copy()
    y += 1
    return [y[::-1], m.sort(x - 1), x]


#: pyopencl itself tries once more where there is no memory.
TWICE = 2

EXPECTED = (DeviceError, AllocationError, KernelBuildError)

PROGRAMS: list[Callable[[Any], list[Any]]] = [fused, updated, short, replayed, rotated, moved]


def run(work: Callable[[Any], list[Any]]) -> list[Any]:
    return [np.asarray(cf.asnumpy(value)) for value in work(cf)]


def assert_equal_or_close(results: list[Any], wanted: list[Any]) -> None:
    for actual, expected in zip(results, wanted, strict=True):
        if not np.array_equal(actual, expected):  # in a tenth of the time
            np.testing.assert_allclose(actual, expected, rtol=1e-12)


def assert_right(work: Callable[[Any], list[Any]], results: list[Any]) -> None:
    assert_equal_or_close(results, work(np))


def test_the_programs_of_this_file_are_run_by_kernels(victim: Device) -> None:
    for work in PROGRAMS:
        before = counters["kernels_launched"]
        assert_right(work, run(work))
        assert counters["kernels_launched"] > before, work.__name__


# --- every call of a driver -----------------------------------------------------------------------


CASES = [
    ("in place", fused, (RESOURCES, QUEUE, OWN, NO_MEMORY)),
    *[("in place", work, (RESOURCES, OWN)) for work in (updated, short, replayed, rotated, moved)],
    *[("mapped", work, (RESOURCES, OWN)) for work in (updated, moved)],
    *[("the driver's memory", work, (RESOURCES, OWN)) for work in (fused, updated, moved)],
]
"""Whose memory, which program, and what calls fail with."""

MAKES: Final = ("clCreateBuffer", "clBuildProgram", "clCreateKernel", "clSetKernelArg")
"""Functions that are called when a plan is made or its kernels are bound."""


def chosen() -> Iterator[Any]:
    """Every function in the first case, and in every third of the others, other ones each."""
    for row, name in enumerate(driver_faults.FUNCTIONS):
        for column, (kind, work, statuses) in enumerate(CASES):
            if IS_LONG or not column or (row + column) % 3 == 0:
                taken = statuses if IS_LONG else statuses[(row + column) % 2 :: 2]
                yield pytest.param(name, kind, work, taken, id=f"{name}-{kind}-{work.__name__}")


@pytest.mark.filterwarnings("ignore::clfuse.KernelBuildWarning")
@pytest.mark.parametrize(("name", "kind", "work", "statuses"), [*chosen()])
def test_a_call_that_fails_gives_the_right_value_or_an_error(
    victim: Device,
    name: str,
    kind: str,
    work: Callable[[Any], list[Any]],
    statuses: tuple[int, ...],
) -> None:
    kept = on_the_host()
    expected = work(np)

    def assert_right_again() -> None:
        assert_equal_or_close(run(work), expected)

    for status in statuses:
        for times in (1, None):
            device = cf.set_device(victim.index)
            with ExitStack() as stack:
                if kind == "the driver's memory":
                    stack.enter_context(own_memory(device))
                elif kind == "mapped":
                    blocks.pool_of(device).in_place = False
                forget_plans()
                if name not in MAKES:
                    run(work)
                calls = driver_faults.calls_of(device, name, partial(run, work))
                if not calls:
                    return
                for first in {0, calls - 1} if times else {calls // 2}:
                    if device.lost:
                        break
                    if name in MAKES:
                        forget_plans()
                    case = (name, status, times, first)
                    raised, results = None, []
                    with failing(device, name, status, first=first, times=times):
                        try:
                            results = run(work)
                        except EXPECTED as error:
                            raised = error
                    if raised is None:  # the device may yet be lost: by a map that was let go of
                        assert_equal_or_close(results, expected)
                    else:
                        assert isinstance(raised, DeviceError) == device.lost, case
                        if isinstance(raised, KernelBuildError):
                            assert name in ("clBuildProgram", "clCreateKernel"), case
                    assert_array_is_there(kept)
                    if not device.lost:
                        assert_right_again()
            if device.lost:
                with pytest.raises(DeviceError, match="was lost"):
                    launch.finish(device)
                assert cf.set_device(victim.index) is not device
                assert_right_again()
            assert_array_is_there(kept)
            assert_array_is_there(kept * 2 / 2)


def on_the_host() -> Any:
    """An array that waits on the host until a kernel needs it."""
    with config.override(host_us=50):
        made = cf.asarray(np.arange(100.0))
    assert type(made._storage.node.buffer) is buffers.HostBuffer
    return made


def assert_array_is_there(array: Any) -> None:
    np.testing.assert_array_equal(cf.asnumpy(array), np.arange(100.0))


# --- what is said ---------------------------------------------------------------------------------


def on_the_device() -> Any:
    made = cf.arange(float(N)) * 2
    cf.evaluate(made)
    return made


@contextmanager
def no_wait_succeeds(device: Device, *, first: int = 0) -> Iterator[None]:
    """Whatever a device waits by: it reads where it has memory of its own."""
    with (
        failing(device, "clFinish", OWN, first=first),
        failing(device, "clEnqueueReadBuffer", OWN, first=first),
    ):
        yield


def lose(device: Device) -> DeviceError:
    with no_wait_succeeds(device), pytest.raises(DeviceError) as raised:
        float(cf.arange(float(N)).sum())
    return raised.value


def test_the_first_error_says_most_and_later_ones_the_loss(
    victim: Device,
) -> None:
    kept, gone = on_the_host(), on_the_device()
    first = str(lose(victim))
    for part in (victim.name, "was lost", "failed", "-9999", "launched last: ",
                 "CLFUSE_DEBUG=sync", f"clfuse.set_device({victim.index!r})"):
        assert part in first
    assert victim.lost
    for look in (
        lambda: cf.asnumpy(gone),
        lambda: float(gone.sum()),
        lambda: gone.tolist(),
        lambda: repr(gone),
        lambda: cf.asnumpy(gone + cf.asarray(np.ones(N))),
        lambda: cf.asarray(np.ones(1 << 20)),
        cf.synchronize,
    ):
        with pytest.raises(DeviceError, match="was lost") as raised:
            look()
        assert "CLFUSE_DEBUG" not in str(raised.value)
    assert_array_is_there(kept)


def test_an_array_that_was_lost_says_so_beside_a_new_context(victim: Device) -> None:
    gone = on_the_device()
    pending = gone * 3
    lose(victim)
    made = cf.set_device(victim.index)
    assert made is not victim
    assert not made.lost
    for array in (gone, pending, gone + 1):
        with pytest.raises(DeviceError, match="was lost"):
            cf.asnumpy(array)
    assert_right(fused, run(fused))


def test_recorded_work_on_host_arrays_is_done_on_a_new_context(victim: Device) -> None:
    kept = on_the_host()
    pending = cf.sqrt(kept) + kept
    lose(victim)
    cf.set_device(victim.index)
    expected = np.sqrt(np.arange(100.0)) + np.arange(100.0)
    np.testing.assert_allclose(cf.asnumpy(pending), expected, rtol=1e-15)


@pytest.mark.parametrize("how", ["index", "device", "None", "block", "listing"])
def test_every_way_to_choose_a_device_makes_the_new_context(victim: Device, how: str) -> None:
    lose(victim)
    if how == "index":
        made = cf.set_device(victim.index)
    elif how == "device":
        made = cf.set_device(victim)
    elif how == "None":
        with config.override(device=victim.index):
            cf.set_device(None)
            made = selection.get_device()
            assert_right(fused, run(fused))
            return
    elif how == "block":
        with cf.device(victim.index) as made:
            assert_right(fused, run(fused))
    else:
        made = next(device for device in cf.devices() if device.index == victim.index)
    assert made is not victim
    assert made.index == victim.index
    assert cf.get_device() is made  # it was the chosen one
    assert cf.set_device(victim) is made  # once, not again
    assert_right(fused, run(fused))


def test_work_goes_on_on_another_device(victim: Device) -> None:
    kept = on_the_host()
    lose(victim)
    with cf.device(fresh(victim)) as other:
        assert_array_is_there(kept * 2 / 2)
        assert_right(fused, run(fused))
        assert not other.lost
    assert victim.lost


def test_functions_under_jit_are_traced_for_the_new_context(victim: Device) -> None:
    @cf.jit
    def step(x: Any) -> Any:
        return cf.exp(-x) + x

    kept = on_the_host()
    cf.evaluate(step(kept), step(kept))
    lose(victim)
    with pytest.raises(DeviceError, match="was lost"):
        cf.asnumpy(step(kept))
    cf.set_device(victim.index)
    x = np.arange(100.0)
    np.testing.assert_allclose(cf.asnumpy(step(kept)), np.exp(-x) + x, rtol=1e-14)


def test_an_upload_that_has_failed_is_noticed(victim: Device) -> None:
    class Failed:
        command_execution_status = OWN

    on_the_device()
    launch.finish(victim)
    victim.pinned.append((Failed(), object()))
    with pytest.raises(DeviceError, match=r"an upload .* -9999"):
        launch.finish(victim)
    assert victim.lost


_twice = cf.RawKernel(
    "__kernel void twice(__global const double *x, __global double *y)"
    " { y[get_global_id(0)] = 2 * x[get_global_id(0)]; }",
    "twice",
)


def _doubled(x: Any, y: Any) -> Any:
    """By a kernel that somebody wrote: there is no other way to what it does."""
    _twice((N,), (1,), (x, y))
    return y


def test_a_launch_that_is_too_large_loses_nothing(victim: Device) -> None:
    kept, other = on_the_device(), on_the_device()
    for status in (NO_MEMORY, RESOURCES):
        with (
            failing(victim, "clEnqueueNDRangeKernel", status) as fault,
            pytest.raises(AllocationError, match="nothing is lost"),
        ):
            cf.asnumpy(_doubled(kept, other))
        assert fault.failed > 1  # once more after memory went back
        with failing(victim, "clEnqueueNDRangeKernel", status, times=TWICE):
            np.testing.assert_array_equal(cf.asnumpy(kept + 2), np.arange(float(N)) * 2 + 2)
    assert not victim.lost
    np.testing.assert_array_equal(cf.asnumpy(kept), np.arange(float(N)) * 2)


def test_unused_memory_goes_back_where_the_driver_has_none(victim: Device) -> None:
    with own_memory(victim) as pool:
        for number in range(4):
            buffers.allocate(victim, 100_000 << number)  # held by the pool from here on
        held = pool.held_nbytes
        assert held
        with failing(victim, "clCreateBuffer", NO_MEMORY, times=TWICE):
            kept = buffers.allocate(victim, 3_000_000)
        assert pool.held_nbytes == 0
        with failing(victim, "clEnqueueFillBuffer", NO_MEMORY, times=TWICE):
            another = buffers.allocate(victim, 3_000_000)
        assert kept.mem is not another.mem
        assert not victim.lost


def test_what_the_driver_says_of_a_call_alone_is_said_as_it_is(victim: Device) -> None:
    import pyopencl as cl

    kept, other = on_the_device(), on_the_device()
    with (
        failing(victim, "clEnqueueNDRangeKernel", -54),
        pytest.raises(cl.LogicError, match="INVALID_WORK_GROUP_SIZE"),
    ):
        cf.asnumpy(_doubled(kept, other))
    assert not victim.lost


def test_memory_that_was_lent_to_numpy_survives(victim: Device) -> None:
    x = on_the_device()
    node = x._storage.node
    found = buffers.lend_memory(node.buffer, node.dtype, node.shape)
    if found is None:
        pytest.skip("the device does not work in the host's memory")
    node.buffer = found
    lose(victim)
    np.testing.assert_array_equal(cf.asnumpy(x), np.arange(float(N)) * 2)
    cf.set_device(victim.index)
    x += 1
    x[3] = 0
    np.testing.assert_array_equal(cf.asnumpy(x)[:5], [1, 3, 5, 0, 9])


def test_threads_all_learn_of_it(victim: Device) -> None:
    found: list[BaseException] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait(30)
        try:
            for _ in range(10):
                float((cf.arange(float(N)) * number).sum())
        except BaseException as error:
            found.append(error)

    on_the_device()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    with no_wait_succeeds(victim, first=3):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert [type(error) for error in found] == [DeviceError] * 8
    said = {str(error) for error in found}
    assert len(said) <= 2  # what the first one is told, and all others
    assert all("-9999" in text for text in said)
    cf.set_device(victim.index)
    assert_right(fused, run(fused))


# --- CLFUSE_DEBUG=sync ----------------------------------------------------------------------------


@pytest.mark.parametrize("work", PROGRAMS, ids=lambda work: work.__name__)
def test_sync_names_the_kernel_that_fails(
    victim: Device, work: Callable[[Any], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wait of a program fails in its turn: the error names the kernel launched before it."""
    launched: list[str] = []
    with config.override(debug="sync"):
        run(work)  # plans are known
        launch.observers.insert(0, lambda program, event: launched.append(program.name))
        try:
            waits = driver_faults.calls_of(victim, "clFinish", partial(run, work))
            assert waits >= len(launched) > 0
            named = 0
            for number in {*range(0, waits, max(waits // (8 if IS_LONG else 3), 1))}:
                device = cf.set_device(victim.index)
                run(work)
                launched.clear()
                with (
                    failing(device, "clFinish", OWN, first=number, times=1),
                    pytest.raises(DeviceError, match="was lost") as raised,
                ):
                    run(work)
                if launched and f"kernel {launched[-1]} failed" in str(raised.value):
                    assert "CLFUSE_DEBUG" not in str(raised.value)
                    named += 1
            assert named
        finally:
            del launch.observers[0]
    cf.set_device(victim.index)
    assert_right(work, run(work))


def test_sync_waits_after_every_launch_of_every_kind(victim: Device) -> None:
    for work in PROGRAMS:
        run(work)
        with config.override(debug="sync"):
            before = counters["kernels_launched"]
            waits = driver_faults.calls_of(victim, "clFinish", partial(run, work))
            assert waits >= counters["kernels_launched"] - before > 0
        assert not launch.observers
