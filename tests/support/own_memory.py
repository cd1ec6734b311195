"""A CPU device that is used as if it had memory of its own: for tests of the runtime.

Blocks are then the driver's, not host memory that it was told to use, and everything that goes up
or down is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from clfuse.engine.evaluate import forget_plans
from clfuse.runtime.context.pool import Pool
from clfuse.runtime.devices.device import Device


@contextmanager
def own_memory(device: Device) -> Iterator[Pool]:
    """Give a device another pool and traits for the length of a block; nothing of it may be used
    afterwards."""
    before = device.pool
    forget_plans()
    with device.trying(replace(device.untuned_traits, unified_memory=False)):
        device.pool = Pool(device)
        assert not device.pool.host_backed
        try:
            yield device.pool
        finally:
            if not device.lost:
                device.finish()
            device.pool = before
            forget_plans()
