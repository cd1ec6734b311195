"""Nodes become items of one kernel: views turn into accesses, shared values into one register.

A kernel iterates over some extents; a node is read through an `Access` from that iteration into its
C order. Emission walks from what is stored towards memory, once per (node, access).
"""

from __future__ import annotations

import itertools
import math
from typing import Final

from clfuse.ir.layout import contiguous_strides, delinearize, linearize
from clfuse.ir.nodes import Kind, Op, loop
from clfuse.schedule import cost
from clfuse.schedule.graph import Graph
from clfuse.schedule.partition.placement import Placement
from clfuse.schedule.records import Access, Cut, Index, Item, Load, Prefix, Scalar, Step

_NEVER_MINUS_ZERO: Final = frozenset(("square", "absolute", "fabs", "exp", "exp2"))
"""Operations that give 0 or more, or NaN, and never -0."""


class Straddles(Exception):
    """The iteration crosses from one part of a concatenation to the next.

    `dim` is the dimension to cut, `position` the first index of the second half; `node` the
    concatenation, and `dim` is None when no single cut separates its parts.
    """

    def __init__(self, node: int, dim: int | None, position: int) -> None:
        super().__init__(node, dim, position)
        self.node = node
        self.dim = dim
        self.position = position


class Refines(Exception):
    """The iteration must also have the axes of `shape` (as many elements) as dimensions.

    `node` is the reshape that asks for it.
    """

    def __init__(self, node: int, shape: tuple[int, ...]) -> None:
        super().__init__(node, shape)
        self.node = node
        self.shape = shape


class ValueTable:
    """Value numbers of everything that lies in memory, filled while kernels are emitted.

    `cuts` say why there are values that are no node's result.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.cuts: list[Cut] = []
        self.of_node: dict[int, int] = {}
        self.nbytes: list[int] = []
        self.node: list[int | None] = []
        self.buffer: list[int | None] = []
        self._of_buffer: dict[int, int] = {}

    def new(self, nbytes: int, node: int | None = None, buffer: int | None = None) -> int:
        """A new value number."""
        self.nbytes.append(nbytes)
        self.node.append(node)
        self.buffer.append(buffer)
        return len(self.nbytes) - 1

    def temporary(self, nbytes: int, what: str, reason: str) -> int:
        """A new value that one kernel leaves to another."""
        self.cuts.append(Cut(what, reason, nbytes))
        return self.new(nbytes)

    def leaf(self, node: int) -> int:
        """The value of a leaf; leaves in one buffer share it."""
        value = self.of_node.get(node)
        if value is None:
            buffer = self.graph.buffer[node]
            assert buffer is not None
            value = self._of_buffer.get(buffer)
            if value is None:
                value = self.new(self.graph.nbytes(node), None, buffer)
                self._of_buffer[buffer] = value
            self.of_node[node] = value
        return value

    def of(self, node: int) -> int:
        """The value that a node in memory lies in."""
        if self.graph.kinds[node] is Kind.LEAF:
            return self.leaf(node)
        return self.of_node[node]


class Registers:
    """Register numbers, shared by a kernel's loop and its epilogue."""

    def __init__(self) -> None:
        self.count = 0

    def new(self) -> int:
        """The next register."""
        self.count += 1
        return self.count - 1


