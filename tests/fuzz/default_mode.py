"""Many short processes in the default mode, with background threads: none hangs, crashes, is wrong
or ends late.

    python -m tests.fuzz.default_mode --processes 500 --device pocl
    python -m tests.fuzz.default_mode --seed 17 --device intel

Each process (`tests.fuzz.default_process`) runs random programs in threads, pools and forked
processes, with imports of large packages and collections of garbage beside them, and ends in a
random way. Caches are empty or shared by all processes. Of one that hangs the stacks are printed,
by faulthandler, and by gdb where it is installed.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from tests.fuzz.command_line import ended, parser_of_seeds
from tests.fuzz.default_process import LAST_LINE, Plan, draw_plan

ROOT: Final = Path(__file__).resolve().parents[2]

HANGS_S: Final = 500
"""Seconds after which a process hangs."""

LATE_S: Final = 6.0
"""Seconds from the last line to the end of a process, from which on that is late."""

STATUSES: Final = {
    "normal": (0,), "sys.exit": (7,), "error": (1,), "_exit": (9,), "interrupt": (0, -2),
    "interrupt_twice": (0, -2), "terminate": (0, -15), "terminate_handled": (0, 11),
    "threads_left": (0,), "exit_in_del": (0,),
}  # fmt: skip
"""Way to end -> what the process may return."""

SIGNALS: Final = {
    "interrupt": signal.SIGINT, "interrupt_twice": signal.SIGINT, "terminate": signal.SIGTERM,
    "terminate_handled": signal.SIGTERM,
}  # fmt: skip

BAD: Final = re.compile(
    r"Fatal|Segmentation|terminate called|Exception ignored|Aborted|core dumped|free\(\)|corrupt"
    r"|Warning: |deadlock|pocl error",
)
"""What no process may say on its standard error."""

ENDED_BY: Final = {"error": "RuntimeError: the end", "interrupt": "KeyboardInterrupt",
                   "interrupt_twice": "KeyboardInterrupt"}


@dataclass
class Result:
    """How one process went."""

    plan: Plan
    settings: dict[str, str]
    problem: str
    late_s: float = 0.0
    said: str = field(default="", repr=False)

    def __str__(self) -> str:
        chosen = " ".join(f"{k}={v}" for k, v in self.settings.items())
        return f"{self.plan}\n  {chosen}\n  {self.problem}\n{self.said}"


def _settings(draw: random.Random, device: str, folder: Path) -> dict[str, str]:
    """Environment variables of one process."""
    cache = folder / "warm" if draw.random() < 0.5 else Path(tempfile.mkdtemp(dir=folder))
    (cache / "tmp").mkdir(parents=True, exist_ok=True)
    chosen = {"CLFUSE_DEVICE": device, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(cache / "tmp")}
    if draw.random() < 0.3:
        chosen["CLFUSE_HOST_US"] = "0"
    if draw.random() < 0.4:
        chosen["CLFUSE_BUILD_AFTER_MS"] = draw.choice(["0", "1", "20"])
    if draw.random() < 0.2:
        chosen["CLFUSE_BACKGROUND"] = "on"
    return chosen


def run_one(seed: int, device: str, folder: Path, *, late_s: float = LATE_S) -> Result:
    """Run the process of a seed."""
    plan, draw = draw_plan(seed), random.Random(seed + 2)
    settings = _settings(draw, device, folder)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("CLFUSE_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.default_process", str(seed)],
        env=inherited | {"PYTHONPATH": str(ROOT)} | settings, cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    said: list[list[str]] = [[], []]
    readers = [
        threading.Thread(target=_read, args=(stream, lines), daemon=True)
        for stream, lines in zip((process.stdout, process.stderr), said, strict=True)
        if stream is not None
    ]
    for reader in readers:
        reader.start()
    if plan.end in SIGNALS:
        _disturb(process, plan, draw, said[0])
    late: list[str] = []
    try:
        status = _wait(process, said[0], late)
        ended_at = time.time()
    except subprocess.TimeoutExpired:
        stacks = _stacks(process)
        os.killpg(process.pid, signal.SIGABRT)
        time.sleep(3)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        problem = f"hangs\n{stacks}"
    else:
        # The system may name the processes of a fork that goes on; they are ended, too.
        for reader in readers:
            reader.join(5)
        problem, taken_s = _judge(plan, status, "".join(said[0]), "".join(said[1]), ended_at)
        if taken_s > late_s:
            late_text = f"ends {taken_s:.1f} s after its last line"
            problem = f"{problem}; {late_text}" if problem else late_text
        _kill_rest(process.pid)
        if not problem:
            _forget(settings, folder)
            return Result(plan, settings, "", taken_s)
    text = "".join(said[0])[-3000:] + "".join(said[1])[-9000:] + "".join(late)[-9000:]
    _forget(settings, folder)
    return Result(plan, settings, problem, 0.0, text)


def _wait(process: subprocess.Popen[str], said: list[str], late: list[str]) -> int:
    """The status of a process. Where it ends late, py-spy says what its threads do, if there."""
    begin, last = time.monotonic(), None
    while True:
        try:
            return process.wait(0.05)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if now - begin > HANGS_S:
                raise
        if last is None and said and said[-1].startswith(LAST_LINE):
            last = now
        spy = shutil.which("py-spy")
        if last is not None and now - last > LATE_S * 0.2 and not late and spy is not None:
            asked = subprocess.run(
                [spy, "dump", "--native", "--pid", str(process.pid)], capture_output=True,
                text=True, timeout=60, check=False,
            )  # fmt: skip
            late.append(asked.stdout)


def _read(stream: IO[str], lines: list[str]) -> None:
    with stream:
        lines.extend(iter(stream.readline, ""))


def _disturb(
    process: subprocess.Popen[str], plan: Plan, draw: random.Random, said: list[str]
) -> None:
    """Send the signal, a while after the process has begun."""
    end = time.monotonic() + HANGS_S
    while not said and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(draw.choice([draw.random() * 0.5, draw.random() * 4]))
    for _ in range(2 if plan.end == "interrupt_twice" else 1):
        if process.poll() is None:
            process.send_signal(SIGNALS[plan.end])
            time.sleep(draw.random() * 0.3)


def _kill_rest(group: int) -> None:
    """End what the process has started and left."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _forget(settings: dict[str, str], folder: Path) -> None:
    cache = Path(settings["XDG_CACHE_HOME"])
    if cache.name != "warm" and cache.parent == folder:
        shutil.rmtree(cache, ignore_errors=True)


