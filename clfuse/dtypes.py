"""NumPy dtypes as OpenCL C types: their names, sizes, classes and literals."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

OPENCL_TYPES: Final[dict[str, str]] = {
    "bool": "uchar",  # one byte in memory; in registers a mask (see render)
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "float16": "ushort",  # its bits in memory; in registers a float (see render)
    "float32": "float",
    "float64": "double",
    "complex64": "float2",
    "complex128": "double2",
}
"""NumPy dtype name -> the OpenCL C type of one element in global memory."""

_CHARACTERS: Final = "?bBhHiIlLqQefdFD"
"""NumPy's type characters of the native dtypes; int64 has two. Look-ups by character are ten times
faster than by `numpy.dtype.name`, which is computed at every access."""

_MEMORY: Final = {c: OPENCL_TYPES[np.dtype(c).name] for c in _CHARACTERS}
_REGISTER: Final = {**_MEMORY, "?": "int", "e": "float"}
_REGISTER_NBYTES: Final = {c: np.dtype(c).itemsize for c in _CHARACTERS} | {"e": 4}
_NAMES: Final = {c: np.dtype(c).name for c in _CHARACTERS}
_CLASSES: Final = {"b": "bool", "i": "signed", "u": "unsigned", "f": "float", "c": "complex"}
_SIGNED: Final = {1: "char", 2: "short", 4: "int", 8: "long"}


def is_native(dtype: np.dtype) -> bool:
    """Whether arrays of `dtype` live on the device (native byte order, no object, no string)."""
    return dtype.char in _MEMORY and dtype.isnative


def name_of(dtype: np.dtype) -> str:
    """``dtype.name`` of a native dtype."""
    return _NAMES[dtype.char]


def type_class(dtype: np.dtype) -> str:
    """The op tables' class of `dtype`: bool, signed, unsigned, float or complex."""
    return _CLASSES[dtype.kind]


def memory_type(dtype: np.dtype) -> str:
    """OpenCL C type of one element in global memory."""
    return _MEMORY[dtype.char]


def register_type(dtype: np.dtype) -> str:
    """OpenCL C type of one element in a register: half is computed as float, bool as an int."""
    return _REGISTER[dtype.char]


def register_nbytes(dtype: np.dtype) -> int:
    """Bytes that one element takes in a vector register (bool: its byte in memory)."""
    return _REGISTER_NBYTES[dtype.char]


def mask_type(nbytes: int) -> str:
    """The signed integer type whose vectors are masks for lanes of `nbytes` bytes."""
    return _SIGNED[nbytes]


def needs_fp64(dtype: np.dtype) -> bool:
    """Whether computing in `dtype` needs a device with double precision."""
    return dtype.char in "dD"


def __getattr__(name: str) -> Any:
    """NumPy's classes of dtypes: to programs, this module is ``numpy.dtypes``."""
    if name.startswith("__") and name != "__all__":  # ``from numpy.dtypes import *``
        raise AttributeError(name)
    return getattr(np.dtypes, name)