class Emitter:
    """Emits the items that compute nodes over `extents`, in a kernel of level `level`.

    `folded` maps reduction nodes to the register that holds their result (in an epilogue).
    """

    def __init__(
        self,
        placement: Placement,
        values: ValueTable,
        level: int,
        extents: tuple[int, ...],
        registers: Registers,
        folded: dict[int, int] | None = None,
    ) -> None:
        self.placement = placement
        self.graph = placement.graph
        self.values = values
        self.level = level
        self.extents = extents
        self.registers = registers
        self.folded = folded if folded is not None else {}
        self.scanned: Access | None = None
        """Where scans may be read: element by element, as this kernel runs over them."""
        self.items: list[Item] = []
        self.variables: dict[tuple[int, Access | None], int] = {}
        self._reshape = -1
        self._zero = Access(0, (0,) * len(extents))

    def in_memory(self, node: int) -> bool:
        """Whether this kernel loads `node` instead of computing it."""
        placement = self.placement
        return self.graph.kinds[node] is Kind.LEAF or (
            placement.stored[node] and placement.level[node] < self.level
        )

    def emit(self, root: int, access: Access) -> int:
        """The register that holds `root` at `access`; emits whatever it still lacks."""
        variables = self.variables
        wanted = self._key(root, access)
        stack = [wanted]
        operands_of: dict[tuple[int, Access | None], list[tuple[int, Access | None]]] = {}
        while stack:
            key = stack[-1]
            if key in variables:
                stack.pop()
                continue
            operands = operands_of.pop(key, None)
            if operands is None:
                operands = self._operands(*key)
                found = [variables.get(operand) for operand in operands]
                if None in found:
                    operands_of[key] = operands
                    waiting = zip(operands, found, strict=True)
                    stack += [operand for operand, var in waiting if var is None][::-1]
                    continue
            else:
                found = [variables[operand] for operand in operands]
            stack.pop()
            variables[key] = self._item(*key, found)  # type: ignore[arg-type]
        return variables[wanted]

    def forget_constants(self) -> None:
        """Let what is emitted next have constants of its own: where two results happen to be
        divided by the same number, their kernel is no other than where they are not."""
        kinds = self.graph.kinds
        for key in [key for key in self.variables if kinds[key[0]] is Kind.CONSTANT]:
            del self.variables[key]

    def _key(self, node: int, access: Access | None) -> tuple[int, Access | None]:
        if self.graph.kinds[node] is Kind.CONSTANT:
            return node, None
        if self.graph.sizes[node] == 1:
            return node, self._zero
        return node, access

    def _operands(self, node: int, access: Access | None) -> list[tuple[int, Access | None]]:
        if access is None or node in self.folded or self.in_memory(node):
            return []
        kind = self.graph.kinds[node]
        if kind is Kind.MAP:
            return [
                self._key(operand, self._broadcast(node, operand, access))
                for operand in self.graph.inputs[node]
            ]
        if kind is Kind.VIEW:
            (operand,) = self.graph.inputs[node]
            written = self.placement.forwarded.get(node)
            if written is not None and not self.in_memory(operand):
                return [self._key(written, access)]
            return [self._key(operand, self._through_view(node, operand, access))]
        if kind is Kind.CONCATENATE:
            return [self._part(node, access)]
        if kind is Kind.UPDATE and node in self.placement.boxed:
            return [self._old_or_written(node, access)]
        if node in self.placement.unrolled:
            return self._folded_elements(node, access)
        if kind is Kind.GATHER:
            position = self.graph.inputs[node][1]
            return [self._key(position, self._broadcast(node, position, access))]
        if kind is Kind.SCAN and access == self.scanned:
            return [self._key(self.graph.inputs[node][0], access)]
        return []

    def _folded_elements(self, node: int, access: Access) -> list[tuple[int, Access | None]]:
        """The elements that a short fold combines, in C order of the folded axes."""
        (operand,) = self.graph.inputs[node]
        shape = self.graph.shapes[operand]
        kept = iter(self._axes(node, access))
        still = (0,) * len(self.extents)
        folded = self.graph.params[node]
        axes = [(0, still) if axis in folded else next(kept) for axis in range(len(shape))]
        found = []
        for place in itertools.product(*[range(shape[axis]) for axis in folded]):
            for axis, index in zip(folded, place, strict=True):
                axes[axis] = (index, still)
            found.append(self._key(operand, Access(*linearize(shape, axes, len(self.extents)))))
        return found

    def _part(self, node: int, access: Access) -> tuple[int, Access | None]:
        """The one operand of a concatenation that this iteration reads, and where."""
        axis = self.graph.params[node]
        axes = list(self._axes(node, access))
        start, coefficients = axes[axis]
        moving = [dim for dim, c in enumerate(coefficients) if c and self.extents[dim] > 1]
        first = 0
        for operand in self.graph.inputs[node]:
            end = first + self.graph.shapes[operand][axis]
            if start < end:
                break
            first = end
        if len(moving) > 1:
            raise Straddles(node, None, 0)
        if moving:
            (dim,) = moving
            step = coefficients[dim]
            last = start + step * (self.extents[dim] - 1)
            if last >= end:
                raise Straddles(node, dim, -((start - end) // step))
            if last < first:
                raise Straddles(node, dim, (start - first) // -step + 1)
        axes[axis] = (start - first, coefficients)
        shape = self.graph.shapes[operand]
        return self._key(operand, Access(*linearize(shape, axes, len(self.extents))))

    def _old_or_written(self, node: int, access: Access) -> tuple[int, Access | None]:
        """What this iteration reads of an array that was written to: what was there, or what was
        written to a box of it, and where."""
        old, value = self.graph.inputs[node]
        shape = self.graph.shapes[value]
        box = self.placement.boxed[node]
        still = (0,) * len(self.extents)
        taken: list[tuple[int, tuple[int, ...]]] = [(0, still)] * len(shape)
        straddles: Straddles | None = None
        for (start, coefficients), (first, end, axis, sign) in zip(
            self._axes(node, access), box, strict=True
        ):
            reached = [
                c * (extent - 1) for c, extent in zip(coefficients, self.extents, strict=True)
            ]
            low = start + sum([reach for reach in reached if reach < 0])
            high = start + sum([reach for reach in reached if reach > 0])
            if high < first or low >= end:
                return self._key(old, access)
            if low < first or high >= end:
                moving = [dim for dim, reach in enumerate(reached) if reach]
                if len(moving) > 1:
                    straddles = Straddles(node, None, 0)
                elif straddles is None:
                    (dim,) = moving
                    position = _crossing(start, coefficients[dim], first, end)
                    straddles = Straddles(node, dim, position)
            elif axis is not None:
                base = first if sign > 0 else end - 1
                taken[axis] = (sign * (start - base), tuple([sign * c for c in coefficients]))
        if straddles is not None:
            raise straddles
        return self._key(value, Access(*linearize(shape, taken, len(self.extents))))

    def _broadcast(self, node: int, operand: int, access: Access) -> Access:
        shape, wanted = self.graph.shapes[node], self.graph.shapes[operand]
        if shape == wanted:
            return access
        if self.graph.sizes[operand] == 1:
            return self._zero
        axes = self._axes(node, access)
        return Access(*linearize(wanted, axes[len(axes) - len(wanted) :], len(self.extents)))

    def _through_view(self, node: int, operand: int, access: Access) -> Access:
        offset, strides = self.graph.params[node]
        if self.graph.sizes[operand] == 1:
            return self._zero
        shape = self.graph.shapes[node]
        if strides == contiguous_strides(shape):
            if node in self.placement.refining:
                self._reshape = node
            return Access(access.offset + offset, access.strides)
        return self._composed(node, access)

    def _composed(self, node: int, access: Access) -> Access:
        """`access` to a node whose parameter is an affine map, followed by that map."""
        offset, strides = self.graph.params[node]
        if not any(strides):
            return Access(offset, self._zero.strides)
        axes = self._axes(node, access)
        total = [0] * len(self.extents)
        for (start, coefficients), stride in zip(axes, strides, strict=True):
            offset += start * stride
            for dim, coefficient in enumerate(coefficients):
                total[dim] += coefficient * stride
        return Access(offset, tuple(total))

    def _axes(self, node: int, access: Access) -> tuple[tuple[int, tuple[int, ...]], ...]:
        shape = self.graph.shapes[node]
        axes = delinearize(shape, self.extents, access.offset, access.strides)
        whole = access == Access(0, contiguous_strides(self.extents))
        if axes is None and self._reshape >= 0:
            if whole and math.prod(self.extents) == self.graph.sizes[node]:
                raise Refines(self._reshape, shape)
            raise Straddles(self._reshape, None, 0)
        if axes is None:
            raise AssertionError(
                f"planner error: {self.graph.label(node)} cannot be read at {access} over "
                f"{self.extents}; it should have been stored"
            )
        return axes

    def _item(self, node: int, access: Access | None, operands: list[int]) -> int:
        graph = self.graph
        if node in self.folded:
            return self.folded[node]
        kind = graph.kinds[node]
        if access is None:
            var = self.registers.new()
            constant = graph.constant[node]
            assert constant is not None
            self.items.append(Scalar(var, constant, graph.dtypes[node]))
            return var
        if self.in_memory(node):
            var = self.registers.new()
            self.items.append(Load(var, self.values.of(node), graph.dtypes[node], access))
            return var
        if operands and (kind is Kind.VIEW or kind is Kind.CONCATENATE or kind is Kind.UPDATE):
            return operands[0]
        if node in self.placement.unrolled:
            return self._fold(node, operands)
        var = self.registers.new()
        if kind is Kind.IOTA:
            self.items.append(Index(var, access))
        elif kind is Kind.MAP:
            op = graph.ops[node]
            assert op is not None
            dtypes = tuple([graph.dtypes[operand] for operand in graph.inputs[node]])
            self.items.append(Step(var, op, tuple(operands), dtypes, graph.dtypes[node]))
        elif kind is Kind.GATHER:
            source = graph.inputs[node][0]
            if not self.in_memory(source):
                raise AssertionError(f"planner error: {graph.label(source)} is not in memory")
            self.items.append(
                Load(
                    var, self.values.of(source), graph.dtypes[node], self._composed(node, access),
                    operands[0],
                )
            )
        elif kind is Kind.SCAN and operands:
            op = graph.ops[node]
            assert op is not None
            self.items.append(Prefix(var, op.name, operands[0], graph.dtypes[node]))
        else:
            raise AssertionError(
                f"planner error: {graph.label(node)} (level {self.placement.level[node]}) is read "
                f"by a kernel of level {self.level} but is not in memory"
            )
        return var

    def _fold(self, node: int, operands: list[int]) -> int:
        """Steps that combine the elements of a short fold, in NumPy's order.

        That is from first to last, but in pairs for the eight floats that NumPy's sums along the
        last axis take at a time; and for more, which are no less accurate then than NumPy's.
        """
        graph = self.graph
        (operand,) = graph.inputs[node]
        op = graph.ops[node]
        assert op is not None
        dtype = op.input_dtypes[0]
        step = loop(op.name, (dtype, dtype), dtype)
        may_be_minus_zero = not self._is_never_minus_zero(operand)
        last = graph.params[node][-1] == len(graph.shapes[operand]) - 1
        in_pairs = len(operands) > cost.MAX_UNROLLED or (last and len(operands) == 8)
        if op.name == "add" and dtype.kind == "f" and in_pairs:
            while len(operands) > 1:
                odd = operands[len(operands) & ~1 :]
                pairs = zip(operands[::2], operands[1::2], strict=False)
                operands = [self._step(step, left, right) for left, right in pairs] + odd
        total = operands[0]
        for operand in operands[1:]:
            total = self._step(step, total, operand)
        if op.name == "add" and dtype.kind == "f" and may_be_minus_zero:
            var = self.registers.new()
            from_zero = loop("from_zero", (dtype,), dtype)
            self.items.append(Step(var, from_zero, (total,), (dtype,), dtype))
            return var
        return total

    def _is_never_minus_zero(self, node: int) -> bool:
        """Whether no element is -0: then no sum with one is, and none need start at 0."""
        op = self.graph.ops[node]
        is_map = self.graph.kinds[node] is Kind.MAP
        return is_map and op is not None and op.name in _NEVER_MINUS_ZERO

    def _step(self, step: Op, left: int, right: int) -> int:
        var = self.registers.new()
        assert step.dtype is not None
        self.items.append(Step(var, step, (left, right), step.input_dtypes, step.dtype))
        return var


def _crossing(start: int, step: int, first: int, end: int) -> int:
    """The iteration at which ``start + step * i`` comes into ``[first, end)``, or leaves it."""
    if step > 0:
        bound = first if start < first else end
        return -((start - bound) // step)
    bound = end if start >= end else first
    return (start - bound) // -step + 1


def identity(shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> Access:
    """The access of an iteration over `shape` (its axes taken in `order`) to the C order of it."""
    strides = contiguous_strides(shape)
    if order is not None:
        strides = tuple([strides[axis] for axis in order])
    return Access(0, strides)
