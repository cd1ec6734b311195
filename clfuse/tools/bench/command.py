"""``python -m clfuse bench``: reads its command line and runs what it asks for."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["main"]

RECORDING = "recording"
KERNELS = "kernels"
VALLEY = "valley"
FUNCTIONS = "functions"
# What is left of the largest index that 32 bits hold.
MOST_SCALE = 64
# Where compiled kernels are kept between runs; pointing them at an empty folder makes a first run a
# cold one.
CACHE_VARIABLES = (
    "XDG_CACHE_HOME",
    "POCL_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the benchmark's command line."""
    from .programs import PROGRAMS

    parser = argparse.ArgumentParser(
        prog="python -m clfuse bench",
        description="Ratios to NumPy, to other compilers and to hand-written OpenCL, from one run.",
        epilog=f"programs: {', '.join(PROGRAMS)}; {RECORDING}: what recording and planning cost; "
        f"{KERNELS}: kernels in Python beside array code, OpenCL C and Numba, all of "
        "their programs or those that are named with it; "
        f"{VALLEY}: loops from their first round on, beside NumPy (minutes); "
        f"{FUNCTIONS}: single calls of all functions, or of those that are named with it (minutes)",
    )
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help="which programs (default: all)"
    )
    parser.add_argument(
        "--list", action="store_true", help="show the programs and what they compute"
    )
    parser.add_argument("--device", metavar="SPEC", help="which device, as in CLFUSE_DEVICE")
    parser.add_argument(
        "--peers",
        metavar="NAMES",
        help="numexpr,cupy,jax,torch or part of them, or none (default: those installed)",
    )
    parser.add_argument("--limit", action="store_true", help="also the kernels written by hand")
    parser.add_argument("--unfused", action="store_true", help="also clfuse without fusion")
    parser.add_argument(
        "--repeat", type=int, default=9, metavar="N", help="repetitions of each (default: 9)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small inputs: whether it works, not how fast it is"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1,
        metavar="X",
        help="X times the usual number of elements, 8 for a large GPU (default: 1)",
    )
    parser.add_argument(
        "--cold", action="store_true", help="start with empty caches of compiled kernels"
    )
    parser.add_argument(
        "--tune",
        action="store_true",
        help="measure what the planner assumes of the device, try other geometries for the kernels "
        "of the programs, and keep both for later programs (CLFUSE_TUNING=off ignores it)",
    )
    parser.add_argument(
        "--traffic", action="store_true",
        help="count the memory traffic that the programs would have on an H100, under Oclgrind "
        "(it takes minutes, and no GPU); times nothing",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write everything that was measured"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    parser.add_argument(
        "--chart", type=Path, metavar="FILE", help="draw the ratios to NumPy (needs matplotlib)"
    )
    options = parser.parse_args(arguments)
    options.kernels = []
    options.valley = VALLEY in options.programs
    options.functions = FUNCTIONS in options.programs
    if options.functions:
        from .functions import CALLS, calls, names_of

        options.programs.remove(FUNCTIONS)
        unknown = set(options.programs) - names_of(calls())
        if unknown:
            parser.error(f"no function {', '.join(sorted(unknown))} among these: {CALLS}")
        return options
    if options.valley:
        from .valley import PROGRAMS as LOOPS

        unknown = set(options.programs) - set(LOOPS) - {VALLEY}
        if unknown:
            parser.error(f"no loop {', '.join(sorted(unknown))}; there are {', '.join(LOOPS)}")
        options.programs.remove(VALLEY)
        return options
    if KERNELS in options.programs:
        from .kernel_programs import programs

        written = {program.name for program in programs(quick=True)}
        options.kernels = [name for name in options.programs if name in written]
        options.programs = [name for name in options.programs if name not in written]
    unknown = set(options.programs) - set(PROGRAMS) - {RECORDING, KERNELS}
    if unknown:
        parser.error(
            f"no program {', '.join(sorted(unknown))}; "
            f"there are {', '.join([*PROGRAMS, RECORDING, KERNELS])}"
        )
    if options.repeat < 1:
        parser.error(f"--repeat {options.repeat}: it takes a number from 1")
    if not 0 < options.scale <= MOST_SCALE:
        parser.error(f"--scale {options.scale}: it takes a number above 0, up to {MOST_SCALE}")
    return options


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; the exit code is 1 when clfuse's or a hand-written kernel's result was
    wrong."""
    options = parse(arguments)
    if options.list:
        from .programs import PROGRAMS

        for name, program in PROGRAMS.items():
            print(f"{name:20}{program.what}")
        return 0
    if options.valley or options.functions:
        from . import functions, valley

        table: Any = valley if options.valley else functions
        sizes = table.SIZES[:2] if options.quick else table.SIZES
        for line in table.lines(options.programs, sizes=sizes):
            print(line, flush=True)
        return 0
    if options.tune:
        return run_tuning(options)
    if options.traffic:
        return run_traffic(options)
    if not options.cold:
        return run(options)
    with tempfile.TemporaryDirectory(prefix="clfuse-cold-", ignore_cleanup_errors=True) as folder:
        for name in CACHE_VARIABLES:
            os.environ[name] = os.path.join(folder, name.lower())
        return run(options)


def run(options: argparse.Namespace) -> int:
    """Measure what the command line asks for, and write it."""
    import clfuse

    from . import kernels, measure, recording, table
    from .contenders import Clfuse, Contender, Jit
    from .limit import Copy, Limit
    from .programs import PROGRAMS

    if options.device is not None:
        clfuse.set_device(options.device)
    device = clfuse.get_device()
    context = describe(device)
    title = f"{device.name} ({device.platform_name}), {context['when']}"
    print(f"measuring on {title}", file=sys.stderr, flush=True)

    on_gpu = device.kind == "gpu"
    contenders: list[Contender] = [Clfuse(), Jit(), *peers(options.peers, on_gpu=on_gpu)]
    if options.unfused:
        contenders.append(Clfuse(fusion=False))
    if options.limit:
        contenders.append(Limit(device))
    chosen = (
        [name for name in options.programs if name not in (RECORDING, KERNELS)]
        if options.programs
        else list(PROGRAMS)
    )
    rows = []
    for name in chosen:
        copy = Copy(device, 1_000_000) if options.quick else Copy(device)
        rows.append(
            measure.measure(
                PROGRAMS[name],
                contenders,
                quick=options.quick,
                scale=options.scale,
                repetitions=options.repeat,
                copy=copy,
                progress=lambda stage, name=name: show_progress(f"{name}: {stage}"),  # type: ignore[misc]
            )
        )
    show_progress("")
    figures = []
    if not options.programs or RECORDING in options.programs:
        show_progress("recording")
        figures = list(recording.figures(quick=options.quick))
        show_progress("")

    written: list[str] = []
    if KERNELS in options.programs:
        show_progress(KERNELS)
        for line in kernels.lines(
            quick=options.quick, repetitions=options.repeat, names=options.kernels,
            progress=lambda stage: show_progress(f"{KERNELS}, {stage}"),
        ):
            show_progress("")
            print(line, flush=True)  # it takes minutes
            written.append(line)

    text = table.markdown(rows, title) if rows else ""
    lines = [*(table.recording_lines(figures) if figures else ()), *table.failures(rows)]
    print(text, *lines, sep="\n")
    if options.markdown is not None:
        options.markdown.write_text("\n".join([text, *lines, *written, ""]), encoding="utf-8")
    if options.json is not None:
        options.json.write_text(table.to_json(rows, figures, context), encoding="utf-8")
    if options.chart is not None and rows:
        from .chart import draw

        draw(rows, title, options.chart)
    own = ("clfuse", "jit", "unfused", "limit")
    wrong = any(
        timing.failure for row in rows for name, timing in row.timings.items() if name in own
    )
    return 1 if wrong or any(line.endswith("WRONG") for line in written) else 0


def run_traffic(options: argparse.Namespace) -> int:
    """Count the memory traffic of programs under Oclgrind; 1 where that cannot be had."""
    from . import traffic
    from .oclgrind import SimulatorError
    from .programs import PROGRAMS, QUICK

    try:
        chosen = [name for name in options.programs or PROGRAMS if name in PROGRAMS]
        rows = traffic.measure(chosen, traffic.QUICKER if options.quick else QUICK)
    except SimulatorError as error:
        print(f"clfuse bench: {error}", file=sys.stderr)
        return 1
    text = traffic.markdown(rows)
    print(text)
    if options.markdown is not None:
        options.markdown.write_text(text, encoding="utf-8")
    if options.json is not None:
        options.json.write_text(traffic.to_json(rows), encoding="utf-8")
    return 0


def run_tuning(options: argparse.Namespace) -> int:
    """Measure the device's traits, tune kernels, and keep both; 1 where they cannot be kept."""
    import clfuse

    from . import tune

    if options.device is not None:
        clfuse.set_device(options.device)
    device = clfuse.get_device()
    before = device.untuned_traits
    print(f"measuring {device.name} ({device.platform_name})", file=sys.stderr, flush=True)
    try:
        after, measured, path = tune.tune(device, quick=options.quick, progress=show_progress)
    except OSError as error:
        show_progress("")
        print(f"clfuse bench: the results cannot be kept: {error}", file=sys.stderr)
        return 1
    show_progress("")
    print(*tune.lines(before, after, measured), f"kept in {path}", sep="\n")
    if clfuse.config.settings.tuning:
        from .programs import PROGRAMS

        names = [name for name in options.programs if name in PROGRAMS] or list(PROGRAMS)
        found = tune.tune_programs(names, quick=options.quick, progress=show_progress)
        for name, kept in found:
            show_progress("")
            print(f"{name}, {kept.kernel}: {kept}", flush=True)
        show_progress("")
    return 0


