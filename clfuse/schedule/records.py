"""The records that a plan consists of: kernels, launches, library calls, and the items of a body.

Values are numbered: every array that lies in memory during a plan (inputs, temporaries, results)
has a value number. Variables are the numbered registers of one kernel.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

import numpy as np

from clfuse.dataclass import frozen, mutable
from clfuse.ir.launch_nodes import Round, Spec
from clfuse.ir.nodes import Op

from .access import Access as Access  # with the other records
from .kinds import KernelKind
from .library_forms import Dim, Product, Side, Transform


@frozen
class Load:
    """Register `var` from value `value` in global memory.

    A gather adds the register `position` to the element's number; its access alone names an
    existing element, too. Where the access is limited, the register `other` stands in elsewhere
    (zero without one, for unused lanes). Vectors are asked for `ahead` of their loop: (dimension,
    how many indices of it), those that go `past` the caches once a line; gathers, whose positions
    are computed for that, up to the end of the dimension. Blocks of a kernel load a `turned` one
    along the rows; one with a `local_tile` has it from there.
    """

    var: int
    value: int
    dtype: np.dtype
    access: Access
    position: int | None = None
    other: int | None = None
    ahead: tuple[int, int] | None = None
    turned: bool = False
    past: bool = False


@frozen
class Index:
    """Register `var` = the affine map itself, as int64 (iota)."""

    var: int
    access: Access


@frozen
class Scalar:
    """Register `var` = constant number `constant` of the graph, a kernel argument."""

    var: int
    constant: int
    dtype: np.dtype


@frozen
class Carried:
    """Register `var` = register `source` of an earlier phase's epilogue, one for a whole row."""

    var: int
    source: int
    dtype: np.dtype


@frozen
class Held:
    """Register `var` = what register `source` of an earlier phase's body was for this element."""

    var: int
    source: int
    dtype: np.dtype


@frozen
class Step:
    """Register `var` = an element-wise loop of registers."""

    var: int
    op: Op
    operands: tuple[int, ...]
    dtypes: tuple[np.dtype, ...]  # of the operands, before the loop's casts
    dtype: np.dtype


@frozen
class Accumulator:
    """Register `var` (after the loop) = fold of `operand` with the REDUCTIONS row `name`.
    `position` is the register with the index for argmin and argmax, else None; `partial` and
    `partial_position` are value numbers when the kernel is the first of two stages."""

    var: int
    name: str
    operand: int
    dtype: np.dtype
    position: int | None = None
    partial: int | None = None
    partial_position: int | None = None


@frozen
class Store:
    """Register `var`, cast to `dtype`, to value `value` in global memory (`turned`: by a tile)."""

    var: int
    var_dtype: np.dtype
    value: int
    dtype: np.dtype
    access: Access
    turned: bool = False


@frozen
class Prefix:
    """Register `var` = fold of `operand` with the REDUCTIONS row `name`, up to this iteration along
    the last extent. `partial` is the value with the folds of all pieces (row by row) where the
    extent is split: those before a piece come into it."""

    var: int
    name: str
    operand: int
    dtype: np.dtype
    partial: int | None = None


Item = Load | Index | Scalar | Carried | Held | Step | Prefix


@frozen
class Selection:
    """What a ``compact`` or ``expand`` kernel has beside its body.

    `mask` is the register that selects; `starts` the value that says how many elements are selected
    before each piece. ``expand`` loads the next selected element by `packed` (whose access counts
    for nothing) into the register that is stored, which is `other` where nothing is selected."""

    mask: int
    starts: int
    packed: Load | None = None
    other: int = -1


@frozen
class Scatter:
    """What a ``tally`` or ``scatter`` kernel has beside its body.

    `position` is the register that is added to the number of the element that the store's access
    names. ``tally`` counts the positions from 0 up to `bins` of each piece, or adds up the register
    that is stored. ``scatter`` combines with what lies there as `how` says: a ufunc's name,
    ``"set"``, or a step of `lower.scatters`. Its result is value `old`, changed. With a `table` it
    stores only where element ``position + base`` of it is the register `turn`; its first words are
    `cleared` before, or `tested`. `ordered`: equal positions follow each other, by `piece`."""

    position: int
    how: str
    bins: int = 0
    old: int | None = None
    table: int | None = None
    base: int = 0
    turn: int = -1
    ordered: bool = False
    cleared: int = 0
    tested: int = 0
    piece: int = 0


