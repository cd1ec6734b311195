"""The command line: ``python -m clfuse`` and the name of a command (`COMMANDS`).

Each command imports what it needs and no more, because ``run`` must not make a small script wait.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

    from .runtime.devices.device import Device
    from .target.traits import DeviceTraits

__all__ = ["main"]

# What a bug report needs the version of; those that are not installed are said to be missing.
PACKAGES = (
    "clfuse",
    "numpy",
    "pyopencl",
    "Mako",
    "rich",
    "intel-opencl-rt",
    "pocl-binary-distribution",
    "pycuda",
)
# Variables of the loader and of the runtimes that change which devices there are and what they do.
FOREIGN_VARIABLES = (
    "OCL_ICD_VENDORS",
    "OPENCL_VENDOR_PATH",
    "LD_LIBRARY_PATH",
    "POCL_AFFINITY",
    "POCL_CACHE_DIR",
    "POCL_DEVICES",
    "POCL_MAX_PTHREAD_COUNT",
    "PYOPENCL_CTX",
    "PYOPENCL_NO_CACHE",
    "RUSTICL_ENABLE",
    "CUDA_VISIBLE_DEVICES",
    "XDG_CACHE_HOME",
)
NO_DEVICE = "no usable device"


def parser(command: str, description: str) -> argparse.ArgumentParser:
    """An argument parser that calls itself what the user typed."""
    import argparse

    return argparse.ArgumentParser(prog=f"python -m clfuse {command}", description=description)


# -- run, warm, demo, bench: elsewhere -------------------------------------------------------------


def run(arguments: Sequence[str]) -> int:
    """Run a NumPy program unchanged."""
    from .tools import run as script

    script.main(arguments)
    return 0


def warm(arguments: Sequence[str]) -> int:
    """Run a program until its kernels are in the cache."""
    from .tools import warm as command

    return command.main(arguments)


def report(arguments: Sequence[str]) -> int:
    """Run a NumPy program unchanged, and write a page about the run."""
    from .tools import run as script

    script.report(arguments)
    return 0


def demo(arguments: Sequence[str]) -> int:
    """Run NumPy programs under NumPy and under clfuse, side by side."""
    from .tools.demo import report

    return report.main(arguments)


def bench(arguments: Sequence[str]) -> int:
    """Measure ratios to NumPy, to other compilers and to hand-written OpenCL."""
    from .tools.bench import command

    return command.main(arguments)


# -- devices ---------------------------------------------------------------------------------------


def devices(arguments: Sequence[str]) -> int:
    """List the OpenCL devices that work; the current one has a star."""
    parser(
        "devices", "List the OpenCL devices that work; the one that is used has a star."
    ).parse_args(arguments)
    from .runtime.devices import selection

    current = selection.get_device()
    for candidate in selection.devices():
        print("*" if candidate is current else " ", describe(candidate))
    for line in missing_part():
        print(line.strip(), file=sys.stderr)
    return 0


def describe(device: Device) -> str:
    """One line about a device."""
    traits = device.traits
    precision = "single and double" if traits.fp64 else "single precision only"
    return (
        f"{device.index:5} {traits.kind:4} {device.name} ({device.platform_name}), "
        f"{traits.compute_units} units, {traits.global_nbytes / 2**30:.1f} GiB, {precision}"
    )


# -- doctor ----------------------------------------------------------------------------------------


def doctor(arguments: Sequence[str]) -> int:
    """Print what was found, what was skipped and why; the exit code is 0 when there is a usable
    device, and nothing wrong was found on it where that was asked for."""
    from pathlib import Path

    reader = parser(
        "doctor", "Say what was found, what was skipped and why: a bug report to paste."
    )
    reader.add_argument(
        "--check", action="store_true",
        help="instead, compute for a minute and compare with NumPy: values, accuracy, failing"
        " calls of the driver, interrupts, memory; the report names no folders, users or hosts",
    )
    reader.add_argument("--device", metavar="SPEC", help="with --check: as in CLFUSE_DEVICE")
    reader.add_argument(
        "--seconds", type=float, metavar="S",
        help=f"with --check: how long (default: {CHECK_S}); new kernels are built on top of it",
    )
    reader.add_argument("--json", type=Path, metavar="FILE", help="with --check: write it, too")
    options = reader.parse_args(arguments)
    if options.check:
        return checked(options, reader)
    for name in ("device", "seconds", "json"):
        if getattr(options, name) is not None:
            reader.error(f"--{name} belongs to --check")
    # The devices first: trying whether a driver's library loads could make it load for them too.
    found = list(probes())
    for line in (*software(), *variables(), *drivers(), *found):
        print(line)
    from .tools.caches import cache_folders, summary

    print("caches:")
    for name, folder in cache_folders().items():
        print(f"  {name:10}{summary(folder)}")
    return 1 if found[-1].startswith(NO_DEVICE) else 0


CHECK_S: Final = 60

MOST_CHECK_S: Final = 86_400


def checked(options: argparse.Namespace, reader: argparse.ArgumentParser) -> int:
    """Run the check, and write its report; 1 where something is wrong."""
    from .errors import ClfuseError
    from .runtime.devices import selection
    from .tools.check import report

    seconds = CHECK_S if options.seconds is None else options.seconds
    if not 0 < seconds <= MOST_CHECK_S:
        reader.error(f"--seconds {seconds:g}: it takes a number above 0, up to {MOST_CHECK_S}")
    if options.json is not None and not options.json.absolute().parent.is_dir():
        reader.error(f"--json {options.json}: there is no folder {options.json.absolute().parent}")
    try:
        if options.device is not None:
            selection.set_device(options.device)
            os.environ["CLFUSE_DEVICE"] = options.device
        used = selection.get_device()
    except ClfuseError as error:
        from .tools.check.privacy import public

        print(f"clfuse doctor: {NO_DEVICE}: {public(str(error))}", file=sys.stderr)
        return 1
    found = report.check(used, seconds, tell=_progress)
    for line in found.lines():
        print(line)
    if options.json is not None:
        options.json.write_text(found.to_json(), encoding="utf-8")
    return 0 if found.is_right else 1


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def software() -> Iterator[str]:
    """Lines about versions."""
    import platform
    from importlib import metadata

    yield f"python           {platform.python_version()} ({sys.executable})"
    yield f"machine          {platform.platform()}, {os.cpu_count()} cores"
    for package in PACKAGES:
        try:
            yield f"{package:16} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            if package in ("clfuse", "numpy", "pyopencl", "Mako"):
                yield f"{package:16} not installed as a package"
    yield from missing_part(always=True)


def missing_part(always: bool = False) -> Iterator[str]:
    """Lines about the compiled part, where it is not built or they are wanted always."""
    from ._core import loading

    loading.load()
    is_missing = loading.state() == "not built"
    if always or is_missing:
        yield f"compiled part    {loading.state()}"
    if is_missing:
        yield "  small arrays and loops cost up to nine times as much: install clfuse again where"
        yield "  there are a C compiler and Python's headers (Debian: gcc, python3-dev)"


def variables() -> Iterator[str]:
    """Lines about the settings that differ from their defaults, and the variables of others."""
    from .config import SETTINGS, settings
    from .errors import SettingError

    yield "settings:"
    for row in SETTINGS:
        try:
            value = getattr(settings, row.name)
        except SettingError as error:
            yield f"  {error}"
            return
        if value != row.default:
            yield f"  {row.env}={os.environ.get(row.env, value)}"
    for name in FOREIGN_VARIABLES:
        if name in os.environ:
            yield f"  {name}={os.environ[name]}"


def drivers() -> Iterator[str]:
    """Lines about the drivers that the OpenCL loader is shown, and whether their libraries load."""
    import ctypes
    from pathlib import Path

    from .runtime.drivers.vendors import SYSTEM_FOLDER, loader_environment

    yield "drivers:"
    with loader_environment():
        folder = Path(os.environ.get("OCL_ICD_VENDORS") or SYSTEM_FOLDER)
    files = sorted(folder.glob("*.icd")) if folder.is_dir() else []
    if not files:
        yield f"  no .icd file in {folder}"
    for file in files:
        library = file.read_text(encoding="utf-8", errors="replace").strip()
        try:
            ctypes.CDLL(library)
        except OSError as error:
            yield f"  {file}: {library}: does not load: {error}"
        else:
            yield f"  {file}: {library}"


def probes() -> Iterator[str]:
    """Lines about each listed device: its traits, or why it is skipped; the last is about the one
    that is used."""

    from .errors import ClfuseError
    from .runtime.devices import selection
    from .target.verified import verified

    start = time.perf_counter()
    try:
        found = selection.listed()
    except ClfuseError as error:
        yield f"{NO_DEVICE}: {error}"
        return
    yield f"devices: (listed in {time.perf_counter() - start:.2f} s)"
    for candidate in found:
        start = time.perf_counter()
        usable = candidate.usable
        elapsed = time.perf_counter() - start
        traits = candidate.traits
        yield f"  {describe(candidate)}"
        yield f"    driver {traits.driver}, {traits.version}, probed in {elapsed:.2f} s"
        if not usable:
            yield f"    SKIPPED: {candidate.cause}"
            continue
        yield (
            f"    schedule {traits.schedule}, vectors of {traits.vector_bytes} bytes, "
            f"{traits.work_items} work-items in groups of {traits.work_group}, "
            f"largest allocation {traits.max_alloc_nbytes / 2**20:,.0f} MiB, "
            f"local memory {traits.local_nbytes / 2**10:.0f} KiB"
        )
        yield (
            f"    fp64 {traits.fp64}, fp16 {traits.fp16}, "
            f"shares the host's memory {traits.unified_memory}, "
            f"rounds float division correctly {traits.correctly_rounded_divide}, "
            f"quirks {', '.join(traits.quirks) or 'none'}"
        )
        if candidate.simulation is not None:
            yield f"    simulated: {candidate.simulation}"
        if candidate.inline is not None:
            yield f"    kernels of some microseconds run in the calling thread: {candidate.inline}"
        yield (
            f"    an operation counts {traits.operation_nbytes:.2g} bytes, a launch "
            f"{traits.launch_nbytes / 2**10:.0f} KiB, "
            + (f"measured {traits.tuned}" if traits.tuned else "not measured (bench --tune)")
        )
        yield from _tuned_lines(traits)
        known = verified(traits)
        for row in known:
            yield f"    verified on this kind: {row}"
        if not any(row.how == "ran" for row in known):
            yield (
                "    nobody has run clfuse's tests on this kind yet: `bash ci/gpu` in a checkout"
                " does, and makes one file to attach to an issue"
            )
    try:
        yield f"used: {selection.get_device()!r}"
    except ClfuseError as error:
        yield f"{NO_DEVICE}: {error}"


MOST_TUNED: Final = 8
"""Kernels with another geometry than planned that are named."""


def _tuned_lines(traits: DeviceTraits) -> Iterator[str]:
    """What tuning has chosen for the kernels of a device, and what that has gained."""
    from .config import settings
    from .runtime.files import geometries

    if not settings.tuning:
        yield "    kernels are not tuned (CLFUSE_TUNING)"
        return
    found = geometries.of_device(geometries.about(traits))
    better = [each for each in found if each.changes]
    better.sort(key=lambda each: each.after_ns / max(each.before_ns, 1))
    yield (
        f"    tuned {len(found)} kernel(s) that programs ran often, {len(better)} of them to other"
        " geometries than planned"
    )
    for each in better[:MOST_TUNED]:
        yield f"        {each.kernel}: {each}"


COLUMNS: Final = 100
"""How wide lists of names are printed."""

# -- coverage --------------------------------------------------------------------------------------


def coverage(arguments: Sequence[str]) -> int:
    """Print which of the public callables of NumPy's main namespace are ours, and which are not."""
    parser(
        "coverage", "Which functions of NumPy's main namespace are recorded, which run on the host."
    ).parse_args(arguments)
    import inspect
    import textwrap

    import numpy

    from .namespace import coverage as found

    names: dict[str, list[str]] = {}
    classes = 0
    for name, kind in found().items():
        if inspect.isclass(getattr(numpy, name)):
            classes += 1
        else:
            names.setdefault(kind, []).append(name)
    meanings = {
        "native": "recorded: kernels, and library steps on the device's memory",
        "files": "between files and arrays: read and written by NumPy",
        "library": "NumPy, at once, without copies where memory is shared",
        "host": "NumPy on the host, counted as fallbacks",
        "numpy": "nothing that a device would compute (dtypes, settings, dates): NumPy's own",
    }
    print(f"{sum(map(len, names.values()))} functions and ufuncs, and {classes} classes:")
    for kind, meaning in meanings.items():
        print(f"{kind:8} {len(names.get(kind, ())):4}  {meaning}")
    for kind in meanings:
        if kind in names:
            print()
            print(textwrap.fill(f"{kind}: {' '.join(sorted(names[kind]))}", COLUMNS))
    return 0


