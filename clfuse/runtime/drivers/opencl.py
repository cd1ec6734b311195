"""What clfuse uses of pyopencl, loaded without the rest.

``import pyopencl`` takes 60 ms, of which the compiled part takes 3: the rest are registers of
vector types, generators of code, pytools, databases. A program's first use of a device waits for
it. So the package is loaded as a module whose text runs when somebody asks for a name that it
lacks; its compiled part, and the properties that pyopencl gives to the classes there, are loaded at
once. Where the package is another than this module knows, or is loaded already, it is imported
whole.

For every kernel object pyopencl makes two Python functions, which clfuse never calls. It keeps
them in an SQLite file of the user's cache, and reads them back with `pickle`: with a damaged file
or a full disk no kernel can be made, and a file that another user has written runs that user's
code. Here they are made when they are called, and kept in memory.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import ModuleType
from typing import Any, Final

from clfuse.process import deferred

__all__ = [
    "Buffer", "CommandQueue", "Context", "Device", "Error", "Event", "Kernel", "LocalMemory",
    "MemoryError", "Platform", "RuntimeError", "_ErrorRecord", "_Program",
    "command_execution_status", "command_queue_properties", "create_context", "device_fp_config",
    "device_type", "enqueue_barrier", "enqueue_copy", "enqueue_fill_buffer", "enqueue_map_buffer",
    "enqueue_marker", "enqueue_nd_range_kernel", "get_platforms", "kernel_work_group_info",
    "library", "load_drivers", "map_flags", "mem_flags", "program_info",
]  # fmt: skip

PACKAGE: Final = "pyopencl"
PROPERTIES: Final = f"{PACKAGE}._monkeypatch"
INVOKER: Final = f"{PACKAGE}.invoker"

WAIT_LISTS: Final = (1, 2)
"""The version of OpenCL from which on markers and barriers take events to wait for."""


@contextmanager
def _in_memory(invoker: ModuleType) -> Iterator[None]:
    """Run the text of the generator of functions so that it opens no database."""
    package: Any = sys.modules[PACKAGE]
    before = package._PYOPENCL_NO_CACHE
    package._PYOPENCL_NO_CACHE = True
    try:
        yield
    finally:
        package._PYOPENCL_NO_CACHE = before
    vars(invoker)["invoker_cache"] = _InMemory()


class _InMemory:
    """What pyopencl uses of `pytools.persistent_dict.WriteOncePersistentDict`."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def __getitem__(self, key: tuple[Any, ...]) -> Any:
        return self._kept[_without_name(key)]

    def store_if_not_present(self, key: tuple[Any, ...], value: Any) -> None:
        self._kept.setdefault(_without_name(key), value)


def _without_name(key: tuple[Any, ...]) -> Hashable:
    """The key without the kernel's name, which the functions do not use: they take the kernel
    object. So there are as many as there are numbers of arguments, and lists of their types in
    programs of the user's that call pyopencl."""
    others = key[1:]
    try:
        hash(others)
    except TypeError:
        return repr(others)
    return others


