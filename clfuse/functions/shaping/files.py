"""Files of arrays: `load`, the archives that it returns, and NumPy's other readers and writers.

NumPy reads and writes the files. A device has nothing to compute there, so this is no fallback.

A header is believed only as far as the file goes: one that claims more bytes than there are is
refused before anything is allocated for it. (So `load` is not marked `host_call.native`, which
would make the refused call again in NumPy.)
"""

from __future__ import annotations

import functools
import io
import math
import os
from collections.abc import Callable
from typing import IO, Any, Final, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.lib.npyio import NpzFile

from clfuse.arrays.conversion import adopt_host_array
from clfuse.arrays.handle import native_dtype
from clfuse.dispatch.host_call import HostArguments, like, refuse_while_tracing
from clfuse.dispatch.registry import NATIVE

MOST_HEADER_BYTES: Final = 10_000
"""NumPy's limit: `ast.literal_eval` is not to be trusted with more."""


def _require_bytes(stream: IO[bytes], nbytes: int, name: str, max_header_size: int) -> None:
    """ValueError where the array in `stream`, of `nbytes` from here on, claims to be larger."""
    start = stream.tell()
    try:
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        reader = readers.get(npy.read_magic(stream))
        if reader is None:
            return
        shape, _, dtype = reader(stream, max_header_size)
        left = nbytes - (stream.tell() - start)
    except Exception:  # noqa: BLE001 (NumPy reads it again, and says what is wrong)
        return
    finally:
        stream.seek(start)
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > left and not dtype.hasobject:
        raise ValueError(
            f"{name}: the header claims {claimed} bytes for an array of shape {shape}, "
            f"the file holds {left}"
        )


class Archive(NpzFile):
    """What `load` gives for an ``.npz`` file: `numpy.lib.npyio.NpzFile`, of lazy arrays.

    Arrays of dtypes that live on no device are NumPy's.
    """

    max_header_size: int
    _files: dict[str, str] | list[str]

    def __getitem__(self, key: str) -> Any:
        member = self._member(key)
        archive = self.zip
        if member is not None and archive is not None:  # else it is closed: NumPy's error
            with archive.open(member) as stream:
                nbytes = archive.getinfo(member).file_size
                _require_bytes(stream, nbytes, member, self.max_header_size)
        return _given(super().__getitem__(key))

    def _member(self, key: str) -> str | None:
        """The name that a member has in the file; older releases of NumPy keep a list of these."""
        if isinstance(self._files, dict):
            return self._files.get(key)
        return next((name for name in (key, f"{key}.npy") if name in self._files), None)


def _given(found: Any) -> Any:
    if type(found) is np.ndarray and native_dtype(found.dtype) is not None:
        return adopt_host_array(found)
    return found


def load(
    file: Any,
    mmap_mode: Any = None,
    allow_pickle: bool = False,
    fix_imports: bool = True,
    encoding: Literal["ASCII", "latin1", "bytes"] = "ASCII",
    *,
    max_header_size: int = MOST_HEADER_BYTES,
) -> Any:
    """The array, or the archive of arrays, that a file holds.

    With `mmap_mode` it is a `numpy.memmap`; CPU devices read the mapped file itself where it is
    used, if the mode is "r".

    Raises
    ------
    ValueError
        A file that is no such file, holds less than its header claims, or pickles.
    """
    refuse_while_tracing("load: it is a file")
    if isinstance(file, str | os.PathLike):
        try:
            with open(file, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                _require_bytes(stream, size, os.fspath(file), max_header_size)
        except OSError:
            pass  # NumPy's error
    elif hasattr(file, "read") and getattr(file, "seekable", lambda: False)():
        start = file.tell()
        end = file.seek(0, io.SEEK_END)
        file.seek(start)
        _require_bytes(file, end - start, "file", max_header_size)
    found = np.load(
        file, mmap_mode, allow_pickle, fix_imports, encoding, max_header_size=max_header_size
    )
    if type(found) is NpzFile:
        found.__class__ = Archive
    return _given(found)


def _by_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's `function`, which reads or writes files, of our arrays."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("like") is not None:
            return like(call, args, kwargs)
        refuse_while_tracing(f"{function.__name__}: it is a file")
        arguments = HostArguments(owned=True)
        given = [arguments.to_host(value) for value in args]
        named = {name: arguments.to_host(value) for name, value in kwargs.items()}
        return arguments.to_device(function(*given, **named))

    return call


FILES: Final = (
    np.load, np.save, np.savez, np.savez_compressed, np.loadtxt, np.savetxt, np.genfromtxt,
    np.fromregex,
)  # fmt: skip
"""NumPy's functions that read and write files."""

for _function in FILES[1:]:
    NATIVE[_function] = _by_numpy(_function)