def _judge(plan: Plan, status: int, out: str, err: str, ended_at: float) -> tuple[str, float]:
    """What is wrong, and how many seconds after its last line the process has ended."""
    is_disturbed = plan.end in SIGNALS
    problems = []
    if status not in STATUSES[plan.end]:
        problems.append(f"status {status}")
    if "wrong:" in out and not is_disturbed:
        problems.append("wrong values")
    if found := BAD.search(err):
        problems.append(f"says {found[0]!r}")
    last = err.strip().rsplit("\n", 1)[-1]
    if err.strip() and not plan.end.startswith("terminate") and (
        plan.end not in ENDED_BY or ENDED_BY[plan.end] not in last
    ):
        problems.append(f"says {last!r}")
    late_s = 0.0
    if found := re.search(rf"^{LAST_LINE} ([0-9.]+)$", out, re.MULTILINE):
        late_s = ended_at - float(found[1])
    return "; ".join(problems), late_s


def _stacks(process: subprocess.Popen[str]) -> str:
    """The native stacks of all threads of a process and of those that it has started."""
    debugger = shutil.which("gdb")
    if debugger is None:
        return ""
    found = []
    for number in _family(process.pid):
        try:
            asked = subprocess.run(
                [debugger, "-p", str(number), "-batch", "-ex", "thread apply all bt 40"],
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            continue
        found.append(f"process {number}\n{asked.stdout[-12000:]}")
    return "\n".join(found)


def _family(group: int) -> list[int]:
    """The processes of a group."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if os.getpgid(int(folder.name)) == group:
                    found.append(int(folder.name))
            except ProcessLookupError:
                continue
    return found


def main() -> int:
    """Run the command line; 1 if anything was wrong."""
    parser = parser_of_seeds("tests.fuzz.default_mode", __doc__, "processes", 100)
    parser.add_argument("--device", default="pocl", help="CLFUSE_DEVICE, or several (default pocl)")
    parser.add_argument("--workers", type=int, default=1, help="processes at once (default 1)")
    parser.add_argument("--log", type=Path, help="also append each problem to this file")
    options = parser.parse_args()
    seeds = (
        [options.seed]
        if options.seed is not None
        else range(options.start, options.start + options.count)
    )
    problems: list[str] = []
    late: list[float] = []
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(options.workers) as pool:
        devices = options.device.split(",")

        def run(seed: int) -> Result:
            return run_one(seed, devices[seed % len(devices)], Path(name))

        for result in pool.map(run, seeds):
            late.append(result.late_s)
            if result.problem:
                problems.append(str(result))
                print(result, flush=True)
            if options.log is not None:
                with options.log.open("a") as log:
                    log.write(f"{result.plan.seed} {result.late_s:.2f} {result.problem[:100]}\n")
    print(f"the last to end took {max(late):.2f} s after its last line")
    return ended(problems, 0, f"{len(seeds)} processes")


if __name__ == "__main__":
    sys.exit(main())
