"""The cells of a kernel, each the body for some boxes of its range, and how another's are joined.

    b[:] = a + 1                            whole range         load a, add, store b
    c[1:-1] += b[1:-1]                      [1, n - 1)          the same, load, add, store c
                                            [0, 1) [n - 1, n)   load a, add, store b

Each such list is the body of a cell: some boxes in which the same happens. A kernel that joins
splits the cells at the ends of its own box. What it reads of what others have stored it finds in
their registers; where they store nothing, in the array as it was before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Final

from clfuse.ir.nodes import Kind
from clfuse.schedule.dataflow import (
    fold_of_registers,
    needed_items,
    of_registers,
    prefixes,
    renumber_registers,
)
from clfuse.schedule.kinds import is_sequential
from clfuse.schedule.lower.breakpoints import Box
from clfuse.schedule.lower.iterations import outside
from clfuse.schedule.lower.lowering import Lowering
from clfuse.schedule.records import Access, Item, Kernel, Load, Step, Store
from clfuse.schedule.shape.geometry import permute_map

from .boxes import (
    MAX_BOXES,
    MAX_CELLS,
    Apart,
    Cell,
    cells_of,
    decompose_offset,
    hull,
    is_one_to_one,
    move_box,
    overlaps,
    remainder,
    shift_box,
)

MAX_ITEMS: Final = 256
"""Loads and operations of all cells."""


class Arrays:
    """Which values may lie in the same bytes: an array, and what updates make of it.

    shared (set of int): values that other launches write to, too: what one does not write need not
        be as it was.
    """

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering
        self.shared: set[int] = set()
        self._roots: dict[int, int] = {}

    def of(self, values: Iterable[int]) -> set[int]:
        """The first of each array of which these are updates; of others themselves."""
        return {self.root(value) for value in values}

    def older(self, value: int) -> int | None:
        """The value of which this one is an update, if that lies in memory with the same dtype."""
        lowering = self._lowering
        node = lowering.values.node[value]
        if node is None or not lowering.is_written_in_place(node):
            return None
        graph = lowering.graph
        base = lowering.placement.writes.base(node)
        if graph.dtypes[base] != graph.dtypes[node]:
            return None
        if graph.kinds[base] is Kind.LEAF:
            return lowering.values.leaf(base)
        return lowering.values.of_node.get(base)

    def root(self, value: int) -> int:
        """The first of those that this value is an update of, directly or not; itself for none."""
        seen = []
        while value not in self._roots:
            seen.append(value)
            older = self.older(value)
            if older is None or older == value:
                self._roots[value] = value
                break
            value = older
        root = self._roots[value]
        self._roots.update(dict.fromkeys(seen, root))
        return root


class Cells:
    """A kernel cell by cell.

    Parameters
    ----------
    kernel : Kernel
        With one phase, whose range becomes the only cell, or with bodies for boxes of it.
    arrays : Arrays
    """

    def __init__(self, kernel: Kernel, arrays: Arrays) -> None:
        self.extents = kernel.extents
        self.cells = cells_of(kernel, (0,) * len(kernel.extents))
        self._kernel = kernel
        self._arrays = arrays
        self._rows = _rows_of(kernel, (0,) * len(kernel.extents))

    @property
    def loads(self) -> Iterator[Load]:
        """Of all cells."""
        for cell in self.cells:
            for item in cell.items:
                if isinstance(item, Load):
                    yield item

    @property
    def stores(self) -> Iterator[Store]:
        """Of all cells."""
        for cell in self.cells:
            yield from cell.stores

    @property
    def whole(self) -> Kernel:
        """What it is beside its cells: the folds, if there are any."""
        return self._kernel

    def permuted(self, order: Sequence[int]) -> Cells:
        """The same with the dimensions in another order, of those that fold nothing."""
        return Cells(permute_map(self.kernel(), order), self._arrays)

    def placed(self, extents: tuple[int, ...], start: Sequence[int]) -> Cells:
        """The same as part of a larger range, in which its own begins at `start`."""
        if extents == self.extents:
            return self
        made = copy(self)
        made.extents = extents
        made._rows = shift_box(self._rows, start[: len(self._rows)])
        made.cells = [
            Cell(
                tuple([shift_box(box, start) for box in cell.boxes]),
                *move_box(cell.items, cell.stores, start), cell.folds,
            )
            for cell in self.cells
        ]
        own = tuple([(low, low + size) for low, size in zip(start, self.extents, strict=True)])
        rest = tuple(outside(own, extents))
        if rest:
            made.cells.append(Cell(rest))
        return made

    def joined(self, kernel: Kernel, start: Sequence[int]) -> Cells:
        """The same with the work of a kernel whose range begins at `start`, after its own.

        Raises Apart: some element would be read or written in another order.
        """
        if kernel.reduced and self._kernel.reduced:
            _check_same_way(kernel, self._kernel)
        rows = _rows_of(kernel, start)
        if self._rows and rows and self._rows != rows:
            raise Apart("they have results for different rows")
        self._check_results(kernel)
        kernel = renumber_registers(kernel, self._after())
        others = cells_of(kernel, start)
        self._check_rows(others)
        written = self._written()
        for other in others:
            self._check_order(other, written)
        made = copy(self)
        made._kernel = self._with_folds_of(kernel)
        made._rows = self._rows or rows
        made.cells = []
        for cell in self.cells:
            rest = cell.boxes
            for other in others:
                inside = tuple([both for box in other.boxes for both in overlaps(rest, box)])
                if inside:
                    made.cells.append(self._extended(cell, inside, other, written))
                for box in other.boxes:
                    rest = tuple([part for own in rest for part in remainder(own, box)])
            if rest:
                made.cells.append(replace(cell, boxes=rest))
        made._check_size()
        made._check_folds()
        made._check_scans()
        return made

    def without(self, values: Collection[int]) -> Cells:
        """The same but for the stores of these values, and for what only they need."""
        made = copy(self)
        left = [
            replace(cell, stores=[store for store in cell.stores if store.value not in values])
            for cell in self.cells
        ]
        # A scan goes on through the boxes in which nothing reads it.
        scanned = {item.var for cell in left for item in prefixes(cell.needed())}
        made.cells = [replace(cell, items=cell.needed(scanned)) for cell in left]
        return made

    def kernel(self) -> Kernel:
        """The kernel that does all that."""
        kind = self._kernel
        order = sorted(
            self.cells,
            key=lambda cell: (-len(cell.folded), not cell.stores, -cell.size),
        )
        first, *others = [
            replace(
                kind, extents=self.extents, body=cell.items, stores=cell.stores,
                accumulators=cell.folds, epilogue=[], results=[], then=[],
                where=cell.boxes if len(order) > 1 else (),
            )
            for cell in order
        ]
        whole = tuple([(0, extent) for extent in self.extents[: len(self._rows)]])
        return replace(
            first, then=others, epilogue=kind.epilogue, results=kind.results,
            kept=() if self._rows == whole else self._rows,
        )

    def _after(self) -> int:
        """The first number that no register has."""
        items = [*self._kernel.epilogue, *[item for cell in self.cells for item in cell.items]]
        folds = [fold for cell in self.cells for fold in cell.folds]
        return 1 + max([each.var for each in [*items, *folds]], default=-1)

    def _with_folds_of(self, kernel: Kernel) -> Kernel:
        """What it is beside its cells, with what follows the folds of another kernel."""
        if not kernel.reduced:
            return self._kernel
        if not self._kernel.reduced:
            return kernel
        return replace(
            self._kernel,
            epilogue=[*self._kernel.epilogue, *kernel.epilogue],
            results=[*self._kernel.results, *kernel.results],
        )

    def _check_folds(self) -> None:
        """Whether some elements are folded by all folds: that body begins and ends them."""
        each = [cell.folded for cell in self.cells]
        if set[int]().union(*each) not in each:
            raise Apart("no element is of all that they fold")

    def _check_scans(self) -> None:
        """Whether nothing is scanned that depends on what another scan has made: where scans go in
        pieces, the pieces are folded before anything is scanned."""
        for cell in self.cells:
            for scan in prefixes(cell.items):
                if prefixes(needed_items(cell.items, {scan.operand})):
                    raise Apart("one of them scans what the other one has scanned")

    def _written(self) -> dict[int, Store]:
        """What is stored, by value; where it lies has to be the same in all cells."""
        written: dict[int, Store] = {}
        for store in self.stores:
            known = written.setdefault(store.value, store)
            if known.access != store.access:
                raise Apart("one of them writes an array in several parts")
        return written

    def _check_results(self, kernel: Kernel) -> None:
        """Neither touches what the other one leaves when it has folded a row, nor writes what that
        one reads then."""
        of = self._arrays.of
        written = {store.value for store in self.stores}
        own = written | {load.value for load in self.loads}
        theirs = {item.value for item in touched_items(kernel)}
        of_kernel = {store.value for body in kernel.phases for store in body.stores}
        for folding, other, used, stored in (
            (self._kernel, kernel, theirs, of_kernel), (kernel, self._kernel, own, written),
        ):
            left = of(folded_values(folding))
            read = of(_read_after(folding))
            used = used | folded_values(other) | _read_after(other)
            stored = stored | folded_values(other)
            if not (left.isdisjoint(of(used)) and read.isdisjoint(of(stored))):
                raise Apart("one of them needs what the other one folds or writes first")

    def _check_rows(self, others: Sequence[Cell]) -> None:
        """Different indices of what both touch are different elements, as they are to each: an
        element more along a row is not the first one of the next row."""
        own, theirs = (self._touched_by(cells) for cells in (self.cells, others))
        for array in own.keys() & theirs.keys():
            both = hull([own[array][0], theirs[array][0]])
            for box, accesses in (own[array], theirs[array]):
                for access in accesses:
                    if is_one_to_one(access, box) and not is_one_to_one(access, both):
                        raise Apart("rows of the one run into the next rows of the other")

    def _touched_by(self, cells: Sequence[Cell]) -> dict[int, tuple[Box, set[Access]]]:
        """By array, the box in which these cells touch it, and where."""
        found: dict[int, tuple[list[Box], set[Access]]] = {}
        for cell in cells:
            for item in [*cell.items, *cell.stores]:
                if isinstance(item, Load | Store):
                    boxes, accesses = found.setdefault(self._arrays.root(item.value), ([], set()))
                    boxes += cell.boxes
                    accesses.add(item.access)
        return {array: (hull(boxes), accesses) for array, (boxes, accesses) in found.items()}

    def _check_order(self, other: Cell, written: Mapping[int, Store]) -> None:
        """Whatever both touch, and one of them writes, is the very same element of both."""
        root = self._arrays.root
        places = {root(value): store.access for value, store in written.items()}
        own = {root(store.value): store.access for store in other.stores}

        def is_elsewhere(load: Load, stored: Mapping[int, Access]) -> bool:
            at = stored.get(root(load.value))
            return at is not None and (at != load.access or load.position is not None)

        if any(is_elsewhere(item, places) for item in other.items if isinstance(item, Load)):
            raise Apart("it reads what that one writes, at other elements")
        if any(self._is_written_twice(store, other.boxes, places) for store in other.stores):
            raise Apart("both write to the same array")
        if any(is_elsewhere(load, own) for load in self.loads):
            raise Apart("it writes what that one reads, at other elements")

    def _is_written_twice(
        self, store: Store, boxes: tuple[Box, ...], places: Mapping[int, Access]
    ) -> bool:
        """Whether another one's store, in these boxes, goes to an array that is written to, but for
        a part of its own."""
        root = self._arrays.root(store.value)
        if places.get(root, store.access) != store.access:
            return True
        return any(
            next(overlaps(cell.boxes, box), None) is not None
            for cell in self.cells
            if any(self._arrays.root(own.value) == root for own in cell.stores)
            for box in boxes
        )

    def _extended(
        self,
        cell: Cell,
        boxes: tuple[Box, ...],
        other: Cell,
        written: Mapping[int, Store],
    ) -> Cell:
        """The part of a cell in which another's items follow its own."""
        stored = {store.value: store for store in cell.stores}
        loaded = {
            (item.value, item.dtype, item.access): item.var
            for item in cell.items if isinstance(item, Load) and item.position is None
        }
        registers = {item.var: item.var for item in other.items}
        body = list(cell.items)
        for item in other.items:
            made: Item = item
            if isinstance(item, Load):
                value = item.value
                while (
                    value in written and value not in stored and value not in self._arrays.shared
                ):
                    older = self._arrays.older(value)
                    if older is None or older == value:
                        break
                    value = older
                if value in stored:
                    registers[item.var] = _forwarded(item, stored[value])
                    continue
                known = loaded.get((value, item.dtype, item.access))
                if known is not None and item.position is None:
                    registers[item.var] = known
                    continue
                made = replace(item, value=value)
            body.append(of_registers(made, registers))
        return Cell(
            boxes,
            body,
            [*cell.stores, *[replace(store, var=registers[store.var]) for store in other.stores]],
            [*cell.folds, *[fold_of_registers(fold, registers) for fold in other.folds]],
        )

    def _check_size(self) -> None:
        boxes = sum([len(cell.boxes) for cell in self.cells])
        if len(self.cells) > MAX_CELLS or boxes > MAX_BOXES:
            raise Apart(f"together {len(self.cells)} bodies for {boxes} boxes, more than pays")
        items = sum([len(cell.items) for cell in self.cells])
        if items > MAX_ITEMS:
            raise Apart(f"together {items} loads and operations in all bodies, more than pays")


