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
import select
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

REPETITIONS = 9    # timed calls at most, of each library
WARMING = 3        # calls before: the third evaluation of an expression has its kernels
MOST_WARMING = 6   # at most, where the last one still built some,
WARMING_S = 10.0   # and within so many seconds
ENOUGH_S = 2.0     # after so many seconds of them no more are made
LIMIT_S = float(os.environ.get("NPBENCH_LIMIT", "100"))  # for one program under one library
ASLEEP_S = 0.5     # for so long at most one library's threads may stay awake after a call
SLOW = 3           # times NumPy's: programs that the summary names
RTOL = {"f4": 1e-3, "c8": 1e-3}
OTHERS_RTOL = 1e-6
WORKER = "--worker"

ELEMENTS = ("a loop over single elements and short rows, which NumPy calculates at the call: "
            "Python's time for an index, an operation, a write is several times NumPy's own")
ROWS = ("a loop over rows or windows of some hundred to some thousand elements, which NumPy "
        "calculates at the call: Python's time for an operation is more than NumPy's own")
REASONS = {
    **dict.fromkeys(
        ("cholesky", "durbin", "gramschmidt", "lu", "ludcmp", "nussinov",
         "scattering_self_energies", "seidel_2d", "spmv", "symm", "syr2k", "syrk", "trisolv",
         "trmm"), ELEMENTS),
    **dict.fromkeys(("adi", "cavity_flow", "channel_flow", "conv2d_bias", "deriche", "jacobi_1d",
                     "lenet", "nbody", "resnet"), ROWS),
}
"""Why programs are more than `SLOW` times slower than under NumPy."""


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


def work(checkout: Path, name: str, preset: str, out: Path, asked: int, told: int) -> None:
    """Call the program once for every byte that comes from the file `asked`, and tell how long it
    took; at its end pickle the results of the first call."""
    info = described(checkout, name)
    package = "npbench.benchmarks." + info["relative_path"].replace("/", ".")
    given = arguments_of(info, preset, package)
    function = getattr(importlib.import_module(f"{package}.{info['module_name']}_numpy"),
                       info["func_name"])
    results: list[Any] = []
    while os.read(asked, 1):
        own = {key: np.copy(given[key]) if key in info["array_args"] else given[key]
               for key in info["input_args"]}
        settle(*own.values())
        start, busy = time.perf_counter(), time.process_time()
        returned = function(*own.values())
        changed = [own[key] for key in info.get("output_args", ()) if key in own]
        values = [*changed, *flattened(returned)]
        settle(*values)
        elapsed, busy = time.perf_counter() - start, time.process_time() - busy
        programs = np.stats()["programs_built"] if hasattr(np, "stats") else 0
        if not results:
            results = [value.get() if hasattr(value, "get") else value for value in values]
        os.write(told, f"{elapsed} {busy} {programs}\n".encode())
    record = {"results": results, "stats": dict(np.stats()) if hasattr(np, "stats") else {}}
    out.write_bytes(pickle.dumps(record))


# -- the comparison --------------------------------------------------------------------------------


class Failure(Exception):
    """There is no record of a program, and why."""


