"""One OpenCL device: opened and probed on first use, with its traits and its queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from clfuse.config import settings
from clfuse.errors import DeviceError
from clfuse.runtime.context import lost, waits
from clfuse.runtime.context.base import DeviceBase
from clfuse.runtime.context.pool import Pool, host_nbytes
from clfuse.runtime.context.remedies import broken
from clfuse.runtime.drivers.processor import instruction_set
from clfuse.target.costs import Costs
from clfuse.target.traits import (
    DeviceTraits,
    apply_quirks,
    cpu_vector_bytes,
    forced_to,
    with_schedule,
)

if TYPE_CHECKING:
    import pyopencl as cl

    from clfuse.runtime.drivers.inline import Inline
    from clfuse.runtime.simulated.simulation import Simulation

__all__ = ["Device"]

#: What is kept of a driver's message in ours.
CAUSE_CHARACTERS = 400


class Device(DeviceBase):
    """One OpenCL device.

    The listing makes one object per device and process, so devices compare by identity.

    `selection.current_device` may give one of which nothing is known yet. All its attributes but
    `is_settled`, `is_open`, `may_wait`, `fp64`, `costs`, `shares_memory` and, mostly,
    `assumed_traits` list the devices and make it one of them.
    """

    pool: Pool | None = None
    #: What it does in place of another device (``CLFUSE_SIMULATE``).
    simulation: Simulation | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it is known which device this is."""
        return True

    @property
    def is_open(self) -> bool:
        """Whether it was opened, or was tried to be."""
        return bool(self.__dict__.get("_opened"))

    @property
    def may_wait(self) -> bool:
        """Whether opening it may wait for work that is worth it."""
        return False

    @property
    def fp64(self) -> bool:
        """Whether it has double precision."""
        return self.traits.fp64

    @property
    def shares_memory(self) -> bool:
        """Whether it works in the host's memory."""
        return self.traits.unified_memory

    def __init__(
        self,
        handle: cl.Device,
        platform: cl.Platform,
        index: str,
        inline: Inline | None = None,
    ) -> None:
        from clfuse.runtime.drivers import opencl as cl

        super().__init__(handle, platform, index, inline)
        self._opened = False
        self._forced: tuple[tuple[str, int, int, int, int, bool, bool], DeviceTraits] | None = None
        self._tuned: DeviceTraits | None = None
        try:
            self._own_traits = _read_traits(handle, platform)
        except cl.Error as error:
            self._own_traits = DeviceTraits(name=self.name, platform=self.platform_name)
            self._give_up(f"it does not answer what it is: {_one_line(str(error))}")
        if settings.simulate and self.kind == "cpu":
            self._simulate(settings.simulate)

    def _simulate(self, key: str) -> None:
        from clfuse.runtime.simulated.simulation import Simulation

        self.simulation = Simulation(key)
        self._own_traits = self.simulation.traits(self._own_traits, host_nbytes())
        self.name = self.simulation.name_on(self.name)
        self.inline = None

    @property
    def kind(self) -> str:
        """``"cpu"``, ``"gpu"`` or ``"accelerator"``."""
        return self._own_traits.kind

    @property
    def traits(self) -> DeviceTraits:
        """The device's facts as the driver gives them and ``bench --tune`` has measured them, with
        the schedule, vectors and work-items that settings force."""
        forced = (
            settings.schedule, settings.vector_bytes, settings.work_items, settings.stream_bytes,
            settings.tile_bytes, settings.tuning, settings.libraries,
        )
        if self._forced is None or self._forced[0] != forced:
            own = self._own_traits
            if settings.tuning:
                if self._tuned is None:
                    from clfuse.runtime.files import tuning

                    self._tuned = tuning.apply(own)
                own = self._tuned
            forced_traits = forced_to(own, *forced[:5])
            if settings.libraries and forced_traits.schedule == "gpu":
                from clfuse.runtime.drivers import libraries

                forced_traits = replace(forced_traits, libraries=libraries.usable())
            self._forced = (forced, forced_traits)
        return self._forced[1]

    @property
    def assumed_traits(self) -> DeviceTraits:
        """The traits by which operations are recorded. Nobody looks for the device for them if it
        can only be a processor."""
        return self.traits

    @contextmanager
    def trying(self, traits: DeviceTraits) -> Iterator[None]:
        """Have other traits for the length of a block; for ``bench --tune``.

        `engine.evaluate.forget_plans` must be called before and after.
        """
        before = self._own_traits, self._tuned
        self._own_traits = self._tuned = traits
        self._forced = None
        try:
            yield
        finally:
            self._own_traits, self._tuned = before
            self._forced = None

    def reread_tuning(self) -> None:
        """Let go of what was read of the device's file."""
        self._tuned = self._forced = None

    @property
    def costs(self) -> Costs:
        """`traits.costs`, without making the traits: it is read often."""
        if not settings.tuning:
            return self._own_traits.costs
        return self.traits.costs if self._tuned is None else self._tuned.costs

    @property
    def untuned_traits(self) -> DeviceTraits:
        """The device's facts as the driver gives them."""
        return self._own_traits

    @property
    def usable(self) -> bool:
        """Whether a kernel builds, runs and gives the right result; found out on first use."""
        if not (self._opened or self.forked):
            self._open()
        return self.cause is None

    @property
    def context(self) -> cl.Context:
        """The OpenCL context, of this device and what runs kernels inline."""
        if self._context is None or self.cause is not None or self.forked:
            self.require()
        assert self._context is not None
        return self._context

    @property
    def queue(self) -> cl.CommandQueue:
        """The one queue, in order."""
        if self._queue is None or self.cause is not None or self.forked:
            self.require()
        assert self._queue is not None
        return self._queue

    @property
    def timed_queue(self) -> cl.CommandQueue:
        """Another queue, whose events hold times; what is put there waits for what is in the one
        queue, and has that wait for it."""
        if self._timed_queue is None:
            from clfuse.runtime.drivers import opencl as cl

            timed = cl.command_queue_properties.PROFILING_ENABLE
            self._timed_queue = lost.call_driver(
                self, "a queue", cl.CommandQueue, self.context, self.handle, timed
            )
        return self._timed_queue

    def require(self) -> None:
        """Raise DeviceError, with the cause and what would help, where nothing can be enqueued."""
        if not self.usable:
            raise DeviceError(broken(self))
        if self.forked:
            raise DeviceError(
                f"{self.name} was in use when this process was forked, and its driver's threads"
                " stayed behind: NumPy calculates here, but runs no kernels that somebody wrote,"
                " and reads no memory but the host's; start processes with"
                " multiprocessing.get_context('spawn')"
            )

    def finish(self) -> None:
        """Wait until all that was enqueued is done; a fork has waited for it.

        Raises DeviceError: some of it has failed, or did before: the device is lost.
        """
        if self.lost:
            self.require()
        if self._queue is None or self.forked:
            return
        try:
            waits.finish(self.queue)
        except lost.driver_error() as error:
            raise lost.waiting(self, error) from error
        if self.pinned:
            lost.check_pinned(self)
        if self.simulation is not None:
            self.simulation.finished(self)

    def finish_if_long(self) -> None:
        """As `finish`, where what was enqueued may take long: before a call of the driver's that
        waits for it, too, and cannot be ended."""
        if waits.is_long():
            self.finish()

    def renew_queue(self, profiling: bool) -> None:
        """Wait for the queue and put a fresh one in its place; its events hold times if asked."""
        from clfuse.runtime.drivers import opencl as cl

        with self.lock:
            self.finish()
            if profiling:
                timed = cl.command_queue_properties.PROFILING_ENABLE
                self._queue = cl.CommandQueue(self.context, self.handle, timed)
            else:
                self._queue = cl.CommandQueue(self.context, self.handle)
            if self.inline is not None:
                self.inline.open(self.context, profiling=profiling)

    def _open(self) -> None:
        from clfuse.runtime.drivers import opencl as cl
        from clfuse.runtime.drivers import probing, threads

        threads.prepare()
        with self.lock:
            if self._opened:
                return
            try:
                queue = self._open_queues()
                own = self._own_traits
                self.cause = probing.probe(queue, own.builtins_read, own.subgroups_read)
                self.canary = lost.canary(queue)
            except (cl.Error, OSError) as error:
                self.cause = _one_line(str(error))
            self._opened = True

    def _open_queues(self) -> cl.CommandQueue:
        from clfuse.runtime.drivers import opencl as cl

        if self.inline is not None:
            try:
                self._context = cl.create_context([self.handle, self.inline.handle])
                self.inline.open(self._context)
            except cl.Error:  # it is there for speed alone
                self.inline = None
        if self.inline is None:
            self._context = cl.create_context([self.handle])
        assert self._context is not None
        queue = self._queue = cl.CommandQueue(self._context, self.handle)
        return queue

    def _give_up(self, cause: str) -> None:
        self.cause = cause
        self._opened = True

    def __repr__(self) -> str:
        return f"<clfuse device {self.index}: {self.name} ({self.platform_name})>"


