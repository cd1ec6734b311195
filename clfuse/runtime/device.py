"""Devices: listing, probing, selection, traits; whoever runs something asks here for the device.

Nothing is looked for before the first question. A listed device is opened and probed when it is
first considered, so that a broken one costs nothing where it is not asked for.
"""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clfuse.config import settings
from clfuse.errors import DeviceError, DeviceWarning, warn_user
from clfuse.target.traits import (
    DeviceTraits,
    apply_quirks,
    cpu_vector_bytes,
    forced_to,
    with_schedule,
)

from . import lost, preference
from .processor import instruction_set
from .remedies import broken, inventory

if TYPE_CHECKING:
    import pyopencl as cl

    from .inline import Inline
    from .pool import Pool
    from .simulation import Simulation

__all__ = [
    "Device", "current_device", "device", "devices", "find", "fitting", "get_device", "listed",
    "set_device",
]  # fmt: skip

#: What is kept of a driver's message in ours.
CAUSE_CHARACTERS = 400


class Device:
    """One OpenCL device.

    The listing makes one object per device and process, so devices compare by identity.

    Attributes
    ----------
    name, platform_name : str
        As the driver gives them.
    index : str
        ``"platform:device"``, one of the forms that `device` and ``CLFUSE_DEVICE`` take.
    lock : threading.RLock
        Held while a kernel's arguments are set and it is enqueued: pyopencl's kernels are not
        thread-safe.
    cause : str or None
        Why it is not usable, once that is known.
    forked : bool
        Whether this process was forked from one that used it: the driver's threads stayed behind,
        nothing can be enqueued. Its memory is still there where it is the host's, and NumPy
        calculates (`clfuse.interpreter.interpret`).
    lost : bool
        Whether it worked, and its context is gone (`runtime.lost`). It stays so; `set_device` puts
        another object in its place.

    `current_device` may give one of which nothing is known yet. Whatever is asked of it, but for
    what follows here, has the devices listed and makes it one of them.
    """

    forked = False
    #: Whether it took the place of one that was lost.
    is_renewed = False
    lost = False
    #: Made by `runtime.buffers` for the first buffer.
    pool: Pool | None = None
    #: What runs small kernels in the calling thread, where the driver can.
    inline: Inline | None = None
    #: What it does in place of another device (``CLFUSE_SIMULATE``).
    simulation: Simulation | None = None
    _queue: cl.CommandQueue | None = None
    #: Made by `runtime.launch` for the first kernel that counts its work-items.
    count: cl.Buffer | None = None
    #: Made by `runtime.lost`, to find out whether the context is still there.
    canary: cl.Buffer | None = None

    def __getattr__(self, name: str) -> Any:
        if self.is_settled or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        _settle(self)
        return getattr(self, name)

    @property
    def is_settled(self) -> bool:
        """Whether it is known which device this is."""
        return "handle" in self.__dict__

    @property
    def fp64(self) -> bool:
        """Whether it has double precision, as nearly all have: so taken for granted before it is
        settled. Until then NumPy calculates, and what needs a kernel asks again."""
        return not self.is_settled or self.traits.fp64

    @property
    def shares_memory(self) -> bool:
        """Whether it works in the host's memory; also before it is settled, as all arrays lie on
        the host then."""
        return not self.is_settled or self.traits.unified_memory

    def __init__(
        self,
        handle: cl.Device,
        platform: cl.Platform,
        index: str,
        inline: Inline | None = None,
    ) -> None:
        import pyopencl as cl

        self.handle = handle
        self.index = index
        self.inline = inline
        self.name: str = handle.name.strip()
        self.platform_name: str = platform.name.strip()
        self.vendor_name: str = platform.vendor.strip()
        self.lock = threading.RLock()
        self.cause: str | None = None
        self._opened = False
        self._context: cl.Context | None = None
        self._forced: tuple[tuple[str, int, int, int, int, bool, bool], DeviceTraits] | None = None
        self._tuned: DeviceTraits | None = None
        #: (event, object): host memory that must live until its command is done; kept by
        #: `runtime.buffers`.
        self.pinned: deque[tuple[cl.Event, object]] = deque()
        try:
            self._own_traits = _read_traits(handle, platform)
        except cl.Error as error:
            self._own_traits = DeviceTraits(name=self.name, platform=self.platform_name)
            self._give_up(f"it does not answer what it is: {_one_line(str(error))}")
        if settings.simulate and self.kind == "cpu":
            self._simulate(settings.simulate)

    def _simulate(self, key: str) -> None:
        from .pool import host_nbytes
        from .simulation import Simulation

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
            settings.schedule,
            settings.vector_bytes,
            settings.work_items,
            settings.stream_bytes,
            settings.tile_bytes,
            settings.tuning,
            settings.libraries,
        )
        if self._forced is None or self._forced[0] != forced:
            own = self._own_traits
            if settings.tuning:
                if self._tuned is None:
                    from . import tuning

                    self._tuned = tuning.apply(own)
                own = self._tuned
            forced_traits = forced_to(own, *forced[:5])
            if settings.libraries and forced_traits.schedule == "gpu":
                from . import libraries

                forced_traits = replace(forced_traits, libraries=libraries.usable())
            self._forced = (forced, forced_traits)
        return self._forced[1]

    @contextmanager
    def trying(self, traits: DeviceTraits) -> Iterator[None]:
        """Have other traits for the length of a block; for ``bench --tune``.

        `evaluate.forget_plans` must be called before and after.
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
    def untuned_traits(self) -> DeviceTraits:
        """The device's facts as the driver gives them."""
        return self._own_traits

    @property
    def usable(self) -> bool:
        """Whether a kernel builds, runs and gives the right result; found out on first use."""
        if not self._opened:
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

        Raises
        ------
        DeviceError
            Some of it has failed, or did before: the device is lost.
        """
        if self.lost:
            self.require()
        if self._queue is None or self.forked:
            return
        try:
            self.queue.finish()
        except lost.driver_error() as error:
            raise lost.waiting(self, error) from error
        if self.pinned:
            lost.check_pinned(self)
        if self.simulation is not None:
            self.simulation.finished(self)

    def renew_queue(self, profiling: bool) -> None:
        """Wait for the queue and put a fresh one in its place; its events hold times if asked."""
        import pyopencl as cl

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
        import pyopencl as cl

        from . import probing, threads

        threads.prepare()
        with self.lock:
            if self._opened:
                return
            try:
                queue = self._open_queues()
                self.cause = probing.probe(queue, self._own_traits.builtins_read)
                self.canary = lost.canary(queue)
            except (cl.Error, OSError) as error:
                self.cause = _one_line(str(error))
            self._opened = True

    def _open_queues(self) -> cl.CommandQueue:
        import pyopencl as cl

        if self.inline is not None:
            try:
                self._context = cl.Context([self.handle, self.inline.handle])
                self.inline.open(self._context)
            except cl.Error:  # it is there for speed alone
                self.inline = None
        if self.inline is None:
            self._context = cl.Context([self.handle])
        assert self._context is not None
        queue = self._queue = cl.CommandQueue(self._context, self.handle)
        return queue

    def _give_up(self, cause: str) -> None:
        self.cause = cause
        self._opened = True

    def __repr__(self) -> str:
        return f"<clfuse device {self.index}: {self.name} ({self.platform_name})>"


def _read_traits(handle: cl.Device, platform: cl.Platform) -> DeviceTraits:
    import pyopencl as cl

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
        address_bits=handle.address_bits,
        max_work_group=handle.max_work_group_size,
    )
    return apply_quirks(with_schedule(native, "gpu" if kind == "gpu" else "cpu"))


# --- listing --------------------------------------------------------------------------------------

_lock = threading.RLock()
_listed: list[Device] | None = None
_warned: set[str] = set()


def listed() -> list[Device]:
    """Return every device that the drivers name, usable or not, in their order.

    Raises
    ------
    DeviceError
        pyopencl cannot be imported.
    """
    global _listed
    if _listed is None:
        with _lock:
            if _listed is None:
                _listed = _list_platforms()
                for awaited in list(_awaited):
                    # Otherwise another object would be that device. If there is none, whoever
                    # asks the awaited one is told.
                    with suppress(DeviceError):
                        _settle(awaited)
    return _listed


def _list_platforms() -> list[Device]:
    from . import driver_cache, inline, invokers, pinning, vendors

    drivers = vendors.drivers()
    with (
        driver_cache.environment(),
        vendors.loader_environment(),
        inline.loader_environment(drivers),
        pinning.loader_environment(),
    ):
        try:
            import pyopencl as cl

            invokers.keep_in_memory()
        except ImportError as error:
            raise DeviceError(
                f"pyopencl cannot be imported: {error}; python -m pip install pyopencl"
            ) from error
        try:
            platforms = cl.get_platforms()
        except cl.Error:  # PLATFORM_NOT_FOUND_KHR: the loader found no driver at all
            platforms = []
        found: list[Device] = []
        for number, platform in enumerate(platforms):
            for candidate in _list_devices(number, platform):
                # Two .icd files may name one driver.
                if not any(candidate.handle == other.handle for other in found):
                    found.append(candidate)
    atexit.register(_finish_all, found)
    return found


def _list_devices(number: int, platform: cl.Platform) -> list[Device]:
    import pyopencl as cl

    from . import inline

    try:
        found = inline.handles_of(platform)
    except cl.Error:  # DEVICE_NOT_FOUND: Mesa's Clover lists itself without any
        return []
    return [
        Device(handle, platform, f"{number}:{position}", beside)
        for position, (handle, beside) in enumerate(found)
    ]


def _finish_all(opened: list[Device]) -> None:
    """Wait for what is under way when the interpreter ends: its memory is about to go."""
    for candidate in opened:
        if candidate._queue is not None and candidate.cause is None:
            # What fails now nobody will look at.
            with suppress(DeviceError):
                candidate.finish()


def is_any_open() -> bool:
    """Whether a process that is forked now cannot use the devices that this one does."""
    return any(candidate._opened for candidate in _listed or ())


def _finish_before_fork() -> None:
    """Have in memory what was enqueued: the forked process cannot wait for it."""
    for candidate in _listed or ():
        if candidate._queue is not None and candidate.cause is None:
            # The device is marked as lost then, and both processes say so when they need it.
            with suppress(DeviceError):
                candidate.finish()


def _note_fork() -> None:
    for candidate in _listed or ():
        candidate.forked = candidate._opened and (candidate.cause is None or candidate.lost)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_before_fork, after_in_child=_note_fork)


def devices() -> list[Device]:
    """Return the usable devices, best first.

    A device that is listed but does not work is left out, with one DeviceWarning per process that
    says why.
    """
    ranked = sorted(map(_renewed, list(listed())), key=preference.preference)
    return [candidate for candidate in ranked if _usable_or_warn(candidate)]


def _usable_or_warn(candidate: Device) -> bool:
    if candidate.usable:
        return True
    if candidate.index not in _warned:
        _warned.add(candidate.index)
        warn_user(f"left out: {broken(candidate)}", DeviceWarning)
    return False


def _renewed(candidate: Device) -> Device:
    """The device itself; of one that was lost, another one for the same hardware, with a context of
    its own, which takes its place in the list and wherever it was chosen."""
    global _chosen
    if not candidate.lost or candidate.forked:
        return candidate
    with _lock:
        known = listed()
        if candidate not in known:  # it has been renewed before
            found = [other for other in known if other.index == candidate.index]
            return _renewed(found[0]) if found else candidate
        inline = candidate.inline and type(candidate.inline)(candidate.inline.handle)
        made = Device(candidate.handle, candidate.handle.platform, candidate.index, inline)
        made.is_renewed = True
        known[known.index(candidate)] = made
        for spec, default in list(_defaults.items()):
            if default is candidate:
                _defaults[spec] = made
        if _chosen is candidate:
            _chosen = made
        lost.let_go(candidate)
    for function in lost.when_renewed:
        function(candidate)
    # What is left of the old context in reference cycles may keep a driver from making another.
    gc.collect()
    return made


# --- selection ------------------------------------------------------------------------------------

_scoped: ContextVar[Device | None] = ContextVar("clfuse_device", default=None)
_chosen: Device | None = None
_defaults: dict[str, Device] = {}
_awaited: dict[Device, str] = {}
"""Device that is not settled -> what ``CLFUSE_DEVICE`` said when it became the current one."""


def current_device() -> Device:
    """As `get_device`, but the default device is not looked for: a program on small arrays needs
    none. What is wrong with it, whoever asks it for more is told."""
    current = _scoped.get() or _chosen or _defaults.get(settings.device)
    return current if current is not None else _find_default(settings.device)


def get_device() -> Device:
    """Return the current device.

    That of the innermost `device` block of this thread or task; else the one given to `set_device`;
    else ``CLFUSE_DEVICE``; else the best: a GPU before a CPU, native runtimes before simulators.

    Raises
    ------
    DeviceError
        No usable device, or ``CLFUSE_DEVICE`` names none.
    """
    current = current_device()
    if not current.is_settled:
        _settle(current)
    return current


def _find_default(spec: str) -> Device:
    with _lock:
        if (
            spec not in _defaults
            and _listed is None
            and not _awaited
            and settings.fp64 != "downcast"
        ):
            _defaults[spec] = Device.__new__(Device)
            _awaited[_defaults[spec]] = spec
        if spec in _defaults:
            return _defaults[spec]
    # Without the lock: where a lost device is renewed, those who are told take theirs.
    found = find(spec) if spec else _best()
    with _lock:
        return _defaults.setdefault(spec, found)


def _settle(awaited: Device) -> None:
    """Find out which device this is: the object becomes that of the list, in place of the other,
    which nobody has seen yet.

    Raises
    ------
    DeviceError
        As `get_device`; the next question tries again.
    """
    with _lock:
        known = listed()
        spec = _awaited.get(awaited)
        if spec is None:  # it was settled meanwhile, or by who listed them
            return
        found = find(spec) if spec else _best()
        known[known.index(found)] = awaited
        awaited.__dict__.update(found.__dict__)
        del _awaited[awaited]


def set_device(spec: str | Device | None) -> Device:
    """Make a device the current one, for all threads, from here on; return it.

    Parameters
    ----------
    spec : str, Device or None
        ``"cpu"``, ``"gpu"``, part of a platform's or a device's name, ``"0"`` (platform), ``"0:1"``
        (platform and device), ``"nvidia:1"`` (the second that fits), or a Device. None goes back to
        ``CLFUSE_DEVICE``.

    Of a device that was lost a new context is made, and the Device that is returned is another one.
    Arrays that are on the host are used there from then on.

    Raises
    ------
    DeviceError
        Nothing fits, or what fits does not work.
    """
    global _chosen
    _chosen = None if spec is None else find(spec)
    current = get_device()
    return _renewed(current) if current.lost else current


@contextmanager
def device(spec: str | Device) -> Iterator[Device]:
    """Make a device the current one inside a ``with`` block, in this thread or task only.

    Parameters
    ----------
    spec : str or Device
        As for `set_device`.
    """
    current = find(spec)
    token = _scoped.set(current)
    try:
        yield current
    finally:
        _scoped.reset(token)


def find(spec: str | Device) -> Device:
    """Return the best usable device that fits `spec`; see `set_device`.

    Raises
    ------
    DeviceError
        Nothing fits, or what fits does not work.
    """
    if isinstance(spec, Device):
        spec = _renewed(spec)
        spec.require()
        return spec
    if not isinstance(spec, str) or not spec.strip():
        raise DeviceError(
            f"device: {spec!r}; it takes a text such as 'cpu', 'gpu', 'pocl', '0:1', or a device"
        )
    fitting = [
        _renewed(candidate) for candidate in preference.fitting(spec.strip().lower(), listed())
    ]
    if not fitting:
        raise DeviceError(f"no OpenCL device fits {spec!r}; {inventory(listed())}")
    for candidate in fitting:
        if candidate.usable:
            return candidate
    raise DeviceError(f"device {spec!r}: " + "; ".join(broken(candidate) for candidate in fitting))


def fitting(spec: str) -> list[Device]:
    """Return every usable device that fits `spec`, best first; see `set_device`.

    An empty spec means the best device, and those of its kind on its platform.

    Raises
    ------
    DeviceError
        Nothing fits, or what fits does not work.
    """
    best = find(spec) if spec else _best()
    if spec:
        candidates = preference.fitting(spec.strip().lower(), listed())
    else:
        candidates = [
            candidate
            for candidate in sorted(listed(), key=preference.preference)
            if (candidate.kind, candidate.platform_name) == (best.kind, best.platform_name)
        ]
    return [candidate for candidate in map(_renewed, candidates) if candidate.usable]


def _best() -> Device:
    for candidate in map(_renewed, sorted(listed(), key=preference.preference)):
        if _usable_or_warn(candidate):
            return candidate
    raise DeviceError(f"no usable OpenCL device; {inventory(listed())}")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:CAUSE_CHARACTERS]
