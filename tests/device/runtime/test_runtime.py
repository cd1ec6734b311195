"""Buffers: lifetimes, views, the pool, errors that leave the rest intact."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest

from clfuse import config
from clfuse.counters import counters, reset_peak
from clfuse.errors import AllocationError
from clfuse.runtime.context import pool
from clfuse.runtime.devices import selection
from clfuse.runtime.launches import launch
from clfuse.runtime.memory import blocks as memory
from clfuse.runtime.memory import buffers, sharing


@pytest.fixture
def exhausted(device, monkeypatch):
    """A pool of its own for the device, with room for one mebibyte more than is in use."""
    buffers.allocate(device, 16)
    small = pool.Pool(device)
    small.limit_nbytes = 1 << 20
    monkeypatch.setattr(device, "pool", small)
    return small


# --- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [1, 1000, buffers.STAGED_NBYTES, buffers.STAGED_NBYTES + 1])
def test_what_is_uploaded_comes_back(device, nbytes):
    array = np.random.default_rng(1).integers(0, 256, nbytes, np.uint8)
    result = buffers.download(buffers.upload(device, array), np.uint8, (nbytes,))
    np.testing.assert_array_equal(result, array)
    assert result.flags.writeable
    assert result.flags.owndata


@pytest.mark.parametrize("nbytes", [64, buffers.STAGED_NBYTES * 2])
def test_an_upload_is_a_snapshot(device, nbytes):
    array = np.ones(nbytes, np.uint8)
    buffer = buffers.upload(device, array)
    array[:] = 2
    assert (buffers.download(buffer, np.uint8, (nbytes,)) == 1).all()


def test_a_small_upload_does_not_wait_for_what_is_under_way(device, gate):
    array = np.ones(64, np.uint8)
    buffer = buffers.upload(device, array)
    assert not gate.is_open
    array[:] = 2
    gate.open()
    assert (buffers.download(buffer, np.uint8, (64,)) == 1).all()


def test_many_small_uploads_that_are_held_up_all_arrive(device, gate):
    threading.Timer(0.2, gate.open).start()
    uploaded = [
        buffers.upload(device, np.full(100, i, np.int32)) for i in range(3 * memory.STAGED_LIMIT)
    ]
    assert len(device.pinned) <= memory.STAGED_LIMIT
    for i, buffer in enumerate(uploaded):
        assert (buffers.download(buffer, np.int32, (100,)) == i).all()


def test_uploads_take_any_strides_and_no_elements_at_all(device):
    array = np.arange(24.0).reshape(4, 6)
    for view in (
        array[::-1, ::2],
        array.T,
        np.broadcast_to(array[0], (3, 6)),
        array[:0],
        array[0, 0],
    ):
        result = buffers.download(buffers.upload(device, view), view.dtype, view.shape)
        np.testing.assert_array_equal(result, view)


def test_copies_are_counted_and_empty_ones_are_not(device):
    before = dict(counters)
    buffer = buffers.upload(device, np.zeros(1000, np.int16))
    buffers.download(buffer, np.int16, (500,))
    buffers.download(buffers.upload(device, np.zeros((0, 3))), np.float64, (0, 3))
    assert counters["bytes_to_device"] - before["bytes_to_device"] == 2000
    assert counters["bytes_to_host"] - before["bytes_to_host"] == 1000


def test_a_transfer_stays_on_the_device_or_copies_to_the_other(device):
    array = np.arange(1000.0)
    buffer = buffers.upload(device, array)
    assert buffers.transfer(buffer, device) is buffer
    for other in selection.devices():
        moved = buffers.transfer(buffer, other)
        assert moved.device is other
        np.testing.assert_array_equal(buffers.download(moved, np.float64, (1000,)), array)


# --- views of device memory ----------------------------------------------------------------------


def test_a_host_view_shows_the_contents_and_cannot_be_written(device):
    array = np.arange(12, dtype=np.complex64).reshape(3, 4)
    view = buffers.host_view(buffers.upload(device, array), np.complex64, (3, 4))
    np.testing.assert_array_equal(view, array)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1
    if device.traits.unified_memory:  # elsewhere it is a copy, which is its holder's
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True


def test_a_host_view_copies_nothing_where_memory_is_shared(device):
    if not device.traits.unified_memory:
        pytest.skip("the device has memory of its own")
    buffer = buffers.upload(device, np.arange(1000.0))
    before = counters["bytes_to_host"]
    first = buffers.host_view(buffer, np.float64, (1000,))
    second = buffers.host_view(buffer, np.float64, (10, 100))
    assert counters["bytes_to_host"] == before
    assert np.shares_memory(first, second)
    assert buffer.exported


@pytest.mark.usefixtures("uncollected")
def test_memory_has_no_next_owner_while_any_view_of_it_lives(device):
    if not device.traits.unified_memory:
        pytest.skip("the device has memory of its own")
    nbytes = 123_456
    buffer = buffers.upload(device, np.full(nbytes, 7, np.uint8))
    derived = buffers.host_view(buffer, np.uint8, (nbytes,))[100:].reshape(2, -1).T[5]
    address = buffer.mem.int_ptr
    gc.collect()
    in_use = counters["device_bytes_now"]
    del buffer
    gc.collect()
    assert counters["device_bytes_now"] == in_use
    others = [buffers.upload(device, np.zeros(nbytes, np.uint8)) for _ in range(4)]
    assert address not in [other.mem.int_ptr for other in others]
    assert (derived == 7).all()
    del derived
    assert counters["device_bytes_now"] == in_use + 3 * nbytes
    assert buffers.allocate(device, nbytes).mem.int_ptr == address


def test_a_view_of_nothing_is_an_empty_array(device):
    view = buffers.host_view(buffers.allocate(device, 0), np.float32, (0, 5))
    assert view.shape == (0, 5)
    assert not view.flags.writeable


def test_a_kernel_sees_what_was_written_through_a_mapping(device, axpy):
    x, y = buffers.upload(device, np.ones(100, np.float32)), buffers.allocate(device, 400)
    with buffers.map_to_host(y, np.float32, (10, 10), write=True) as array:
        array[...] = 5
    launch.enqueue(axpy, (4,), (1,), (x.mem, y.mem, 100, 2.0, 3))
    with buffers.map_to_host(y, np.float32, (100,), write=False) as array:
        assert (array == 10).all()
        assert not array.flags.writeable


def test_a_mapping_ends_with_its_block_even_after_an_error(device):
    buffer = buffers.upload(device, np.zeros(10))
    with (
        pytest.raises(ZeroDivisionError),
        buffers.map_to_host(buffer, np.float64, (10,), write=True) as array,
    ):
        array[0] = 1 / 0
    assert (buffers.download(buffer, np.float64, (10,)) == 0).all()


def test_a_shared_array_is_used_in_place_and_kept_alive(device, axpy, gate):
    if device.kind != "cpu":
        assert sharing.share(device, np.ones(3)) is None
        pytest.skip("the device has memory of its own")
    array = np.ones(1000, np.float32)
    array.flags.writeable = False
    result = buffers.upload(device, np.zeros(1000, np.float32))
    shared = sharing.share(device, array)
    assert shared.exported
    launch.enqueue(axpy, (4,), (1,), (shared.mem, result.mem, 1000, 2.0, 0))
    memory = weakref.ref(array)
    del shared, array
    gc.collect()
    assert not gate.is_open
    assert memory() is not None
    gate.open()
    assert (buffers.download(result, np.float32, (1000,)) == 2).all()
    buffers.upload(device, np.ones(1))
    assert memory() is None


def test_a_shared_array_that_begins_anywhere_is_used_in_place(device):
    if device.kind != "cpu":
        pytest.skip("the device has memory of its own")
    bytes_ = np.zeros(1 << 16, np.uint8)
    first = -bytes_.ctypes.data % 4096 + 16  # a multiple of 128 would be used in place in any case
    array = bytes_[first : first + 4000].view(np.float32)
    shared = sharing.share(device, array, exported=True)
    assert shared.exported
    array[:] = 3
    assert (buffers.download(shared, np.float32, (1000,)) == 3).all()


def test_an_array_the_device_cannot_use_in_place_is_not_shared(device):
    array = np.ones((4, 4))
    assert sharing.share(device, array.T[1:]) is None
    assert sharing.share(device, array[:0]) is None
    assert sharing.share(device, np.frombuffer(b"123456789", np.float64, 1, offset=1)) is None


# --- the pool ------------------------------------------------------------------------------------


def test_freed_memory_is_used_again_while_its_kernel_runs(device, axpy, gate):
    x = buffers.upload(device, np.ones(1000, np.float32))
    first = buffers.upload(device, np.zeros(1000, np.float32))
    launch.enqueue(axpy, (4,), (1,), (x.mem, first.mem, 1000, 1.0, 0))
    address = first.mem.int_ptr
    del first
    second = buffers.upload(device, np.full(1000, 5, np.float32))
    assert second.mem.int_ptr == address
    assert not gate.is_open
    gate.open()
    assert (buffers.download(second, np.float32, (1000,)) == 5).all()


def test_a_block_is_at_most_a_sixteenth_too_large():
    for nbytes in [*range(1, 5000, 7), *(3**k for k in range(8, 22))]:
        size = pool.block_size(nbytes)
        assert nbytes <= size <= max(nbytes * 17 / 16 + pool.ALIGNMENT, pool.ALIGNMENT)
        assert pool.block_size(size) == size
        assert size % pool.ALIGNMENT == 0


@pytest.mark.usefixtures("uncollected")
def test_counters_follow_what_is_allocated(device):
    gc.collect()
    now = counters["device_bytes_now"]
    reset_peak()
    first, second = buffers.allocate(device, 1000), buffers.allocate(device, 500)
    assert counters["device_bytes_now"] == now + 1500
    del first
    third = buffers.allocate(device, 200)
    assert counters["device_bytes_now"] == now + 700
    assert counters["device_bytes_peak"] == now + 1500
    del second, third
    assert counters["device_bytes_now"] == now


def test_memory_of_any_size_is_aligned_for_the_widest_vector(device):
    if not device.traits.unified_memory:
        pytest.skip("addresses of the device's own memory are not seen")
    for nbytes in (1, 100, 5000, 1 << 20, (2 << 20) + 1, 5_000_000):
        view = buffers.host_view(buffers.allocate(device, nbytes), np.uint8, (nbytes,))
        assert view.ctypes.data % 128 == 0


@pytest.mark.usefixtures("uncollected")
def test_more_than_the_largest_allocation_is_refused(device, axpy):
    kept = buffers.upload(device, np.arange(1000, dtype=np.float32))
    gc.collect()
    largest, now = device.traits.max_alloc_nbytes, counters["device_bytes_now"]
    with pytest.raises(AllocationError) as caught:
        buffers.allocate(device, largest + 1)
    assert isinstance(caught.value, MemoryError)
    for part in (f"{largest + 1:,} bytes asked for", device.name, f"{largest:,}", "are free"):
        assert part in str(caught.value)
    assert counters["device_bytes_now"] == now
    result = buffers.upload(device, np.zeros(1000, np.float32))
    launch.enqueue(axpy, (4,), (1,), (kept.mem, result.mem, 1000, 2.0, 1))
    np.testing.assert_array_equal(
        buffers.download(result, np.float32, (1000,)), 2 * np.arange(1000) + 1
    )


def test_more_than_is_left_is_refused_and_all_else_is_as_it_was(device, exhausted):
    kept = buffers.upload(device, np.arange(1000))
    with pytest.raises(AllocationError, match="are free"):
        buffers.allocate(device, 1 << 20)
    np.testing.assert_array_equal(buffers.download(kept, np.int64, (1000,)), np.arange(1000))
    del kept
    assert buffers.allocate(device, 1 << 20).nbytes == 1 << 20


def test_unused_memory_is_given_up_before_an_allocation_fails(device, exhausted):
    blocks = [buffers.allocate(device, 100_000) for _ in range(8)]
    del blocks
    assert exhausted.held_nbytes > 0
    assert buffers.allocate(device, 900_000).nbytes == 900_000
    assert exhausted.managed_nbytes <= exhausted.limit_nbytes


def test_cycles_are_collected_before_an_allocation_fails(device, exhausted):
    gc.disable()
    try:
        cycle = [buffers.allocate(device, 900_000)]
        cycle.append(cycle)
        del cycle
        assert buffers.allocate(device, 800_000).nbytes == 800_000
    finally:
        gc.enable()


def test_freed_blocks_of_many_sizes_do_not_pile_up(device, exhausted):
    for nbytes in range(1000, 200_000, 3000):
        buffers.allocate(device, nbytes)
        assert exhausted.held_nbytes <= pool.HELD_SHARE * exhausted.limit_nbytes + 200_000 * 17 / 16


def test_checked_buffers_are_exactly_as_large_as_asked_for(device, exhausted):
    with config.override(debug=True):
        buffer = buffers.allocate(device, 1001)
        assert buffer.mem.size == 1001
        del buffer
        assert exhausted.held_nbytes == 0


def test_blocks_freed_by_the_collector_keep_their_counts():
    kept = pool.Pool.__new__(pool.Pool)
    kept._is_closed = False
    kept._bins = {size: ["block"] for size in range(1, 201)}
    given = itertools.count(10_000)

    def give(phase, info):
        kept.give("block", next(given))

    threshold = gc.get_threshold()
    gc.callbacks.append(give)
    gc.set_threshold(1, 1 << 20, 1 << 20)  # of the youngest objects alone
    try:
        least = [kept.held_nbytes for _ in range(3)]
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(give)
    assert min(least) >= sum(range(1, 201))
    assert len(kept._bins) > 200