def peers(names: str | None, *, on_gpu: bool = False) -> list[Any]:
    """The other compilers that were asked for; all that are installed if nothing was said.

    Beside a GPU they run on one, too, where they can.
    """
    from .peers import PEERS, installed

    wanted = (
        installed(on_gpu=on_gpu)
        if names is None
        else [name for name in names.split(",") if name not in ("", "none")]
    )
    unknown = set(wanted) - set(PEERS)
    if unknown:
        sys.exit(
            f"clfuse bench: no peer {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}"
        )
    chosen = []
    for name in wanted:
        try:
            chosen.append(PEERS[name](on_gpu))
        except ImportError as error:
            # Asked for by name it must be there; one that merely looked installed may turn out
            # broken.
            message = f"clfuse bench: {name} cannot be imported: {error}"
            if names is not None:
                sys.exit(message)
            print(message, file=sys.stderr)
    return chosen


def describe(device: Any) -> dict[str, Any]:
    """Where and when the figures were measured."""
    import datetime
    import platform
    from importlib import metadata

    versions = {}
    for package in ("clfuse", "numpy", "pyopencl", "numexpr", "cupy", "jax", "torch"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = ""
    return {
        "when": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "device": device.name,
        "platform": device.platform_name,
        "driver": device.traits.driver,
        "compute_units": device.traits.compute_units,
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def show_progress(text: str) -> None:
    """Say on a terminal what is being done, in one line that the next overwrites."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
