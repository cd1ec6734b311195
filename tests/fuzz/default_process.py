"""A short process in the default mode: random programs, threads, imports, forks, a random end.

    python -m tests.fuzz.default_process 17

The seed says all that the process does. Its last line of standard output is ``at the end``; a line
before it that begins with ``wrong`` names a value that is not NumPy's. `tests.fuzz.default_mode`
starts such processes, and looks at how they end.
"""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures
import faulthandler
import gc
import importlib
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any, Final

__all__ = ["ENDS", "HEAVY", "LAST_LINE", "Plan", "draw_plan"]

LAST_LINE: Final = "at the end"

HEAVY: Final = (
    "scipy.linalg", "scipy.sparse", "scipy.signal", "scipy.stats", "scipy.ndimage", "scipy.fft",
    "matplotlib.pyplot", "pandas", "numba", "PIL.Image", "h5py", "cv2", "numexpr", "sqlite3",
    "ssl", "ctypes", "decimal", "lxml.etree", "numpy.testing", "unittest.mock",
)  # fmt: skip
"""Extension modules that take long to import. Those that are not installed are left out."""

ENDS: Final = {
    "normal": 4, "sys.exit": 2, "error": 2, "interrupt": 4, "interrupt_twice": 1, "_exit": 1,
    "terminate": 2, "terminate_handled": 1, "threads_left": 2, "exit_in_del": 1,
}  # fmt: skip
"""Ways to end, and how often each is drawn. ``interrupt`` and ``terminate`` come from the parent,
at any time."""

BESIDE: Final = (
    "nothing", "imports", "imports", "collects", "both", "destructors", "destructors", "alarms",
)  # fmt: skip
"""What else goes on while programs run: the last two look at arrays, in destructors that the
collector calls, and in a signal's handler."""

PARTS: Final = {
    "plain": 5, "threads": 3, "pool": 1, "process_pool": 1, "fork": 2, "forkserver": 1, "spawn": 1,
    "asyncio": 1, "os.fork": 1, "subprocess": 1, "fork_in_threads": 2,
}  # fmt: skip
"""Who runs the programs, and how often it is drawn."""

FORKS: Final = ("fork", "process_pool", "os.fork", "fork_in_threads")

CHILD_S: Final = 200
"""Seconds after which a process that was started here is one that hangs."""


@dataclass(frozen=True)
class Plan:
    """What one process does."""

    seed: int
    parts: tuple[str, ...]
    beside: str
    end: str
    rounds: int
    pause_s: float
    """Before the end."""


def draw_plan(seed: int) -> Plan:
    """The plan of a seed."""
    draw = random.Random(seed)
    parts = tuple(draw.choices(list(PARTS), list(PARTS.values()), k=draw.randint(1, 3)))
    end = draw.choices(list(ENDS), list(ENDS.values()))[0]
    beside = draw.choice(BESIDE)
    if any(part in FORKS for part in parts) and beside == "imports":
        beside = "collects"  # a module's lock that another thread holds stays locked in a fork
    if any(part in FORKS for part in parts) and beside == "both":
        beside = "collects"
    return Plan(
        seed, parts, beside, end, draw.choice([1, 1, 2]), draw.choice([0, 0, 0, 0.05, 0.3])
    )


WRITTEN: Final = ("kernels", "texts_in_c")
"""Programs with kernels that somebody wrote, which a forked process cannot run."""


def run_programs(
    seed: int, rounds: int, *, is_forked: bool = False, is_short: bool = False
) -> list[str]:
    """Run random programs under clfuse and NumPy; what differs."""
    import numpy as np

    import clfuse as cf
    from tests.fuzz import generate, long, runner

    draw = random.Random(seed)
    left_out = ("mistakes", "functions_of_its_own", *(WRITTEN if is_forked else ()))
    names = [n for n in long.PROGRAMS if n not in left_out]
    problems: list[str] = []
    for _ in range(rounds):
        if draw.random() < 0.3 and not is_short:
            one = draw.randrange(1 << 30)
            found = runner.check(generate.generate(one), cf)
            if found is not None:
                problems.append(f"generated {one}: {found}")
            continue
        name, one = draw.choice(names), draw.randrange(1 << 30)
        for _ in range(draw.choice([1, 2, 6])):  # so that it earns its kernels
            program = long.PROGRAMS[name][0]
            with np.errstate(all="ignore"):
                found_values = long.looked(program(cf, random.Random(one)))
                problem = long.difference(
                    found_values, long.looked(program(np, random.Random(one)))
                )
            if problem:
                problems.append(f"{name}, seed {one}: {problem}")
        if draw.random() < 0.5:
            problem = _large(cf, np, draw)
            if problem:
                problems.append(problem)
    return problems