# -- cache -----------------------------------------------------------------------------------------


def cache(arguments: Sequence[str]) -> int:
    """Show the caches on disk, or clear clfuse's and what pyopencl kept for it."""
    import shutil

    from .tools.caches import cache_folders, pyopencls_databases, summary

    reader = parser(
        "cache", "Show the caches of compiled kernels, or clear clfuse's and pyopencl's."
    )
    reader.add_argument("action", nargs="?", choices=("show", "clear"), default="show")
    reader.add_argument(
        "--drivers", action="store_true", help="clear those of the OpenCL drivers too"
    )
    options = reader.parse_args(arguments)
    failures = 0
    for name, folder in cache_folders().items():
        is_ours = name in ("clfuse", "pyopencl") or options.drivers
        if options.action == "show" or not is_ours or not folder.is_dir():
            print(f"{name:10}{summary(folder)}")
            continue
        print(f"{name:10}clearing {summary(folder)}")
        try:
            shutil.rmtree(folder)
        except OSError as error:
            print(f"clfuse cache: {error}", file=sys.stderr)
            failures += 1
    for file in pyopencls_databases():
        if options.action == "show":
            print(f"{'pytools':10}{file}: {file.lstat().st_size / 2**20:.1f} MiB")
            continue
        print(f"{'pytools':10}clearing {file}")
        try:
            file.unlink()
        except OSError as error:
            print(f"clfuse cache: {error}", file=sys.stderr)
            failures += 1
    return 1 if failures else 0