def cells_of_parts(kernel: Kernel, arrays: Arrays, operation_nbytes: float) -> Cells | None:
    """A kernel that writes several parts of an array at each of its indices, over all of that
    array: to each part belongs a box of its own; None where it does not write so.

        y[i], y[n + i] = a[i], b[i]     over n; [0, n): y[i] = a[i], [n, 2 * n): y[i] = b[i - n]

    Raises Apart: the parts are no boxes side by side, need each other, or share what takes longer
        to load and to compute for each than to read what they wrote.
    """
    first: dict[int, Access] = {}
    for store in kernel.stores:
        array = arrays.root(store.value)
        least = first.setdefault(array, store.access)
        if store.access.offset < least.offset:
            first[array] = store.access
    if not kernel.kind.elementwise or kernel.then or all(
        store.access == first[arrays.root(store.value)] for store in kernel.stores
    ):
        return None
    parts: dict[tuple[int, ...], list[Store]] = {}
    for store in kernel.stores:
        origin = first[arrays.root(store.value)]
        starts: list[tuple[int, ...]] = []
        if store.access.strides == origin.strides:
            single = [dim for dim, extent in enumerate(kernel.extents) if extent == 1]
            starts = decompose_offset(store.access.offset - origin.offset, origin.strides, single)
        ahead = [start for start in starts if all(step >= 0 for step in start)]
        if not ahead:
            raise Apart("one of them writes an array in parts that are not side by side")
        parts.setdefault(ahead[0], []).append(store)
    made: Cells | None = None
    extents = tuple(
        [extent + max([start[dim] for start in parts]) for dim, extent in enumerate(kernel.extents)]
    )
    bodies = {
        start: needed_items(kernel.body, {store.var for store in stores})
        for start, stores in parts.items()
    }
    again = Counter([item.var for body in bodies.values() for item in body])
    shared = sum([(again[item.var] - 1) * _nbytes(item, operation_nbytes) for item in kernel.body
                  if again[item.var] > 1])
    if shared >= sum([store.dtype.itemsize for store in kernel.stores]):
        raise Apart("one of them writes parts of an array of which it computes much only once")
    for start, stores in parts.items():
        part = replace(kernel, body=bodies[start], stores=stores)
        if made is None:
            made = Cells(part, arrays).placed(extents, start)
        else:
            made = made.joined(part, start)
    return made