def _large(cf: ModuleType, np: ModuleType, draw: random.Random) -> str:
    """Whole numbers in an array that earns its kernels at once, or nearly so."""
    size, factor = draw.choice([3000, 200_000, 600_000]), draw.randrange(2, 9)
    kind = draw.randrange(4)

    def program(xp: Any) -> Any:
        x = xp.arange(size, dtype=float) % 13
        for number in range(kind + 1):
            x = xp.maximum(x * factor, x - number) % 17
        return x.sum() if kind % 2 else x.cumsum()

    for _ in range(draw.choice([1, 3, 10])):
        if not np.array_equal(np.asarray(program(cf)), program(np)):
            return f"large {size} {factor} {kind}"
    return ""


def _say(problems: list[str]) -> None:
    for problem in problems:
        print("wrong:", " ".join(problem.split())[:2000], flush=True)


def _task(seed: int, *, is_short: bool = False) -> list[str]:
    faulthandler.dump_traceback_later(CHILD_S, exit=True)
    try:
        return run_programs(seed, 1 if is_short else 2, is_forked=True, is_short=is_short)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _in_child(seed: int) -> None:
    """In a process of its own: its status says whether anything was wrong."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    found = _task(seed)
    _say(found)
    sys.exit(3 if found else 0)


def _in_threads(seed: int, rounds: int) -> list[str]:
    problems: list[str] = []

    def work(number: int) -> None:
        try:
            problems.extend(run_programs(seed + number, rounds))
        except Exception:
            problems.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1 + seed % 4)]
    for thread in threads:
        thread.start()
    problems.extend(run_programs(seed - 1, 1))
    for thread in threads:
        thread.join()
    return problems


def _fork_in_threads(seed: int) -> list[str]:
    problems = run_programs(seed, 1)
    is_over = threading.Event()

    def work(number: int) -> None:
        while not is_over.is_set():
            number += 7
            problems.extend(run_programs(number, 1, is_short=True))

    threads = [threading.Thread(target=work, args=(seed + n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(3):
            problems += _in_os_fork(seed + number, is_short=True)
    finally:
        is_over.set()
    for thread in threads:
        thread.join()
    return problems


def _in_process(way: str, seed: int) -> list[str]:
    context: Any = multiprocessing.get_context(way)
    process = context.Process(target=_in_child, args=(seed,))
    process.start()
    problems = run_programs(seed + 1, 1)
    process.join(2 * CHILD_S)
    if process.exitcode is None:
        process.kill()
        return [*problems, f"{way}: the process hangs"]
    return [*problems, *([f"{way}: status {process.exitcode}"] if process.exitcode else [])]


def _in_os_fork(seed: int, *, is_short: bool = False) -> list[str]:
    child = os.fork()
    if not child:
        status = 4
        try:
            found = _task(seed, is_short=is_short)
            _say(found)
            status = 3 if found else 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    problems = run_programs(seed + 1, 1, is_short=is_short)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [*problems, *([f"os.fork: status {status}"] if status else [])]


async def _in_loop(seed: int) -> list[str]:
    loop = asyncio.get_running_loop()
    others = [loop.run_in_executor(None, run_programs, seed + n, 1) for n in range(2)]
    own = run_programs(seed, 1)
    await asyncio.sleep(0)
    return own + [problem for found in await asyncio.gather(*others) for problem in found]


def _run_part(part: str, seed: int, rounds: int) -> list[str]:
    if part == "plain":
        return run_programs(seed, rounds)
    if part == "threads":
        return _in_threads(seed, rounds)
    if part == "pool":
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            return [p for found in pool.map(_task_in_thread, range(seed, seed + 4)) for p in found]
    if part == "process_pool":
        way: Any = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=way) as processes:
            return [p for found in processes.map(_task, range(seed, seed + 3)) for p in found]
    if part == "fork_in_threads":
        return _fork_in_threads(seed)
    if part == "os.fork":
        return _in_os_fork(seed)
    if part == "asyncio":
        return asyncio.run(_in_loop(seed))
    if part == "subprocess":
        import subprocess

        subprocess.run([sys.executable, "-c", "pass"], check=True, preexec_fn=os.getpid)
        return run_programs(seed, 1)
    return _in_process(part, seed)


def _task_in_thread(seed: int) -> list[str]:
    return run_programs(seed, 1)


def _beside(what: str, draw: random.Random) -> Callable[[], None]:
    """Begin what goes on beside the programs; the function ends it."""
    is_over = threading.Event()

    def collect() -> None:
        while not is_over.is_set():
            gc.collect()
            time.sleep(0.001)

    def imports(names: list[str]) -> None:
        for name in names:
            if is_over.wait(draw.random() * 0.2):
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    importlib.import_module(name)
                except ImportError:
                    continue

    threads = []
    if what == "destructors":
        import clfuse as cf
        from tests.fuzz import generate, long, runner  # noqa: F401 (a fork may not see half of it)

        threads.append(threading.Thread(target=_leave_circles, args=(cf, is_over), daemon=True))
    if what == "alarms":
        import clfuse as cf

        _look_at_alarms(cf, is_over)
    if what in ("collects", "both"):
        threads.append(threading.Thread(target=collect, daemon=True))
    if what in ("imports", "both"):
        names = draw.sample(HEAVY, 3)
        threads.append(threading.Thread(target=imports, args=(names,), daemon=True))
    for thread in threads:
        thread.start()

    return is_over.set


class _Circle:
    """Looks at an array when the collector finds it."""

    def __init__(self, array: Any) -> None:
        self.array, self.itself = array, self

    def __del__(self) -> None:
        (self.array * 2).tolist()


def _leave_circles(cf: ModuleType, is_over: threading.Event) -> None:
    while not is_over.wait(0.002):
        _Circle(cf.arange(random.choice([10, 3000])) + 1)


def _look_at_alarms(cf: ModuleType, is_over: threading.Event) -> None:
    x = cf.arange(3000.0)

    def look(number: int, frame: FrameType | None) -> None:
        if not is_over.is_set():
            if (x * 2 + 1)[1].item() != 3:
                _say(["the value in a signal's handler"])
            signal.setitimer(signal.ITIMER_REAL, 0.005)  # one at a time

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.005)


class _Last:
    """Looks at an array when it goes, as late as that is."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __del__(self) -> None:
        self.array.tolist()


