"""Commands that wait in the queue while threads upload, build and evaluate; on memory that the
driver allocates, as it does on GPUs, and on the device's own kind."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse import config
from clfuse.runtime.launches import launch, program
from clfuse.runtime.memory import blocks as memory
from clfuse.runtime.memory import buffers
from clfuse.tools.check.driver_faults import failing
from tests.support.own_memory import own_memory
from tests.support.queued import Gate

pytestmark = pytest.mark.clfuse_only

THREADS = 64

#: Elements of an array: 40 bytes, what a CPU's driver copies by itself, staged uploads, and one
#: that waits for the queue.
SIZES = (10, 10_000, 50_000, 300_000)

SHIFT = """
__kernel void shift_by_NUMBER(__global const int *x, __global int *y, const int n)
{
    const int i = get_global_id(0);
    if (i < n)
        y[i] = x[i] + NUMBER;
}
"""

KERNELS = 6


def shift(device, number):
    return program.build(
        device, SHIFT.replace("NUMBER", str(number)), f"shift_by_{number}",
        (None, None, np.dtype(np.int32)),
    )  # fmt: skip


@pytest.fixture(params=["the driver's memory", "the device's kind"])
def pool(device, request):
    with contextlib.ExitStack() as stack:
        if request.param == "the driver's memory":
            stack.enter_context(own_memory(device))
        stack.enter_context(config.override(build_after_ms=0, host_us=0))
        yield memory.pool_of(device)


def run_in_threads(work):
    """Run ``work(0 ... THREADS - 1)``, each in a thread of its own; return the threads and what
    was raised."""
    start, raised = threading.Barrier(THREADS), []

    def attempt(number):
        try:
            start.wait(60)
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads, raised


def test_threads_upload_build_and_launch_behind_a_held_queue(device, pool):
    """Every thread takes fresh blocks, of a size that nobody else uses."""
    expected: dict[int, Any] = {}
    results: dict[int, Any] = {}

    def work(number):
        n = 1000 + 4096 * number
        x = np.arange(n, dtype=np.int32) * (number + 1)
        built = shift(device, number % KERNELS)
        source, target = buffers.upload(device, x), buffers.allocate(device, x.nbytes)
        launch.enqueue(built, (-(-n // 64) * 64,), (64,), (source.mem, target.mem, n))
        del source  # its block may be taken by another thread while the launch is held
        expected[number] = x + number % KERNELS
        results[number] = buffers.download(target, np.int32, (n,))

    gate = Gate(device)
    try:
        threads, raised = run_in_threads(work)
        threads[0].join(0.5)
        gate.open()
        for thread in threads:
            thread.join(60)
        assert not raised
        assert len(results) == THREADS
    finally:
        gate.open()
    for number, result in results.items():
        np.testing.assert_array_equal(result, expected[number])
    assert len(device.pinned) <= memory.STAGED_LIMIT


def test_threads_record_and_evaluate_while_commands_are_held(device, pool):
    results: dict[int, list[Any]] = {}

    def work(number):
        found = results[number] = []
        for size in SIZES:
            x = cf.asarray(np.full(size, number + 1, np.int32))
            y = x * 3 - 1
            y[::2] += number
            found.append((y, int(y.sum())))

    gate = Gate(device)
    try:
        threads, raised = run_in_threads(work)
        threads[0].join(0.5)
        gate.open()
        for thread in threads:
            thread.join(120)
        assert not raised
    finally:
        gate.open()
    for number, found in results.items():
        for size, (y, total) in zip(SIZES, found, strict=True):
            value = 3 * (number + 1) - 1
            assert total == value * size + number * (size // 2)
            y = cf.asnumpy(y)
            assert (y[::2] == value + number).all()
            assert (y[1::2] == value).all()


def test_memory_may_go_while_what_uses_it_is_held(device, pool):
    """Source, target, kernel and host memory are let go of, and their blocks given away."""
    gate = Gate(device)
    try:
        for number in range(200):
            x = buffers.upload(device, np.full(100 + number, number, np.int32))
            y = buffers.allocate(device, x.nbytes)
            built = shift(device, number % KERNELS)
            launch.enqueue(built, (512,), (64,), (x.mem, y.mem, 100 + number))
            if number == memory.STAGED_LIMIT - 1:
                # From here on an upload waits for the oldest.
                gate.open()
        last = buffers.download(y, np.int32, (299,))
    finally:
        gate.open()
    assert (last == 199 + 199 % KERNELS).all()


def test_a_fresh_block_is_taken_without_waiting_for_the_queue(device, pool):
    gate = Gate(device)
    try:
        # NVIDIA's driver crashes in a thread of its own where this one was held back.
        with failing(device, "clEnqueueMigrateMemObjects", -9999) as migration:
            blocks = [buffers.allocate(device, 1_000_003 + 70_000 * number) for number in range(20)]
        assert not migration.calls
        assert not gate.is_open
    finally:
        gate.open()
    launch.finish(device)
    assert len({block.mem.int_ptr for block in blocks}) == 20


def test_a_lost_block_lives_as_long_as_its_commands(device, pool):
    """It was taken, a command of it is under way, and nobody owns it."""
    import pyopencl as cl

    before = pool.managed_nbytes
    block, size = pool.take(5_000_003)
    memory = None if block.hostbuf is None else weakref.ref(block.hostbuf.base.array)
    gate = Gate(device)
    try:
        cl.enqueue_fill_buffer(device.queue, block, np.ones(1, np.uint8), 0, 5_000_003)
        del block
        if memory is not None:
            assert pool.managed_nbytes <= before
            assert memory() is not None
    finally:
        gate.open()
    device.finish()
    assert memory is None or memory() is None
    again, _ = pool.take(5_000_003)
    pool.give(again, size)


def test_an_interrupted_trim_keeps_its_blocks(device, pool, monkeypatch):
    blocks = [pool.take(nbytes) for nbytes in (1_000, 1_000, 3_000_000)]
    for block, size in blocks:
        pool.give(block, size)
    del blocks, block
    before = pool.managed_nbytes, pool.held_nbytes

    def interrupted():
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(device, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.trim()
    assert (pool.managed_nbytes, pool.held_nbytes) == before
    pool.trim()
    assert pool.held_nbytes == 0
    assert pool.managed_nbytes == before[0] - before[1]
