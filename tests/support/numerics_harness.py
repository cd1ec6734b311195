"""Runs rows of the op tables on a device, by themselves: no graph, no planner, no renderer.

`test_op_rows` calls it, and so may whoever has written a row and wants to see its worst error:
``CLFUSE_DEVICE=pocl python -m tests.support.numerics_harness exp log``.

Rows with the same input dtypes share one kernel with many outputs, as a build takes 0.15 s on PoCL
whatever the kernel holds.  A work-item loads one vector of each operand, evaluates every row, and
stores; there is no scalar tail, the operands are padded.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clfuse.dtypes import needs_fp64
from clfuse.errors import fp64_error
from clfuse.ops.table import FAULTY_BUILTINS, UFUNCS, Ufunc, class_of
from clfuse.runtime.devices.device import Device
from clfuse.runtime.devices.selection import get_device
from clfuse.runtime.launches.launch import enqueue
from clfuse.runtime.launches.program import build
from clfuse.runtime.memory.buffers import allocate, download, upload

KERNEL_LIBRARY: Final = Path(__file__).parents[2] / "kernels" / "lib"

DTYPE_NAMES: Final = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)

LANES: Final = {
    "int8": "char", "int16": "short", "int32": "int", "int64": "long",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
    "float16": "float", "float32": "float", "float64": "double",
}
"""dtype -> OpenCL C type of one lane in a register."""

MASK_LANES: Final = {1: "char", 2: "short", 4: "int", 8: "long"}
"""Bytes of a lane -> the type of its mask."""

BOOL_LANE_NBYTES: Final = 4
"""Bool operands are loaded as masks in lanes of this size here; the renderer picks what fits."""


# ---- cases ----


@dataclass(frozen=True)
class Case:
    """One row with one tuple of input dtypes and its output dtype."""

    row: Ufunc
    inputs: tuple[str, ...]
    output: str

    @property
    def tolerance(self) -> int:
        """The ulps that the result may be off, 0 for NumPy's bits."""
        if np.dtype(self.output).kind in "biu":
            return 0
        is_complex = class_of(self.inputs[0]) == "complex"
        return self.row.complex_ulp if is_complex else self.row.ulp

    @property
    def label(self) -> str:
        return f"{self.row.name}({','.join(self.inputs)})"


