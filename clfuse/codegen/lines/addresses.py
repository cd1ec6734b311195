"""Where a kernel's elements lie: index terms, runs between seams, limits, as text.

    const int x0 = s0_0 * i0 + s0_1 * i1;    a group: all index terms but the lanes'
    a0[x0 + j * v0]                          the element at ``j`` along the lanes
    const int t1 = at >= seam0 ? far0 : 0;   a jump: from an index on the elements lie elsewhere
    const int within2 = i0 >= seam1;         a limit: elsewhere there is no element
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from clfuse.codegen.arguments import Arguments
from clfuse.schedule.records import Access, Kernel

from .names import FAR, GROUP, JUMP, SEAM, WITHIN


class Addresses:
    """The index terms of one kernel, which become its arguments and `group_lines`.

    `vector` is the dimension of the lanes.
    """

    def __init__(
        self, kernel: Kernel, arguments: Arguments, group_numbers: Iterator[int] | None = None
    ) -> None:
        self.kernel = kernel
        self.arguments = arguments
        self.vector = kernel.vector
        self.seams = kernel.seams(kernel.vector)
        """Indices along the lanes; a run lies between two of them and begins at ``at``."""
        self.groups: dict[object, str] = {}
        self.group_lines: list[str] = []
        # Phases of one kernel share the numbers: their groups are arguments of the same kernel.
        self.group_numbers = count() if group_numbers is None else group_numbers
        self.index = "j"
        """The name of the index along the lanes that is being written."""

    def group(self, access: Access) -> str:
        """The name of the sum of all index terms but the lanes' (computed by `group_lines`)."""
        key = (access.strides, access.jumps)
        if key not in self.groups:
            jumps = [self._jump(jump) for jump in access.jumps]
            number = next(self.group_numbers)
            terms = []
            for dim, stride in enumerate(access.strides):
                if dim == self.vector or stride == 0:
                    continue
                name = self.arguments.integer(f"s{number}_{dim}", stride)
                terms.append(f"{name} * i{dim}")
            text = " + ".join(terms + jumps) or "0"
            name = self.groups[key] = f"{GROUP}{number}"
            self.group_lines.append(f"const {self.arguments.index_type} {name} = {text};")
        return self.groups[key]

    def begin_scope(self) -> None:
        """Forget the groups: what is written from here on does not see their declarations."""
        self.groups.clear()

    def _is_from(self, dim: int, index: int) -> str:
        """A test whether this element's index of `dim` is `index` or behind it."""
        name = "at" if dim == self.vector else f"i{dim}"
        return f"{name} >= {self.arguments.seam(SEAM, (dim, index), index)}"

    def _jump(self, jump: tuple[int, int, int]) -> str:
        """The name of what a jump adds to the number of this run's elements."""
        if jump not in self.groups:
            dim, index, by = jump
            far = self.arguments.seam(FAR, jump, by)
            name = self.groups[jump] = f"{JUMP}{next(self.group_numbers)}"
            kind = self.arguments.index_type
            test = self._is_from(dim, index)
            self.group_lines.append(f"const {kind} {name} = {test} ? {far} : 0;")
        return self.groups[jump]

    def limit(self, access: Access) -> str:
        """The name of the truth that a limited access has an element here; the same for a run."""
        key = ("within", access.within)
        if key not in self.groups:
            tests = self._tests(access.within)
            name = self.groups[key] = f"{WITHIN}{next(self.group_numbers)}"
            self.group_lines.append(f"const int {name} = {tests};")
        return self.groups[key]

    def _tests(self, bounds: Sequence[tuple[int, int, int]]) -> str:
        """A test whether the indices lie within these bounds (dimension, first index, end)."""
        tests = []
        for dim, first, end in bounds:
            if first > 0:
                tests.append(self._is_from(dim, first))
            if end < self.kernel.extents[dim]:
                tests.append(f"!({self._is_from(dim, end)})")
        return " && ".join(tests)

    def is_within(self, boxes: Sequence[Sequence[tuple[int, int]]]) -> str:
        """A test whether the indices lie in one of these boxes; empty for no boxes."""
        tests = [self._tests([(dim, *pair) for dim, pair in enumerate(box)]) for box in boxes]
        return " || ".join([f"({test})" for test in tests])

    def run_end(self, limit: str) -> str:
        """Where the run that begins at ``at`` ends: at the next seam, at the latest at `limit`."""
        return self._next(self.vector, self.seams, "at", limit)

    def rows_end(self, dim: int, limit: str) -> str:
        """The same of the rows of dimension `dim` that begin at its index."""
        return self._next(dim, self.kernel.seams(dim), f"i{dim}", limit)

    def _next(self, dim: int, seams: Sequence[int], begin: str, limit: str) -> str:
        if not seams:
            return limit
        names = [self.arguments.seam(SEAM, (dim, index), index) for index in seams]
        tests = "".join([f"{begin} < {name} ? {name} : " for name in names])
        return f"min({limit}, {tests}{limit})"

    def lane_stride(self, access: Access) -> int:
        if self.vector >= len(access.strides):
            return 0
        return access.strides[self.vector]

    def _stride_name(self, access: Access) -> str:
        group = self.group(access)
        return self.arguments.integer(f"v{group[1:]}", self.lane_stride(access))

    def place(self, access: Access, lane: int | str = 0) -> str:
        """The index of the element for position `index` plus `lane` along the vector dimension."""
        base = f"{self.arguments.offset(access)}{self.group(access)}"
        stride = self.lane_stride(access)
        j = self.index if lane == 0 else f"({self.index} + {lane})"
        if stride == 0:
            return base
        if stride == 1:
            return f"{base} + {j}"
        if stride == -1:
            return f"{base} - {j}"
        return f"{base} + {j} * {self._stride_name(access)}"
