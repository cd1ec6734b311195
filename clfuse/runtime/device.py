"""Devices: listing, probing, selection, traits; whoever runs something asks here for the device.

Nothing is looked for before the first question. A listed device is opened and probed when it is
first considered, so that a broken one costs nothing where it is not asked for.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

from clfuse.config import settings
from clfuse.errors import DeviceError, DeviceWarning, warn_user
from clfuse.runtime import tuning, vendors
from clfuse.runtime.compiler import compile_program
from clfuse.runtime.storage import writable_cache
from clfuse.traits import DeviceTraits, apply_quirks, cpu_vector_bytes, with_schedule

if TYPE_CHECKING:
    import pyopencl as cl

    from clfuse.runtime.pool import Pool

__all__ = ["Device", "device", "devices", "find", "fitting", "get_device", "listed", "set_device"]

INSTALL_HINT = (
    "to get one: python -m pip install 'clfuse[intel]' (any x86-64 CPU, Linux), or apt-get install"
    " pocl-opencl-icd (any CPU, Debian and Ubuntu), or the driver of your GPU; python -m clfuse"
    " doctor shows what was found"
)

#: Which platform comes first where several have a device of one kind, by a part of its name.
#: Intel's CPU runtime before PoCL: equal or faster in every program of design.md's table, a launch
#: and wait takes 6 us instead of 13, and it is there only where somebody installed it.
PLATFORM_ORDER = ("nvidia", "amd accelerated", "intel(r) opencl", "portable computing language")
#: Simulators and software renderers: they work, slowly, and come after every native device.
PLATFORM_LAST = ("rusticl", "clover", "fpga", "oclgrind")
KIND_ORDER = ("gpu", "accelerator", "cpu")

#: Words that mean a platform even where a device's name holds them too: PoCL calls its device
#: "pthread-...-Intel(R) Xeon(R)", and CLFUSE_DEVICE=intel must not choose it.
PLATFORM_WORDS = ("pocl", "intel", "nvidia", "amd", "rusticl", "clover", "oclgrind", "apple")

PROBE_SOURCE = """
__kernel void probe(__global int *out, const int factor)
{
    out[get_global_id(0)] = factor * (int)get_global_id(0) + 1;
}
"""
PROBE_ITEMS = 8

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
        calculates (`clfuse.interpret`).
    """

    def __init__(self, handle: cl.Device, platform: cl.Platform, index: str) -> None:
        import pyopencl as cl

        self.handle = handle
        self.index = index
        self.name: str = handle.name.strip()
        self.platform_name: str = platform.name.strip()
        self.vendor_name: str = platform.vendor.strip()
        self.lock = threading.RLock()
        self.cause: str | None = None
        self.forked = False
        self._opened = False
        self._context: cl.Context | None = None
        self._queue: cl.CommandQueue | None = None
        self._forced: tuple[tuple[str, int, int, int, bool, bool], DeviceTraits] | None = None
        self._tuned: DeviceTraits | None = None
        #: Made by `runtime.buffers` for the first buffer.
        self.pool: Pool | None = None
        #: (event, object): host memory that must live until its command is done; kept by
        #: `runtime.buffers`.
        self.pinned: deque[tuple[cl.Event, object]] = deque()
        try:
            self._own_traits = _read_traits(handle, platform)
        except cl.Error as error:
            self._own_traits = DeviceTraits(name=self.name, platform=self.platform_name)
            self._give_up(f"it does not answer what it is: {_one_line(str(error))}")

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
            settings.tuning,
            settings.libraries,
        )
        if self._forced is None or self._forced[0] != forced:
            own = self._own_traits
            if settings.tuning:
                if self._tuned is None:
                    self._tuned = tuning.apply(own)
                own = self._tuned
            forced_traits = _force(own, *forced[:4])
            if settings.libraries and forced_traits.schedule == "gpu":
                from clfuse.runtime import device_libraries  # it needs buffers, which need this

                forced_traits = replace(forced_traits, libraries=device_libraries.usable())
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
        """The OpenCL context, of this device alone."""
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
            raise DeviceError(_broken(self))
        if self.forked:
            raise DeviceError(
                f"{self.name} was in use when this process was forked, and its driver's threads"
                " stayed behind: NumPy calculates here, but runs no kernels that somebody wrote,"
                " and reads no memory but the host's; start processes with"
                " multiprocessing.get_context('spawn')"
            )

    def finish(self) -> None:
        """Wait until all that was enqueued is done; a fork has waited for it."""
        if not self.forked:
            self.queue.finish()

    def renew_queue(self, profiling: bool) -> None:
        """Wait for the queue and put a fresh one in its place; its events hold times if asked."""
        import pyopencl as cl

        with self.lock:
            self.queue.finish()
            if profiling:
                timed = cl.command_queue_properties.PROFILING_ENABLE
                self._queue = cl.CommandQueue(self.context, properties=timed)
            else:
                self._queue = cl.CommandQueue(self.context)

    def _open(self) -> None:
        import pyopencl as cl

        with self.lock:
            if self._opened:
                return
            try:
                self._context = cl.Context([self.handle])
                self._queue = cl.CommandQueue(self._context)
                self.cause = probe(self._context, self._queue, self._own_traits.builtins_read)
            except (cl.Error, OSError) as error:
                self.cause = _one_line(str(error))
            self._opened = True

    def _give_up(self, cause: str) -> None:
        self.cause = cause
        self._opened = True

    def __repr__(self) -> str:
        return f"<clfuse device {self.index}: {self.name} ({self.platform_name})>"


