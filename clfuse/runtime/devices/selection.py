"""The usable devices, and which of them is current: for all threads, or for one block.

Nothing is listed before the first use. A listed device is opened and probed when it is first
considered, so that a broken one costs nothing where it is not selected.
"""

from __future__ import annotations

import atexit
import functools
import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

from clfuse.config import settings
from clfuse.errors import DeviceError, DeviceWarning, warn_user
from clfuse.process import locks
from clfuse.process.forks import before as before_forks
from clfuse.runtime.context import lost, waits
from clfuse.runtime.context.remedies import broken, inventory
from clfuse.runtime.drivers import forks
from clfuse.target.costs import COSTS, Costs
from clfuse.target.traits import DeviceTraits

from . import preference
from .device import Device

__all__ = [
    "current_device", "device", "devices", "find", "fitting", "get_device", "is_any_open", "listed",
    "set_device", "when_renewed", "while_loading",
]  # fmt: skip

when_renewed: Final[list[Callable[[Device], None]]] = []
"""Called with a device that was lost, after another one took its place: for who keeps anything that
belongs to a context."""

while_loading: Final[list[Callable[[], object]]] = []
"""Called while the drivers are loaded: what imports that for which a device is opened."""

# --- listing --------------------------------------------------------------------------------------

_lock = locks.make()
_listed: list[Device] | None = None
_warned: set[str] = set()


def listed() -> list[Device]:
    """Return every device that the drivers name, usable or not, in their order.

    Raises DeviceError: pyopencl cannot be imported.
    """
    global _listed
    if _listed is None:
        from clfuse.runtime.drivers import threads

        threads.prepare()
        with _lock:
            if _listed is None:
                from .listing import list_devices

                found = list_devices(while_loading)
                for candidate in found:
                    candidate.forked = candidate.platform_name in forks.spoilt
                _listed = found
                atexit.register(_finish_all, _listed)
                for awaited in list(_awaited):
                    # Otherwise another object would be that device. If there is none, the first
                    # use of the awaited one raises.
                    with suppress(DeviceError):
                        _settle(awaited)
    return _listed


def _finish_all(opened: list[Device]) -> None:
    """Wait for what is under way when the interpreter ends: its memory is about to go."""
    for candidate in opened:
        if candidate._queue is not None and candidate.cause is None:
            # The result of what fails now is not needed any more.
            with suppress(DeviceError):
                is_main = threading.current_thread() is threading.main_thread()
                if is_main and waits.is_long() and not candidate.lost and not candidate.forked:
                    lost.call_driver(
                        candidate, "the end of the program", waits.reach_at_exit,
                        candidate.queue, candidate.name,
                    )  # fmt: skip
                candidate.finish()


def is_any_open() -> bool:
    """Whether a process that is forked now cannot use the devices that this one does."""
    return any(candidate._opened for candidate in _listed or ())


def _finish_before_fork() -> None:
    """Have in memory what was enqueued: the forked process cannot wait for it; and let nobody list
    or open devices meanwhile."""
    _lock.acquire()
    for candidate in _listed or ():
        if candidate._queue is not None and candidate.cause is None:
            # The device is marked as lost then, and both processes say so when they need it.
            with suppress(DeviceError):
                candidate.finish()


def _note_fork() -> None:
    forks.note()
    for candidate in _listed or ():
        candidate.forked = (
            (candidate.cause is None or candidate.lost)
            if candidate._opened
            else candidate.platform_name in forks.spoilt
        )
    _lock.release()


if hasattr(os, "register_at_fork"):
    before_forks.append(_finish_before_fork)
    os.register_at_fork(after_in_parent=_lock.release, after_in_child=_note_fork)


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
    for function in when_renewed:
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


_PROCESSOR: Final = DeviceTraits()


class _AwaitedDevice(Device):
    """The current device before anybody has asked for anything of it; then it is a `Device`."""

    def __getattr__(self, name: str) -> Any:
        if self.is_settled or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        _settle(self)
        return getattr(self, name)

    @property
    def is_settled(self) -> bool:
        """Whether it is known which device this is: true between the two steps of `_settle`."""
        return "handle" in self.__dict__

    @property
    def forked(self) -> bool:  # type: ignore[override]
        """As a device that another process has listed; it is found out which one that is."""
        if forks.spoilt and not self.is_settled:
            _settle(self)
        return bool(self.__dict__.get("forked", False))

    @property
    def fp64(self) -> bool:
        """Nearly all devices have double precision: so it is taken for granted. Until it is settled
        NumPy calculates, and what needs a kernel tests it again."""
        return not self.is_settled or super().fp64

    @property
    def assumed_traits(self) -> DeviceTraits:
        """Those of a processor, where it can be nothing else, and no schedule is forced."""
        if self.may_wait and settings.schedule == "auto":
            return _PROCESSOR
        return self.traits

    @property
    def costs(self) -> Costs:
        """Those of a device that was not measured."""
        return super().costs if self.is_settled else COSTS

    @property
    def may_wait(self) -> bool:
        """Where it can only be a processor: NumPy does in the time of opening it what a GPU does in
        no time."""
        return not self.is_settled and not settings.simulate and _is_processor(settings.device)

    @property
    def shares_memory(self) -> bool:
        """All arrays lie on the host until it is settled."""
        return not self.is_settled or super().shares_memory


@functools.lru_cache(maxsize=16)
def _is_processor(spec: str) -> bool:
    """Whether what ``CLFUSE_DEVICE`` asks for can only be a processor, and is here, so far as the
    names of the drivers say."""
    from clfuse.runtime.drivers import vendors

    wanted = spec.strip().lower()
    names = vendors.only_processors()
    return bool(names) and (wanted in ("", "cpu") or any(wanted in name for name in names))


def current_device() -> Device:
    """As `get_device`, but the default device is not looked for: a program on small arrays needs
    none. If something is wrong with it, its first use raises."""
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
            _defaults[spec] = _AwaitedDevice.__new__(_AwaitedDevice)
            _awaited[_defaults[spec]] = spec
        if spec in _defaults:
            return _defaults[spec]
    # Without the lock: where a lost device is renewed, those who are told take theirs.
    found = find(spec) if spec else _best()
    with _lock:
        return _defaults.setdefault(spec, found)


def _settle(awaited: Device) -> None:
    """Find out which device this is: the object becomes that of the list, in place of the other,
    which is used nowhere yet.

    Raises DeviceError: as `get_device`; the next question tries again.
    """
    with _lock:
        known = listed()
        spec = _awaited.get(awaited)
        if spec is None:  # it was settled meanwhile, or by who listed them
            return
        found = find(spec) if spec else _best()
        known[known.index(found)] = awaited
        awaited.__dict__.update(found.__dict__)
        awaited.__class__ = Device
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

    Raises DeviceError: nothing fits, or what fits does not work.
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

    Raises DeviceError: nothing fits, or what fits does not work.
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
