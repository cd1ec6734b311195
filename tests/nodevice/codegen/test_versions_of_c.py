"""Every row of the op tables and every kind of kernel is OpenCL C 1.2, 2.0 and 3.0 for Clang, whose
front end all GPUs' compilers have. `tests/device/codegen/test_versions.py` builds and runs them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clfuse.codegen.kernels import render
from clfuse.codegen.lines.expressions import Expressions, Preamble, lanes_like
from clfuse.codegen.matmul import render_matmul
from clfuse.codegen.passes import render_pass
from clfuse.codegen.templates import head, library
from clfuse.ir import build
from clfuse.ops.row import Ufunc
from clfuse.ops.table import FAULTY_BUILTINS, SELECTED, UFUNCS
from clfuse.schedule.records import Kernel, LibraryCall, Pass
from clfuse.target.traits import DeviceTraits, with_schedule
from tests.nodevice.schedule.test_fourier import transform
from tests.nodevice.schedule.test_sorting import places_of, sorted_
from tests.support.hostile import DTYPES, FLOATS
from tests.support.recording import BOOL, FLOAT64, array, call, planned, roll, softmax

CLANG = shutil.which("clang-15") or shutil.which("clang")
VERSIONS = (
    ("CL1.2", "x86_64"), ("CL2.0", "x86_64"), ("CL2.0", "spir64"), ("CL3.0", "nvptx64-nvidia-nvcl"),
)
CPU = with_schedule(DeviceTraits(vector_bytes=64, whole_vectors=True), "cpu")
N = 1 << 20
GPU = replace(
    with_schedule(DeviceTraits(kind="gpu", saturating_casts=True, compute_units=16), "gpu"),
    groups_progress=True,
)
INT32, HALF = np.dtype(np.int32), np.dtype(np.float16)


def checked(folder: Path, sources: dict[str, str], version: str, target: str) -> str:
    """What Clang has against these programs."""
    paths = []
    for name, source in sources.items():
        paths.append(folder / f"{name}.cl")
        paths[-1].write_text(source, encoding="utf-8")
    assert CLANG is not None
    command = [CLANG, "-w", "-x", "cl", f"-cl-std={version}", "-target", target, "-fsyntax-only"]
    done = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)
    return done.stderr


def inputs_of(row: Ufunc, name: str) -> list[np.dtype] | None:
    """The input dtypes of a row's loop that is led by a dtype; None where there is none."""
    if row.key([name] * row.arity) is not None:
        return [np.dtype(name)] * row.arity
    found = [key for key in row.expressions if "," in key and key.startswith(f"{name},")]
    return [np.dtype(each) for each in found[0].split(",")] if found else None


def rows_of(name: str, width: int, traits: DeviceTraits) -> str:
    """A program with every row that has a loop led by a dtype, for vectors of so many lanes."""
    preamble = Preamble()
    writer = Expressions(width, traits, preamble)
    lines, declared = [], []
    for row in UFUNCS.values():
        dtypes = inputs_of(row, name)
        if dtypes is None:
            continue
        texts = []
        for place, dtype in enumerate(dtypes):
            kind, letter = writer.type_of(dtype), "p"
            if place == 0 and (row.name == "where" or row.name in SELECTED):
                lanes = 4 if dtype == BOOL else lanes_like(dtype)
                kind, letter = writer.type_of(BOOL, lanes), "m"
            texts.append(f"{letter}{place}_{dtype}")
            declared.append(f"const {kind} {texts[-1]}")
        output = dtypes[0]
        if row.output == "complex":
            output = np.result_type(output, np.complex64)
        text = writer.formatted(row.name, dtypes, texts, output, dtypes[0].itemsize)
        lines.append(f"    (void){text};")
    above = "".join(head(preamble, True))
    body = "\n".join(lines)
    return f"{above}static inline void rows({', '.join(dict.fromkeys(declared))})\n{{\n{body}\n}}\n"