class Contender:
    """A process that calls one program under one library, when it is told to."""

    def __init__(
        self, checkout: Path, name: str, preset: str, library: str, folder: Path,
        caches: Path | None = None,
    ) -> None:
        self.elapsed: list[float] = []
        self.processor: list[float] = []
        self.first = 0.0
        self.calls = self.programs = self.built = 0
        self._library = library
        self._out = folder / f"{name}.{library}"
        self._deadline = time.monotonic() + LIMIT_S
        asked, self._ask = os.pipe()
        self._answers, told = os.pipe()
        under = ["-m", "clfuse", "run", "--exact-random"] if library == "clfuse" else []
        # From standard input, in the checkout's folder: the programs there are the user's own then.
        command = [sys.executable, *under, "-", WORKER, str(checkout), name, preset,
                   str(self._out), str(asked), str(told)]
        home = str(Path(__file__).parent.parent)
        paths = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        if caches is not None:
            environment.update(XDG_CACHE_HOME=str(caches), POCL_CACHE_DIR=str(caches / "pocl"))
        self._errors = (folder / f"{name}.{library}.errors").open("w+")
        with Path(__file__).open() as script:
            self._process = subprocess.Popen(
                command, stdin=script, stdout=subprocess.DEVNULL, stderr=self._errors,
                cwd=checkout, env=environment, pass_fds=(asked, told))
        os.close(asked)
        os.close(told)

    def call(self) -> float:
        """Seconds that one more call has taken."""
        try:
            os.write(self._ask, b".")
        except BrokenPipeError:
            raise self._failure() from None
        answer = b""
        while not answer.endswith(b"\n"):
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise Failure(f"{self._library}: longer than {LIMIT_S} s")
            part = os.read(self._answers, 64)
            if not part:
                raise self._failure()
            answer += part
        elapsed, busy, programs = answer.split()
        self.built = int(programs) - self.programs
        self.programs = int(programs)
        self.elapsed.append(float(elapsed))
        self.processor.append(float(busy))
        self.calls += 1
        return self.elapsed[-1]

    def warm_up(self) -> None:
        """Make calls that are not timed, until there is nothing to build any more."""
        while self.calls < WARMING or (self.built and self.calls < MOST_WARMING):
            self.call()
            if sum(self.elapsed) > WARMING_S:
                break
        self.first = self.elapsed[0]
        self.elapsed.clear()
        self.processor.clear()

    def fall_asleep(self) -> None:
        """Wait until no thread of the process is awake: some spin for a while after their work, at
        the cost of whoever is timed next."""
        deadline = time.monotonic() + ASLEEP_S
        while self._is_awake() and time.monotonic() < deadline:
            time.sleep(0.002)

    def _is_awake(self) -> bool:
        threads = Path(f"/proc/{self._process.pid}/task")
        if not threads.is_dir():  # not Linux: as long as it may take
            return True
        # The state follows the name, which stands in brackets.
        for thread in threads.iterdir():
            try:
                state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:  # it has ended meanwhile
                continue
            if state == "R":
                return True
        return False

    def _failure(self) -> Failure:
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        return Failure(f"{self._library}: {said[-1] if said else f'exit code {code}'}")

    def record(self) -> Any:
        """What the process has found out; it ends."""
        os.close(self._ask)
        self._ask = -1
        if self._process.wait():
            raise self._failure()
        return pickle.loads(self._out.read_bytes())

    def end(self) -> None:
        """End the process, if it has not ended."""
        self._process.kill()
        self._process.wait()
        self._errors.close()
        for file in (self._ask, self._answers):
            if file >= 0:
                os.close(file)


