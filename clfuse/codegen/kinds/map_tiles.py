"""Element-wise kernels whose operands go through tiles in local memory, as the contents of their
template: see `schedule.shape.local_tiles`."""

from __future__ import annotations

from types import SimpleNamespace

from clfuse.codegen.lines.body import Body
from clfuse.codegen.lines.loops import before, compute, decode
from clfuse.dtypes import memory_type
from clfuse.schedule.records import Kernel, Load, Store
from clfuse.schedule.shape.local_tiles import mirror_of, pitch_of

from .writing import Writing


def fill(kernel: Kernel, writing: Writing) -> str:
    """Fill the context of the template."""
    body, k, arguments = writing.body(kernel), writing.context, writing.arguments
    down = len(kernel.extents) - 2
    k.tall, k.wide = kernel.local_tile
    k.mirrored = kernel.mirrored
    k.group = kernel.work_group
    arguments.integer("n", kernel.extents[-1])
    k.down, k.rows = f"i{down}", arguments.integer(f"n{down}", kernel.extents[down])
    k.outer = [arguments.integer(f"n{dim}", kernel.extents[dim]) for dim in range(down)]
    k.decode = decode(body, list(range(down)), "outer")
    k.has_seams = bool(body.seams)
    tiles = _Tiles(kernel)
    parts = [body, *[body.beside(sister) for sister in kernel.then]]
    k.bodies = [_body(tiles, phase, part) for phase, part in zip(kernel.phases, parts, strict=True)]
    k.bodies[-1].test = ""  # what is left
    k.tiles = tiles.declared
    k.loads = any(b.fill for b in k.bodies)
    k.stores = any(b.spill for b in k.bodies)
    return "map_tiles.cl.mako"


class _Tiles:
    """The arrays in local memory of one kernel, and where an element is in each."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[object, str] = {}
        self.declared: list[str] = []

    def of(self, item: Load | Store, key: object) -> str:
        """The name of the array for what a load or a store touches."""
        if key not in self.names:
            rows, columns = self.kernel.local_tile
            size = columns * pitch_of(rows, item.dtype) * (2 if self.kernel.mirrored else 1)
            name = self.names[key] = f"tile{len(self.names)}"
            self.declared.append(f"__local {memory_type(item.dtype)} {name}[{size}];")
        return self.names[key]

    def turned(self, item: Load | Store, key: object, tile: str = "") -> str:
        """The element of a row ``below`` and a column ``across``, whose neighbour is the next
        row's; `tile` says of which of two tiles."""
        return self._element(item, key, "across", "below", tile)

    def straight(self, item: Load, key: object, tile: str) -> str:
        """The same where its neighbour is the next column's."""
        return self._element(item, key, "below", "across", tile)

    def _element(self, item: Load | Store, key: object, far: str, near: str, tile: str) -> str:
        rows, columns = self.kernel.local_tile
        pitch = pitch_of(rows, item.dtype)
        begin = f"{tile} * {columns * pitch} + " if tile else ""
        return f"{self.of(item, key)}[{begin}{far} * {pitch} + {near}]"


def _body(tiles: _Tiles, kernel: Kernel, body: Body) -> SimpleNamespace:
    """What a body does with an element: `fill` its tile, `lines` that compute and store, and
    `spill` what was stored to a tile."""
    b = SimpleNamespace(test=body.is_within(kernel.where), fill=[], spill=[])
    shares = tiles.kernel.mirrored
    for item in kernel.body:
        if not isinstance(item, Load) or not item.turned:
            continue
        source = item
        if shares:
            mirror = mirror_of(kernel, item)
            assert mirror is not None
            source = mirror
        key = (source.value, source.access, source.dtype)
        text = f"{body.pointer(source.value, source.dtype)}[{body.place(source.access)}]"
        if shares:
            target = body.turned[source.var] = tiles.straight(source, key, "part")
            body.turned[item.var] = tiles.turned(item, key, "other")
        else:
            target = body.turned[item.var] = tiles.turned(item, key)
        limit = f"if ({body.limit(source.access)}) " if source.access.within else ""
        if (line := f"{limit}{target} = {text};") not in b.fill:
            b.fill.append(line)
    for store in kernel.stores:
        if store.turned:
            element = tiles.turned(store, (store.value, store.access, "stored"))
            body.spilled[store.value, store.access] = element
            pointer = body.arguments.buffer(store.value, store.dtype, written=True)
            b.spill.append(f"{pointer}[{body.place(store.access)}] = {element};")
    b.before, uniform = before(body, kernel)
    b.lines, _ = compute(body, kernel, 1, uniform)
    b.groups = body.group_lines
    return b
