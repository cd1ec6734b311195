"""Kernels whose work-items wait for each other in loops: trees, scans and tiles in local memory, in
OpenCL C (`RawKernel`) and in Python (``clfuse.kernel``), compared with NumPy.

    python -m tests.fuzz.barriers --kernels 1000
    python -m tests.fuzz.barriers --seed 17 --show

PoCL 3.1 is said to compile some such loops wrongly; that compiler unrolls the work-items of a group
between two barriers, so that everything depends on where the barriers and branches stand.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import clfuse as cf
from tests.fuzz.command_line import ended, parser_of_seeds, seeds_of
from tests.support.kernel_bodies import kernel_of

TYPES = {"f4": "float", "f8": "double", "i4": "int"}
LENGTHS = (1, 17, 64, 1000, 4096, 10_007)
GROUPS = (16, 32, 64, 128, 256)
FOLDS: dict[str, tuple[str, Any, Any]] = {
    "min": ("{a} < {b} ? {a} : {b}", np.min, 10**6),
    "max": ("{a} > {b} ? {a} : {b}", np.max, -(10**6)),
    "sum": ("{a} + {b}", np.sum, 0),
}
"""Name -> C of two values, NumPy's fold, what changes nothing."""

FUNCTIONS = {
    "i": {"min": "min({a}, {b})", "max": "max({a}, {b})"},
    "f": {"min": "fmin({a}, {b})", "max": "fmax({a}, {b})"},
}
"""The same by functions of OpenCL C, for each kind of numbers."""


