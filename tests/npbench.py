"""NPBench's programs under NumPy and under ``python -m clfuse run``: results and times.

``bash ci/npbench CHECKOUT [names...]`` runs it. NPBench is not part of this repository: what is
read from the checkout is the description of each program (sizes, arguments) and the plain NumPy
version. Every program runs in a process of its own for each library, with the same random numbers.

Source: https://github.com/spcl/npbench
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

REPETITIONS = 7    # timed calls at most
ENOUGH_S = 1.0     # after so many seconds of them no more are made
LIMIT_S = 100      # for one program under one library
SLOW = 3           # times NumPy's: programs that the summary names
RTOL = {"f4": 1e-3, "c8": 1e-3}
OTHERS_RTOL = 1e-6
WORKER = "--worker"


# -- one program under one library: this part runs under clfuse, where `np` is clfuse --------------


def described(checkout: Path, name: str) -> dict[str, Any]:
    found = json.loads((checkout / "bench_info" / f"{name}.json").read_text())
    return dict(found["benchmark"])


def arguments_of(info: dict[str, Any], preset: str, package: str) -> dict[str, Any]:
    """The parameters of the preset, and what the program's own initialisation makes of them."""
    values = dict(info["parameters"][preset])
    how = info.get("init")
    if how:
        module = importlib.import_module(f"{package}.{info['module_name']}")
        made = getattr(module, how["func_name"])(*[values[key] for key in how["input_args"]])
        names = how["output_args"]
        values.update(zip(names, made if len(names) > 1 else (made,), strict=True))
    return values


def settle(*values: Any) -> None:
    """Wait until the values are computed; NumPy's are."""
    if hasattr(np, "evaluate"):
        np.evaluate(*[value for value in values if hasattr(value, "get")])
        np.synchronize()


def flattened(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in flattened(part)]
    return [] if value is None else [value]


def work(checkout: Path, name: str, preset: str, out: Path) -> None:
    """Call the program, first once, then `REPETITIONS` times; pickle results and times."""
    info = described(checkout, name)
    package = "npbench.benchmarks." + info["relative_path"].replace("/", ".")
    given = arguments_of(info, preset, package)
    function = getattr(importlib.import_module(f"{package}.{info['module_name']}_numpy"),
                       info["func_name"])
    elapsed: list[float] = []
    results: list[Any] = []
    while len(elapsed) <= REPETITIONS and (len(elapsed) < 2 or sum(elapsed[1:]) < ENOUGH_S):
        own = {key: np.copy(given[key]) if key in info["array_args"] else given[key]
               for key in info["input_args"]}
        settle(*own.values())
        start = time.perf_counter()
        returned = function(*own.values())
        changed = [own[key] for key in info.get("output_args", ()) if key in own]
        values = [*changed, *flattened(returned)]
        settle(*values)
        elapsed.append(time.perf_counter() - start)
        if not results:
            results = [value.get() if hasattr(value, "get") else value for value in values]
    record = {"results": results, "elapsed": elapsed,
              "stats": dict(np.stats()) if hasattr(np, "stats") else {}}
    out.write_bytes(pickle.dumps(record))


# -- the comparison --------------------------------------------------------------------------------



def run(checkout: Path, name: str, preset: str, library: str, folder: Path) -> Any:
    """The record of one program under one library, or the reason why there is none."""
    out = folder / f"{name}.{library}"
    under = ["-m", "clfuse", "run", "--exact-random"] if library == "clfuse" else []
    # From standard input, in the checkout's folder: the programs there are then the user's own.
    command = [sys.executable, *under, "-", WORKER, str(checkout), name, preset, str(out)]
    home = str(Path(__file__).parent.parent)
    paths = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, input=Path(__file__).read_text(), capture_output=True,
                              text=True, timeout=LIMIT_S, check=False, cwd=checkout,
                              env=environment)
    except subprocess.TimeoutExpired:
        return f"longer than {LIMIT_S} s"
    if done.returncode or not out.exists():
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return pickle.loads(out.read_bytes())


def difference(actual: list[Any], expected: list[Any]) -> str:
    """What is wrong with the results; nothing: an empty text."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, NumPy has {len(expected)}"
    for number, (one, other) in enumerate(zip(actual, expected, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        if one.dtype != other.dtype or one.shape != other.shape:
            return (f"result {number}: {one.dtype}{list(one.shape)}, NumPy has "
                    f"{other.dtype}{list(other.shape)}")
        if not other.size:
            continue
        if other.dtype.kind not in "fc":
            wrong = int((one != other).sum())
        else:
            rtol = RTOL.get(f"{other.dtype.kind}{other.dtype.itemsize}", OTHERS_RTOL)
            finite = np.abs(other[np.isfinite(other)])
            scale = float(finite.max()) if finite.size else 0.0
            wrong = int((~np.isclose(one, other, rtol, rtol * scale, equal_nan=True)).sum())
        if wrong:
            return f"result {number}: {wrong} of {other.size} elements differ"
    return ""


def compare(checkout: Path, names: list[str], preset: str) -> int:
    """Print a line for each program; the number of those whose results are wrong or missing."""
    header = ("program", "NumPy ms", "clfuse ms", "ratio", "first ms", "kernels", "")
    print("| {:<24} | {:>9} | {:>9} | {:>7} | {:>8} | {:>7} | {}".format(*header), flush=True)
    wrong, slow = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            expected = run(checkout, name, preset, "numpy", Path(folder))
            if isinstance(expected, str):
                print(f"| {name:<24} | NumPy: {expected}", flush=True)
                continue
            reference = statistics.median(expected["elapsed"][1:])
            actual = run(checkout, name, preset, "clfuse", Path(folder))
            if isinstance(actual, str):
                print(f"| {name:<24} | {reference * 1e3:>9.1f} | clfuse: {actual}", flush=True)
                wrong.append(name)
                continue
            taken = statistics.median(actual["elapsed"][1:])
            problem = difference(actual["results"], expected["results"])
            launches = actual["stats"]["kernels_launched"] / len(actual["elapsed"])
            print(f"| {name:<24} | {reference * 1e3:>9.1f} | {taken * 1e3:>9.1f} | "
                  f"{reference / taken:>6.2f}x | {actual['elapsed'][0] * 1e3:>8.0f} | "
                  f"{launches:>7.0f} | {problem}", flush=True)
            if problem:
                wrong.append(name)
            if taken > SLOW * reference:
                slow.append(name)
    print(f"wrong: {', '.join(wrong) or 'none'}; more than {SLOW} times NumPy's time: "
          f"{', '.join(slow) or 'none'}")
    return len(wrong)


def main() -> int:
    if sys.argv[1:2] == [WORKER]:
        checkout, name, preset, out = sys.argv[2:6]
        work(Path(checkout), name, preset, Path(out))
        return 0
    parser = argparse.ArgumentParser(prog="ci/npbench", description=__doc__)
    parser.add_argument("checkout", type=Path, help="folder of a checkout of NPBench")
    parser.add_argument("names", nargs="*", help="programs; all by default")
    parser.add_argument("--preset", default="S", help="sizes: S, M, L or paper")
    options = parser.parse_args()
    known = sorted(path.stem for path in (options.checkout / "bench_info").glob("*.json"))
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: there is {', '.join(known)}")
    return min(compare(options.checkout.resolve(), options.names or known, options.preset), 100)


if __name__ == "__main__":
    sys.exit(main())
