"""Copies through pinned chunks on devices with memory of their own: every byte arrives, and what
fails leaves nothing behind that still moves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clfuse.runtime.memory import buffers, staging

CHUNK = staging.CHUNK_NBYTES
SIZES = [buffers.CHUNKED_NBYTES, 2 * CHUNK + 8, 12 * CHUNK - 8]


@pytest.fixture(autouse=True)
def apart(xp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The device's memory counts as its own: the host sees none of it, whatever it has seen of a
    block before."""
    device = xp.get_device()
    monkeypatch.setattr(buffers, "_finished_memory", lambda buffer: None)
    with device.trying(replace(device.untuned_traits, unified_memory=False)):
        yield


@pytest.fixture
def stage(xp: ModuleType) -> Any:
    found = staging._stage_of(xp.get_device())
    assert found is not None
    return found


@pytest.mark.parametrize("nbytes", SIZES)
def test_every_byte_goes_there_and_back(xp: ModuleType, stage: Any, nbytes: int) -> None:
    device = xp.get_device()
    data = np.random.default_rng(1).integers(0, 255, nbytes, np.uint8)
    buffer = buffers.upload(device, data)
    assert np.array_equal(buffers.download(buffer, np.uint8, data.shape), data)
    assert not stage.lock.locked()


def test_every_byte_goes_there_when_no_thread_takes_it(xp: ModuleType, stage: Any) -> None:
    """As when the interpreter ends."""
    before, stage.pool = stage.pool, ThreadPoolExecutor(1)
    stage.pool.shutdown()
    try:
        test_every_byte_goes_there_and_back(xp, stage, SIZES[-1])
    finally:
        stage.pool = before


def test_copies_come_after_what_is_in_the_queue(xp: ModuleType, stage: Any) -> None:
    data = np.arange(3 * CHUNK, dtype=np.int32)
    with xp.config.override(host_us=0):
        x = xp.asarray(data)
        for _ in range(3):
            x = x * 3 + 1
            found = np.asarray(x)
            data = data * np.int32(3) + np.int32(1)
            assert np.array_equal(found, data)


def test_copies_of_several_threads_do_not_mix(xp: ModuleType, stage: Any) -> None:
    device, failures = xp.get_device(), []

    def copy(seed: int) -> None:
        data = np.random.default_rng(seed).integers(0, 255, 3 * CHUNK + seed, np.uint8)
        for _ in range(3):
            found = buffers.download(buffers.upload(device, data), np.uint8, data.shape)
            if not np.array_equal(found, data):
                failures.append(seed)

    threads = [threading.Thread(target=copy, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("way", ["upload", "download"])
@pytest.mark.parametrize("chunk", [0, 1, 9])
def test_a_chunk_that_fails_ends_the_copy(
    xp: ModuleType, stage: Any, monkeypatch: pytest.MonkeyPatch, way: str, error: Any, chunk: int
) -> None:
    device = xp.get_device()
    data = np.random.default_rng(2).integers(0, 255, 12 * CHUNK, np.uint8)
    buffer = buffers.upload(device, data)
    seen = 0
    started: list[Future[None]] = []
    submit = stage.pool.submit

    def failing(*args: Any) -> Future[None]:
        nonlocal seen
        seen += 1
        if seen == chunk + 1:
            raise error("planted")
        started.append(submit(*args))
        return started[-1]

    with monkeypatch.context() as patch:
        patch.setattr(stage.pool, "submit", failing)
        with pytest.raises(error, match="planted"):
            if way == "upload":
                buffers.upload(device, data[::-1])
            else:
                buffers.download(buffer, np.uint8, data.shape)
    assert all(future.done() for future in started)
    assert all(slot.event is None and slot.copying is None for slot in stage.slots)
    assert not stage.lock.locked()
    assert np.array_equal(buffers.download(buffer, np.uint8, data.shape), data)


def test_what_fails_in_a_thread_is_raised(
    xp: ModuleType, stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any) -> None:
        raise MemoryError("no page")

    with monkeypatch.context() as patch:
        patch.setattr(staging.np, "copyto", fails)
        with pytest.raises(MemoryError, match="no page"):
            buffers.upload(xp.get_device(), np.zeros(9 * CHUNK, np.uint8))
    assert not stage.lock.locked()


def test_a_device_that_was_lost_has_new_chunks(xp: ModuleType, stage: Any) -> None:
    device = xp.get_device()
    staging._forget(device)
    other = staging._stage_of(device)
    assert other is not None
    assert other is not stage
    data = np.random.default_rng(3).integers(0, 255, 5 * CHUNK, np.uint8)
    buffer = buffers.upload(device, data)
    assert np.array_equal(buffers.download(buffer, np.uint8, data.shape), data)