@dataclass
class Tree:
    """A fold by a tree: its texts, and what comes out.

    ``out[k * groups + g]`` is fold k of what group g has read.
    """

    seed: int
    dtype: str = ""
    n: int = 0
    size: int = 0
    groups: int = 0
    folds: list[str] = field(default_factory=list)
    reading: str = ""
    walk: str = ""
    body: str = ""
    length: str = ""
    is_given: bool = False
    texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)
        self.dtype = draw.choice(list(TYPES))
        self.n = draw.choice(LENGTHS)
        self.size = draw.choice(GROUPS)
        self.groups = draw.choice([1, 1, 3, 8])
        self.folds = draw.choice([["min", "max"], ["min", "max"], ["max"], ["sum"],
                                  ["sum", "max"], ["min", "sum", "max"]])
        self.reading = draw.choice(["strides", "strides", "piece", "skipping", "nested", "nested"])
        self.walk = draw.choice(["halves", "halves", "while", "doubling", "odd", "do"])
        self.body = draw.choice(["one if", "two ifs", "ternary", "continue", "two loops",
                                 "barrier first"])
        self.length = draw.choice([str(self.size), "(int)get_local_size(0)"])
        self.is_given = draw.random() < 0.4  # its local memory is an argument
        self.texts = {name: text for name, (text, _, _) in FOLDS.items()}
        if draw.random() < 0.4:
            self.texts |= FUNCTIONS["i" if self.dtype == "i4" else "f"]

    # -- OpenCL C ------------------------------------------------------------------------------

    def in_c(self) -> str:
        real, count = TYPES[self.dtype], len(self.folds)
        lines = [f"__local {real} t{k}[{self.size}];" for k in range(count)]
        if self.is_given:
            lines = [f"__local {real} *t{k} = memory + {k * self.size};" for k in range(count)]
        lines += ["const int q = get_local_id(0), g = get_group_id(0);"]
        lines += [f"{real} v{k} = {FOLDS[name][2]};" for k, name in enumerate(self.folds)]
        take = [f"v{k} = {self.texts[name].format(a=f'v{k}', b='x[i]')};"
                for k, name in enumerate(self.folds)]
        total = self.size * self.groups
        wait = "barrier(CLK_LOCAL_MEM_FENCE);"
        if self.reading == "nested":  # a tree in each round
            lines += [f"for (int i = g * {self.size} + q; i - q < n; i += {total}) {{"]
            lines += [f"t{k}[q] = i < n ? x[i] : ({real}){FOLDS[name][2]};"
                      for k, name in enumerate(self.folds)]
            if self.body != "barrier first":
                lines += [wait]
            lines += [*self._tree_in_c(), *([wait] if self.body == "barrier first" else [])]
            lines += [line.replace("x[i]", f"t{k}[0]") for k, line in enumerate(take)]
            lines += [wait, "}", *[f"t{k}[q] = v{k};" for k in range(count)]]
            return self._whole(real, lines)
        if self.reading == "piece":
            length = -(-self.n // self.groups)
            lines += [f"const int end = min((g + 1) * {length}, n);",
                      f"for (int i = g * {length} + q; i < end; i += {self.size}) {{", *take, "}"]
        elif self.reading == "skipping":
            lines += [f"for (int i = g * {self.size} + q; i < n; i += {total}) {{",
                      "if (x[i] == 3) continue;", *take, "}"]
        else:
            lines += [f"for (int i = get_global_id(0); i < n; i += {total}) {{", *take, "}"]
        lines += [f"t{k}[q] = v{k};" for k in range(count)]
        if self.body != "barrier first":
            lines += [wait]
        return self._whole(real, [*lines, *self._tree_in_c()])

    def _whole(self, real: str, lines: list[str]) -> str:
        count = len(self.folds)
        lines += ["barrier(CLK_LOCAL_MEM_FENCE);"]
        lines += ["if (q == 0) {", *[f"out[{k} * {self.groups} + g] = t{k}[0];"
                                     for k in range(count)], "}"]
        body = "\n    ".join(lines)
        memory = f", __local {real} *memory" if self.is_given else ""
        return (f"__kernel void tree(__global const {real} *x, __global {real} *out, int n{memory})"
                f"\n{{\n    {body}\n}}")

    def _tree_in_c(self) -> list[str]:
        if self.body == "two loops":
            return [line for k in range(len(self.folds)) for line in self._loop_in_c([k])]
        return self._loop_in_c(list(range(len(self.folds))))

    def _loop_in_c(self, which: list[int]) -> list[str]:
        steps = []
        for k in which:
            text = self.texts[self.folds[k]].format(a=f"t{k}[q]", b=f"t{k}[q + s]")
            steps.append(f"t{k}[q] = {text};")
        wait = "barrier(CLK_LOCAL_MEM_FENCE);"
        test = {"doubling": "q % (2 * s) == 0 && q + s < m", "odd": "q < m / 2"}.get(
            self.walk, "q < s")
        if self.body == "two ifs":
            inner = [f"if ({test}) {{ {step} }}" for step in steps] + [wait]
        elif self.body == "ternary":
            inner = []
            for k in which:
                text = self.texts[self.folds[k]].format(a=f"t{k}[q]", b=f"t{k}[q + s]")
                inner += [f"if ({test}) t{k}[q] = {text};"]
            inner += [wait]
        elif self.body == "continue":
            inner = [f"if ({test}) {{", *steps, "}", wait, "if (t0[0] != t0[0]) continue;"]
        elif self.body == "barrier first":
            inner = [wait, f"if ({test}) {{", *steps, "}"]
        else:
            inner = [f"if ({test}) {{", *steps, "}", wait]
        size = self.length
        if self.walk == "halves":
            return [f"for (int s = {size} / 2; s > 0; s >>= 1) {{", *inner, "}"]
        if self.walk == "doubling":
            return [f"{{ const int m = {size}; for (int s = 1; s < m; s *= 2) {{", *inner, "}}"]
        if self.walk == "while":
            inner = [line for line in inner if "continue" not in line]
            return [f"{{ int s = {size} / 2; while (s) {{", *inner, "s /= 2; }}"]
        if self.walk == "do":
            inner = [line for line in inner if "continue" not in line]
            return [f"{{ int s = {size} / 2; do {{", *inner, "s >>= 1; } while (s > 0); }"]
        inner = [line for line in inner if "continue" not in line]
        return [f"{{ int m = {size}; while (m > 1) {{ const int s = (m + 1) / 2;", *inner,
                "m = s; }}"]

    # -- Python --------------------------------------------------------------------------------

    def in_python(self) -> str:
        count = len(self.folds)
        lines = ["q = cf.group.local_id()", "g = cf.group.group_id()"]
        lines += [f"t{k} = cf.group.local_array({self.size}, dtype)" for k in range(count)]
        lines += [f"t{k}[q] = {FOLDS[name][2]}" for k, name in enumerate(self.folds)]
        fold = {"min": "min({a}, {b})", "max": "max({a}, {b})", "sum": "{a} + {b}"}
        lines += ["k = i", "while k < n:", *([
            "    if x[k] != 3:"] if self.reading == "skipping" else ["    if True:"])]
        for k, name in enumerate(self.folds):
            lines += [f"        t{k}[q] = " + fold[name].format(a=f"t{k}[q]", b="x[k]")]
        lines += [f"    k += {self.size * self.groups}", "cf.group.barrier()"]
        lines += [f"s = {self.size // 2}", "while s > 0:", "    if q < s:"]
        for k, name in enumerate(self.folds):
            lines += [f"        t{k}[q] = " + fold[name].format(a=f"t{k}[q]", b=f"t{k}[q + s]")]
        lines += ["    cf.group.barrier()", "    s //= 2", "if q == 0:"]
        lines += [f"    out[{k} * {self.groups} + g] = t{k}[0]" for k in range(count)]
        return "\n".join(lines)

    # -- comparison ----------------------------------------------------------------------------

    def values(self) -> Any:
        draw = np.random.default_rng(self.seed)
        return draw.integers(-50, 50, self.n).astype(self.dtype)

    def wanted(self, x: Any, *, is_python: bool = False) -> Any:
        found = []
        place = np.arange(self.n)
        length = -(-self.n // self.groups)
        group = place // self.size % self.groups
        if self.reading == "piece" and not is_python:
            group = place // length
        for name in self.folds:
            _, fold, nothing = FOLDS[name]
            for number in range(self.groups):
                taken = x[group == number]
                if self.reading == "skipping":
                    taken = taken[taken != 3]
                found.append(fold(np.append(taken, nothing).astype(self.dtype)))
        return np.array(found, self.dtype)

    def problems(self) -> list[str]:
        """What differs from NumPy, in each language."""
        x = self.values()
        found = []
        ours = cf.asarray(x)
        out = cf.zeros(len(self.folds) * self.groups, self.dtype)
        launch = cf.RawKernel(self.in_c(), "tree")
        nbytes = x.itemsize * self.size * len(self.folds) if self.is_given else 0
        launch((self.groups,), (self.size,), (ours, out, np.int32(self.n)), shared_mem=nbytes)
        if (out.get() != self.wanted(x)).any():
            found.append(f"seed {self.seed}, C: {out.get()}; NumPy: {self.wanted(x)}")
        kernel = kernel_of(self.in_python(), "i, n, x, out", {"cf": cf, "dtype": self.dtype},
                           f"tree{self.seed}", group=self.size)
        out = cf.zeros(len(self.folds) * self.groups, self.dtype)
        kernel(self.size * self.groups, self.n, ours, out)
        wanted = self.wanted(x, is_python=True)
        if (out.get() != wanted).any():
            found.append(f"seed {self.seed}, Python: {out.get()}; NumPy: {wanted}")
        return found


@dataclass
class Scan:
    """Sums up to each element of a group, or sums over tiles of the elements' neighbours."""

    seed: int

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)
        self.dtype = draw.choice(list(TYPES))
        self.size = draw.choice(GROUPS)
        self.groups = draw.choice([1, 2, 5])
        self.kind = draw.choice(["two barriers", "two arrays", "tiles", "tiles", "up and down"])
        self.tiles = draw.choice([1, 3, 4])

    def in_c(self) -> str:
        real, size = TYPES[self.dtype], self.size
        wait = "barrier(CLK_LOCAL_MEM_FENCE);"
        begin = f"const int q = get_local_id(0), i = get_global_id(0); __local {real} t[{size}];"
        if self.kind == "two barriers":
            body = f"""t[q] = x[i]; {wait}
    for (int s = 1; s < {size}; s <<= 1) {{
        {real} v = q >= s ? t[q - s] : 0; {wait}
        t[q] += v; {wait}
    }}
    out[i] = t[q];"""
        elif self.kind == "two arrays":
            body = f"""__local {real} u[{size}]; __local {real} *a = t, *b = u;
    a[q] = x[i]; {wait}
    for (int s = 1; s < {size}; s *= 2) {{
        if (q >= s) b[q] = a[q] + a[q - s]; else b[q] = a[q];
        {wait}
        __local {real} *c = a; a = b; b = c;
    }}
    out[i] = a[q];"""
        elif self.kind == "up and down":
            body = f"""t[q] = x[i]; {wait}
    int s = 1;
    for (int m = {size} / 2; m > 0; m /= 2) {{
        if (q < m) t[(2 * q + 2) * s - 1] += t[(2 * q + 1) * s - 1];
        s *= 2; {wait}
    }}
    if (q == 0) t[{size} - 1] = 0;
    {wait}
    for (int m = 1; m < {size}; m *= 2) {{
        s /= 2;
        if (q < m) {{
            {real} v = t[(2 * q + 1) * s - 1];
            t[(2 * q + 1) * s - 1] = t[(2 * q + 2) * s - 1];
            t[(2 * q + 2) * s - 1] += v;
        }}
        {wait}
    }}
    out[i] = t[q] + x[i];"""
        else:
            body = f"""{real} total = 0;
    for (int k = 0; k < {self.tiles}; k++) {{
        t[q] = x[(k * {size} + q) % (int)get_global_size(0)]; {wait}
        for (int j = 0; j < {size}; j++) {{
            if (t[j] == 3) continue;
            total += t[j] * (j + q < {size} ? 1 : 2);
        }}
        {wait}
    }}
    out[i] = total;"""
        return (f"__kernel void scan(__global const {real} *x, __global {real} *out)\n"
                f"{{\n    {begin}\n    {body}\n}}")

    def wanted(self, x: Any) -> Any:
        rows = x.reshape(self.groups, self.size)
        if self.kind != "tiles":
            return np.cumsum(rows, 1, dtype=self.dtype).ravel()
        q = np.arange(self.size)
        total = np.zeros(self.size, self.dtype)
        for k in range(self.tiles):
            tile = x[(k * self.size + q) % len(x)]
            weights = np.where(q[None] + q[:, None] < self.size, 1, 2)
            total += (np.where(tile == 3, 0, tile)[None] * weights).sum(1).astype(self.dtype)
        return np.tile(total, self.groups)

    def problems(self) -> list[str]:
        n = self.size * self.groups
        x = np.random.default_rng(self.seed).integers(-9, 9, n).astype(self.dtype)
        out = cf.zeros(n, self.dtype)
        cf.RawKernel(self.in_c(), "scan")((self.groups,), (self.size,), (cf.asarray(x), out))
        if (out.get() == self.wanted(x)).all():
            return []
        return [f"seed {self.seed}, {self.kind}: {out.get()}; NumPy: {self.wanted(x)}"]


def of_seed(seed: int) -> Tree | Scan:
    """Three trees, then a scan or tiles."""
    return Scan(seed) if seed % 4 == 3 else Tree(seed)


def run(seeds: Sequence[int]) -> list[str]:
    """What is wrong."""
    return [problem for seed in seeds for problem in of_seed(seed).problems()]


def main() -> int:
    """Run the command line; 1 if a value was wrong."""
    parser = parser_of_seeds("tests.fuzz.barriers", __doc__, "kernels", 200)
    parser.add_argument("--show", action="store_true", help="print it, run nothing")
    options = parser.parse_args()
    seeds = seeds_of(options)
    if options.show:
        for seed in seeds:
            print(of_seed(seed).in_c())
        return 0
    return ended(run(seeds), 20, f"{len(seeds)} kernels")


if __name__ == "__main__":
    sys.exit(main())
