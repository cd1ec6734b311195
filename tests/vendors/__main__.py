"""``python -m tests.vendors``; see the package's docstring."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from tests.vendors import verified
from tests.vendors.bars import exceeded, table
from tests.vendors.compiling import Result, compile_all, processors
from tests.vendors.programs import Program, parse, read, write
from tests.vendors.toolchain import MissingError, find

TABLE = Path(__file__).parent / "table.txt"

FAILED = Path(tempfile.gettempdir()) / "clfuse-vendors"
"""Where programs are left that a compiler refuses, or that are worse than a bar."""

SAMPLE = 96
"""Verified programs of which `check` compiles so many again, others in every revision."""

MOST_NEW = 40
"""Programs with bars that may be new before `check` asks for `verify`."""

MOST_SHOWN = 20


def problems_of(result: Result, *, has_bars: bool = True) -> list[str]:
    """What is wrong with a program, a text each."""
    name = ", ".join(result.program.names)
    refused = [f"{vendor} refuses {name}:\n{_shortened(log)}"
               for vendor, log in result.problems.items()]
    return [*refused, *(exceeded(result) if has_bars else ())]


def _shortened(log: str) -> str:
    lines = [line for line in log.splitlines() if "error" in line or "fatal" in line]
    return "\n".join((lines or log.splitlines())[:8])


def compiled(
    programs: Sequence[Program], seconds: float, workers: int, barred: Container[str] | None = None
) -> tuple[list[Result], list[str]]:
    """(what was compiled until so much time had passed, what is wrong with it). `barred` are the
    keys of the programs that must keep their bars; None: all."""
    results, problems = [], []
    begin = time.monotonic()
    for result in compile_all(programs, workers, begin + seconds):
        results.append(result)
        found = problems_of(result, has_bars=barred is None or result.program.key in barred)
        if found:
            write(FAILED, result.program)
            path = FAILED / f"{result.program.key[:24]}.cl"
            problems += [f"{text}\n    python -m tests.vendors show {path}" for text in found]
    print(f"{len(results)} of {len(programs)} programs compiled in"
          f" {time.monotonic() - begin:.0f} s", flush=True)
    return results, problems


def report(problems: Sequence[str]) -> int:
    """Say what is wrong; the exit status."""
    for text in problems[:MOST_SHOWN]:
        print(text)
    if problems:
        print(f"{len(problems)} problems with three vendors' compilers", file=sys.stderr)
    return 1 if problems else 0


def show(options: argparse.Namespace) -> int:
    """Print the figures of each kernel in a file, for each target."""
    results, problems = [], []
    for result in compile_all([parse(options.file.read_text(encoding="utf-8"))]):
        results.append(result)
        problems += [f"{vendor}:\n{log}" for vendor, log in result.problems.items()]
        print(f"{'target':10}{'kernel':32}registers  spilled  stack  local  load")
        for target, kernels in result.figures.items():
            for name, one in kernels.items():
                print(f"{target:10}{name:32}{one.registers:9}{one.spilled_nbytes:9}"
                      f"{one.stack_nbytes:7}{one.local_nbytes:7}{one.load_nbytes:6}")
    return report(problems)


def check(options: argparse.Namespace) -> int:
    """Compile what is in the folders and not verified yet, and a sample of the rest.

    What tests have built may be as large as a test makes it: it has to compile, and keeps no bars.
    """
    tools = find()
    known = verified.read(tools.versions)
    barred = everything(options.folders)
    keys = {program.key for program in barred}
    built = everything(options.built) if any(map(_is_there, options.built)) else []
    programs = [*barred, *[program for program in built if program.key not in keys]]
    new = [program for program in barred if verified.digest(program) not in known]
    old = [program for program in programs if verified.digest(program) in known]
    # Another sample for other programs: nobody's clock decides what fails.
    chosen = random.Random("".join(program.key for program in programs))
    others = [program for program in programs[len(barred):]
              if verified.digest(program) not in known]
    sample = chosen.sample(old, min(SAMPLE, len(old)))
    print(f"{len(programs)} programs, {len(new) + len(others)} of them new; {len(known)} are"
          " verified"
          f" ({', '.join(f'{name} {version}' for name, version in tools.versions.items())})",
          flush=True)
    if len(new) > MOST_NEW:  # each takes a second of processor time, in every run
        print(f"{len(new)} programs are to be verified: `verify`, and commit verified.txt")
    # What has a bar is never left out: others have the time.
    _, problems = compiled(new, float("inf"), options.workers, keys) if new else ([], [])
    timed = [*sample, *others]
    results, found = compiled(timed, options.seconds, options.workers, keys)
    if left := len(timed) - len(results):
        print(f"{left} of {len(programs)} programs were left out after {options.seconds:.0f} s:"
              " `--seconds inf` compiles all")
    return report([*problems, *found])


def verify(options: argparse.Namespace) -> int:
    """Compile what is in the folders, and write down which programs keep their bars."""
    tools = find()
    known = set() if options.all else verified.read(tools.versions)
    programs = everything(options.folders)
    new = [program for program in programs if verified.digest(program) not in known]
    results, problems = compiled(new, float("inf"), options.workers)
    good = {result.program.key for result in results if not problems_of(result)}
    kept = [program for program in programs
            if program.key in good or verified.digest(program) in known]
    verified.write(tools.versions, kept)
    print(f"{len(kept)} programs are verified")
    return report(problems)


def write_table(options: argparse.Namespace) -> int:
    """Compile what is in the folders, and write the table."""
    tools = find()
    results, problems = compiled(everything(options.folders), float("inf"), options.workers)
    lines = [
        "Kernels of each class under the schedule of a GPU, compiled by three vendors' compilers:",
        ", ".join(f"{name} {version}" for name, version in tools.versions.items()) + ".",
        "The worst of each class: registers of a work-item (Intel: of a thread); bytes of spilled",
        "registers and stack of a work-item; local memory of a work-group; the narrowest of the",
        "widest loads from global memory. Intel's spills are in its stack. The bar: registers,",
        "spilled, stack, load.",
        "",
        *table(results),
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return report(problems)


def _is_there(folder: Path) -> bool:
    """Whether tests have left programs there: those of simulated devices, where they were run."""
    return folder.is_dir() and any(folder.iterdir())


def everything(folders: Iterable[Path]) -> list[Program]:
    """The programs in all folders, each once."""
    found = {program.key: program for folder in folders for program in read(folder)}
    if not found:
        raise SystemExit(f"no programs in {', '.join(map(str, folders))}")
    print(", ".join(f"{count} {name}" for name, count in sorted(
        Counter(program.kernel_class for program in found.values()).items())))
    return sorted(found.values(), key=lambda program: program.key)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.vendors")
    commands = parser.add_subparsers(required=True)
    for name, function in (
        ("show", show), ("check", check), ("verify", verify), ("table", write_table)
    ):
        command = commands.add_parser(name, help=function.__doc__)
        command.set_defaults(run=function)
        if name == "show":
            command.add_argument("file", type=Path)
            continue
        command.add_argument("folders", type=Path, nargs="+")
        command.add_argument("--workers", type=int, default=processors())
        if name == "check":
            command.add_argument("--built", type=Path, nargs="*", default=[], metavar="FOLDER",
                                 help="programs that tests have built: they keep no bars")
            command.add_argument("--seconds", type=float, default=float("inf"),
                                 help="begin nothing more after so much time")
        if name == "verify":
            command.add_argument("--all", action="store_true", help="also what is verified already")
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except MissingError as error:
        # Where ci/setup may install them, or should have, that is a failure.
        is_excused = options.run is check and os.geteuid() != 0 and not os.environ.get("CI")
        print(f"{'skipped, ' if is_excused else ''}{error}", file=sys.stderr)
        return 0 if is_excused else 1


if __name__ == "__main__":
    sys.exit(main())
