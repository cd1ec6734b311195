"""Recognition of graphs that were recorded before, by code that is generated for each of them.

`snapshot.take` walks any graph: a dictionary, a stack and a tuple for every node, 1.6 us each. For
a graph that comes again and again it is enough to make sure that this is the same one: with
straight-line Python that goes from the roots to the leaves, 0.2 us a node. Making that code takes
80 us a node, so it is made for what has been planned `LEARN_AFTER` times.

The code says no wherever anything differs from what `take` saw: operation, shape, parameters, which
node reads which, which buffers are the same, and which nodes are held elsewhere. Then `take` walks.

Where the compiled part is in use (`clfuse._core.loading`) one function in C goes through a list
instead, 0.03 us a node: it costs nothing to make, so that every graph that comes again is known.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from clfuse._core import loading

from .launch_nodes import Launch
from .nodes import Kind, Node, Op, loop, structural
from .snapshot import COMPUTED, LIVE, Snapshot

__all__ = ["LEARN_AFTER", "find", "forget", "learn", "note", "structure_of"]

_core: Final = loading.load()
if _core is not None:
    _core.connect_graph(Node, Op, Kind)

LEARN_AFTER: Final = 32 if _core is None else 1
"""Evaluations of a plan after which its graph is worth code of its own."""

MOST_NODES: Final = 1000 if _core is None else 20_000
"""Of larger graphs the code would be slow to make, and would take megabytes; in C, of those with
that many nodes the items themselves do."""

MOST_LEAVES: Final = 1000
"""Buffers of a graph: each is compared with all others."""

MOST_KNOWN: Final = 128
"""Graphs with code of their own; the one that was met longest ago is forgotten first."""

MOST_ITEMS: Final = 1 << 18
"""Operations of all of them together, with 150 bytes each."""

_Recognise = Callable[[Sequence[Node]], "tuple[list[Node], list[Any]] | None"]

known: Final[OrderedDict[tuple[Any, int], tuple[_Recognise, Snapshot]]] = OrderedDict()
"""(summary of the roots, running number) -> what recognises the graph, and its structure."""

NOTED: Final = 3
"""Evaluations by NumPy after which a graph is known."""

MOST_MET: Final = 256
"""Entries of `_met`."""

_met: Final[dict[Any, list[Any]]] = {}
"""Summary of a graph that has no plan -> its structure, and how often it came in a row."""

numbers: Final[dict[Any, list[int]]] = {}
"""Summary -> the running numbers of its graphs, which are known. An interrupt may come at any call:
so a graph is listed here after it is known, and unlisted before it is forgotten."""


def find(roots: Sequence[Node]) -> Snapshot | None:
    """The snapshot of a graph that is known, or None."""
    if not known:
        return None
    key = _key(roots)
    for number in numbers.get(key, ()):
        recognise, structure = known[key, number]
        found = recognise(roots)
        if found is not None:
            known.move_to_end((key, number))
            nodes, buffers = found
            snapshot = Snapshot(nodes, structure.items, structure.flags, structure.roots, buffers)
            snapshot.structure = structure
            return snapshot
    return None


def note(snapshot: Snapshot) -> None:
    """Know a graph that has no plan from now on, if it comes for the third time."""
    if snapshot.structure is not None or len(snapshot.items) > MOST_NODES:
        return
    key = snapshot.roots, len(snapshot.items), snapshot.items[snapshot.roots[0]]
    met = _met.get(key)
    if met is None or not met[0].same_structure(snapshot):
        if len(_met) >= MOST_MET:
            _met.clear()
        _met[key] = [structure_of(snapshot), 1]
        return
    met[1] += 1
    if met[1] == NOTED:
        del _met[key]
        learn(snapshot, met[0])


def structure_of(snapshot: Snapshot) -> Snapshot:
    """What snapshots like this one share."""
    if snapshot.structure is not None:
        return snapshot.structure
    return Snapshot([], snapshot.items, snapshot.flags, snapshot.roots, [])


def learn(snapshot: Snapshot, structure: Snapshot) -> None:
    """Know this graph from now on; `structure` is what `find` returns of it, without nodes."""
    if snapshot.structure is structure:
        return
    inner = [id(node.inputs) for node in snapshot.nodes if node.inputs and node.buffer is None]
    if _BASE < 0 or len(snapshot.nodes) > MOST_NODES or len(snapshot.buffers) > MOST_LEAVES:
        return
    if len(set(inner)) < len(inner):
        return
    if any(isinstance(node, Launch) and len(node.parts) > 1 for node in snapshot.nodes):
        return  # which of its arrays are held is not seen from the roots
    if _core is None:
        text, names = _source(snapshot)
        exec(compile(text, "<graph>", "exec"), names)
        recognise = names["recognise"]
    else:
        recognise = _core.Known(snapshot, LIVE, COMPUTED, _OF_SEVERAL)
    key = _key([snapshot.nodes[position] for position in snapshot.roots])
    number = 1 + max(numbers.get(key, ()), default=-1)
    known[key, number] = recognise, structure
    numbers.setdefault(key, []).append(number)
    items = sum(len(kept.items) for _, kept in known.values())
    while len(known) > MOST_KNOWN or (items > MOST_ITEMS and len(known) > 1):
        oldest = next(iter(known))
        items -= len(known[oldest][1].items)
        unlist(numbers, *oldest)
        del known[oldest]


def unlist(listed: dict[Any, list[int]], key: Any, number: int) -> None:
    """Take a running number off the list of its summary, where it is listed."""
    found = listed.get(key, [])
    if number in found:
        found.remove(number)
    if not found:
        listed.pop(key, None)


def forget() -> None:
    """Know no graph: their plans are gone."""
    _met.clear()
    numbers.clear()
    known.clear()


def _key(roots: Sequence[Node]) -> Any:
    root = roots[0]
    return len(roots), root.op, root.shape


class _Names(dict[str, Any]):
    """The globals of the code: objects by name, equal objects under one."""

    def __init__(self) -> None:
        super().__init__(refs=sys.getrefcount)
        self._by_identity: dict[int, str] = {}

    def of(self, value: Any) -> str:
        name = self._by_identity.get(id(value))
        if name is None:
            name = f"k{len(self._by_identity)}"
            self._by_identity[id(value)] = name
            self[name] = value
        return name


def _source(snapshot: Snapshot) -> tuple[str, dict[str, Any]]:
    """The text of the function that recognises the graph, and its globals."""
    items, flags = snapshot.items, snapshot.flags
    names = _Names()
    lines = ["def recognise(roots):"]
    seen = set(snapshot.roots)
    lines.append(f"    {', '.join([f'n{position}' for position in snapshot.roots])}, = roots")
    uses = [0] * len(items)
    for position in snapshot.roots:
        uses[position] += 1  # by `roots`
    first_of: dict[int, str] = {}
    by_inputs: dict[tuple[int, ...], list[int]] = {}
    checks: list[str] = []
    for position in range(len(items) - 1, -1, -1):
        item, text = items[position], f"n{position}"
        tests = [f"{text}.computed is not {bool(flags[position] & COMPUTED)}"]
        more: list[str] = []
        if item[0] is None:
            _, shape, number, dtype = item
            tests.append(f"{text}.shape != {names.of(shape)}")
            tests.append(f"{text}.dtype != {names.of(dtype)}")
            if number in first_of:
                tests.append(f"{text}.buffer is not {first_of[number]}")
            else:
                buffer = first_of[number] = f"b{number}"
                more = [f"    {buffer} = {text}.buffer", f"    if {buffer} is None: return None"]
        else:
            if item[0].kind is Kind.UPDATE:  # it may become another: see `ir.updates`
                lines.append(f"    {text}.inputs")
            tests.append(f"{text}.op is not {names.of(item[0])}")
            tests.append(f"{text}.buffer is not None")
            if item[0].kind is not Kind.CONSTANT:
                tests.append(f"{text}.shape != {names.of(item[1])}")
                same = "is not" if item[2] is None else "!="
                tests.append(f"{text}.param {same} {names.of(item[2])}")
                if item[3:]:
                    more = _inputs(position, item[3:], seen)
                    by_inputs.setdefault(item[3:], []).append(position)
                    for other in item[3:]:
                        uses[other] += 1
        lines.append(f"    if {' or '.join(tests)}: return None")
        lines += more
        checks.append(_references(position, item, first_of, bool(flags[position] & LIVE), uses))
    # One tuple of inputs that several nodes share holds them once, and a node outside may share it.
    for position, item in enumerate(items):
        if item[0] is not None and item[0].name in _OF_SEVERAL and item[3:]:
            checks.append(f"    if refs(n{position}.inputs) > {_BASE_OF_INPUTS}: return None")
    for first, *others in by_inputs.values():
        for other in others:
            checks.append(f"    if n{first}.inputs is n{other}.inputs: return None")
    order = sorted(first_of)
    if len(order) > 1:
        different = ", ".join([f"id({first_of[number]})" for number in order])
        checks.append(f"    if len({{{different}}}) != {len(order)}: return None")
    nodes = ", ".join([f"n{position}" for position in range(len(items))])
    listed = ", ".join([first_of[number] for number in order])
    temporary = " = ".join(["i", *_TEMPORARY])
    lines += [f"    {temporary} = None", *checks, f"    return [{nodes}], [{listed}]"]
    return "\n".join(lines), names


_OF_SEVERAL: Final = frozenset(
    "floor_divide remainder modf_fraction modf_integer frexp_mantissa frexp_exponent".split()
)
"""What ufuncs with several results consist of; these share a tuple of inputs."""

_TEMPORARY: Final = ("t0", "t1", "t2")


def _inputs(position: int, inputs: tuple[int, ...], seen: set[int]) -> list[str]:
    """Take a node's inputs; those that were met before must be the same."""
    lines = [f"    i = n{position}.inputs", f"    if len(i) != {len(inputs)}: return None"]
    targets, tests = [], []
    for place, other in enumerate(inputs):
        if other in seen and len(inputs) > len(_TEMPORARY):
            tests.append(f"i[{place}] is not n{other}")
            targets.append("t0")
        elif other in seen:
            targets.append(f"t{place}")
            tests.append(f"t{place} is not n{other}")
        else:
            seen.add(other)
            targets.append(f"n{other}")
    lines.append(f"    {', '.join(targets)}, = i")
    if tests:
        lines.append(f"    if {' or '.join(tests)}: return None")
    return lines