def _end(plan: Plan) -> None:
    import clfuse as cf

    time.sleep(plan.pause_s)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    if plan.end == "threads_left":
        for number in range(2):
            threading.Thread(
                target=_for_ever, args=(plan.seed + number,), daemon=True
            ).start()
        time.sleep(random.Random(plan.seed).random() * 0.3)
    if plan.end == "exit_in_del":
        builtins.kept = _Last(cf.arange(1000.0) + 1)  # type: ignore[attr-defined]
    print(LAST_LINE, repr(time.time()), flush=True)
    if plan.end == "sys.exit":
        sys.exit(7)
    if plan.end == "error":
        raise RuntimeError("the end")
    if plan.end == "_exit":
        os._exit(9)
    if plan.end in ("terminate", "terminate_handled", "interrupt", "interrupt_twice"):
        time.sleep(0.05)  # the parent's signal may come here, or have come before, or come too late


def _for_ever(seed: int) -> None:
    while True:
        seed += 7
        run_programs(seed, 1)


def _terminated(number: int, frame: FrameType | None) -> None:
    sys.exit(11)


def main() -> None:
    """Do what the plan of the seed says."""
    faulthandler.enable()
    # Python says so of every fork in a process that has threads, from 3.12 on.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    plan = draw_plan(int(sys.argv[1]))
    if plan.end == "terminate_handled":
        signal.signal(signal.SIGTERM, _terminated)
    print("started", plan, flush=True)
    draw = random.Random(plan.seed + 1)
    if draw.random() < 0.3:
        sys.setswitchinterval(1e-5)
    end_beside = _beside(plan.beside, draw)
    try:
        for part in plan.parts:
            _say(_run_part(part, draw.randrange(1 << 30), plan.rounds))
    finally:
        if draw.random() < 0.6:
            end_beside()
    _end(plan)
    end_beside()


if __name__ == "__main__":
    main()