def numpy_loops(row: Ufunc) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield NumPy's loops of a row's ufunc as dtype names, those of our dtypes only."""
    ufunc = np.clip if row.name == "clip" else getattr(np, row.name)
    if row.name == "clip":
        for name in DTYPE_NAMES:
            yield (name, name, name), name
        return
    seen = set()
    for loop in ufunc.types:
        letters_in, letters_out = loop.split("->")
        if set("OMmgG") & set(loop):
            continue
        inputs = tuple(np.dtype(c).name for c in letters_in)
        if inputs not in seen:
            seen.add(inputs)
            yield inputs, np.dtype(letters_out).name


def native_cases(names: Iterable[str] = ()) -> list[Case]:
    """Return every (row, loop) that NumPy has and the tables can express."""
    wanted = set(names)
    cases = []
    for row in UFUNCS.values():
        if row.output or (wanted and row.name not in wanted):
            continue
        for inputs, output in numpy_loops(row):
            if row.key(inputs) is not None:
                cases.append(Case(row, inputs, output))
    return cases


# ---- OpenCL C ----


def vector(lane: str, width: int) -> str:
    return lane if width == 1 else f"{lane}{width}"


def lane_nbytes(dtype_name: str) -> int:
    if dtype_name == "bool":
        return BOOL_LANE_NBYTES
    if dtype_name == "float16":
        return 4
    return np.dtype(dtype_name).itemsize


def names_of_types(dtype_name: str, output: str, width: int) -> dict[str, str]:
    """Return what ``{T} {S} {W} {I} {U} {O} {R}`` stand for."""
    nbytes = lane_nbytes(dtype_name)
    real = {"complex64": "float", "complex128": "double"}.get(dtype_name, "")
    if real:
        lane, nbytes = f"{real}2", nbytes // 2
    elif dtype_name == "bool":
        lane = "int" if width == 1 else MASK_LANES[nbytes]
    else:
        lane = LANES[dtype_name]
    integer = MASK_LANES[nbytes]
    result = {
        "bool": "int" if width == 1 else integer, "complex64": "float2", "complex128": "double2",
    }.get(output) or LANES[output]
    return {
        "T": vector(lane, width), "S": lane, "W": "" if width == 1 else str(width),
        "I": vector(integer, width), "U": vector(f"u{integer}", width),
        "O": vector(result, width), "R": real,
    }


def memory_type(dtype_name: str) -> str:
    if dtype_name == "float16":
        return "half"
    return {"bool": "uchar", "complex64": "float2", "complex128": "double2"}.get(
        dtype_name) or LANES[dtype_name]


def load(dtype_name: str, pointer: str, width: int) -> str:
    if dtype_name == "bool":
        if width == 1:
            return f"{pointer}[i] != 0"
        wide = f"{MASK_LANES[BOOL_LANE_NBYTES]}{width}"
        return f"convert_{wide}(vload{width}(i, {pointer})) != ({wide})(0)"
    if dtype_name == "float16":
        # vload_half may lose the sign of NaN: NVIDIA's makes the usual one of it.
        bits = f"(__global const ushort *){pointer}"
        loaded = f"({bits})[i]" if width == 1 else f"vload{width}(i, {bits})"
        return f"from_half_{vector('float', width)}({loaded})"
    return f"{pointer}[i]" if width == 1 else f"vload{width}(i, {pointer})"


def store(dtype_name: str, value: str, pointer: str, width: int, mask: str) -> str:
    suffix = "" if width == 1 else str(width)
    if dtype_name == "bool":
        if width == 1:
            return f"{pointer}[i] = {value} ? 1 : 0"
        return f"vstore{width}(convert_uchar{width}({value} & ({mask})(1)), i, {pointer})"
    if dtype_name == "float16":
        return f"vstore_half{suffix}_rte({value}, i, {pointer})"
    if width == 1:
        return f"{pointer}[i] = {value}"
    return f"vstore{width}({value}, i, {pointer})"


def replacements(platform: str) -> dict[tuple[str, str], str]:
    """Return the expressions that stand in for faulty builtins on a platform."""
    return {
        which: text
        for faulty in FAULTY_BUILTINS if re.search(faulty.platform, platform)
        for which, text in faulty.expressions.items()
    }


def kernel_source(cases: Sequence[Case], width: int, platform: str) -> str:
    """Render one kernel that evaluates every case on the same operands."""
    inputs = cases[0].inputs
    replaced = replacements(platform)
    libraries: dict[str, None] = {}
    defines: dict[str, None] = {}
    if "float16" in inputs:
        libraries["narrow.cl"] = None
        types = [vector(lane, width) for lane in ("float", "int", "uint", "ushort")]
        defines[f"DEFINE_FROM_HALF({', '.join(types)})"] = None
    body = []
    for index, case in enumerate(cases):
        row = case.row
        key = row.key(case.inputs)
        assert key is not None
        types = names_of_types(case.inputs[row.typed_by], case.output, width)
        operands = [f"x{i}" for i in range(row.arity)]
        define = row.define.get(key, "")
        if define:
            libraries.update(dict.fromkeys(row.libraries))
            defines.update(dict.fromkeys(define.format(**types).splitlines()))
        text = row.expressions[key]
        if UFUNCS.get(row.name) is row:  # none that a test has made
            text = replaced.get((row.name, case.inputs[row.typed_by]), text)
        expression = text.format(*operands, **types)
        body.append(f"    const {types['O']} y{index} = {expression};")
        body.append(f"    {store(case.output, f'y{index}', f'out{index}', width, types['I'])};")
    loads = [
        f"    const {names_of_types(name, name, width)['T']} x{i} = {load(name, f'in{i}', width)};"
        for i, name in enumerate(inputs)
    ]
    parameters = [f"__global const {memory_type(name)} *in{i}" for i, name in enumerate(inputs)]
    parameters += [f"__global {memory_type(case.output)} *out{i}" for i, case in enumerate(cases)]
    return "\n".join([
        "#pragma OPENCL FP_CONTRACT OFF",
        *((KERNEL_LIBRARY / name).read_text() for name in libraries),
        *defines,
        "__kernel void evaluate(" + ", ".join(parameters) + ")",
        "{",
        "    const size_t i = get_global_id(0);",
        *loads,
        *body,
        "}",
        "",
    ])


# ---- the device ----


GROUP: Final = 64
"""Work-items of a work-group. PoCL chooses 2,000, whose variables, a hundred of 64 bytes where
nothing is optimized, are more than a thread's stack."""


