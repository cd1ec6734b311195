"""``python -m tests.accuracy``; see the package's docstring."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import clfuse
from clfuse.tools.check.accuracy import errors, on_device
from clfuse.tools.check.functions import FUNCTIONS, Function
from clfuse.tools.check.points import operands
from tests.accuracy import bits, figures, sums

COUNT = 100_000
LARGEST = 100_000


def measured(function: Function, count: int, folder: Path | None) -> figures.Figures:
    """One function on the current device, and NumPy's."""
    from tests.accuracy.exact import exact

    given = operands(function, count)
    wanted = exact(function, given, folder)
    ours = errors(function, given, on_device(function, given), wanted)
    worst = mean = float("nan")
    with np.errstate(all="ignore"):
        numpys = function.calculate(np, given)
    if numpys is not None:
        theirs = errors(function, given, numpys, wanted)
        worst, mean = theirs.worst, theirs.mean
    where = ", ".join(repr(operand.item()) for operand in ours.where)
    return figures.Figures(ours.count, ours.worst, ours.mean, worst, mean, where)


def device_text() -> str:
    """The runtime and the processor."""
    device: Any = clfuse.get_device()
    return f"{device.platform_name} {device.traits.driver}, {device.name}, NumPy {np.__version__}"


def measure(options: argparse.Namespace) -> int:
    """Measure the functions that are named, and write what is new beside the rest."""
    known: dict[str, figures.Figures] = {}
    with suppress(FileNotFoundError):
        known = figures.read(options.runtime)[1]
    chosen = [function for function in FUNCTIONS
              if (not options.names or function.name in options.names)
              and (not options.dtype or function.dtype == options.dtype)]
    for place, function in enumerate(chosen, 1):
        begin = time.monotonic()
        known[function.label] = one = measured(function, options.count, options.exact)
        figures.write(options.runtime, device_text(), known)
        print(f"{place}/{len(chosen)} {function.label:24} worst {figures.number(one.worst)} mean "
              f"{figures.number(one.mean)}, NumPy {figures.number(one.numpy_worst)} "
              f"{figures.number(one.numpy_mean)}; of {one.count}, at {one.where}; "
              f"{time.monotonic() - begin:.1f} s", flush=True)
    return 0


def measure_sums(options: argparse.Namespace) -> int:
    """Compare sums with NumPy's, and write the largest ratios; 1 where one is too large."""
    ratios: dict[str, dict[str, float]] = {}
    worse = 0
    for dtype in sums.DTYPES:
        if options.dtype not in ("", dtype):
            continue
        calls = ratios.setdefault(dtype, {})
        for kind, (shape, axis) in itertools.product(sums.KINDS, sums.cases(options.largest)):
            for one in sums.compared(clfuse, dtype, kind, shape, axis):
                if one.call not in figures.IN_TABLE:
                    continue
                calls[one.call] = max(calls.get(one.call, 0.0), one.ratio)
                if not one.ratio <= figures.MORE_THAN_NUMPYS:
                    worse += 1
                    print(f"worse: {one}", flush=True)
        print(dtype, {call: round(ratio, 2) for call, ratio in calls.items()}, flush=True)
    if not options.dtype and options.largest == LARGEST:
        figures.write_sums(options.runtime, ratios)
    return 1 if worse else 0


def measure_bits(options: argparse.Namespace) -> int:
    """Compare bits with NumPy's; 1 where one differs."""
    wrong = 0
    for dtype in ("float16", "float32", "float64"):
        if options.dtype in ("", dtype):
            for name, found in bits.run(clfuse, dtype, options.count, every=options.all).items():
                wrong += found.wrong
                print(f"{dtype} {name}: {found.compared:,} compared, {found.wrong} wrong "
                      f"{found.example}", flush=True)
    return 1 if wrong else 0


def main(arguments: Sequence[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy")
    parser.add_argument("action", choices=["measure", "sums", "bits", "write"])
    parser.add_argument("names", nargs="*", help="functions (default: all)")
    parser.add_argument("--dtype", default="", help="only this one")
    parser.add_argument("--count", type=int, default=COUNT, help="points, or pairs (100,000)")
    parser.add_argument("--largest", type=int, default=LARGEST, help="elements, of sums (100,000)")
    parser.add_argument("--all", action="store_true", help="bits: all pairs of float16 (an hour)")
    parser.add_argument("--exact", type=Path, help="a folder that keeps the exact values")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {function.name for function in FUNCTIONS}
    if unknown:
        parser.error(f"no function {', '.join(sorted(unknown))}")
    if options.action == "write":
        figures.PAGE.write_text(figures.page(), encoding="utf-8")
        return 0
    platform = clfuse.get_device().platform_name
    found = [name for name, text in figures.RUNTIMES.items()
             if name in platform.lower() or (text == "PoCL" and "Portable" in platform)]
    if not found:
        parser.error(f"the page has no column for {platform}")
    options.runtime = found[0]
    if options.action == "measure":
        return measure(options)
    with clfuse.config.override(host_us=0, build_after_ms=0):
        return measure_sums(options) if options.action == "sums" else measure_bits(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
