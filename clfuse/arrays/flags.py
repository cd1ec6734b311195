"""``x.flags``: how an array lies in memory, and whether it may be written to."""

from __future__ import annotations

from typing import Any, Final

from . import handle as handles
from .handle import Handle, View, is_contiguous, is_writeable
from .memory_order import is_fortran

_SHORT: Final = {
    "C": "c_contiguous",
    "F": "f_contiguous",
    "O": "owndata",
    "W": "writeable",
    "A": "aligned",
    "X": "writebackifcopy",
    "FNC": "fnc",
    "FORC": "forc",
    "B": "behaved",
    "CA": "carray",
    "FA": "farray",
    "CONTIGUOUS": "c_contiguous",
    "FORTRAN": "f_contiguous",
}
_SETTABLE: Final = frozenset(("WRITEABLE", "W", "ALIGNED", "A", "WRITEBACKIFCOPY", "X"))
_SHOWN: Final = (
    "C_CONTIGUOUS",
    "F_CONTIGUOUS",
    "OWNDATA",
    "WRITEABLE",
    "ALIGNED",
    "WRITEBACKIFCOPY",
)


def set_writeable(handle: Handle, writeable: bool) -> None:
    """What ``x.flags.writeable = ...`` does; a view of what is read-only stays read-only."""
    if writeable and not is_writeable(handle):
        base = handle._view.base if handle._view is not None else None
        if base is not None and not is_writeable(base):
            raise ValueError("cannot set WRITEABLE flag to True of this array")
    view = handle._view
    if view is None:
        if not writeable:
            handle._view = View(0, handles.c_strides(handle._shape), None, True, False)
        return
    view.writeable = writeable
    node = handle._storage.node
    if (
        writeable
        and view.base is None
        and view.offset == 0
        and handle._shape == node.shape
        and handle._dtype is node.dtype
        and is_contiguous(handle)
    ):
        handle._view = None


class flagsobj:
    """The flags of one array, by attribute or by NumPy's names: ``flags["C_CONTIGUOUS"]``."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def c_contiguous(self) -> bool:
        return is_contiguous(self._handle)

    @property
    def f_contiguous(self) -> bool:
        return is_fortran(self._handle)

    contiguous = c_contiguous
    fortran = f_contiguous

    @property
    def owndata(self) -> bool:
        view = self._handle._view
        return view is None or view.base is None

    @property
    def writeable(self) -> bool:
        return is_writeable(self._handle) and type(self._handle) not in handles.SCALARS

    @writeable.setter
    def writeable(self, value: Any) -> None:
        set_writeable(self._handle, bool(value))

    @property
    def aligned(self) -> bool:
        return True

    @aligned.setter
    def aligned(self, value: Any) -> None:
        """Elements always are aligned: there is nothing to remember, as in `setflags`."""

    @property
    def writebackifcopy(self) -> bool:
        return False

    @writebackifcopy.setter
    def writebackifcopy(self, value: Any) -> None:
        if value:
            raise ValueError("cannot set WRITEBACKIFCOPY flag to True")

    @property
    def fnc(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    @property
    def behaved(self) -> bool:
        return self.writeable

    @property
    def carray(self) -> bool:
        return self.behaved and self.c_contiguous

    @property
    def farray(self) -> bool:
        return self.behaved and self.fnc

    @property
    def num(self) -> int:
        return (
            self.c_contiguous
            | self.f_contiguous << 1
            | self.owndata << 2
            | 0x100
            | self.writeable << 10
        )

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str) or not hasattr(self, _SHORT.get(name, name).lower()):
            raise KeyError("Unknown flag")
        return getattr(self, _SHORT.get(name, name).lower())

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in _SETTABLE:
            raise KeyError("Unknown flag")
        setattr(self, _SHORT.get(name, name).lower(), value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, flagsobj) and self.num == other.num

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "".join(f"  {name} : {self[name]}\n" for name in _SHOWN)