def evaluate_cases(device: Device, cases: Sequence[Case], width: int,
                   operands: Sequence[npt.NDArray[Any]]) -> dict[Case, npt.NDArray[Any]]:
    """Run cases of one tuple of input dtypes on 1-d operands of one length."""
    for name in {name for case in cases for name in (*case.inputs, case.output)}:
        if needs_fp64(np.dtype(name)) and not device.traits.fp64:
            raise fp64_error(device.name, name)  # as plans do: conftest skips the test
    count = len(operands[0])
    padded = -(-count // (width * GROUP)) * width * GROUP
    source = kernel_source(cases, width, device.platform_name)
    program = build(device, source, "evaluate", (None,) * (len(operands) + len(cases)))
    inputs = [upload(device, np.resize(operand, padded)) for operand in operands]
    outputs = [allocate(device, padded * np.dtype(case.output).itemsize) for case in cases]
    enqueue(program, (padded // width,), (GROUP,), [buffer.mem for buffer in (*inputs, *outputs)])
    return {
        case: download(output, case.output, (padded,))[:count]
        for case, output in zip(cases, outputs, strict=True)
    }


# ---- operands ----

RANDOM_COUNT: Final = 4_000


def hostile_floats(dtype_name: str) -> npt.NDArray[Any]:
    """Return the values that break formulas: both signs of each."""
    dtype = np.dtype(dtype_name)
    info = np.finfo(dtype)
    tiny, least, greatest, epsilon = (float(v) for v in (
        info.tiny, info.smallest_subnormal, info.max, info.eps))
    integers_end = 2.0 ** (info.nmant + 1)
    magnitudes = [
        0.0, least, 3 * least, tiny, tiny - least, tiny * 3, epsilon, epsilon / 2, 1e-3, 0.1, 0.25,
        0.5 - epsilon / 4, 0.5, 0.5 + epsilon / 2, 0.7, 1 - epsilon / 2, 1.0, 1 + epsilon, 1.5, 2.0,
        2.5, 3.0, np.pi / 2, np.pi, 3 * np.pi, 7.0, 10.0, 11.5, 88.0, 89.0, 100.0, 104.0, 127.0,
        128.0, 150.0, 255.0, 1000.0, 32768.0,
        integers_end / 2 - 0.5, integers_end - 1, integers_end, integers_end * 3,
        709.0, 710.0, 745.0, 1024.0, 1e5, 1e7, 2.0**31, 2.0**63, 2.0**64, 1e22,
        greatest**0.5, greatest / 2, greatest, np.inf, np.nan,
    ]
    with np.errstate(over="ignore", under="ignore"):
        values = np.array(magnitudes).astype(dtype)
    values = values[~np.isinf(values) | np.isinf(np.array(magnitudes))]
    return np.unique(np.concatenate([values, -values]).view(f"u{dtype.itemsize}")).view(dtype)


def hostile_integers(dtype_name: str) -> npt.NDArray[Any]:
    """Return the ends of the type and of the types within it, and small numbers."""
    info = np.iinfo(dtype_name)
    values = {info.min, info.max, info.min + 1, info.max - 1, info.max // 2, info.min // 2}
    for bits in (7, 8, 15, 16, 31, 32, 53, 63, 64):
        for around in (-1, 0, 1):
            values |= {2**bits + around, -(2**bits) + around}
    values |= set(range(-9, 66))
    return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype_name)


def random_operand(dtype_name: str, count: int, random: np.random.Generator) -> npt.NDArray[Any]:
    """Return values spread over the whole range of the type."""
    dtype = np.dtype(dtype_name)
    if dtype.kind == "b":
        return random.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        whole = random.integers(info.min, info.max, count, dtype, endpoint=True)
        return np.where(random.random(count) < 0.5, whole, whole >> dtype.type(
            random.integers(0, info.bits)))
    if dtype.kind == "c":
        parts = random_operand(f"float{dtype.itemsize * 4}", 2 * count, random)
        return parts.view(dtype)
    bits = random.integers(0, 2 ** (8 * dtype.itemsize) - 1, count, f"u{dtype.itemsize}",
                           endpoint=True).view(dtype)
    ordinary = (random.standard_normal(count) * 10.0 ** random.integers(-3, 4, count)).astype(dtype)
    return np.where(random.random(count) < 0.3, bits, ordinary)


def hostile(dtype_name: str) -> npt.NDArray[Any]:
    dtype = np.dtype(dtype_name)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "c":
        return hostile_complex(dtype_name)
    if dtype.kind in "iu":
        if dtype.itemsize == 1:
            return np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
        return hostile_integers(dtype_name)
    return hostile_floats(dtype_name)


HOSTILE_PARTS: Final = (
    0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.75, -1e-3, 7e-9, 40.0, -800.0, np.inf, -np.inf, np.nan,
)


def hostile_complex(dtype_name: str) -> npt.NDArray[Any]:
    """Return every pair of hostile parts."""
    dtype = np.dtype(dtype_name)
    info = np.finfo(dtype)
    extremes = [float(info.tiny), float(info.max), -float(info.max) / 3]
    parts = np.array([*HOSTILE_PARTS, *extremes]).astype(f"float{dtype.itemsize * 4}")
    return np.stack(np.meshgrid(parts, parts), -1).reshape(-1).view(dtype)


@functools.cache
def operands_for(inputs: Sequence[str], count: int = RANDOM_COUNT) -> list[npt.NDArray[Any]]:
    """Return 1-d operands: every combination of hostile values, then random ones."""
    random = np.random.default_rng(len(inputs) * 1000 + sum(map(ord, "".join(inputs))))
    if inputs == ("float16",):
        return [np.arange(2**16, dtype=np.uint16).view(np.float16)]
    if class_of(inputs[0]) == "complex":
        pool = hostile_complex(inputs[0])
        if len(inputs) > 1:  # every pair would be 83,521 of 2 operands and too many of 3
            pool = pool[random.permutation(len(pool))[: 120 if len(inputs) == 2 else 25]]
        columns = [pool] * len(inputs)
    else:
        columns = [hostile(name) for name in inputs]
        if len(inputs) == 3:
            columns = [c[random.permutation(len(c))[:30]] for c in columns]
    grid = [g.reshape(-1) for g in np.meshgrid(*columns, indexing="ij")]
    bulk = [random_operand(name, count, random) for name in inputs]
    near = [b.copy() for b in bulk]
    if len(inputs) == 2 and inputs[0] == inputs[1]:  # near each other, where sums cancel
        near[1] = np.roll(near[0], 1)
        near[1][::2] = near[0][::2]
    return [np.concatenate(parts) for parts in zip(grid, bulk, near, strict=True)]


# ---- comparison ----

WIDER: Final = {
    "float16": np.float64, "float32": np.float64, "float64": np.longdouble,
    "complex64": np.complex128, "complex128": np.clongdouble,
}

UNSIGNED_ZERO: Final = ("maximum", "minimum", "fmax", "fmin", "clip")
"""NumPy's own vector and scalar code differ in which of -0.0 and 0.0 is the greater."""


SUM_OF_OPERAND: Final = ("logaddexp", "logaddexp2")
"""The greater operand plus a correction: where that cancels, the operand's ulp is what counts."""


def exact_log1p(z: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """NumPy's complex log1p takes the logarithm of |1 + z|, of which a small z leaves nothing."""
    if z.dtype.kind != "c":
        return np.log1p(z)
    small = np.maximum(np.abs(z.real), np.abs(z.imag)) < 0.5
    near_1 = np.log1p(z.real * (z.real + 2) + z.imag * z.imag) / 2
    return np.where(small, near_1, np.log1p(z).real) + 1j * np.log1p(z).imag


EXACT: Final = {"log1p": exact_log1p}
"""Row -> the function that is exact in wider types, where that is not NumPy's own."""


def numpy_function(row: Ufunc) -> Any:
    return np.clip if row.name == "clip" else getattr(np, row.name)


@dataclass(frozen=True)
class Verdict:
    """How far a case is from what it has to be."""

    case: Case
    width: int
    mismatches: int
    worst_ulp: float
    example: str

    @property
    def passed(self) -> bool:
        return not self.mismatches

    def __str__(self) -> str:
        text = f"{self.case.label} W={self.width}: worst {self.worst_ulp:.3g} ulp"
        return text if self.passed else f"{text}, {self.mismatches} WRONG, e.g. {self.example}"


def distance_in_ulps(actual: npt.NDArray[Any], exact: npt.NDArray[Any],
                     scale: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return |actual - exact| in units in the last place of `scale` in the dtype of `actual`.

    NaN on either side gives NaN.  An infinity is as far off as the value after the greatest one.
    """
    dtype = actual.dtype
    greatest = np.finfo(dtype).max
    with np.errstate(all="ignore"):
        unit = np.spacing(np.minimum(np.abs(scale), greatest).astype(dtype)).astype(exact.dtype)
        last_unit = (greatest - np.nextafter(greatest, dtype.type(0))).astype(exact.dtype)
        unit = np.where(np.isfinite(unit), unit, last_unit)
        # One part of a complex number may be finite where the modulus is not.
        unit = np.where(np.abs(scale) > greatest, np.abs(scale) * np.finfo(dtype).eps, unit)
        beyond = exact.dtype.type(greatest) + last_unit
        found = np.clip(actual.astype(exact.dtype), -beyond, beyond)
        return np.abs(found - np.clip(exact, -beyond, beyond)) / unit


@dataclass(frozen=True)
class Reference:
    """What NumPy gives for a case, and the exact result where the case may differ from NumPy's."""

    operands: tuple[npt.NDArray[Any], ...]
    allowed: npt.NDArray[Any]
    numpys: npt.NDArray[Any]
    exact: npt.NDArray[Any] | None
    amplification: npt.NDArray[Any]


UNSIGNED = 8
"""Where errors are amplified by more, a zero may have either sign."""


@functools.cache
def reference(case: Case, count: int) -> Reference:
    """Compute the reference once for all widths and devices."""
    function = numpy_function(case.row)
    operands = operands_for(case.inputs, count)
    allowed = np.ones(len(operands[0]), bool)
    if case.row.name == "power" and np.dtype(case.inputs[1]).kind == "i":
        allowed = operands[1] >= 0  # NumPy raises for the others at the call
        operands = [o[allowed] for o in operands]
    exact = None
    with np.errstate(all="ignore"):
        numpys = function(*operands)
        if case.tolerance:
            exactly = EXACT.get(case.row.name, function)
            exact = exactly(*(o.astype(WIDER[o.dtype.name]) if o.dtype.kind in "fc" else o
                               for o in operands))
    assert numpys.dtype.name == case.output, (case.label, numpys.dtype)
    amplification = np.ones(len(numpys))
    if case.row.name in ("power", "float_power") and numpys.dtype.kind == "c":
        # exp(b log a) multiplies the relative error of the logarithm by b log a: in NumPy's too.
        with np.errstate(all="ignore"):
            are_numbers = np.isfinite(operands[0]) & np.isfinite(operands[1])
            finite = are_numbers & (operands[0] != 0)
            base, exponent = (operand.astype(complex) for operand in operands)
            turned = np.abs(exponent) * np.abs(np.log(base))
        amplification += np.where(finite, turned, 0)
        # Of an angle that is NaN a zero has the sign that NaN has, which is the processor's.
        amplification += np.where(are_numbers, 0, UNSIGNED)
    elif case.row.name == "exp2" and numpys.dtype.kind == "c":
        # An angle y log 2 of many turns has its rounding error in them, NumPy's another than ours.
        with np.errstate(all="ignore"):
            angle = np.abs(operands[0].imag.astype(float))
        amplification += np.where((angle > 2.0**10) & np.isfinite(angle), angle, 0)
    return Reference(tuple(operands), allowed, numpys, exact, amplification)


@np.errstate(all="ignore")
def compare(case: Case, width: int, known: Reference, actual: npt.NDArray[Any]) -> Verdict:
    """Compare a device's results with NumPy's (bits) or with the exact ones (ulps).

    NaN must be where NumPy has it, and a zero must have its sign, whatever the tolerance.
    """
    actual = actual[known.allowed]
    numpys = known.numpys
    worst = 0.0
    if actual.dtype.kind in "biu":
        wrong = actual != numpys
    else:
        wrong = np.zeros(len(actual), bool)
        exacts = _real_parts(numpys if known.exact is None else known.exact)
        for part, numpy_part, exact in zip(
                _real_parts(actual), _real_parts(numpys), exacts, strict=True):
            nan = np.isnan(part)
            eps = np.finfo(actual.dtype).eps
            unlike = (nan != np.isnan(numpy_part)) & (known.amplification < 1 / eps)
            if case.row.name not in UNSIGNED_ZERO:
                zero = (part == 0) & (numpy_part == 0) & (known.amplification <= UNSIGNED)
                unlike |= zero & (np.signbit(part) != np.signbit(numpy_part))
            differs = ~nan & (part != numpy_part)
            if known.exact is not None:
                scale = np.abs(known.exact)
                if case.row.name in SUM_OF_OPERAND:
                    scale = np.fmax(scale, np.abs(np.fmax(*known.operands)))
                from_exact = distance_in_ulps(part, exact, scale)
                from_numpy = distance_in_ulps(part, numpy_part.astype(exact.dtype), scale)
                numpys_own = distance_in_ulps(numpy_part, exact, scale)
                # Where NumPy itself is far off, being near it is as good.
                distance = np.fmin(from_exact, from_numpy)
                distance[~differs | np.isnan(distance)] = 0
                differs = distance / known.amplification > case.tolerance
                # Past the ends of the range an amplified error may turn the direction.
                differs &= ~(np.isinf(part) & np.isinf(numpy_part) & (known.amplification > 8))
                fair = np.isfinite(part) & (numpys_own < 64) & (known.amplification == 1)
                worst = max(worst, float(from_exact[fair].max(initial=0)))
            wrong |= unlike | differs
    example = ""
    if wrong.any():
        at = np.flatnonzero(wrong)
        at = at[np.linspace(0, len(at) - 1, min(4, len(at))).astype(int)]
        example = "; ".join(
            f"({', '.join(str(o[i]) for o in known.operands)}) -> {actual[i]}, NumPy {numpys[i]}"
            for i in at)
    return Verdict(case, width, int(wrong.sum()), worst, example)


def _real_parts(array: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def check(device: Device, cases: Sequence[Case], width: int, count: int = RANDOM_COUNT
          ) -> list[Verdict]:
    """Evaluate and compare cases, one kernel for each tuple of input dtypes."""
    verdicts = []
    by_inputs = itertools.groupby(sorted(cases, key=lambda c: c.inputs), key=lambda c: c.inputs)
    for inputs, group in by_inputs:
        together = list(group)
        if not device.traits.fp64:  # of single operands into double: the others can be compared
            together = [c for c in together if not needs_fp64(np.dtype(c.output))] or together
        results = evaluate_cases(device, together, width, operands_for(inputs, count))
        verdicts += [compare(c, width, reference(c, count), results[c]) for c in together]
    return verdicts


def widths_of(inputs: Sequence[str]) -> tuple[int, ...]:
    """Return the widths to try: one, a GPU's, and those that fill a register of 32 or 64 bytes.

    Complex numbers are not vectorised, and double16 is wider than any register.
    """
    if class_of(inputs[0]) == "complex":
        return (1,)
    if max(map(lane_nbytes, inputs)) == 8:
        return (1, 4, 8)
    return (1, 4, 16) if class_of(inputs[0]) == "float" else (1, 16)


def main(arguments: Sequence[str]) -> None:
    """Print the verdict on the rows named (all of them if none is)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="", help="regular expression for the first operand's")
    parser.add_argument("--width", type=int, default=0)
    parser.add_argument("--count", type=int, default=RANDOM_COUNT)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    cases = [c for c in native_cases(options.names)
             if not options.dtype or re.fullmatch(options.dtype, c.inputs[0])]
    device = get_device()
    print(device)
    for width in (1, 4, 8, 16):
        chosen = [c for c in cases if width in widths_of(c.inputs) and options.width in (0, width)]
        for verdict in check(device, chosen, width, options.count):
            if options.verbose or not verdict.passed:
                print(f"  {verdict}")


if __name__ == "__main__":
    main(sys.argv[1:])