@mutable
class Kernel:
    """One generated kernel: a loop nest over `extents`.

    `kind` is one of `schedule.kinds`. A scan has `Prefix` items along its last extent, and no
    epilogue: what follows the scan is part of the body, and stored for every element. ``compact``
    and ``expand`` have a `selection`, ``tally`` and ``scatter`` a `scatter`, ``tiles`` a `tiling`.

    The last `reduced` extents are folded by `accumulators`. Then `epilogue` and `results` run once
    for each index of the others. Lanes run along dimension `vector`. Dimension `chunk`, a reduced
    one, is split into `chunks` pieces of `chunk_length`: the last axis of partial results; where
    lanes run along a kept one, the last but one. `partials`: their pitch, and where these begin.

    `strips` are the vectors that a work-item takes side by side then, of at most `held` at once. On
    a GPU `fold_items` of a group fold a result (0: all along rows, one down columns), each `held`.

    `then` are later phases: kernels over the same extents, which run row by row (or column by
    column) right after this epilogue; some have no accumulators. Later ones read the registers
    `lent`. Only phases read the values `inner`; `dropped` are not stored.

    A map kernel with `tile_rows` goes through so many rows of a piece before it comes to the next
    piece. With `block`, it takes as many rows at once, in vectors of as many lanes: loads that are
    `turned` are a vector of each column then. `schedule.shape` says what a GPU's maps have: a
    `local_tile` of what is `turned`, or two `mirrored` ones; else an `nd_range` and a `lead`.

    A kernel with `where` does what its body says in those boxes (first index and end of every
    dimension) alone; `then` are sisters for the others, in the same pass. Its folds have results in
    the box `kept` of the kept dimensions; in all of them where it is empty.
    """

    kind: KernelKind
    extents: tuple[int, ...]
    body: list[Item]
    stores: list[Store]
    reduced: int = 0
    accumulators: list[Accumulator] = field(default_factory=list)
    epilogue: list[Item] = field(default_factory=list)
    results: list[Store] = field(default_factory=list)
    vector: int = -1
    width: int = 1
    unroll: int = 1
    strips: int = 1
    held: int = 1
    even: bool = False
    compensated: bool = False
    chunk: int = -1
    chunks: int = 1
    chunk_length: int = 0
    tile_rows: int = 0
    block: int = 0
    local_tile: tuple[int, int] = (0, 0)
    mirrored: bool = False
    partials: tuple[int, int] = (0, 0)
    wide_index: bool = False
    schedule: str = "cpu"
    work_items: int = 1
    work_group: int = 1
    nd_range: tuple[tuple[int, ...], tuple[int, ...]] | None = None  # all of them, those of a group
    lead: tuple[int, ...] = ()
    looks_back: bool = False  # one pass of a scan whose groups wait for others
    fold_items: int = 0
    label: str = ""
    streams: bool = False  # results go past the caches: the kernel moves more than they hold
    then: list[Kernel] = field(default_factory=list)
    selection: Selection | None = None
    scatter: Scatter | None = None
    where: tuple[tuple[tuple[int, int], ...], ...] = ()
    kept: tuple[tuple[int, int], ...] = ()
    boxed: bool = False  # one of several boxes: offsets are arguments even where they are 0
    tiling: Tiling | None = None
    follows: bool = False
    inner: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()
    lent: frozenset[int] = frozenset()

    @property
    def phases(self) -> list[Kernel]:
        """The kernel itself and its later phases, in order."""
        return [self, *self.then]

    @property
    def passes(self) -> list[Kernel]:
        """The phases that go over a row one after another: sisters in boxes are one pass of it."""
        return [self] if self.where else self.phases

    @property
    def computed(self) -> list[Kernel]:
        """The kernels whose operations this one performs, in order."""
        if self.tiling is None:
            return self.phases
        return [stage.kernel for stage in self.tiling.stages]

    def seams(self, dim: int) -> list[int]:
        """The indices of dimension `dim` from which on loads of this phase go elsewhere, ascending.

        In a kernel with sisters: of any of them, and where one ends. The ends of the dimension are
        not among them.
        """
        found = set()
        for kernel in self.phases if self.where else [self]:
            for item in kernel.body:
                if isinstance(item, Load | Index):
                    found.update([index for where, index in item.access.seams if where == dim])
            for box in kernel.where:
                found.update(box[dim])
        return sorted(found - {0, self.extents[dim]})


