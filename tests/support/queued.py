"""A kernel to launch, and a gate that holds up what was enqueued: for the tests of the runtime."""

from __future__ import annotations

import threading

import numpy as np

AXPY = """
__kernel void axpy(__global const float *x, __global float *y, const int n, const float a,
                   const long offset)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        y[i] += a * x[i] + offset;
}
"""
AXPY_ARGUMENTS = (None, None, np.dtype(np.int32), np.dtype(np.float32), np.dtype(np.int64))

#: Seconds after which a closed gate opens by itself, so that what waits for it fails and not hangs.
GATE_SECONDS = 20.0


class Gate:
    """Holds up everything that is enqueued behind it until it is opened."""

    def __init__(self, device):
        import pyopencl as cl

        self.event = cl.UserEvent(device.context)
        self.lock = threading.Lock()
        self.is_open = False
        cl.enqueue_barrier(device.queue, wait_for=[self.event])
        self.timer = threading.Timer(GATE_SECONDS, self.open)
        self.timer.start()

    def open(self):
        import pyopencl as cl

        with self.lock:
            if not self.is_open:
                self.is_open = True
                self.event.set_status(cl.command_execution_status.COMPLETE)
        self.timer.cancel()