def programs() -> Iterator[tuple[str, str]]:
    every = {key: text for faulty in FAULTY_BUILTINS for key, text in faulty.expressions.items()}
    replaced = DeviceTraits(vector_bytes=64, expressions=every)
    for name in DTYPES:
        for width in (1, 4):
            yield f"rows_{name}_{width}", rows_of(name, width, CPU)
            if name in (*FLOATS, "int32"):
                yield f"replaced_{name}_{width}", rows_of(name, width, replaced)
    x, y = array(700, 300), array(300, 700)
    turned = build.view(y, (700, 300), 0, (1, 700))
    whole = array(700, 300, dtype=INT32)
    product = build.library("matmul", (x, y), (700, 700), FLOAT64)
    singles = [array(*shape, dtype=np.float32) for shape in ((700, 300), (300, 700))]
    large = build.library("matmul", singles, (700, 700), singles[0].dtype)
    roots = {
        "map": call("add", call("sin", x), x), "turned": call("add", x, turned),
        "cast": build.cast(x, INT32), "half": build.cast(x, HALF), "softmax": softmax(x),
        "rolled": call("add", roll(x, 3, 1), x), "least": build.arg_reduce("argmin", x, (1,)),
        "scan": build.scan("add", x, 1, FLOAT64), "long": build.scan("add", array(N), 0, FLOAT64),
        "scans": build.scan("add", x, 0, FLOAT64),
        "sort": sorted_(whole), "places": places_of(whole), "product": product,
        "large": call("tanh", large),
    }
    roots["long_sort"], roots["long_places"] = sorted_(array(N)), places_of(array(N))
    bins, places = array(5000, dtype=np.int64), array(700, dtype=INT32)
    roots["tally"] = build.library("tally", [places], (4, 64), INT32)
    for how in ("set", "add"):
        param = (how, places.shape, 0, (0,), 0, False)
        roots[how] = build.library(
            "scatter", (bins, places, build.cast(places, bins.dtype)), bins.shape, bins.dtype, param
        )
    for count, how, dtype in (
        (700, "add", bins.dtype), (N, "subtract", bins.dtype), (70, "divide", HALF),
        (N, "maximum", HALF),
    ):  # fmt: skip
        operands = [array(n, dtype=kind) for n, kind in (
            (5000, dtype), (count, INT32), (count, dtype))]
        roots[f"segments_{how}"] = build.library("segments", operands, (5000,), dtype, how)
    for n, name in ((360, "fft"), (1 << 16, "ifft"), (1001, "rfft"), (509, "irfft"), (7, "hfft")):
        for char in "fd":
            dtype = {"fft": "e", "rfft": char}.get(name, char.upper())
            made_of = {"irfft": char, "hfft": char}.get(name, char.upper())
            operand = array(5, n if name != "irfft" else n // 2 + 1, dtype=np.dtype(dtype))
            roots[f"{name}_{char}"] = transform(operand, n, name, np.dtype(made_of))
    for axes in ((0,), (1,), (0, 1)):
        roots[f"sum{len(axes)}{axes[0]}"] = build.reduce("add", x, axes, FLOAT64)
    for schedule, traits in (("cpu", CPU), ("gpu", GPU)):
        for name, root in roots.items():
            for place, launch in enumerate(planned(root, traits=traits).launches):
                made = None
                if isinstance(launch, Kernel):
                    made = render(launch, traits, lambda value: value)
                elif isinstance(launch, Pass):
                    made = render_pass(launch, traits, lambda value: value)
                elif isinstance(launch, LibraryCall) and launch.name == "matmul":
                    made = render_matmul(launch, traits, lambda value: value)
                if made is not None:
                    yield f"{schedule}_{name}_{place}", made.source


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    found = dict(programs())
    every = "".join(found.values())
    folder = Path(__file__).parents[3] / "kernels" / "lib"
    libraries = [path.name for path in folder.glob("*.cl")]
    left = {"stream.cl", "prefetch.cl"}  # asked for by size
    for name in left:
        found[name.removesuffix(".cl")] = library(name) + (
            "__kernel void f(__global const float *x) { PREFETCH(x); PREFETCH_ONCE(x + 1); }"
            if name == "prefetch.cl" else
            "__kernel void f(__global float4 *x) { if (IS_ALIGNED(float4, x)) "
            "STREAM(float4, (float4)(UNALIGNED(float, float4, x)), x); }"
        )
    missing = [name for name in libraries if library(name) not in every and name not in left]
    assert not missing, "every file of the library is in some program"
    return found


@pytest.mark.skipif(CLANG is None, reason="no clang")
@pytest.mark.parametrize(("version", "target"), VERSIONS)
def test_every_kernel_is_of_every_version(
    version: str, target: str, sources: dict[str, str], tmp_path: Path
) -> None:
    assert checked(tmp_path, sources, version, target) == ""


@pytest.mark.skipif(CLANG is None, reason="no clang")
def test_clang_says_what_is_wrong(tmp_path: Path) -> None:
    wrong = {"wrong": "__kernel void f(__global int *x) { x[0] = missing; }"}
    assert "missing" in checked(tmp_path, wrong, "CL2.0", "spir64")