def probe(context: cl.Context, queue: cl.CommandQueue, builtins_read: str = "") -> str | None:
    """Build and run a kernel and check its result: None if all is well, else the cause, one line.

    That a device is listed proves nothing: the PoCL wheel lists one on CPUs that its compiler does
    not know.
    """
    import numpy as np
    import pyopencl as cl

    out = np.zeros(PROBE_ITEMS, np.int32)
    memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, out.nbytes)
    kernel = cl.Kernel(compile_program(context, PROBE_SOURCE, "", builtins_read), "probe")
    kernel.set_args(memory, np.int32(3))
    cl.enqueue_nd_range_kernel(queue, kernel, (PROBE_ITEMS,), None)
    cl.enqueue_copy(queue, out, memory)
    expected = 3 * np.arange(PROBE_ITEMS, dtype=np.int32) + 1
    if not np.array_equal(out, expected):
        return f"a probe kernel gave {out.tolist()} instead of {expected.tolist()}"
    return None


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


def _force(
    traits: DeviceTraits, schedule: str, vector_bytes: int, work_items: int, stream_bytes: int
) -> DeviceTraits:
    if schedule not in ("auto", traits.schedule):
        traits = with_schedule(traits, schedule)
    if vector_bytes:
        traits = replace(traits, vector_bytes=vector_bytes, light_vector_bytes=0)
    if work_items:
        traits = replace(traits, work_items=work_items)
    if stream_bytes >= 0:
        traits = replace(traits, stream_nbytes=stream_bytes)
    return traits


# --- listing
# ----------------------------------------------------------------------------------------------

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
    return _listed


def _list_platforms() -> list[Device]:
    with writable_cache(), vendors.loader_environment():
        try:
            import pyopencl as cl

            # Opens pyopencl's cache of argument setters, and leaves it open.
            import pyopencl.invoker
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

    try:
        handles = platform.get_devices()
    except cl.Error:  # DEVICE_NOT_FOUND: Mesa's Clover lists itself without any
        return []
    return [
        Device(handle, platform, f"{number}:{position}") for position, handle in enumerate(handles)
    ]


def _finish_all(opened: list[Device]) -> None:
    """Wait for what is under way when the interpreter ends: its memory is about to go."""
    for candidate in opened:
        if candidate._queue is not None and candidate.cause is None:
            candidate.finish()


def _finish_before_fork() -> None:
    """Have in memory what was enqueued: the forked process cannot wait for it."""
    for candidate in _listed or ():
        if candidate._queue is not None and candidate.cause is None:
            candidate.finish()


def _note_fork() -> None:
    for candidate in _listed or ():
        candidate.forked = candidate._opened and candidate.cause is None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_before_fork, after_in_child=_note_fork)


def devices() -> list[Device]:
    """Return the usable devices, best first.

    A device that is listed but does not work is left out, with one DeviceWarning per process that
    says why.
    """
    return [
        candidate for candidate in sorted(listed(), key=_preference) if _usable_or_warn(candidate)
    ]


def _usable_or_warn(candidate: Device) -> bool:
    if candidate.usable:
        return True
    if candidate.index not in _warned:
        _warned.add(candidate.index)
        warn_user(f"left out: {_broken(candidate)}", DeviceWarning)
    return False


def _broken(candidate: Device) -> str:
    return (
        f"{candidate.name} of platform {candidate.platform_name} is listed but does not work:"
        f" {candidate.cause}; {_remedy(candidate.cause or '')}"
    )


def _remedy(cause: str) -> str:
    if "unknown target CPU" in cause:
        return "its compiler is older than this CPU; " + INSTALL_HINT
    return "mend or remove its driver, or select another device with CLFUSE_DEVICE; " + INSTALL_HINT


