"""Programs of the launch route: a kernel as OpenCL C of its own, recorded as a launch.

`Program` is what one signature becomes. Its text is written when a plan is made, because a CPU gets
a few work-items with a run of iterations each, and a GPU one work-item an iteration.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np

from clfuse.arrays.handle import Handle, fresh, layout
from clfuse.codegen.lines.expressions import Expressions
from clfuse.codegen.templates import head
from clfuse.dataclass import frozen
from clfuse.dtypes import mask_type, memory_type, register_type
from clfuse.engine.evaluate import evaluate_nodes, host_view
from clfuse.errors import fp64_error
from clfuse.ir import build
from clfuse.ir.identifiers import symbol
from clfuse.ir.nodes import Kind, Node, rebind
from clfuse.target.traits import DeviceTraits
from clfuse.user_kernels.language.array_route.accesses import Domain
from clfuse.user_kernels.language.source.tree import Function
from clfuse.user_kernels.language.source.types import ArrayType
from clfuse.user_kernels.language.source.weight import weight_of
from clfuse.user_kernels.opencl.record_launch import record_launch

from . import privatized_atomics, spmd_lanes
from .c import Writer, array_arguments, name_of
from .c_expressions import Site, Text, loaded, stored
from .lanes import lane_nbytes

_INT64: Final = np.dtype(np.int64)
_FAULT_WORDS: Final = 5
"""What is kept of the first index out of bounds: whether, where, axis, index, extent."""

_DOUBLE: Final = re.compile(r"\b(?:as_|convert_)?double\d*\b")
"""A type that devices without double precision have not, and what makes values of it."""

_FAULTS: Final = """\
static inline void report_fault(__global long *faults, const long site, const long axis,
                                const long index, const long extent)
{
    if (atomic_cmpxchg((volatile __global int *)faults, 0, 1) == 0) {
        faults[1] = site;
        faults[2] = axis;
        faults[3] = index;
        faults[4] = extent;
    }
}
"""


@frozen
class Shape:
    """What of the arguments the text depends on.

    unit: where the stride is 1, so that a CPU can load vectors.
    pointers: numbers that are computed on the device.
    apart, mixed: whether no two arrays are in one storage, so that a compiler may keep what it has
        loaded where it stores to another one; whether arrays of different dtypes share their bytes.
    """

    unit: frozenset[tuple[str, int]]
    pointers: frozenset[str]
    group: int
    checked: bool
    apart: bool
    mixed: bool


class Program:
    """A function of the language as an OpenCL kernel."""

    def __init__(self, function: Function, extents: tuple[int, ...], shape: Shape) -> None:
        self.function = function
        self.extents = extents
        self.shape = shape
        self.sites: list[Site] = []
        weight = None if shape.group else weight_of(function)
        self.work = None if weight is None else weight * math.prod(extents)
        """What a call costs, in additions; None where nobody knows."""
        self._texts: dict[Any, tuple[str, tuple[int, ...], tuple[int, ...] | None]] = {}

    @property
    def name(self) -> str:
        """Of the kernel in OpenCL C, which has functions of its own called `dot` and `min`."""
        return symbol(f"{self.function.name}_kernel")

    def __call__(self, traits: DeviceTraits) -> tuple[str, tuple[int, ...], tuple[int, ...] | None]:
        """OpenCL C, global and local size."""
        items = traits.work_items if traits.schedule == "cpu" else 0
        key = (items, traits.vector_bytes, traits.fp64, traits.saturating_casts,
               id(traits.expressions))
        found = self._texts.get(key)
        if found is None:
            found = self._texts[key] = self._written(traits, items)
        return found

    def _written(
        self, traits: DeviceTraits, items: int
    ) -> tuple[str, tuple[int, ...], tuple[int, ...] | None]:
        apart = self.function if self.shape.apart else None
        text = Text(traits, self.shape.checked, bool(items), self.shape.mixed, apart)
        called = name_of(text, self.function)
        self.sites = text.sites
        width, abreast_called = 1, ""
        if items and not (self.shape.group or self.shape.checked or self.shape.mixed):
            width = spmd_lanes.width_of(self.function, traits.vector_bytes)
        if width > 1:
            abreast_called = spmd_lanes.function_for(text, self.function, width)
        kept, keeping, addition = "", "", ""
        shape = self.shape
        if items and width == 1 and not (shape.group or shape.checked or shape.mixed):
            kept = privatized_atomics.tallied(self.function)
        if kept:
            keeping = f"{called}_keeping"
            writer = Writer(text, self.function, keeping, kept)
            text.parts.append(writer.text())
            dtype = self.function.arrays[kept].dtype
            addition = writer.atomic_function("add", dtype, False)
        tally = kept, keeping, addition
        body = self._entry(text, called, items, width, abreast_called, tally)
        if not traits.fp64 and _DOUBLE.search("\n".join([*text.above, *text.parts, body])):
            raise fp64_error(traits.name, f"float64 in the kernel {self.function.name}")
        above = "".join([*head(text.preamble, traits.fp64), *text.above])
        if self.shape.checked:
            above += _FAULTS
        source = above + "\n".join([*text.parts, body])
        total = math.prod(self.extents)
        if self.shape.group:
            rows = total // self.extents[-1]
            return source, (self.extents[-1], rows), (self.shape.group, 1)
        if items:
            return source, (min(total, items),), (1,)
        return source, (total,), None

    def _entry(
        self, text: Text, called: str, items: int, width: int, abreast_called: str,
        tally: tuple[str, str, str],
    ) -> str:
        function, rank = self.function, len(self.extents)
        declared = [f"const long low{axis}, const long high{axis}" for axis in range(rank)]
        c = Expressions(1, text.traits, text.preamble)
        lines = []
        passed = [f"i{axis}" for axis in range(rank)]
        for name, kind in function.scalars.items():
            if name in self.shape.pointers:
                declared.append(f"__global const {memory_type(kind.dtype)} *q_{symbol(name)}")
                lines.append(f"const {register_type(kind.dtype)} a_{symbol(name)} = "
                             f"{loaded(c, f'q_{symbol(name)}[0]', kind.dtype)};")
            else:
                declared.append(f"const {register_type(kind.dtype)} a_{symbol(name)}")
            passed.append(f"a_{symbol(name)}")
        for name, array in function.arrays.items():
            restrict = "restrict " if self.shape.apart else ""
            declared.append(f"__global {text.memory_type(array.dtype)} *{restrict}p_{symbol(name)}")
            declared += [f"const long s{axis}_{symbol(name)}" for axis in range(array.ndim)]
            declared += [f"const long n{axis}_{symbol(name)}" for axis in range(array.ndim)]
            ones = {f"s{axis}_{symbol(name)}" for where, axis in self.shape.unit if where == name}
            passed += ["1" if part in ones else part for part in array_arguments(name, array)]
        for number, (name, local) in enumerate(function.local_arrays.items()):
            if local.shared:
                lane = register_type(local.dtype)
                lines.append(f"__local {lane} m{number}[{math.prod(local.shape)}];  /* {name} */")
                passed.append(f"m{number}")
        after = []
        several: list[str] = []
        stores: list[str] = []
        for place, made in enumerate(function.results):
            element = memory_type(made.dtype)
            declared.append(f"__global {element} *out{place}")
            lines.append(f"{register_type(made.dtype)} r{place};")
            passed.append(f"&r{place}")
            after.append(f"out{place}[place] = {stored(c, f'r{place}', made.dtype)};")
            if width > 1:
                lane, wide = register_type(made.dtype), f"rs{place}"
                if made.dtype.kind == "b":
                    lane = mask_type(lane_nbytes(width))
                    wide = f"convert_{element}{width}(-rs{place})"
                several.append(f"{lane}{width} rs{place};")
                stores.append(f"vstore{width}({wide}, 0, out{place} + place);")
        if self.shape.checked:
            declared.append("__global long *faults")
            passed.append("faults")
        call = f"{called}({', '.join(passed)});"
        together = []
        if width > 1:
            vectors = [f"&rs{part[2:]}" if part.startswith("&r") else part for part in passed]
            together = [*several, f"{abreast_called}({', '.join(vectors)});", *stores]
        kept, keeping, addition = tally
        head, loop = self._loop(call, after, items, width, together)
        if kept:
            more = len(passed) - len(function.results)
            call = f"{keeping}({', '.join([*passed[:more], f'w_{symbol(kept)}', *passed[more:]])});"
            _, own = self._loop(call, after, items, width, together)
            loop = privatized_atomics.loops(kept, function.arrays[kept], addition, loop, own)
        lines += [*head, *loop]
        inside = "\n".join(f"    {line}" for line in lines)
        # Items are alone in their groups. Intel's compiler would still make one of 16 of them for
        # nothing, and breaks down over loops that hand values on (``a, b = b, a + b``; 2026.2).
        hint = "__attribute__((vec_type_hint(long8))) " if items and not self.shape.group else ""
        return f"__kernel {hint}void {self.name}({', '.join(declared)})\n{{\n{inside}\n}}\n"

    def _loop(
        self, call: str, after: list[str], items: int, width: int, together: list[str]
    ) -> tuple[list[str], list[str]]:
        """Which iterations a work-item has, and these; `together` makes `width` of them at once."""
        rank = len(self.extents)
        extents = [f"(high{axis} - low{axis})" for axis in range(rank)]
        if self.shape.group:
            lines = ["const long row = get_global_id(1);"]
            lines.append(f"const long place = row * {extents[-1]} + get_global_id(0);")
        elif items:
            lines = [
                f"const long total = {' * '.join(extents)};",
                "const long items = get_global_size(0), item = get_global_id(0);",
                "const long share = total / items, rest = total % items;",
                "const long count = share + (item < rest ? 1 : 0);",
                "long place = share * item + min(item, rest);",
            ]
        else:
            lines = ["const long place = get_global_id(0);"]
        lines.append("long rest_of_place = place;")
        for axis in reversed(range(rank)):
            lines.append(f"long i{axis} = low{axis} + rest_of_place % {extents[axis]};")
            lines.append(f"rest_of_place /= {extents[axis]};")
        if self.shape.group or not items:
            return lines, [call, *after]
        turn = [
            f"if (i{axis} == high{axis}) {{ i{axis} = low{axis}; i{axis - 1}++; }}"
            for axis in reversed(range(1, rank))
        ]
        last = f"i{rank - 1}"
        inside = [call, *after, "place++;", f"{last}++;"]
        if width > 1:
            inside = [
                f"if (count - k >= {width} && high{rank - 1} - {last} >= {width}) {{",
                *[f"    {line}" for line in together],
                f"    place += {width}; {last} += {width}; k += {width - 1};",
                "} else {", *[f"    {line}" for line in inside], "}",
            ]
        inside = [f"    {line}" for line in [*inside, *turn]]
        return lines, ["for (long k = 0; k < count; k++) {", *inside, "}"]


def shape_of(
    function: Function, arrays: dict[str, Handle], numbers: dict[str, Any], group: int,
    checked: bool,
) -> Shape:
    """What the text for these arguments depends on."""
    unit = []
    for name, handle in arrays.items():
        _, strides = layout(handle)
        unit += [(name, axis) for axis, step in enumerate(strides) if step == 1]
    pointers = [
        name for name, value in numbers.items()
        if isinstance(value, Node) and value.op.kind is not Kind.CONSTANT
    ]
    held = {(id(handle._storage), handle._dtype) for handle in arrays.values()}
    storages = {storage for storage, _ in held}
    apart, mixed = len(storages) == len(arrays), len(held) > len(storages)
    return Shape(frozenset(unit), frozenset(pointers), group, checked, apart, mixed)


def record(
    program: Program, domain: Domain, arrays: dict[str, Handle], numbers: dict[str, Any],
    reason: str,
) -> list[Node]:
    """Record a launch; the nodes of what the kernel returns.

    Raises
    ------
    IndexError
        Under ``CLFUSE_CHECK=bounds``, when an index was out of bounds: it runs at once then, and
        arrays that it has written to are as before the call.
    OverflowError
        An operation takes a Python integer as a dtype that does not hold it, as NumPy says.
    """
    function = program.function
    for name, dtypes in function.narrow.items():
        for dtype in dtypes if type(numbers[name]) is int else ():
            if not np.iinfo(dtype).min <= numbers[name] <= np.iinfo(dtype).max:
                raise OverflowError(f"{function.name}: `{name}`: Python integer {numbers[name]} "
                                    f"out of bounds for {dtype.name}")
    passed: list[Any] = []
    for low, high in domain:
        passed += [(low, _INT64), (high, _INT64)]
    for name, kind in function.scalars.items():
        value = numbers[name]
        if name in program.shape.pointers:
            passed.append((fresh(build.reshape(value, (1,))), "r"))
        elif isinstance(value, Node):
            passed.append(value.param)
        else:
            passed.append((value, kind.dtype))
    for name, array in function.arrays.items():
        mode = "rw" if name in function.writes else "r"
        passed.append((arrays[name], mode, "strides"))
        passed += [(extent, _INT64) for extent in arrays[name]._shape]
        assert isinstance(array, ArrayType)
    outs = [fresh(build.full(r.dtype.type(0), program.extents)) for r in function.results]
    passed += [(out, "w") for out in outs]
    if not program.shape.checked:
        record_launch(program, program.name, passed, program.extents, reason=reason)
        return [out._storage.node for out in outs]
    faults = fresh(build.full(np.int64(0), (_FAULT_WORDS,)))
    passed.append((faults, "rw"))
    before = [(arrays[name]._storage, arrays[name]._storage.node) for name in function.writes]
    evaluate_nodes([node for _, node in before])  # somebody holds them: they are not written over
    record_launch(program, program.name, passed, program.extents, reason=reason)
    found = host_view(faults._storage.node)
    if found[0]:
        for cell, node in before:
            rebind(cell, node)
        raise _fault(program, found)
    return [out._storage.node for out in outs]


def _fault(program: Program, faults: np.ndarray) -> IndexError:
    """The error for what a launch has found."""
    _, site, axis, index, extent = [int(word) for word in faults]
    where = program.sites[site - 1]
    kernel = program.function.name
    array = f"`{where.array}`"
    if where.function != kernel:
        array += f" of {where.function}"
    literal = where.literals[axis]
    found = index if literal is None else literal
    return IndexError(
        f"kernel {kernel} ({where.filename}), {array} in line {where.line}: index {found} is out "
        f"of bounds for axis {axis} with size {extent}; negative indices count from the end only "
        "as literals"
    )
