"""Arg-reductions without positions: the best value first, then a search for its element.

    v0_0 = r3 < v0_0 ? r3 : v0_0;        every vector: one comparison, and a sum that shows NaN
    u0_0 += r3;
    take = v0_0 < b0;                    after every block of them: what is better than all before,
    w0 = take ? j : w0;                  and where that block ended
    for (...) r3 == best ? j : none      in the end: the first of the block that is as good

NaN goes before all others, the first before the second. A sum that is NaN says that one may be
there: the row is then searched for it. Infinities of both signs have such a sum, too. Where no
element can be NaN as long as the loaded ones are finite (`schedule.finish.nan_freedom`), nothing is
summed:

    finite0 = ...;                       once a work-item: of the vectors that all rows read
    finite0 && isfinite(c1)              once a row: of its own numbers
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.expressions import Expressions, Register, vector
from clfuse.codegen.lines.folds import Fold
from clfuse.codegen.lines.loops import compute, unasked
from clfuse.dtypes import mask_type
from clfuse.schedule.finish.nan_freedom import Sources, sources_of
from clfuse.schedule.records import Index, Kernel
from clfuse.schedule.shape.positions import sought

__all__ = ["BLOCK", "SearchedFold"]

BLOCK: Final = 8
"""Vectors of a block. With 4 and 16, rows of 1000 took the same time or up to 10% longer."""

_BETTER: Final = {"argmin": "<", "argmax": ">"}


class SearchedFold(Fold):
    """A fold whose vectors hold values alone; single elements after them are folded as elsewhere.

    ``v`` is the best of a block, ``b`` the best of all blocks, ``w`` the end of the block with it,
    ``u`` the sum of what was compared.
    """

    sources: Sources | None = None
    """What has to be finite, where nothing is summed."""

    def spare_sums(self, phase: Kernel) -> None:
        """Do without sums where no element can be NaN."""
        if self.dtype.kind == "f":
            self.sources = sources_of(phase, self.accumulator.operand)

    @property
    def _sums(self) -> bool:
        return self.dtype.kind == "f" and self.sources is None

    def look_once(self, body: Body, kernel: Kernel, bounds: tuple[str, str]) -> list[str]:
        """Lines for the work-item: whether the vectors that all rows read are finite.

        `body` is one of its own, with groups that no other body has; `bounds` are every row's.
        """
        if self.sources is None:
            return []
        number, width, index = self.number, kernel.width, body.arguments.index_type
        begin, end = bounds
        writer, registers = body.writer(width), dict[int, Register]()
        lines = body.lines(unasked([*self.sources.vectors]), width, registers)
        sums: dict[str, str] = {}
        for load in self.sources.vectors:
            text = registers[load.var].text
            register = registers[load.var]
            kind = writer.type_of(register.dtype, register.lane_nbytes)
            none = sums.setdefault(kind, f"none{len(sums)}")
            lines.append(f"{none} += {text} - {text};")
        tests = " || ".join([f"any({none} != {none})" for none in sums.values()])
        return [
            f"int finite{number} = 1;",
            *(
                [
                    "{",
                    *body.group_lines,
                    *[f"{kind} {none} = ({kind})(0);" for kind, none in sums.items()],
                    f"for ({index} j = {begin}; j + {width} <= {end}; j += {width}) {{",
                    *lines,
                    "}",
                    f"finite{number} = !({tests});",
                    "}",
                ]
                if sums
                else []
            ),
        ]

    def _places(self, kernel: Kernel) -> tuple[str, str]:
        """(scalar type of positions in vectors, its largest value)."""
        wide = kernel.wide_index or self.lane_nbytes == 8
        return ("long", "LONG_MAX") if wide else ("int", "INT_MAX")

    def _better(self, left: str, right: str) -> str:
        return f"({left} {_BETTER[self.accumulator.name]} {right})"

    def start_vectors(
        self, writer: Expressions, kernel: Kernel, begin: str, unroll: int
    ) -> list[str]:
        """Declare all accumulators of a row that begins at index `begin`."""
        number, kind = self.number, self.type_at(writer)
        place, _ = self._places(kernel)
        lines = [f"{kind} b{number} = {self.identity(writer)};"]
        place = vector(place, writer.width)
        end = f"{begin} + {BLOCK * writer.width}"
        lines.append(f"{place} w{number} = ({place})({end});")
        for copy in range(unroll):
            lines.append(f"{kind} v{number}_{copy} = b{number};")
            if self._sums:
                lines.append(f"{kind} u{number}_{copy} = ({kind})(0);")
        return lines

    def fold_next(
        self, writer: Expressions, value: str, position: str, item: str, item_position: str
    ) -> list[str]:
        """As `Fold.fold_next`; a vector's positions are not looked at."""
        if writer.width == 1:
            return super().fold_next(writer, value, position, item, item_position)
        lines = [f"{value} = {self._better(item, value)} ? {item} : {value};"]
        if self._sums:
            lines.append(f"u{value[1:]} += {item};")
        return lines

    def item(self, writer: Expressions, registers: dict[int, Register]) -> tuple[str, str]:
        """As `Fold.item`; vectors have no positions."""
        if writer.width == 1:
            return super().item(writer, registers)
        register = registers[self.accumulator.operand]
        return f"({writer.cast(register, self.dtype, self.lane_nbytes)})", ""

    def end_block(self, writer: Expressions, kernel: Kernel, unroll: int) -> list[str]:
        """Compare the block before ``j`` with those before it, and start anew."""
        number, width = self.number, writer.width
        mask = vector(mask_type(self.lane_nbytes), width)
        scalar, _ = self._places(kernel)
        place = vector(scalar, width)
        take = "take" if scalar == mask_type(self.lane_nbytes) else f"convert_{place}(take)"
        lines = ["{"]
        for copy in range(1, unroll):
            first, other = f"v{number}_0", f"v{number}_{copy}"
            lines.append(f"  {first} = {self._better(other, first)} ? {other} : {first};")
        lines += [
            f"  const {mask} take = {self._better(f'v{number}_0', f'b{number}')};",
            f"  b{number} = take ? v{number}_0 : b{number};",
            f"  w{number} = {take} ? ({place})(j) : w{number};",
            *[f"  v{number}_{copy} = {self.identity(writer)};" for copy in range(unroll)],
            "}",
        ]
        return lines

    def settle(
        self,
        body: Body,
        kernel: Kernel,
        writers: dict[int, Expressions],
        uniform: dict[int, Register],
        bounds: tuple[str, str],
        before: list[str],
    ) -> list[str]:
        """Fold the lanes into ``l``, and find its position ``m``.

        `bounds` are the row's, `before` the lines before its loop that the search needs, too.
        """
        number, width = self.number, kernel.width
        single = writers[1]
        kind = self.type_at(writers[width])
        scalar, none = self._places(kernel)
        lines, best = self._best_of_lanes(writers)
        has = f"b{number} == ({kind})({best})"
        ends = self._where(has, f"w{number}", scalar, none, width)
        block_end, reduced = _least(f"g{number}", scalar, width)
        lines += [
            f"{self.type_at(single)} l{number} = {best};",
            f"long m{number} = LONG_MAX;",
            f"const {vector(scalar, width)} g{number} = {ends};",
            *reduced,
            "{",
            *before,
            *self._search(body, kernel, writers, uniform, bounds, block_end),
            "}",
        ]
        return lines

    def _search(
        self,
        body: Body,
        kernel: Kernel,
        writers: dict[int, Expressions],
        uniform: dict[int, Register],
        bounds: tuple[str, str],
        block_end: str,
    ) -> list[str]:
        """Look through the block for its first element that is the best; through all vectors for
        the first NaN, where one may be."""
        number, width = self.number, kernel.width
        wide, single = writers[width], writers[1]
        begin, end = bounds
        index, kind = body.arguments.index_type, self.type_at(wide)
        scalar, none = self._places(kernel)
        place = vector(scalar, width)
        quiet = replace(kernel, body=unasked(kernel.body), stores=[])
        computed, registers = compute(body, quiet, width, uniform, sought(kernel, kernel))
        item, _ = self.item(wide, registers)
        equal, best, rounds = f"{item} == best", f"l{number}", "int all = 0"
        lines = [f"const {index} end = {begin} + ({end} - {begin}) / {width} * {width};"]
        if self._sums:
            equal = f"(({equal}) | ({item} != {item}))"
            best = f"all ? NAN : l{number}"
            sums = " + ".join([f"u{number}_{copy}" for copy in range(kernel.unroll)])
            lines.append(f"const {kind} sum = {sums};")
            rounds = "int all = any(sum != sum)"
        elif self.sources is not None:
            tests = [f"isfinite({uniform[var].text})" for var in self.sources.numbers]
            rounds = f"int all = !({' && '.join([f'finite{number}', *tests])})"
            equal = f"(({equal}) | ({item} != {item}))"
            best = f"all ? NAN : l{number}"
        lanes = ", ".join([str(lane) for lane in range(width)])
        here = f"({place})(j) + ({place})({lanes})"
        low = f"max({begin}, ({index}){block_end} - {BLOCK * width})"
        nearest, reduced = _least("found", scalar, width)
        position, own = self._position(kernel), dict[int, Register]()
        lines += [
            f"for ({rounds}; all >= 0; all--) {{",
            f"const {kind} best = ({kind})({best});",
            f"{place} found = ({place})({none});",
            f"const {index} stop = all ? end : min(end, ({index}){block_end});",
            f"for ({index} j = all ? {begin} : {low}; j < stop; j += {width}) {{",
            *computed,
            f"found = min(found, {self._where(equal, here, scalar, none, width)});",
            "}",
            *reduced,
            f"if ({nearest} != {none}) {{",
            f"const {index} j = {nearest};",
            *body.lines([position], 1, own),
            f"l{number} = best.s0;",
            f"m{number} = {single.number(own[position.var])};",
            "break;",
            "}",
            "}",
        ]
        return lines

    def _position(self, kernel: Kernel) -> Index:
        """The item that says where an element lies."""
        return next(
            item
            for item in kernel.body
            if isinstance(item, Index) and item.var == self.accumulator.position
        )

    def _where(self, mask: str, chosen: str, scalar: str, none: str, width: int) -> str:
        """`chosen` in the lanes of a mask as wide as values, `none` in others."""
        place = vector(scalar, width)
        if scalar != mask_type(self.lane_nbytes):
            mask = f"convert_{place}({mask})"
        return f"({mask}) ? ({chosen}) : ({place})({none})"

    def _best_of_lanes(self, writers: dict[int, Expressions]) -> tuple[list[str], str]:
        """The best of ``b``, none of whose lanes is NaN, in halves."""
        width = max(writers)
        text, lines = f"b{self.number}", []
        while width > 1:
            width //= 2
            low, high = ("x", "y") if width == 1 else ("lo", "hi")
            left, right = f"{text}.{low}", f"{text}.{high}"
            text = f"h{self.number}_{width}"
            kind = self.type_at(writers[width])
            lines.append(f"const {kind} {text} = {self._better(left, right)} ? {left} : {right};")
        return lines, text


def _least(name: str, scalar: str, width: int) -> tuple[str, list[str]]:
    """The least lane of a vector: its name, and the lines that make it."""
    lines, text = [], name
    while width > 1:
        width //= 2
        low, high = ("x", "y") if width == 1 else ("lo", "hi")
        made = f"{name}_{width}"
        lines.append(f"const {vector(scalar, width)} {made} = min({text}.{low}, {text}.{high});")
        text = made
    return text, lines