def _preference(candidate: Device) -> tuple[int, int, str]:
    platform = candidate.platform_name.lower()
    if any(part in platform for part in PLATFORM_LAST):
        return len(KIND_ORDER), 0, candidate.index
    rank = len(PLATFORM_ORDER)
    for position, part in enumerate(PLATFORM_ORDER):
        if part in platform:
            rank = position
    return KIND_ORDER.index(candidate.kind), rank, candidate.index


# --- selection
# --------------------------------------------------------------------------------------------

_scoped: ContextVar[Device | None] = ContextVar("clfuse_device", default=None)
_chosen: Device | None = None
_defaults: dict[str, Device] = {}


def get_device() -> Device:
    """Return the current device.

    That of the innermost `device` block of this thread or task; else the one given to `set_device`;
    else ``CLFUSE_DEVICE``; else the best: a GPU before a CPU, native runtimes before simulators.

    Raises
    ------
    DeviceError
        No usable device, or ``CLFUSE_DEVICE`` names none.
    """
    current = _scoped.get() or _chosen or _defaults.get(settings.device)
    return current if current is not None else _find_default(settings.device)


def _find_default(spec: str) -> Device:
    with _lock:
        if spec not in _defaults:
            _defaults[spec] = find(spec) if spec else _best()
        return _defaults[spec]


def set_device(spec: str | Device | None) -> Device:
    """Make a device the current one, for all threads, from here on; return it.

    Parameters
    ----------
    spec : str, Device or None
        ``"cpu"``, ``"gpu"``, part of a platform's or a device's name, ``"0"`` (platform), ``"0:1"``
        (platform and device), ``"nvidia:1"`` (the second that fits), or a Device. None goes back to
        ``CLFUSE_DEVICE``.

    Raises
    ------
    DeviceError
        Nothing fits, or what fits does not work.
    """
    global _chosen
    _chosen = None if spec is None else find(spec)
    return get_device()


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
        spec.require()
        return spec
    if not isinstance(spec, str) or not spec.strip():
        raise DeviceError(
            f"device: {spec!r}; it takes a text such as 'cpu', 'gpu', 'pocl', '0:1', or a device"
        )
    fitting = _fitting(spec.strip().lower())
    if not fitting:
        raise DeviceError(f"no OpenCL device fits {spec!r}; {_inventory()}")
    for candidate in fitting:
        if candidate.usable:
            return candidate
    raise DeviceError(f"device {spec!r}: " + "; ".join(_broken(candidate) for candidate in fitting))


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
        candidates = _fitting(spec.strip().lower())
    else:
        candidates = [
            candidate
            for candidate in sorted(listed(), key=_preference)
            if (candidate.kind, candidate.platform_name) == (best.kind, best.platform_name)
        ]
    return [candidate for candidate in candidates if candidate.usable]


def _best() -> Device:
    for candidate in sorted(listed(), key=_preference):
        if _usable_or_warn(candidate):
            return candidate
    raise DeviceError(f"no usable OpenCL device; {_inventory()}")


def _inventory() -> str:
    """Say what there is, which drivers do not load, and what would help."""
    parts = [f"{d.index} {d.name} ({d.platform_name})" for d in listed()]
    sentences = ["there are " + ", ".join(parts) if parts else "no OpenCL runtime lists any"]
    errors = vendors.load_errors()
    sentences += [
        f"{file} names {library}, which does not load: {error}" for file, library, error in errors
    ]
    if not listed() and len(errors) < len(vendors.drivers()):
        sentences.append(
            "drivers that do load list nothing; if this program used OpenCL before clfuse did, let"
            " clfuse be the first"
        )
    return "; ".join([*sentences, INSTALL_HINT])


def _fitting(spec: str) -> list[Device]:
    """Return the devices that a spec means, best first."""
    ranked = sorted(listed(), key=_preference)
    if re.fullmatch(r"\d+", spec):
        return [d for d in ranked if d.index.split(":")[0] == spec]
    if re.fullmatch(r"\d+:\d+", spec):
        return [d for d in ranked if d.index == spec]
    # A colon may be part of a name; only a number after the last one is a position.
    numbered = re.fullmatch(r"(.+):(\d+)", spec)
    name, position = (numbered[1].strip(), int(numbered[2])) if numbered else (spec, None)
    if name in KIND_ORDER:
        fitting = [d for d in ranked if d.kind == name]
    else:
        fitting = [d for d in ranked if name in f"{d.platform_name} {d.vendor_name}".lower()]
        if not fitting and name not in PLATFORM_WORDS:
            fitting = [d for d in ranked if name in d.name.lower()]
    return fitting if position is None else fitting[position : position + 1]


def _one_line(text: str) -> str:
    return " ".join(text.split())[:CAUSE_CHARACTERS]
