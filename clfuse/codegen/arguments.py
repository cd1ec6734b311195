"""The arguments of one kernel, named in order of first use: equal kernels have equal text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from clfuse.dataclass import frozen
from clfuse.dtypes import memory_type
from clfuse.schedule.fourier_tables import Table
from clfuse.schedule.records import Access


@frozen
class BufferArgument:
    """The bytes of a plan's value."""

    value: int


@frozen
class ConstantArgument:
    """A scalar of the program: position in the snapshot, and the dtype that is passed."""

    position: int
    dtype: np.dtype


@frozen
class IntegerArgument:
    """A size, stride or offset, fixed by the plan."""

    number: int


@frozen
class NumberArgument:
    """A number of one call of a user's kernel, fixed by the plan."""

    number: np.generic


@frozen
class LocalArgument:
    """So many bytes of local memory."""

    nbytes: int


@frozen
class CountArgument:
    """A number in the device's memory, 0 between launches: how many work-items are done."""


@frozen
class TableArgument:
    """Numbers that are made once for a device."""

    table: Table


Binding = (
    BufferArgument | ConstantArgument | IntegerArgument | NumberArgument | LocalArgument
    | CountArgument | TableArgument
)


class Arguments:
    """Collects arguments while a kernel is written.

    `root` gives the value whose bytes a value is written into: both are one pointer then.
    """

    def __init__(
        self, wide_index: bool, root: Callable[[int], int], *, all_offsets: bool = False
    ) -> None:
        self._all_offsets = all_offsets
        self.index_type = "long" if wide_index else "int"
        self.bindings: list[Binding] = []
        self._declarations: list[tuple[str, str, int | None]] = []
        self._names: dict[object, str] = {}
        self._numbers: dict[str, int] = {}
        self._written: set[int] = set()
        self._root = root
        self._buffers = 0

    def _add(self, key: object, binding: Binding, type_: str, name: str, value: int | None) -> str:
        self.bindings.append(binding)
        self._declarations.append((type_, name, value))
        self._names[key] = name
        return name

    def buffer(self, value: int, dtype: np.dtype, *, written: bool = False) -> str:
        """The name of the pointer to a value."""
        root = self._root(value)
        if written:
            self._written.add(root)
        key = ("buffer", root)
        if key in self._names:
            return self._names[key]
        name = f"a{self._buffers}"
        self._buffers += 1
        return self._add(key, BufferArgument(root), memory_type(dtype), name, root)

    def shares(self, value: int, other: int) -> bool:
        """Whether two values are the same bytes."""
        return self._root(value) == self._root(other)

    def table(self, table: Table) -> str:
        """The name of the pointer to a table."""
        if table in self._names:
            return self._names[table]
        number = sum(isinstance(binding, TableArgument) for binding in self.bindings)
        type_ = f"__global {memory_type(np.dtype(table.char))}*"
        return self._add(table, TableArgument(table), type_, f"t{number}", None)

    def constant(self, position: int, dtype: np.dtype, var: int = -1) -> str:
        """The name of a scalar of the program; bool arrives as int, half as float.

        Registers of different numbers `var` have arguments of their own.
        """
        key = ("constant", position, var)
        if key in self._names:
            return self._names[key]
        number = sum(isinstance(binding, ConstantArgument) for binding in self.bindings)
        passed = dtype
        if dtype.kind == "b":
            passed = np.dtype(np.int32)
        elif dtype.char == "e":
            passed = np.dtype(np.float32)
        return self._add(
            key, ConstantArgument(position, passed), memory_type(passed), f"k{number}", None
        )

    def integer(self, name: str, number: int) -> str:
        """The name of a size, stride or offset."""
        if name not in self._names:
            self._add(name, IntegerArgument(number), self.index_type, name, None)
            self._numbers[name] = number
        if self._numbers[name] != number:
            raise AssertionError(f"renderer error: {name} is {self._numbers[name]} and {number}")
        return name

    def seam(self, prefix: str, place: tuple[int, ...], number: int) -> str:
        """The name of an index or a distance that belongs to a seam, or of the number of rounds of
        a loop; one for each `place`."""
        key = (prefix, *place)
        if key not in self._names:
            count = sum(isinstance(k, tuple) and k[0] == prefix for k in self._names)
            name = f"{prefix}{count}"
            self._add(key, IntegerArgument(number), self.index_type, name, None)
        return self._names[key]

    def has(self, prefix: str) -> bool:
        """Whether `seam` has given a name with that prefix."""
        return any(isinstance(key, tuple) and key[0] == prefix for key in self._names)

    def offset(self, access: Access) -> str:
        """Text ``o3 + `` for an access whose offset is not zero (or would be for other shifts)."""
        if access.offset == 0 and not self._all_offsets and not access.seams:
            return ""
        key = ("offset", access)
        if key not in self._names:
            number = sum(isinstance(k, tuple) and k[0] == "offset" for k in self._names)
            self._add(key, IntegerArgument(access.offset), self.index_type, f"o{number}", None)
        return f"{self._names[key]} + "

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of the kernel: type and name."""
        parts = []
        for type_, name, root in self._declarations:
            if root is None:
                parts.append((f"const {type_}", name))
            elif root in self._written:
                parts.append((f"__global {type_}* restrict", name))
            else:
                parts.append((f"__global const {type_}* restrict", name))
        return parts

    @property
    def signature(self) -> str:
        """The parameter list of the kernel."""
        return ", ".join([f"{type_} {name}" for type_, name in self.parameters])

    @property
    def dtypes(self) -> tuple[np.dtype | None, ...]:
        """What `runtime.launches.program.build` needs: a dtype a scalar, None a buffer."""
        index = np.dtype(np.int64 if self.index_type == "long" else np.int32)
        found: list[np.dtype | None] = []
        for binding in self.bindings:
            if isinstance(binding, BufferArgument | TableArgument):
                found.append(None)
            elif isinstance(binding, ConstantArgument):
                found.append(binding.dtype)
            else:
                found.append(index)
        return tuple(found)