@frozen
class Scratch:
    """A tile of a value of this shape in local memory, array number `array` of its kernel: from
    index ``tile start + low`` of the value on; `strides` in elements."""

    array: int
    shape: tuple[int, ...]
    low: tuple[int, ...]
    strides: tuple[int, ...]


@frozen
class Border:
    """What a tile of update `value` has outside of the region that the update writes: what `base`
    has there. `box` are the first index and the end of the region along each axis of `shape`, `low`
    and `high` as in `Stage`, but of the value's own indices."""

    value: int
    base: int
    dtype: np.dtype
    shape: tuple[int, ...]
    box: tuple[tuple[int, int], ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


@frozen
class Input:
    """An array in memory of which a tile has a copy, from `low` to `high` as `Border` has them."""

    value: int
    dtype: np.dtype
    shape: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


@mutable
class Stage:
    """One loop nest of a ``tiles`` kernel: the map `kernel`, over what the tile needs of it.

    Along a dimension these are the indices from ``tile start + low`` to
    ``tile start + tile length + high``, as far as they are in the kernel's extents. Loads and
    stores of values that have a `Scratch` go there; `starts` are the first indices of each such
    access. `inputs` come before; `borders` follow, and then `copied`: results from scratch to
    memory, with the first index of what is stored along each axis.
    """

    kernel: Kernel
    low: tuple[int, ...]
    high: tuple[int, ...]
    starts: dict[Access, tuple[int, ...]]
    inputs: list[Input] = field(default_factory=list)
    borders: list[Border] = field(default_factory=list)
    copied: list[tuple[Store, tuple[int, ...]]] = field(default_factory=list)


@mutable
class Tiling:
    """What a ``tiles`` kernel has beside its phases, which only say what is touched in memory.

    `extents` are cut into tiles of `lengths`; `arrays` are its local memory: dtype and elements.
    Along the dimensions `around`, all arrays are as long, and what is past their end is their
    beginning again.
    """

    extents: tuple[int, ...]
    lengths: tuple[int, ...]
    around: frozenset[int]
    stages: list[Stage]
    scratch: dict[int, Scratch]
    arrays: list[tuple[np.dtype, int]]


@mutable
class Copy:
    """All bytes of value `source` to value `target`."""

    source: int
    target: int
    nbytes: int


@frozen
class Operand:
    """A strided view on a stored value, for library calls."""

    value: int
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]


@mutable
class LibraryCall:
    """`name` of runtime.host on stored operands, into value `target`.

    `scalars` are constants among the operands: (place, number of the constant in the graph).
    `epilogue` is a map over the result's elements that follows in the same kernel, where ours makes
    the call: it loads `target`, which then never lies in memory, and stores what comes of it.
    `called` is the name that warnings of floating-point errors say; none where there are no such.
    `maker` is the call as a library for the device takes it (`schedule.device_libraries`).
    """

    name: str
    operands: list[Operand]
    target: int
    shape: tuple[int, ...]
    dtype: np.dtype
    param: Any
    scalars: tuple[tuple[int, int], ...] = ()
    epilogue: Kernel | None = None
    called: str = ""
    maker: Product | Transform | None = None


@mutable
class SortPass:
    """A stage of a radix sort: ``encode``, ``count``, ``sums``, ``scan``, ``scatter``, ``decode``.

    `rows` of `n` keys in `chunks` of `length`; digits of `digit_bits` at `shift`. A `payload`
    travels. Tiles have `each` keys a work-item; first passes load elements, last ones store
    them. ``rows`` is all of a `call`: of `chunks` rows a group, with room for `length` keys."""

    stage: str
    call: LibraryCall
    rows: int
    n: int
    chunks: int
    length: int
    digit_bits: int
    shift: int
    payload: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    each: int = 0
    is_first: bool = False
    is_last: bool = False


