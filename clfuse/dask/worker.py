"""The worker's side: a device for each process, and results that are computed when a task ends.

Within a task everything is recorded and fused. What a worker keeps or sends has been computed, so
that the times of tasks, the bytes of their results and their errors are what the scheduler takes
them for; a chunk that was released is not pinned by work that still waits for it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from distributed.diagnostics.plugin import WorkerPlugin

from clfuse.arrays.handle import Handle
from clfuse.config import settings
from clfuse.control import evaluate
from clfuse.errors import DeviceError
from clfuse.process import locks
from clfuse.runtime.devices import selection
from clfuse.runtime.devices.device import Device
from clfuse.runtime.files import storage, trust

NAME: Final = "clfuse"
"""Of the plugin on a worker: there is one."""

SHARING: Final = 1 << 10
"""Workers on one machine that may share one device."""

# -- one device a worker --------------------------------------------------------------------------

_taken: dict[int, tuple[Device, Any]] = {}
"""Process -> its device, and the open file whose lock tells the others."""

_taking = locks.make()


def _places(usable: Iterable[Device]) -> Iterator[tuple[Device, Path]]:
    """Each device once, then each device a second time, and so on; with the lock files."""
    folder = _lock_folder()
    for turn in range(SHARING):
        for candidate in usable:
            yield candidate, folder / f"{candidate.index.replace(':', '-')}-{turn}.lock"


def _lock_folder() -> Path:
    """The folder of the lock files, the same for all workers of this user on this machine."""
    place = os.path.realpath(os.path.join(tempfile.gettempdir(), f"clfuse-devices-{os.getuid()}"))
    try:
        problem = trust.trouble_with(place)
    except OSError as error:
        problem = str(error)
    if not problem:
        return Path(place)
    folder = storage.subfolder("devices")
    if folder is None:
        raise DeviceError(f"no folder for the locks that deal out devices: {problem}")
    return folder


def take_device(spec: str = "") -> Device:
    """Take a device that no other worker on this machine has, and select it in this process.

    A process keeps what it took until it ends; the operating system releases it, also when the
    process is killed. Where there are more workers than devices, each device gets its share.

    Parameters
    ----------
    spec : str
        As for `clfuse.set_device`: what fits is handed out. Empty: ``CLFUSE_DEVICE``, and where
        that is not set every device of the best one's kind and platform.

    Raises
    ------
    DeviceError
        Nothing fits, or what fits does not work.
    """
    with _taking:
        if os.getpid() not in _taken:
            _taken[os.getpid()] = _free_device(spec or settings.device)
        return selection.set_device(_taken[os.getpid()][0])


def _free_device(spec: str) -> tuple[Device, Any]:
    for candidate, path in _places(selection.fitting(spec)):
        file = open(path, "ab", opener=lambda place, _: storage.open_to_append(Path(place)))  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return candidate, file
    raise DeviceError(f"device {spec!r}: {SHARING} workers have it already; start fewer")


# -- tasks ----------------------------------------------------------------------------------------


def _arrays(value: Any) -> Iterator[Handle]:
    """The arrays in the result of a task, also inside lists, tuples, sets and dicts."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Handle):
            yield item
        elif isinstance(item, list | tuple | set | frozenset):
            pending.extend(item)
        elif isinstance(item, dict):
            pending.extend(item.values())


class _Evaluating:
    """A task whose result is computed, all of it together, before the task ends."""

    def __init__(self, task: Any) -> None:
        self._task = task
        self.is_coro = False

    def __call__(self, *args: Any, **options: Any) -> Any:
        result = self._task(*args, **options)
        arrays = list(_arrays(result))
        if arrays:
            evaluate(*arrays)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def __repr__(self) -> str:
        return repr(self._task)


class Plugin(WorkerPlugin):
    """Gives every worker process a device, and has it compute what its tasks return.

    Parameters
    ----------
    spec : str
        Which devices are handed out: see `take_device`.

    Examples
    --------
    ``client.register_plugin(clfuse.dask.Plugin("gpu"))``. Workers that start later have it too, and
    one that takes the place of a worker that died takes its device.
    """

    name = NAME
    idempotent = True

    def __init__(self, spec: str = "") -> None:
        self._spec = spec
        self._worker: Any = None

    def setup(self, worker: Any) -> None:
        """Take a device."""
        take_device(self._spec)
        self._worker = worker

    def transition(self, key: Any, start: str, finish: str, **options: Any) -> None:
        """Wrap a task that is about to run."""
        if finish == "executing":
            state = self._worker.state.tasks[key]
            if state.run_spec is not None and not state.run_spec.is_coro:
                state.run_spec = _Evaluating(state.run_spec)