def _references(
    position: int, item: tuple[Any, ...], first_of: dict[int, str], live: bool, uses: list[int]
) -> str:
    """Whether the node, or its bytes, are held elsewhere must be as it was."""
    held = f"refs(n{position}) > {_BASE + uses[position]}"
    if item[0] is None:
        buffer = first_of[item[2]]
        # A leaf's buffer is held by the leaf and by the name here.
        held = f"({held} or {buffer}.exported or refs({buffer}) > {_BASE + 1})"
    return f"    if {'not ' if live else ''}{held}: return None"


def _calibrate() -> int:
    """References to what only a local name holds; -1 where they are not exact."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1
    names: dict[str, Any] = {"refs": sys.getrefcount, "kind": object}
    exec("def probe():\n    n0 = kind()\n    return refs(n0)", names)
    return int(names["probe"]())


def _calibrate_inputs() -> int:
    """References to a tuple of inputs that one node has."""
    names: dict[str, Any] = {"refs": sys.getrefcount, "node": _node_with_an_input}
    exec("def probe():\n    n0 = node()\n    return refs(n0.inputs)", names)
    return int(names["probe"]())


def _node_with_an_input() -> Node:
    """A node with an input, of which nothing else has the tuple."""
    dtype = np.dtype(np.float64)
    source = Node(structural(Kind.LEAF, "leaf", dtype), (), (2,), dtype)
    return Node(loop("negative", (dtype,), dtype), (source,), (2,), dtype)


_BASE: Final = _calibrate()
_BASE_OF_INPUTS: Final = _calibrate_inputs()