def _nbytes(item: Item, operation_nbytes: float) -> float:
    """What an item of a body takes for an element, in bytes moved."""
    if isinstance(item, Load):
        return item.dtype.itemsize
    return item.op.weight * operation_nbytes if isinstance(item, Step) else 0.0


def touched_items(kernel: Kernel) -> list[Load | Store]:
    """What all bodies load and store."""
    return [
        item
        for body in kernel.phases
        for item in [*body.body, *body.stores]
        if isinstance(item, Load | Store)
    ]


def folded_values(kernel: Kernel) -> set[int]:
    """The values that its folds leave."""
    return {store.value for store in kernel.results}


def _rows_of(kernel: Kernel, start: Sequence[int]) -> Box:
    """The kept indices for which a reduction that begins at `start` has results."""
    if not kernel.kind.folds:
        return ()
    kept = kernel.extents[: len(kernel.extents) - kernel.reduced]
    box = kernel.kept or tuple([(0, extent) for extent in kept])
    return shift_box(box, start[: len(box)])


def _read_after(kernel: Kernel) -> set[int]:
    """The values that are read when the folds are done."""
    return {item.value for item in kernel.epilogue if isinstance(item, Load)}


def _check_same_way(kernel: Kernel, other: Kernel) -> None:
    """Whether two kernels with folds or scans go over their elements the same way."""
    if kernel.kind is not other.kind:
        raise Apart("one of them folds, the other one scans")
    if kernel.reduced != other.reduced:
        raise Apart(f"they fold {other.reduced} and {kernel.reduced} dimensions")
    if kernel.kind.scans and len({scans_in_order(each) for each in (kernel, other)}) > 1:
        raise Apart("one of them scans in NumPy's order, the other one in pieces")


def scans_in_order(kernel: Kernel) -> bool:
    """Whether a kernel scans element by element, as NumPy does."""
    return any(
        is_sequential(scan.name, scan.dtype)
        for body in kernel.phases for scan in prefixes(body.body)
    )


def _forwarded(load: Load, store: Store) -> int:
    """The register that holds what a load would find."""
    if store.var_dtype != load.dtype or store.dtype != load.dtype or load.dtype.char == "e":
        raise Apart(f"what it reads was rounded to {store.dtype} when it was stored")
    return store.var