@mutable
class FourierPass:
    """One launch of Fourier transforms of `length` points in complex `dtype`.

    `dims` are the dimensions of the transforms, the fastest first; `steps` how far apart the points
    of each are on the axis of `points`, when loaded and stored. Where `turned` is not 0, the result
    ``k`` of the transforms that are ``i`` along the first dimension is multiplied by
    ``exp(-2 pi i k i / turned)``. At the end all is multiplied by `scale`. `call` is the library
    call that the launches together make.
    """

    call: LibraryCall
    length: int
    is_inverse: bool
    dtype: np.dtype
    dims: tuple[Dim, ...]
    load: Side
    store: Side
    steps: tuple[int, int]
    points: int
    turned: int
    scale: float

    @property
    def reads(self) -> tuple[int, ...]:
        """The value that it loads from."""
        return (self.load.value,)

    @property
    def writes(self) -> tuple[int, ...]:
        """The value that it stores to."""
        return (self.store.value,)


Pass = SortPass | FourierPass
"""One of the launches that make a library call together."""

MUTATIONS: Final = frozenset(
    ["setitem", "put", "putmask", "place", "at", "scatter", "segments", "sort", "partition"]
)
"""Library calls that give their first operand, changed; in place where nothing else needs it."""


@mutable
class UserLaunch:
    """One round of a launch of a user kernel.

    `buffers` are the values that its pointers point into, one a slot: what is written is the new
    value. `olds` are the values whose bytes it finds there, None where it needs none. `scalars` are
    the numbers of constants in the graph; `tables` the values with the offsets and scalars that
    differ from call to call, in order of the parameters.
    """

    spec: Spec
    round: Round
    buffers: list[int]
    olds: list[int | None]
    scalars: list[int]
    tables: list[int]

    @property
    def written(self) -> list[int]:
        """The slots that it writes to."""
        return [number for number, slot in enumerate(self.spec.slots) if slot.part >= 0]

    @property
    def changed(self) -> list[int | None]:
        """The values whose bytes it writes over."""
        return [self.olds[slot] for slot in self.written]

    @property
    def reads(self) -> list[int]:
        """The values that it loads from, each once."""
        return list(dict.fromkeys([old for old in self.olds if old is not None] + self.tables))


Launch = Kernel | Copy | LibraryCall | Pass | UserLaunch


@frozen
class Written:
    """What an update is: value `old`, but for the elements that accesses name over shapes."""

    old: int
    regions: tuple[tuple[tuple[int, ...], Access], ...]
    itemsize: int


@mutable
class Value:
    """One array in memory.

    `buffer` is the number of the graph's buffer it already lies in, or None; `slot` the number of
    the allocation that it gets; `node` the graph node whose result it is (None: a partial result).
    `update` says what it shares with another value, where it is an update of one in memory.
    """

    nbytes: int
    node: int | None = None
    buffer: int | None = None
    slot: int | None = None
    update: Written | None = None


@mutable
class Cut:
    """A value that went through memory, and why."""

    what: str
    reason: str
    nbytes: int
    node: int = -1


@mutable
class Schedule:
    """The whole plan, in order of execution.

    `slots` are the sizes of the buffers to allocate; `keeps` maps positions of graph nodes to the
    value that holds their result afterwards, `stored` those of all nodes that are in memory at some
    time.
    """

    launches: list[Launch]
    values: list[Value]
    slots: list[int]
    keeps: dict[int, int]
    recomputed: list[int]
    cuts: list[Cut]
    reuses: dict[int, int] = field(default_factory=dict)  # slot -> graph buffer it takes over
    stored: dict[int, int] = field(default_factory=dict)

    @property
    def steps(self) -> list[list[Launch]]:
        """The launches as they are put into the queue: kernels that follow one are part of it."""
        steps: list[list[Launch]] = []
        for launch in self.launches:
            is_one = isinstance(launch, Kernel) and launch.follows
            if is_one and steps and isinstance(steps[-1][0], Kernel):
                steps[-1].append(launch)
            else:
                steps.append([launch])
        return steps
