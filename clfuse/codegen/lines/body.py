"""A loop body as lines of OpenCL C: loads, steps, folds and stores at one vector width.

    const float8 r0 = vload8(0, a0 + x0 + j);          Load, contiguous along the lanes
    const float8 r1 = (float8)(c1);                    a value that does not change along the lanes
    const int8 r2 = (r0 < r1);                         Step, a mask
    const float8 r3 = (float8)(a1[x1 + r4.s0], ...);   Load of a gather, lane by lane
    vstore8((r2 ? r0 : r1), 0, a1 + x0 + j);           Store

What is the same for all lanes (scalars, loads with stride 0, steps of such) is computed once before
the loop, in registers ``c``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from clfuse.codegen.arguments import Arguments
from clfuse.dtypes import mask_type, memory_type
from clfuse.schedule.finish.prefetching import position_chain
from clfuse.schedule.records import (
    Access,
    Carried,
    Held,
    Index,
    Item,
    Kernel,
    Load,
    Prefix,
    Scalar,
    Step,
    Store,
)
from clfuse.schedule.rounds import LEAST, Rounds, Stretch, find, numbers_of, outer_uses
from clfuse.schedule.shape.map_ranges import lies_on_vectors
from clfuse.target.traits import DeviceTraits

from .addresses import Addresses
from .components import LANES, components, turned
from .expressions import Expressions, Preamble, Register, lanes_like, vector
from .names import AHEAD, EPILOGUE, LOOP, ROUNDS, UNIFORM
from .rounds import loop_lines
from .short_rows import filled_rows, interleaved

_LIMITING: Final = frozenset(("clip",))
"""Operations of positions that asking leaves out: it may ask for what does not exist."""


class Body(Addresses):
    """Writes the lines of one kernel; keeps its arguments and preamble."""

    def __init__(
        self,
        kernel: Kernel,
        traits: DeviceTraits,
        arguments: Arguments,
        preamble: Preamble,
        group_numbers: Iterator[int] | None = None,
    ) -> None:
        super().__init__(kernel, arguments, group_numbers)
        self.traits = traits
        self.preamble = preamble
        self.steps_by_vectors = False
        """Whether that index is a multiple of the width wherever vectors are written."""
        self.carried: dict[int, Register] = {}
        """Registers of earlier phases, at the width and for the element that is being written."""
        self.turned: dict[int, str] = {}
        """Vectors of loads that were made before, by register."""
        self.spilled: dict[tuple[int, Access], str] = {}
        """Where turned stores leave an element, by value and access."""
        self.streams: bool | None = None
        """Whether streamed stores go past the caches, where that is known; None has each ask."""
        self.scan: Callable[..., tuple[list[str], Register]] | None = None
        """Writes a `Prefix`: (item, writer, registers, name) -> its lines and its register."""
        self._stretches: dict[tuple[int, ...], list[Stretch]] = {}
        """The loops in lists of items, by the registers of these."""

    def beside(self, kernel: Kernel) -> Body:
        """The body of another part of the launch: same arguments, preamble and numbers."""
        made = Body(kernel, self.traits, self.arguments, self.preamble, self.group_numbers)
        made.steps_by_vectors = self.steps_by_vectors
        return made

    def in_boxes(self, sister: Kernel) -> Body:
        """The body of a sister, which runs in its boxes as this one does elsewhere, run by run
        between the same seams."""
        made = self.beside(
            replace(
                self.kernel, body=sister.body, stores=sister.stores,
                accumulators=sister.accumulators, where=sister.where, then=[],
            )
        )
        made.seams = self.seams
        return made

    def writer(self, width: int) -> Expressions:
        """Expressions of `width` for this kernel."""
        return Expressions(width, self.traits, self.preamble)

    def split(self, items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
        """(items that are the same for all lanes, the others), each in order."""
        same: set[int] = set()
        before: list[Item] = []
        inside: list[Item] = []
        for item in items:
            if isinstance(item, Scalar):
                uniform = True
            elif isinstance(item, Carried):
                uniform = self.vector >= len(self.kernel.extents) - self.kernel.reduced
            elif isinstance(item, Load | Index):
                uniform = self.lane_stride(item.access) == 0
                if isinstance(item, Load) and item.position is not None:
                    uniform = uniform and item.position in same
                if isinstance(item, Load) and item.other is not None:
                    uniform = uniform and item.other in same
            else:
                uniform = not isinstance(item, Prefix | Held) and same.issuperset(item.operands)
            if uniform:
                same.add(item.var)
            (before if uniform else inside).append(item)
        return before, inside

    def lines(
        self,
        items: Sequence[Item],
        width: int,
        registers: dict[int, Register],
        prefix: str = LOOP,
    ) -> list[str]:
        """Statements that compute `items`; adds them to `registers`.

        Steps that repeat become a loop.
        """
        out: list[str] = []
        at = 0
        for first, end, rounds in self.stretches(items):
            out += self._lines(items[at:first], width, registers, prefix)
            out += self.loop(rounds, items[first:end], width, [(prefix, registers)])
            at = end
        return out + self._lines(items[at:], width, registers, prefix)

    def stretches(self, items: Sequence[Item]) -> list[Stretch]:
        """The loops in the items: which of them are rounds of equal steps."""
        if len(items) < LEAST:
            return []
        key = tuple([item.var for item in items])
        if key not in self._stretches:
            uses, numbers = outer_uses(self.kernel, items), numbers_of(self.kernel, self.traits)
            self._stretches[key] = find(items, uses, numbers)
        return self._stretches[key]

    def loop(
        self,
        rounds: Rounds,
        items: Sequence[Item],
        width: int,
        copies: Sequence[tuple[str, dict[int, Register]]],
    ) -> list[str]:
        """Statements for rounds of steps, whose items these are, for each (prefix, registers)."""
        bound = self.arguments.seam(ROUNDS, (items[0].var,), rounds.count)
        named = [(prefix, own, prefix == UNIFORM) for prefix, own in copies]
        lines = loop_lines(rounds, self.writer(width), bound, self.arguments.index_type, named)
        if lines is not None:
            return lines
        return [line for prefix, own in copies for line in self._lines(items, width, own, prefix)]

    def _lines(
        self, items: Sequence[Item], width: int, registers: dict[int, Register], prefix: str
    ) -> list[str]:
        writer = self.writer(width)
        out: list[str] = []
        together = interleaved(items, self.vector) if width > 1 else {}
        together = {var: row for var, row in together.items() if self._is_own_row(row)}
        apart = dict(self.turned)
        for item in items:
            name = f"{prefix}{item.var}"
            if item.var in together:
                out += self._rows_of(together[item.var], name, width)
            if isinstance(item, Prefix):
                assert self.scan is not None
                scanned, registers[item.var] = self.scan(item, writer, registers, name)
                out += scanned
                continue
            if isinstance(item, Load):
                position = None if item.position is None else registers[item.position]
                if item.ahead is not None and width > 1:
                    if item.position is None:
                        out.append(self._ask(item, *item.ahead))
                    elif position is not None and not position.uniform:
                        out += self._ask_for_gathered(item, *item.ahead, width, registers)
                text, register = self._load(item, width, name, position)
                if item.access.within:
                    other = self._other(item, writer, register, registers)
                    text = f"{self.limit(item.access)} ? {text} : {other}"
            elif isinstance(item, Index):
                text, register = self._index(item, width, name)
            elif isinstance(item, Scalar):
                var = item.var if prefix == EPILOGUE else -1
                text = self.arguments.constant(item.constant, item.dtype, var)
                register = Register(name, item.dtype)
                # Where a number becomes a vector, C gives each part of a complex number all of it,
                # and a mask's lanes 1 in place of -1.
                text = writer.cast(Register(text, item.dtype, uniform=True), item.dtype)
            elif isinstance(item, Carried | Held):
                text, register = self._carry(item, writer, name)
            else:
                operands = [registers[operand] for operand in item.operands]
                text, register = writer.step(item.op, operands, name)
            if prefix == UNIFORM:
                register = Register(register.text, register.dtype, register.lane_nbytes, True)
            kind = writer.type_of(register.dtype, register.lane_nbytes)
            out.append(f"const {kind} {name} = {text};")
            registers[item.var] = register
        self.turned = apart
        return out

    def _is_own_row(self, loads: Sequence[Load]) -> bool:
        """Whether only the work-item that loads this row writes to it: also not to elements that it
        does not use, which might be written to while they are loaded."""
        first = loads[0].access
        return all(
            store.access.strides == first.strides
            and 0 <= store.access.offset - first.offset < first.strides[self.vector]
            for body in self.kernel.phases
            for store in body.stores
            if self.arguments.shares(store.value, loads[0].value)
        )

    def _rows_of(self, loads: Sequence[Load], name: str, width: int) -> list[str]:
        """Statements that load all that lies between the loads of a row, row after row; each of
        these loads is chosen from there."""
        first = loads[0]
        writer, stride = self.writer(width), self.lane_stride(first.access)
        start = f"{self.pointer(first.value, first.dtype)} + {self.place(first.access)}"
        kind, aligned = writer.in_memory(first.dtype), self._lies_on_vectors(first, width)
        lines = [
            f"const {kind} {name}_{number} = "
            f"{writer.loaded(first.dtype, f'{start} + {number * width}', aligned=aligned)};"
            for number in range(stride)
        ]
        for load in loads:
            ahead = load.access.offset - first.access.offset
            places = [divmod(lane * stride + ahead, width) for lane in range(width)]
            chosen = [f"{name}_{number}.s{LANES[lane]}" for number, lane in places]
            self.turned[load.var] = f"({kind})({', '.join(chosen)})"
        return lines

    def _carry(self, item: Carried | Held, writer: Expressions, name: str) -> tuple[str, Register]:
        """What an earlier phase has made, rounded as if it had been stored."""
        register = self.carried[item.source]
        text = writer.cast(register, item.dtype, register.lane_nbytes)
        if item.dtype.char == "e":
            text = writer.half(text)
        return text, Register(name, item.dtype, register.lane_nbytes)

    def _load(
        self, item: Load, width: int, name: str, position: Register | None
    ) -> tuple[str, Register]:
        pointer = self.pointer(item.value, item.dtype)
        if position is not None and width > 1 and not position.uniform:
            text = self._gathered(pointer, item, width, position)
        else:
            if position is not None:  # the same for all lanes
                pointer = f"({pointer} + {self.position(position)})"
            text = self.turned.get(item.var) or self._loaded(pointer, item, width)
        if item.dtype.kind == "b":
            zero = vector("uchar", width)
            return f"({text} != ({zero})(0))", Register(name, item.dtype, 1)
        if item.dtype.char == "e":
            text = self.writer(width).from_half(text)
        return text, Register(name, item.dtype)

    def position(self, register: Register) -> str:
        """A computed position that is the same for all lanes, to be added to an address."""
        if self.traits.narrow_positions and self.arguments.index_type == "int":
            return f"(int)({register.text})"
        return register.text

    def _ask(self, item: Load, dim: int, count: int) -> str:
        """A statement that asks for what the loop will load `count` indices of `dim` later."""
        self.preamble.libraries["prefetch.cl"] = None
        pointer = self.arguments.buffer(item.value, item.dtype)
        stride = item.access.strides[dim]
        if dim == self.vector:
            step = str(count * stride)
        else:
            number = self.group(item.access)[1:]
            step = f"{count} * {self.arguments.integer(f's{number}_{dim}', stride)}"
        ask = "PREFETCH_ONCE" if item.past else "PREFETCH"
        return f"{ask}({pointer} + {self.place(item.access)} + {step});"

    def _ask_for_gathered(
        self, item: Load, dim: int, count: int, width: int, registers: dict[int, Register]
    ) -> list[str]:
        """Statements that ask for what the loop will gather `count` indices of `dim` later, or at
        the end of the dimension."""
        assert item.position is not None
        self.preamble.libraries["prefetch.cl"] = None
        same, inside = self.split(self.kernel.body)
        chain = position_chain(inside, item.position, {item.var for item in same})
        assert chain is not None
        last = f"{self.arguments.integer(f'n{dim}', self.kernel.extents[dim])} - {width}"
        index, self.index = self.index, AHEAD
        try:
            known = {one.var: registers[one.var] for one in same if one.var in registers}
            lines = []
            for one in chain:
                if isinstance(one, Step) and one.op.name in _LIMITING:
                    known[one.var] = known[one.operands[0]]
                else:
                    lines += self.lines([one], width, known, AHEAD)
            position = known[item.position]
            pointer = self.arguments.buffer(item.value, item.dtype)
            places = [
                f"{pointer} + {self.place(item.access, lane)} + {position.text}.s{LANES[lane]}"
                for lane in range(width)
            ]
        finally:
            self.index = index
        return [
            f"{{ const {self.arguments.index_type} {AHEAD} = min({index} + {count}, {last});",
            *[f"  {line}" for line in lines],
            *[f"  PREFETCH({place});" for place in places],
            "}",
        ]

    def _other(
        self, item: Load, writer: Expressions, register: Register, registers: dict[int, Register]
    ) -> str:
        """What stands in for a limited load, as text of its register's type."""
        if item.other is None:
            return f"({writer.type_of(register.dtype, register.lane_nbytes)})(0)"
        return writer.cast(registers[item.other], register.dtype, register.lane_nbytes)

    def pointer(self, value: int, dtype: np.dtype) -> str:
        """The name of the memory that `value` is loaded from."""
        return self.arguments.buffer(value, dtype)

    def _gathered(self, pointer: str, item: Load, width: int, position: Register) -> str:
        kind = self.writer(width).in_memory(item.dtype)
        lanes = [
            f"{pointer}[{self.place(item.access, lane)} + {position.text}.s{LANES[lane]}]"
            for lane in range(width)
        ]
        return f"({kind})({', '.join(lanes)})"

    def _loaded(self, pointer: str, item: Load, width: int) -> str:
        place = self.place(item.access)
        if width == 1:
            return f"{pointer}[{place}]"
        stride = self.lane_stride(item.access)
        writer = self.writer(width)
        if stride == 1:
            # In whole vectors sums of products took 0.96 times as long as in parts, sums and
            # variances of one array and greatest differences as long (PoCL, 512 bit, EPYC); other
            # loops over two such streams were seen to take 1.05 times as long.
            does = self.kernel.kind
            whole = does.elementwise or does.folds or not all(item.access.strides)
            aligned = self._lies_on_vectors(item, width)
            start = f"{pointer} + {place}"
            return writer.loaded(item.dtype, start, whole=whole, aligned=aligned)
        if stride == -1:
            start = f"{pointer} + {place} - {width - 1}"
            aligned = self._lies_on_vectors(item, width)
            loaded = writer.loaded(item.dtype, start, aligned=aligned)
            return f"{loaded}.s{turned(item.dtype, width)}"
        kind = writer.in_memory(item.dtype)
        lanes = [f"{pointer}[{self.place(item.access, lane)}]" for lane in range(width)]
        return f"({kind})({', '.join(lanes)})"

    def _index(self, item: Index, width: int, name: str) -> tuple[str, Register]:
        dtype = np.dtype(np.int64)
        place = self.place(item.access)
        if width == 1:
            return f"(long)({place})", Register(name, dtype)
        lanes = ", ".join(map(str, range(width)))
        stride = self.lane_stride(item.access)
        if stride == 0:
            return f"(long{width})((long)({place}))", Register(name, dtype)
        ramp = f"(long{width})({lanes})"
        if stride == -1:
            ramp = f"-{ramp}"
        elif stride != 1:
            ramp = f"{ramp} * (long)({self._stride_name(item.access)})"
        return f"(long{width})((long)({place})) + {ramp}", Register(name, dtype)

    def stores(
        self, stores: Sequence[Store], width: int, registers: Mapping[int, Register]
    ) -> list[str]:
        """Statements that write registers to memory; rows of which all is written, as a whole."""
        filled = filled_rows(stores, self.vector) if width > 1 else []
        lines = []
        for row in filled:
            lines += self._store_rows(row, width, registers)
        for store in stores:
            if not any(store is one for row in filled for one in row):
                lines += self.store(store, width, registers[store.var])
        return lines

    def _store_rows(
        self, stores: Sequence[Store], width: int, registers: Mapping[int, Register]
    ) -> list[str]:
        first, stride = stores[0], len(stores)
        writer = self.writer(width)
        kind = writer.in_memory(first.dtype)
        pointer = self.arguments.buffer(first.value, first.dtype, written=True)
        place, aligned = self.place(first.access), self._lies_on_vectors(first, width)
        lines = ["{"]
        for number, store in enumerate(stores):
            text = self.memory_text(writer, registers[store.var], store.dtype)
            lines.append(f"  const {kind} w{number} = {text};")
        for number in range(stride):
            elements = [divmod(number * width + lane, stride) for lane in range(width)]
            chosen = ", ".join([f"w{column}.s{LANES[row]}" for row, column in elements])
            there = f"{pointer} + {place} + {number * width}"
            plain = writer.stored(first.dtype, f"({kind})({chosen})", there, aligned=aligned)
            if self._goes_past(first):
                self.preamble.libraries["stream.cl"] = None
                lines.append(f"  if (IS_ALIGNED({kind}, {there}))")
                lines.append(f"    STREAM({kind}, (({kind})({chosen})), {there});")
                lines.append(f"  else {plain}")
            else:
                lines.append(f"  {plain}")
        return [*lines, "}"]

    def store(self, store: Store, width: int, register: Register) -> list[str]:
        """Statements that write a register to memory."""
        pointer = self.arguments.buffer(store.value, store.dtype, written=True)
        writer = self.writer(width)
        text = self.memory_text(writer, register, store.dtype)
        place = self.place(store.access)
        if store.turned:
            return [f"{self.spilled[store.value, store.access]} = {text};"]
        if width == 1:
            return [f"{pointer}[{place}] = {text};"]
        stride = self.lane_stride(store.access)
        kind = writer.in_memory(store.dtype)
        if stride == 1:
            aligned = self._lies_on_vectors(store, width)
            plain = writer.stored(store.dtype, text, f"{pointer} + {place}", aligned=aligned)
            if self.streams is False or not self.is_streamed(store):
                return [plain]
            self.preamble.libraries["stream.cl"] = None
            streamed = f"STREAM({kind}, {text}, {pointer} + {place});"
            if self.streams:
                return [streamed]
            test = f"IS_ALIGNED({kind}, {pointer} + {place})"
            return [f"if ({test}) {streamed}", f"else {plain}"]
        if stride == -1:
            order = turned(store.dtype, width)
            start = f"{pointer} + {place} - {width - 1}"
            aligned = self._lies_on_vectors(store, width)
            stored = writer.stored(store.dtype, f"w.s{order}", start, aligned=aligned)
            return [f"{{ const {kind} w = {text}; {stored} }}"]
        lines = [f"{{ const {kind} w = {text};"]
        for lane in range(width):
            where = self.place(store.access, lane)
            lines.append(f"  {pointer}[{where}] = w.s{components(store.dtype, lane)};")
        lines.append("}")
        return lines

    def _lies_on_vectors(self, touched: Load | Store, width: int) -> bool:
        """Whether all vectors of a load or store are known to lie at multiples of their size."""
        nbytes = width * touched.dtype.itemsize
        if not self.steps_by_vectors or self.traits.buffer_alignment % nbytes:
            return False
        if isinstance(touched, Load) and touched.position is not None:
            return False
        return lies_on_vectors(self.kernel, touched.access, width)

    def is_streamed(self, store: Store) -> bool:
        """Whether vectors of this store go past the caches: not where its memory is read, too."""
        return self.lane_stride(store.access) == 1 and self._goes_past(store)

    def _goes_past(self, store: Store) -> bool:
        return self.kernel.streams and not any(
            isinstance(item, Load) and self.arguments.shares(item.value, store.value)
            for item in self.kernel.body
        )

    def is_aligned(self, store: Store) -> bool:
        """Whether every vector of this store begins at a multiple of its size, if its buffer does.

        Memory that a program shares with us may not.
        """
        return (
            len(self.kernel.extents) == 1
            and store.access.offset == 0
            and not self.kernel.boxed
            and not self.seams
        )

    def first_aligned(self) -> str:
        """Elements before the first streamed store is aligned; empty if they all are."""
        for store in self.kernel.stores:
            if self.kernel.width > 1 and self.is_streamed(store) and not self.is_aligned(store):
                kind = memory_type(store.dtype)
                pointer = self.arguments.buffer(store.value, store.dtype, written=True)
                wide = self.writer(self.kernel.width).in_memory(store.dtype)
                return f"UNALIGNED({kind}, {wide}, {pointer} + {self.place(store.access)})"
        return ""

    def are_aligned(self) -> str:
        """A test whether all streamed stores are aligned, where rows are if their array is; empty
        if there are none."""
        tests = []
        for store in self.kernel.stores:
            if self.kernel.width > 1 and self.is_streamed(store):
                self.preamble.libraries["stream.cl"] = None
                kind = self.writer(self.kernel.width).in_memory(store.dtype)
                pointer = self.arguments.buffer(store.value, store.dtype, written=True)
                tests.append(f"IS_ALIGNED({kind}, {pointer})")
        return " && ".join(tests)

    def memory_text(self, writer: Expressions, register: Register, dtype: np.dtype) -> str:
        """A register converted to what `dtype` looks like in memory."""
        if dtype.char == "e":
            # A fold's result has more digits than a half; everything else is rounded already.
            return writer.to_half(writer.half(writer.cast(register, dtype)))
        if dtype.kind != "b":
            return writer.cast(register, dtype)
        lanes = register.lane_nbytes
        if register.dtype.kind != "b":
            lanes = lanes_like(register.dtype)
        mask = writer.cast(register, dtype, lanes)
        if writer.width == 1:
            return f"(uchar)(({mask}) != 0)"
        kind = vector(mask_type(lanes), writer.width)
        return f"convert_uchar{writer.width}(({mask}) & ({kind})(1))"
