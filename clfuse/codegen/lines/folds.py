"""The accumulators of a reduction as lines of OpenCL C: start, fold, compensate, combine lanes.

Sums of floats keep a total and the error of every addition to it (Knuth's two-sum), so a sum over
millions is at least as accurate as NumPy's pairwise one. Arg-reductions keep value and position.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clfuse.dtypes import mask_type, memory_type, name_of, type_class
from clfuse.ops.table import FOLDS
from clfuse.schedule.records import Accumulator, Kernel

from . import complexes
from .expressions import Expressions, Register, lanes_like, vector

_ARGUMENT = {"argmin": "<", "argmax": ">"}


class Fold:
    """One accumulator at the widths that a kernel needs; names end in the accumulator's number."""

    def __init__(self, number: int, accumulator: Accumulator, lane_nbytes: int) -> None:
        self.number = number
        self.accumulator = accumulator
        self.dtype = accumulator.dtype
        self.lane_nbytes = lane_nbytes if self.dtype.kind == "b" else lanes_like(self.dtype)
        self.is_argument = accumulator.name in _ARGUMENT
        self.compensates = accumulator.name == "add" and self.dtype.kind in "fc"

    def type_at(self, writer: Expressions) -> str:
        """The accumulator's type at the writer's width."""
        return writer.type_of(self.dtype, self.lane_nbytes)

    def identity(self, writer: Expressions) -> str:
        """The value that changes nothing."""
        name = self.accumulator.name
        if self.is_argument:
            name = "minimum" if name == "argmin" else "maximum"
        text = FOLDS[name].identity_of(name_of(self.dtype))
        if text is None:
            raise AssertionError(f"{name} has no identity for {self.dtype}")
        scalar = mask_type(self.lane_nbytes) if self.dtype.kind == "b" else None
        if self.dtype.kind == "b" and writer.width == 1:
            text = text.replace("-1", "1")  # a mask is -1 in vectors, one truth value is 1
        if self.dtype.kind == "c":
            number = text.format(T=complexes.vector_of(self.dtype, 1))
            return f"({self.type_at(writer)})({', '.join([number] * writer.width)})"
        return text.format(T=self.type_at(writer), S=scalar or self.type_at(writer))

    def start(self, writer: Expressions, value: str, position: str) -> list[str]:
        """Declare the accumulator ``value`` (and ``position``) at its identity."""
        lines = [f"{self.type_at(writer)} {value} = {self.identity(writer)};"]
        if self.is_argument:
            kind = vector("long", writer.width)
            lines.append(f"{kind} {position} = ({kind})(LONG_MAX);")
        return lines

    def fold(
        self, writer: Expressions, value: str, position: str, item: str, item_position: str
    ) -> list[str]:
        """``value`` folded with a register text of the accumulator's type."""
        if self.is_argument:
            return self._fold_argument(writer, value, position, item, item_position)
        return [f"{value} = {self.combined(writer, value, item)};"]

    def fold_next(
        self, writer: Expressions, value: str, position: str, item: str, item_position: str
    ) -> list[str]:
        """As `fold`, for an item behind all those that ``value`` has seen.

        An arg-reduction then only takes what is better, or the first NaN. Where nothing is better
        than the identity, ``position`` stays at LONG_MAX: the first element is as good as any.
        """
        if not self.is_argument or self.dtype.kind == "c":
            return self.fold(writer, value, position, item, item_position)
        not_worse = {"argmin": ">=", "argmax": "<="}[self.accumulator.name]
        single = writer.width == 1
        take = f"!({item} {not_worse} {value})" if single else f"~({item} {not_worse} {value})"
        if type_class(self.dtype) == "float":
            take = f"({take} {'&&' if single else '&'} ({value} == {value}))"
        if single:
            kind, where = "int", "take"
        else:
            mask = vector("long", writer.width)
            kind = vector(mask_type(self.lane_nbytes), writer.width)
            where = "take" if self.lane_nbytes == 8 else f"convert_{mask}(take)"
        return [
            "{",
            f"  const {kind} take = {take};",
            f"  {value} = take ? {item} : {value};",
            f"  {position} = {where} ? {item_position} : {position};",
            "}",
        ]

    def combined(self, writer: Expressions, left: str, right: str) -> str:
        """The row of the reduction applied to two texts."""
        dtypes = [self.dtype, self.dtype]
        return writer.formatted(
            self.accumulator.name, dtypes, [left, right], self.dtype, self.lane_nbytes
        )

    def _fold_argument(
        self, writer: Expressions, value: str, position: str, item: str, item_position: str
    ) -> list[str]:
        """Better value, or a NaN before any other NaN, or as good and further in front."""
        operator = _ARGUMENT[self.accumulator.name]
        mask = vector("long", writer.width)
        lane = vector(mask_type(self.lane_nbytes), writer.width)
        convert = "" if writer.width == 1 else f"convert_{mask}"
        back = "" if writer.width == 1 else f"convert_{lane}"
        both = "||" if writer.width == 1 else "|"
        every = "&&" if writer.width == 1 else "&"
        better = f"({item} {operator} {value})"
        equal = f"({item} == {value})"
        if self.dtype.kind == "c":
            better, equal = self._complex_order(writer, value, item)
        if type_class(self.dtype) == "float":
            better = f"({better} {both} (({item} != {item}) {every} ({value} == {value})))"
            equal = f"({equal} {both} (({item} != {item}) {every} ({value} != {value})))"
        ahead = f"({item_position} < {position})"
        take_type = "int" if writer.width == 1 else mask
        return [
            "{",
            f"  const {take_type} take = {convert}({better}) {both} "
            f"({convert}({equal}) {every} {ahead});",
            f"  {value} = {back}(take) ? {item} : {value};"
            if writer.width > 1
            else f"  {value} = take ? {item} : {value};",
            f"  {position} = take ? {item_position} : {position};",
            "}",
        ]

    def _complex_order(self, writer: Expressions, value: str, item: str) -> tuple[str, str]:
        """(better, as good) of complex numbers: lexicographic, a NaN in either part before all."""
        name = "less" if self.accumulator.name == "argmin" else "greater"
        before = writer.formatted(name, [self.dtype, self.dtype], [item, value], None, 4)
        item_nan = f"({item}.x != {item}.x || {item}.y != {item}.y)"
        value_nan = f"({value}.x != {value}.x || {value}.y != {value}.y)"
        same = f"({item}.x == {value}.x && {item}.y == {value}.y)"
        return (
            f"(!{value_nan} && ({item_nan} || {before}))",
            f"({same} || ({item_nan} && {value_nan}))",
        )

    def start_total(self, writer: Expressions, number: str) -> list[str]:
        """Declare the compensated total and its error."""
        kind = self.type_at(writer)
        return [f"{kind} t{number} = ({kind})(0), e{number} = ({kind})(0);"]

    def add_to_total(self, writer: Expressions, item: str, number: str) -> list[str]:
        """Two-sum: t + e stays exact to the last addition's own rounding."""
        kind = self.type_at(writer)
        return [
            "{",
            f"  const {kind} s = t{number} + {item}, b = s - t{number};",
            f"  e{number} += (t{number} - (s - b)) + ({item} - b);",
            f"  t{number} = s;",
            "}",
        ]

    def total_across_lanes(self, writers: dict[int, Expressions], width: int) -> list[str]:
        """Add the lanes of a compensated total into the single one: halves, quarters, ..., each
        with the errors of its additions."""
        number = self.number
        total, error = f"tv{number}", f"ev{number}"
        lines = [f"{error} = isfinite({error}) ? {error} : 0;"]
        while width > 1:
            half = width // 2
            kind = self.type_at(writers[half])
            low, high = ("x", "y") if half == 1 and self.dtype.kind != "c" else ("lo", "hi")
            one, other = f"{total}.{low}", f"{total}.{high}"
            added, lost = f"h{number}_{half}", f"g{number}_{half}"
            lines += [
                f"const {kind} {added} = {one} + {other}, b{number}_{half} = {added} - {one};",
                f"const {kind} {lost} = ({error}.{low} + {error}.{high}) + "
                f"(({one} - ({added} - b{number}_{half})) + ({other} - b{number}_{half}));",
            ]
            total, error, width = added, lost, half
        lines += self.add_to_total(writers[1], total, f"q{number}")
        lines.append(f"eq{number} += {error};")
        return lines

    def total(self, number: str) -> str:
        """One compensated sum; an infinity or NaN has no error worth adding."""
        name = f"t{number}"
        if self.dtype.kind == "c":
            parts = []
            for part in "xy":
                total, error = f"{name}.{part}", f"e{number}.{part}"
                parts.append(f"(isfinite({error}) ? {total} + {error} : {total})")
            return f"({memory_type(self.dtype)})({', '.join(parts)})"
        return f"(isfinite(e{number}) ? {name} + e{number} : {name})"

    def join_copies(self, writer: Expressions, copies: int) -> list[str]:
        """Fold the vectors of all unrolled ``copies`` into the first, by halves."""
        number, lines = self.number, []
        while copies > 1:
            copies //= 2
            for copy in range(copies):
                one, other = f"{number}_{copy}", f"{number}_{copy + copies}"
                lines += self.fold(writer, f"v{one}", f"p{one}", f"v{other}", f"p{other}")
        return lines

    def renamed(self, writer: Expressions, value: str) -> list[str]:
        """Declare a vector of values by the name that `across_lanes` folds."""
        return [f"const {self.type_at(writer)} v{self.number}_0 = {value};"]

    def across_lanes(self, writers: dict[int, Expressions], width: int) -> list[str]:
        """Fold the lanes of ``v`` (and ``p``) into ``l`` (and ``m``): halves, quarters, ..."""
        if self.is_argument and self.dtype.kind in "iuf":
            return self._argument_across_lanes(writers, width)
        number = self.number
        value, position = f"v{number}_0", f"p{number}_0"
        lines = []
        while width > 1:
            half = width // 2
            writer = writers[half]
            kind = self.type_at(writer)
            low, high = ("x", "y") if half == 1 and self.dtype.kind != "c" else ("lo", "hi")
            name, where = f"h{number}_{half}", f"g{number}_{half}"
            if self.is_argument:
                lines.append(f"{kind} {name} = {value}.{low};")
                lines.append(f"{vector('long', half)} {where} = {position}.{low};")
                lines += self.fold(writer, name, where, f"{value}.{high}", f"{position}.{high}")
            else:
                combined = self.combined(writer, f"{value}.{low}", f"{value}.{high}")
                lines.append(f"const {kind} {name} = {combined};")
            value, position, width = name, where, half
        lines.append(f"{self.type_at(writers[1])} l{number} = {value};")
        if self.is_argument:
            lines.append(f"long m{number} = {position};")
        return lines

    def _argument_across_lanes(self, writers: dict[int, Expressions], width: int) -> list[str]:
        """The best value first, then the foremost of the lanes that have it.

        Less waits for what is before it than a choice of value and position at every step.
        """
        number, wide = self.number, writers[width]
        row = {"argmin": "minimum", "argmax": "maximum"}[self.accumulator.name]
        lanes, value, position = f"v{number}_0", f"v{number}_0", f"g{number}_{width}"
        lines = []
        size = width
        while size > 1:
            size //= 2
            low, high = ("x", "y") if size == 1 else ("lo", "hi")
            parts = [f"{value}.{low}", f"{value}.{high}"]
            dtypes = [self.dtype, self.dtype]
            best = writers[size].formatted(row, dtypes, parts, self.dtype, self.lane_nbytes)
            value = f"h{number}_{size}"
            lines.append(f"const {self.type_at(writers[size])} {value} = {best};")
        lines.append(f"{self.type_at(writers[1])} l{number} = {value};")
        kind, long = self.type_at(wide), vector("long", width)
        has = f"({lanes} == ({kind})({value}))"
        if type_class(self.dtype) == "float":
            has = f"({has} | (({lanes} != {lanes}) & (({kind})({value}) != ({kind})({value}))))"
        chosen = f"convert_{long}({has}) ? p{number}_0 : ({long})(LONG_MAX)"
        lines.append(f"const {long} {position} = {chosen};")
        while width > 1:
            width //= 2
            low, high = ("x", "y") if width == 1 else ("lo", "hi")
            foremost = f"min({position}.{low}, {position}.{high})"
            position = f"g{number}_{width}"
            lines.append(f"const {vector('long', width)} {position} = {foremost};")
        lines.append(f"long m{number} = {position};")
        return lines

    def item(self, writer: Expressions, registers: dict[int, Register]) -> tuple[str, str]:
        """The folded register and its position as texts of the accumulator's types."""
        register = registers[self.accumulator.operand]
        text = writer.cast(register, self.dtype, self.lane_nbytes)
        position = ""
        if self.accumulator.position is not None:
            position = writer.number(registers[self.accumulator.position])
        return f"({text})", f"({position})"

    def result(self, text: str) -> Register:
        """The folded value as a register of the epilogue (an arg-reduction's is its position).

        Halves are folded as floats, and rounded where the result is used.
        """
        if self.is_argument:
            return Register(f"({text} == LONG_MAX ? 0L : {text})", np.dtype(np.int64))
        dtype = np.dtype(np.float32) if self.dtype.char == "e" else self.dtype
        return Register(text, dtype, self.lane_nbytes)


def beside(folds: Sequence[Fold], sister: Kernel) -> list[tuple[Fold, Fold]]:
    """Those of `folds` that a sister does in its boxes, too, each with the same one as it does it:
    of registers of its own."""
    accumulators = {each.var: each for each in sister.accumulators}
    return [
        (fold, type(fold)(fold.number, accumulators[var], fold.lane_nbytes))
        for fold in folds if (var := fold.accumulator.var) in accumulators
    ]