def _read_traits(handle: cl.Device, platform: cl.Platform) -> DeviceTraits:
    from clfuse.runtime.drivers import opencl as cl

    kind = "accelerator"
    if handle.type & cl.device_type.GPU:
        kind = "gpu"
    elif handle.type & cl.device_type.CPU:
        kind = "cpu"
    extensions = handle.extensions.split()
    native = DeviceTraits(
        name=handle.name.strip(),
        vendor=handle.vendor.strip(),
        platform=platform.name.strip(),
        driver=handle.driver_version.strip(),
        version=handle.version.strip(),
        kind=kind,
        features=instruction_set() if kind == "cpu" else "",
        compute_units=max(handle.max_compute_units, 1),
        vector_bytes=cpu_vector_bytes(
            handle.preferred_vector_width_float, handle.native_vector_width_float
        ),
        fp64="cl_khr_fp64" in extensions or "cl_amd_fp64" in extensions,
        fp16="cl_khr_fp16" in extensions,
        unified_memory=bool(handle.host_unified_memory),
        correctly_rounded_divide=bool(
            handle.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        ),
        max_alloc_nbytes=handle.max_mem_alloc_size,
        global_nbytes=handle.global_mem_size,
        local_nbytes=handle.local_mem_size,
        max_parameter_nbytes=handle.max_parameter_size,
        max_work_group=handle.max_work_group_size,
    )
    return apply_quirks(with_schedule(native, "gpu" if kind == "gpu" else "cpu"))


def _one_line(text: str) -> str:
    return " ".join(text.split())[:CAUSE_CHARACTERS]
