"""Transfers of tiles run beside kernels; under CLFUSE_MEMORY_LIMIT, on any device."""

from __future__ import annotations

import gc
import importlib
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.config import override
from clfuse.counters import counters
from clfuse.runtime.memory import buffers
from clfuse.runtime.memory.streams import Transfers
from tests.device.engine.test_larger import LIMIT, PROGRAMS, assert_as_numpy, numbers, table

evaluate = importlib.import_module("clfuse.engine.evaluate")

pytestmark = pytest.mark.clfuse_only


def test_transfers_have_a_queue_of_their_own_on_such_devices() -> None:
    from tests.support.own_memory import own_memory

    device = cf.get_device()
    with override(host_us=0), own_memory(device), override(memory_limit=LIMIT):
        before = counters["tiles"]
        for name in ("map", "mixed", "scans", "written"):
            assert_as_numpy(PROGRAMS[name][0], numbers(), numbers(seed=2), table())
        assert counters["tiles"] > before
        gc.collect()


def test_transfers_do_not_wait_for_later_kernels() -> None:
    from tests.support.own_memory import own_memory
    from tests.support.queued import Gate

    device = cf.get_device()
    with override(host_us=0), own_memory(device):
        transfers = Transfers(device)
        sent, found = numbers(1_000), np.empty(1_000)
        buffer = buffers.allocate(device, sent.nbytes)
        after = transfers.now()
        gate = Gate(device)  # what is put into the queue of the kernels from here on is held up
        try:
            transfers.send(buffer, sent, after)
            transfers.receive(buffer, found, after)
            assert not gate.is_open
        finally:
            gate.open()
        np.testing.assert_array_equal(found, sent)
        del buffer
        gc.collect()


def test_tiles_are_sent_and_received_while_one_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    happened: list[str] = []
    plain, send, receive = evaluate._launch, Transfers.send, Transfers.receive

    def launch(*arguments: Any) -> None:
        happened.append("launch")
        plain(*arguments)

    def sending(self: Transfers, *arguments: Any) -> None:
        happened.append("send")
        send(self, *arguments)

    def receiving(self: Transfers, *arguments: Any) -> None:
        happened.append("receive")
        receive(self, *arguments)

    monkeypatch.setattr(evaluate, "_launch", launch)
    monkeypatch.setattr(Transfers, "send", sending)
    monkeypatch.setattr(Transfers, "receive", receiving)
    with override(host_us=0, memory_limit=LIMIT):
        found = (cf.asarray(numbers()) * 2).get()
    np.testing.assert_array_equal(found, numbers() * 2)
    tiles = happened.count("launch")
    assert tiles > 3
    # Only the first tile is waited for, and only the last result is: the rest is beside a kernel.
    middle = ["launch", "send", "receive"] * (tiles - 2)
    assert happened == ["send", "launch", "send", *middle, "launch", "receive", "receive"]