def take_turns(numpys: Contender, ours: Contender) -> None:
    """Let both warm up, and then call the program in turns, `REPETITIONS` times."""
    both = (numpys, ours)
    for contender in both:
        contender.warm_up()
        contender.fall_asleep()
    while len(ours.elapsed) < REPETITIONS and (
            len(ours.elapsed) < 1 or sum(sum(one.elapsed) for one in both) < ENOUGH_S):
        for contender in both if len(ours.elapsed) % 2 else both[::-1]:
            contender.call()
            contender.fall_asleep()


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
    header = (
        "program", "NumPy ms", "clfuse ms", "ratio", "processor", "first ms", "kernels", "")
    print("| {:<24} | {:>9} | {:>9} | {:>7} | {:>9} | {:>8} | {:>7} | {}".format(*header),
          flush=True)
    wrong, slow, ratios, busy = [], [], [], []
    for name in names:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
            numpys, ours = [Contender(checkout, name, preset, library, Path(folder))
                            for library in ("numpy", "clfuse")]
            ending.callback(numpys.end)
            ending.callback(ours.end)
            try:
                take_turns(numpys, ours)
                expected, actual = numpys.record(), ours.record()
            except Failure as failure:
                print(f"| {name:<24} | {failure}", flush=True)
                wrong.append(name)
                continue
        reference, taken = [statistics.median(one.elapsed) for one in (numpys, ours)]
        problem = difference(actual["results"], expected["results"])
        launches = actual["stats"]["kernels_launched"] / ours.calls
        ratios.append(reference / taken)
        busy.append(min(numpys.processor) / min(ours.processor))
        print(f"| {name:<24} | {reference * 1e3:>9.1f} | {taken * 1e3:>9.1f} | "
              f"{ratios[-1]:>6.2f}x | {busy[-1]:>8.2f}x | {ours.first * 1e3:>8.0f} | "
              f"{launches:>7.0f} | {problem}", flush=True)
        if problem:
            wrong.append(name)
        if ratios[-1] < 1 / SLOW:
            slow.append(name)
    if ratios:
        print(f"median ratio of {len(ratios)} programs: {statistics.median(ratios):.2f}x, "
              f"of the least processor times: {statistics.median(busy):.2f}x")
    print(f"wrong: {', '.join(wrong) or 'none'}")
    for reason in sorted({REASONS.get(name, "no reason is known") for name in slow}):
        those = [name for name in slow if REASONS.get(name, "no reason is known") == reason]
        print(f"more than {SLOW} times NumPy's time: {', '.join(those)}: {reason}")
    return len(wrong)


def compare_first_calls(checkout: Path, names: list[str], preset: str) -> int:
    """Print a line for each program with the processor times of its first call in a process: NumPy,
    with nothing built before, and with what that run has left on disk; the number that failed.

    Elapsed times would not tell: what builds kernels shares the machine with whoever else is there.
    """
    header = ("program", "NumPy ms", "new ms", "kernels", "again ms", "kernels")
    print("| {:<24} | {:>9} | {:>9} | {:>7} | {:>9} | {:>7} |".format(*header), flush=True)
    totals, failed = [0.0] * 3, 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            figures = []
            try:
                for library in ("numpy", "clfuse", "clfuse"):
                    contender = Contender(
                        checkout, name, preset, library, Path(folder), Path(folder))
                    try:
                        contender.call()
                        contender.record()
                    finally:
                        contender.end()
                    figures.append((contender.processor[0], contender.built))
            except Failure as failure:
                print(f"| {name:<24} | {failure}", flush=True)
                failed += 1
                continue
        totals = [total + seconds for total, (seconds, _) in zip(totals, figures, strict=True)]
        line = [(round(seconds * 1e3, 1), built) for seconds, built in figures]
        print("| {:<24} | {:>9} | {:>9} | {:>7} | {:>9} | {:>7} |".format(
            name, line[0][0], *line[1], *line[2]), flush=True)
    print("seconds in all: NumPy {:.2f}, new {:.2f}, again {:.2f}".format(*totals))
    return failed


def main() -> int:
    if sys.argv[1:2] == [WORKER]:
        checkout, name, preset, out, asked, told = sys.argv[2:8]
        work(Path(checkout), name, preset, Path(out), int(asked), int(told))
        return 0
    parser = argparse.ArgumentParser(prog="ci/npbench", description=__doc__)
    parser.add_argument("checkout", type=Path, help="folder of a checkout of NPBench")
    parser.add_argument("names", nargs="*", help="programs; all by default")
    parser.add_argument("--preset", default="S", help="sizes: S, M, L or paper")
    parser.add_argument("--first", action="store_true",
                        help="processor times of first calls, with caches empty and filled")
    options = parser.parse_args()
    known = sorted(path.stem for path in (options.checkout / "bench_info").glob("*.json"))
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: there is {', '.join(known)}")
    measure = compare_first_calls if options.first else compare
    return min(measure(options.checkout.resolve(), options.names or known, options.preset), 100)


if __name__ == "__main__":
    sys.exit(main())