# -- the command line ------------------------------------------------------------------------------

COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "run": (run, "run a NumPy program unchanged: run script.py, run -m module, run -c code"),
    "warm": (warm, "run a program until its kernels are built and kept: for an image, or a demo"),
    "report": (report, "run a program, and write a page: where its time went, line by line"),
    "demo": (demo, "NumPy programs under NumPy and under clfuse, side by side"),
    "devices": (devices, "the OpenCL devices that work"),
    "doctor": (doctor, "what was found, what was skipped and why; --check: is it right?"),
    "bench": (bench, "ratios to NumPy, to other compilers and to hand-written OpenCL"),
    "coverage": (coverage, "which of NumPy's functions are recorded, which run on the host"),
    "cache": (cache, "show or clear the caches of compiled kernels"),
}


def usage() -> str:
    """What is shown where no command, or an unknown one, was given."""
    lines = ["usage: python -m clfuse COMMAND ...", ""]
    lines += [f"  {name:9}{summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join([*lines, "", "python -m clfuse COMMAND --help says more."])


def perform(command: str, arguments: Sequence[str]) -> int:
    """Run a command; what stops it (no such device, a wrong setting) is said in one line."""
    function = COMMANDS[command][0]
    if function in (run, report):
        # The program's exceptions are its own.
        return function(arguments)
    from .errors import ClfuseError

    try:
        return function(arguments)
    except ClfuseError as error:
        print(f"clfuse {command}: {error}", file=sys.stderr)
        return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line after the program's name; that of this process if left out.
    """
    rest = list(sys.argv[1:] if arguments is None else arguments)
    if rest and rest[0] in COMMANDS:
        return perform(rest[0], rest[1:])
    if rest and rest[0] in ("-h", "--help"):
        print(usage())
        return 0
    if rest:
        print(f"clfuse: no command {rest[0]!r}", file=sys.stderr)
    print(usage(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
