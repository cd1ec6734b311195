"""Fourier transforms in local memory as OpenCL C: loads, rounds of butterflies, stores.

The rounds are Stockham's: each reads one half of the local memory and writes the other, in the
order in which the next one reads. The roots of unity come from tables (`schedule.fourier_tables`);
inside of butterflies they are literals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from clfuse.dtypes import needs_fp64, register_type
from clfuse.schedule.fourier_tables import FINE, Table, roots
from clfuse.schedule.library_forms import Dim, Side
from clfuse.schedule.records import FourierPass
from clfuse.schedule.shape.geometry import index_limit
from clfuse.target.fourier import items_of_group, radices, rows_of_group
from clfuse.target.traits import DeviceTraits

from . import templates
from .arguments import Arguments
from .kernels import Rendered
from .lines.expressions import Expressions, Preamble, Register


def render_fourier(step: FourierPass, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write one launch."""
    rows = math.prod([dim.extent for dim in step.dims])
    together = rows_of_group(traits, step.dtype, step.length, rows)
    points = together * step.length
    items = items_of_group(traits, points)
    reaches = [_reach(step, side, is_load=is_load) for side, is_load in
               ((step.load, True), (step.store, False))]  # fmt: skip
    is_wide = max(*reaches, step.turned, step.points, rows * step.length) >= index_limit(
        traits, points
    )
    arguments = Arguments(is_wide, root, all_offsets=True)
    preamble = Preamble()
    writer = Expressions(1, traits, preamble)
    real = np.dtype(step.dtype.char.lower())
    k = SimpleNamespace(
        name=f"fourier_{step.length}",
        length=step.length,
        together=together,
        # Rows of one power of two of elements would lie in the same banks.
        pitch=step.length + (together > 1),
        items=items,
        index=arguments.index_type,
        number=register_type(step.dtype),
        real=register_type(real),
        butterflies=[],
        quarter="(-(a).y, (a).x)" if step.is_inverse else "((a).y, -(a).x)",
        rounds=[],
    )
    arguments.integer("rows", rows)
    written = arguments.buffer(step.store.value, step.store.dtype, written=True)
    source = arguments.buffer(step.load.value, step.load.dtype)
    before = 1
    for radix in radices(step.length):
        k.rounds.append(SimpleNamespace(radix=radix, before=before))
        before *= radix
    k.butterflies = [
        SimpleNamespace(radix=radix, lines=butterfly(radix, step.dtype, step.is_inverse))
        for radix in sorted({each.radix for each in k.rounds})
    ]
    k.roots = ""
    if len(k.rounds) > 1:
        table = Table("roots", step.length, step.is_inverse, step.dtype.char)
        k.roots = arguments.table(table)
    k.load_decode, k.load_position, place = _places(step, step.load, arguments, is_load=True)
    k.load_by_rows = _goes_by_rows(step, is_load=True)
    k.form = step.load.form
    k.load_count = arguments.integer("loaded", step.load.count)
    asks = k.form == "halved" or step.load.table is not None
    k.points = arguments.integer("points", step.points) if asks else ""
    k.load = _loaded(step, writer, source, place)
    k.load_conjugates = step.load.conjugates
    k.load_table = "" if step.load.table is None else arguments.table(step.load.table)
    k.store_decode, k.store_position, place = _places(step, step.store, arguments, is_load=False)
    k.store_by_rows = _goes_by_rows(step, is_load=False)
    k.store_count = arguments.integer("stored", step.store.count)
    k.store_conjugates = step.store.conjugates
    k.store_table = "" if step.store.table is None else arguments.table(step.store.table)
    k.turns = ""
    if step.turned:
        kind = "parts" if step.turned > FINE else "roots"
        k.turns = arguments.table(Table(kind, step.turned, step.is_inverse, step.dtype.char))
        k.fine = FINE if kind == "parts" else 0
    k.scale = "" if step.scale == 1 else _literal(step.scale, real)
    result = "z.x" if step.store.form == "real" else "z"
    if step.store.dtype.char == "e":
        result = writer.to_half(result)
    k.store = f"{written}[{place}] = {result};"
    k.signature = arguments.signature
    k.head = "".join(templates.head(preamble, needs_fp64(real)))
    source_text = templates.render("fourier.cl.mako", {"k": k})
    groups = -(-rows // together)
    return Rendered(
        k.name, source_text, tuple(arguments.bindings), arguments.dtypes, (groups * items,),
        (items,),
    )


def _loaded(step: FourierPass, writer: Expressions, source: str, place: str) -> str:
    """The element at `place`, in the dtype of the transform."""
    dtype = step.load.dtype
    text = f"{source}[{place}]"
    if dtype.char == "e":
        text = writer.from_half(text)
    elif dtype.kind == "b":
        text = f"({text} != 0)"
    real = np.dtype(step.dtype.char.lower())
    if dtype.kind == "c":
        return writer.cast(Register(f"({text})", dtype), step.dtype)
    cast = writer.cast(Register(f"({text})", dtype), real)
    return f"({register_type(step.dtype)})({cast}, 0)"


def _places(
    step: FourierPass, side: Side, arguments: Arguments, *, is_load: bool
) -> tuple[list[str], str, str]:
    """Statements that take a row's number apart; the position on the axis of its point ``j``; and
    the place in memory of the position ``at``."""
    letter = "l" if is_load else "s"
    index = arguments.index_type
    lines = []
    rest = "row"
    position = f"{arguments.integer(f'{letter}_step', step.steps[0 if is_load else 1])} * j"
    place = (
        f"{arguments.integer(f'{letter}_offset', side.offset)} + "
        f"{arguments.integer(f'{letter}_stride', side.stride)} * at"
    )
    for number, dim in enumerate(step.dims):
        extent = arguments.integer(f"n{number}", dim.extent)
        if number < len(step.dims) - 1:
            lines.append(f"const {index} i{number} = {rest} % {extent};")
            lines.append(f"const {index} q{number} = {rest} / {extent};")
            rest = f"q{number}"
        else:
            lines.append(f"const {index} i{number} = {rest};")
        stride, along = _of_side(dim, is_load)
        if along:
            position += f" + {arguments.integer(f'{letter}_p{number}', along)} * i{number}"
        if stride:
            place += f" + {arguments.integer(f'{letter}_{number}', stride)} * i{number}"
    return lines, position, place


def _of_side(dim: Dim, is_load: bool) -> tuple[int, int]:
    if is_load:
        return dim.load_stride, dim.load_position
    return dim.store_stride, dim.store_position


def _goes_by_rows(step: FourierPass, *, is_load: bool) -> bool:
    """Whether neighbours in memory are points of different transforms, not of one."""
    if not step.dims:
        return False
    side = step.load if is_load else step.store
    stride, along = _of_side(step.dims[0], is_load)
    between = abs(stride + along * side.stride)
    return between < abs(step.steps[0 if is_load else 1] * side.stride)


def _reach(step: FourierPass, side: Side, *, is_load: bool) -> int:
    """How far from the first byte of its array a launch computes places."""
    strides = [_of_side(dim, is_load)[0] * (dim.extent - 1) for dim in step.dims]
    whole = max(side.count, step.points, 2) * max(abs(side.stride), 1)
    return abs(side.offset) + whole + sum(map(abs, strides))


def _literal(number: float, real: np.dtype) -> str:
    return f"{np.float32(number)!s}f" if real.char == "f" else repr(float(number))


def butterfly(radix: int, dtype: np.dtype, is_inverse: bool) -> list[str]:
    """Statements that transform the ``radix`` numbers ``v``.

    >>> butterfly(2, np.dtype("F"), False)
    ['const float2 a = v[0];', 'v[0] = a + v[1];', 'v[1] = a - v[1];']
    """
    number = register_type(dtype)
    real = np.dtype(dtype.char.lower())
    if radix == 2:
        return [f"const {number} a = v[0];", "v[0] = a + v[1];", "v[1] = a - v[1];"]
    if radix == 4:
        return _four(number, ["v[0]", "v[1]", "v[2]", "v[3]"], "")
    if radix == 8:
        half = _literal(math.sqrt(0.5), real)
        lines = _four(number, ["v[0]", "v[2]", "v[4]", "v[6]"], "0")
        lines += _four(number, ["v[1]", "v[3]", "v[5]", "v[7]"], "1")
        # After them v[0], v[2], v[4], v[6] are one half's results in order, and so are the others.
        lines += [
            f"const {number} w1 = {half} * (v[3] + QUARTER(v[3]));",
            f"const {number} w2 = QUARTER(v[5]);",
            f"const {number} w3 = {half} * (QUARTER(v[7]) - v[7]);",
            f"const {number} u0 = v[0], u1 = v[2], u2 = v[4], u3 = v[6], w0 = v[1];",
        ]
        for place in range(4):
            lines.append(f"v[{place}] = u{place} + w{place};")
            lines.append(f"v[{place + 4}] = u{place} - w{place};")
        return lines
    return _odd(radix, number, real)


def _four(number: str, names: list[str], suffix: str) -> list[str]:
    first, second, third, fourth = names
    a, b, c, d = [f"{letter}{suffix}" for letter in "abcd"]
    return [
        f"const {number} {a} = {first} + {third}, {b} = {first} - {third};",
        f"const {number} {c} = {second} + {fourth}, {d} = QUARTER({second} - {fourth});",
        f"{first} = {a} + {c};",
        f"{second} = {b} + {d};",
        f"{third} = {a} - {c};",
        f"{fourth} = {b} - {d};",
    ]


def _odd(radix: int, number: str, real: np.dtype) -> list[str]:
    half = radix // 2
    lines = []
    for k in range(1, half + 1):
        lines.append(
            f"const {number} p{k} = v[{k}] + v[{radix - k}], m{k} = v[{k}] - v[{radix - k}];"
        )
    lines.append(f"const {number} z = v[0];")
    lines.append(f"v[0] = z + ({' + '.join([f'p{k}' for k in range(1, half + 1)])});")
    all_roots = roots(np.arange(radix), radix)
    for place in range(1, half + 1):
        same, other = "z", ""
        for k in range(1, half + 1):
            root = all_roots[place * k % radix]
            cosine, sine = (
                f"({number})({_literal(float(part), real)})" for part in (root.real, -root.imag)
            )
            same = f"fma({cosine}, p{k}, {same})"
            other = f"fma({sine}, m{k}, {other})" if other else f"{sine} * m{k}"
        lines.append("{")
        lines.append(f"    const {number} same = {same}, other = {other};")
        lines.append(f"    v[{place}] = same + QUARTER(other);")
        lines.append(f"    v[{radix - place}] = same - QUARTER(other);")
        lines.append("}")
    return lines