def _functions_when_called(
    *given: Any, **more: Any
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """In place of ``pyopencl.invoker.generate_enqueue_and_set_args``, with its arguments."""
    made: list[tuple[Callable[..., Any], Callable[..., Any]]] = []

    def function(place: int) -> Callable[..., Any]:
        if not made:
            invoker: Any = sys.modules[INVOKER]
            deferred.run(invoker)
            made.append(invoker.generate_enqueue_and_set_args(*given, **more))
        return made[0][place]

    def enqueue(*arguments: Any, **more: Any) -> Any:
        return function(0)(*arguments, **more)

    def set_args(*arguments: Any) -> Any:
        return function(1)(*arguments)

    return enqueue, set_args


class _Builtins(dict[str, Any]):
    """The built-in names, some of which are others. No copy: the functions that find their names
    here live as long as pyopencl's classes, and so would what programs add to the names."""

    def __missing__(self, name: str) -> Any:
        return vars(builtins)[name]


class _WithoutPytools(deferred.Wrapping):
    """Runs the text that gives properties to pyopencl's classes, and imports no pytools for it.

    The text takes one decorator from there, at its end. Its imports go through a function of its
    own while it runs, so no other thread sees another pytools.
    """

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        runs = True
        stand_in = ModuleType("pytools")
        vars(stand_in)["memoize_method"] = _memoize_method

        def imported(
            name: str,
            globals: Mapping[str, object] | None = None,
            locals: Mapping[str, object] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            if runs and name == "pytools" and "pytools" not in sys.modules:
                return stand_in
            return builtins.__import__(name, globals, locals, fromlist, level)

        names = vars(module)
        names["__builtins__"] = _Builtins(__import__=imported)
        exec(self.original.get_code(module.__name__), names)
        runs = False
        names["__builtins__"] = vars(builtins)


def _memoize_method(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """As `pytools.memoize_method`, for methods without arguments."""
    kept = f"_kept_{method.__name__}"

    def memoized(self: Any) -> Any:
        try:
            return getattr(self, kept)
        except AttributeError:
            value = method(self)
            setattr(self, kept, value)
            return value

    return memoized


LOADERS: Final[dict[str, Callable[[Any], Any]]] = {
    PACKAGE: deferred.Deferring,
    PROPERTIES: _WithoutPytools,
    INVOKER: partial(
        deferred.Deferring,
        names={"generate_enqueue_and_set_args": _functions_when_called}, around=_in_memory,
    ),
}  # fmt: skip


def _load() -> None:
    """Load pyopencl's compiled part with its properties, and the rest if that cannot be alone.

    Raises ImportError: there is no pyopencl, or it does not work.
    """
    with deferred.found_by(LOADERS):
        import pyopencl

        if isinstance(pyopencl, deferred.Module):
            # By its own text, before its compiled part is loaded: where its drivers are.
            os.environ["PYOPENCL_HOME"] = os.path.dirname(os.path.abspath(pyopencl.__file__ or ""))
            try:
                import pyopencl._cl
                import pyopencl._monkeypatch
            except (ImportError, AttributeError, NameError):  # a release with other parts
                deferred.run(pyopencl)
        invoker = importlib.import_module(INVOKER)
    if not isinstance(invoker, deferred.Module):
        vars(invoker)["invoker_cache"] = _InMemory()


_load()

from pyopencl import _cl  # noqa: E402
from pyopencl._cl import (  # noqa: E402
    Buffer,
    CommandQueue,
    Context,
    Device,
    Error,
    Event,
    Kernel,
    LocalMemory,
    MemoryError,
    MemoryObjectHolder,
    Platform,
    RuntimeError,
    _enqueue_barrier_with_wait_list,
    _enqueue_copy_buffer,
    _enqueue_fill_buffer,
    _enqueue_marker_with_wait_list,
    _enqueue_read_buffer,
    _enqueue_write_buffer,
    _ErrorRecord,
    _Program,
    command_execution_status,
    command_queue_properties,
    device_fp_config,
    device_type,
    enqueue_map_buffer,
    enqueue_nd_range_kernel,
    get_platforms,
    kernel_work_group_info,
    map_flags,
    mem_flags,
    program_info,
)


@cache
def library() -> ctypes.CDLL:
    """OpenCL as pyopencl was linked with it: its own loader, as a rule, not the system's. Python's
    lock is free during calls of its functions, which pyopencl holds.

    Raises OSError: its file is none that can be opened by itself.
    """
    return ctypes.CDLL(_cl.__file__)


def load_drivers() -> None:
    """Have the loader load the drivers, as `get_platforms` does, while other threads go on."""
    with suppress(OSError, AttributeError):  # then `get_platforms` does it
        library().clGetPlatformIDs(0, None, ctypes.byref(ctypes.c_uint()))


def create_context(handles: Sequence[Device]) -> Context:
    """As ``Context(handles)``, while other threads go on.

    Raises pyopencl.Error: the driver refuses.
    """
    status = ctypes.c_int(-1)
    pointer = None
    with suppress(OSError, AttributeError):
        create = library().clCreateContext
        create.restype = ctypes.c_void_p
        devices = (ctypes.c_void_p * len(handles))(*[handle.int_ptr for handle in handles])
        pointer = create(None, len(handles), devices, None, None, ctypes.byref(status))
    if status.value or not pointer:
        return Context(handles)  # whose error says more
    return Context.from_int_ptr(pointer, False)


def enqueue_copy(queue: CommandQueue, dest: Any, src: Any, **how: Any) -> Event:
    """As `pyopencl.enqueue_copy`, between buffers and memory of the host."""
    if not isinstance(dest, MemoryObjectHolder):
        return _enqueue_read_buffer(queue, src, dest, **how)
    if isinstance(src, MemoryObjectHolder):
        return _enqueue_copy_buffer(queue, src, dest, **how)
    return _enqueue_write_buffer(queue, dest, src, **how)


def enqueue_fill_buffer(
    queue: CommandQueue, mem: MemoryObjectHolder, pattern: Any, offset: int, size: int
) -> Event:
    """As `pyopencl.enqueue_fill_buffer`."""
    return _enqueue_fill_buffer(queue, mem, pattern, offset, size, None)


def enqueue_marker(queue: CommandQueue, wait_for: Sequence[Event] | None = None) -> Event:
    """As `pyopencl.enqueue_marker`."""
    if queue._get_cl_version() < WAIT_LISTS:
        return sys.modules[PACKAGE].enqueue_marker(queue, wait_for)  # type: ignore[no-any-return]
    return _enqueue_marker_with_wait_list(queue, wait_for)


def enqueue_barrier(queue: CommandQueue, wait_for: Sequence[Event] | None = None) -> Event:
    """As `pyopencl.enqueue_barrier`."""
    if queue._get_cl_version() < WAIT_LISTS:
        return sys.modules[PACKAGE].enqueue_barrier(queue, wait_for)  # type: ignore[no-any-return]
    return _enqueue_barrier_with_wait_list(queue, wait_for)
