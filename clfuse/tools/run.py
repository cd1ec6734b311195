"""``python -m clfuse run``: a plain NumPy program with clfuse in NumPy's place.

Nothing in the program changes. While it runs, ``import numpy`` (in every spelling, also
``importlib.import_module("numpy")``) gives clfuse to the program itself and to the modules of its
project: those beside it and above, on ``PYTHONPATH``, and those that ``pip install -e`` has
installed. Installed packages and the standard library get the real NumPy, because compiled code in
them needs its C interface. `Substitution` decides by file which a module gets. Its frames are taken
out of tracebacks that reach the user.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from clfuse.tracebacks import linked, related

from . import run_summary
from . import substitution as substitutions
from .run_summary import Summary
from .substitution import AS_IMPORTLIB, INSTALLED

__all__ = ["main"]

USAGE = """\
usage: python -m clfuse run [--device SPEC] [--exact-random] [--include PACKAGE]
                            [--stats] [--explain] [--profile] [--report FILE]
                            (SCRIPT | -m MODULE | -c CODE | -) [ARGUMENT ...]

Run a NumPy program unchanged: `import numpy` gives clfuse in it and in the modules of its project.
--exact-random: random numbers are those that NumPy draws for the same seeds, made on the host.
--include: this installed package gets clfuse, too.
--stats, --explain, --profile: print counters, every new plan, and each kernel's time, to the
standard error.
--report: write a page about the run to FILE: time by line, what fused, what fell back, advice.
"""

REPORT_USAGE = """\
usage: python -m clfuse report [--output FILE] [OPTION OF RUN ...]
                               (SCRIPT | -m MODULE | -c CODE | -) [ARGUMENT ...]

Run a NumPy program as `python -m clfuse run` does, and write one HTML page about it, which needs
nothing else: time by line on host and device, what fused with what, what fell back to NumPy and
why, builds, copies, memory, plans with the reason at every cut, and advice.
--output: the file (default: the program's name with .report.html, in the current folder).
"""


# -- tracebacks ------------------------------------------------------------------------------------


def without_own_frames(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """`traceback` as if python had run the program: without this file's frames and its callers'."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    own = (__file__, substitutions.__file__, run_summary.__file__, AS_IMPORTLIB)
    starts = (execute.__code__, compile_program.__code__)
    last = max((i for i, frame in enumerate(frames) if frame.tb_frame.f_code in starts), default=-1)
    return linked([f for f in frames[last + 1 :] if f.tb_frame.f_code.co_filename not in own])


def clean_tracebacks(error: BaseException) -> None:
    """Take our frames out of the tracebacks of `error`, its causes, contexts and members."""
    for each in related(error):
        each.__traceback__ = without_own_frames(each.__traceback__)


def show_without_own_frames(previous: Callable[..., Any]) -> Callable[..., None]:
    """An excepthook that cleans the tracebacks and leaves the rest to `previous`."""

    def hook(
        kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None
    ) -> None:
        clean_tracebacks(error)
        previous(kind, error, error.__traceback__)

    return hook


# -- running a program -----------------------------------------------------------------------------


def replace_main(**names: Any) -> dict[str, Any]:
    """Make a fresh ``__main__`` with these names, as python does before it runs a program; its
    globals."""
    module = types.ModuleType("__main__")
    namespace = vars(module)
    namespace.update({"__builtins__": builtins, "__annotations__": {}, **names})
    sys.modules["__main__"] = module
    return namespace


def execute(code: types.CodeType, namespace: dict[str, Any]) -> None:
    """Run `code`; an exception leaves with the tracebacks that python itself would have shown.

    The exception is let through rather than printed here, so that exit codes, `SystemExit` and the
    death by signal after Ctrl-C stay python's own.
    """
    try:
        exec(code, namespace)
    except SystemExit:
        raise
    except BaseException:
        # The program may have set a hook of its own: it sees the cleaned traceback too.
        sys.excepthook = show_without_own_frames(sys.excepthook)
        raise


def set_first_path(folder: str) -> None:
    """Let modules be found in `folder` first, where python would have put it (not with ``-P`` or
    ``-I``)."""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = folder


def compile_program(source: bytes | str, filename: str) -> types.CodeType:
    """Compile a program's source; a syntax error is shown as python shows it, with no frames above
    it."""
    try:
        return compile(source, filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        sys.excepthook = show_without_own_frames(sys.excepthook)
        raise


def fail(message: str, code: int) -> NoReturn:
    print(f"clfuse run: {message}", file=sys.stderr)
    sys.exit(code)


def use_device(spec: str) -> None:
    """Select the device for the program, and end at once where there is none that fits."""
    os.environ["CLFUSE_DEVICE"] = spec
    from clfuse.errors import DeviceError
    from clfuse.runtime.devices import selection

    try:
        selection.find(spec)
    except DeviceError as error:
        fail(f"--device {spec}: {error}", 1)


def run_script(path: str, arguments: Sequence[str], summary: Summary) -> None:
    """Run the script `path`, or the ``__main__.py`` of a folder, as ``python path`` would."""
    sys.argv[:] = [path, *arguments]
    filename = os.path.abspath(path)
    if os.path.isdir(filename):
        folder, filename = filename, os.path.join(filename, "__main__.py")
        if not os.path.exists(filename):
            fail(f"can't find '__main__' module in '{path}'", 1)
    else:
        folder = os.path.dirname(os.path.realpath(filename))
    try:
        with open(filename, "rb") as file:
            source = file.read()
    except OSError as error:
        fail(f"can't open file '{filename}': [Errno {error.errno}] {error.strerror}", 2)
    set_first_path(folder)
    summary.begin(folder, filename)
    loader = importlib.machinery.SourceFileLoader("__main__", filename)
    namespace = replace_main(__file__=filename, __loader__=loader, __cached__=None)
    execute(compile_program(source, filename), namespace)


def run_module(name: str, arguments: Sequence[str], summary: Summary) -> None:
    """Run the module or package `name` as ``python -m name`` would.

    The folder of its top-level package counts as the program's, and the current one.
    """
    folder = os.getcwd()
    set_first_path(folder)
    sys.argv[:] = ["-m", *arguments]
    substitution = summary.begin(folder, name)
    top = find_module(name.partition(".")[0])
    for place in top.submodule_search_locations or ():
        # An installed package stays installed, also when it is the one that runs (pytest, timeit).
        if INSTALLED.isdisjoint(os.path.realpath(place).split(os.sep)):
            substitution.add_root(place)
    spec = find_module(name)
    if spec.submodule_search_locations is not None:
        spec = find_module(f"{name}.__main__")
    get_code = getattr(spec.loader, "get_code", None)
    code = None if get_code is None else get_code(spec.name)
    if code is None:
        fail(f"no code object available for {spec.name}", 1)
    sys.argv[0] = spec.origin or "-m"
    namespace = replace_main(
        __file__=spec.origin, __loader__=spec.loader, __package__=spec.parent, __spec__=spec,
        __cached__=spec.cached,
    )
    execute(code, namespace)


def find_module(name: str) -> importlib.machinery.ModuleSpec:
    """The spec of the module `name`; where there is none, end as python does: with code 1."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        spec = None
    if spec is None:
        fail(f"No module named {name}", 1)
    return spec


def run_code(
    source: str, arguments: Sequence[str], summary: Summary, *, name: str, filename: str
) -> None:
    """Run program text: that of ``-c`` or of standard input."""
    sys.argv[:] = [name, *arguments]
    set_first_path("")
    summary.begin(os.getcwd(), filename, source)
    namespace = replace_main(__loader__=importlib.machinery.BuiltinImporter)
    if name == "-":
        namespace["__file__"] = filename
    execute(compile_program(source, filename), namespace)


def use_report(path: str, summary: Summary) -> None:
    """Write a report of the program to this file, and end at once where that cannot be."""
    from .report.writing import trouble_with

    problem = trouble_with(path)
    if problem:
        fail(f"--report {path}: {problem}", 2)
    summary.report = os.path.abspath(path)


def report(arguments: Sequence[str]) -> None:
    """Run a program and write a report: `main` with ``--report``, and a file by default."""
    rest = list(arguments)
    options: list[str] = []
    output = ""
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "-m", "-c"):
        option, equals, value = rest.pop(0).partition("=")
        if option in ("-h", "--help"):
            print(REPORT_USAGE, end="")
            sys.exit(0)
        if option in ("--output", "-o", "--report"):
            if not (equals or rest):
                fail(f"{option}: expected {option} FILE\n{REPORT_USAGE}", 2)
            output = value if equals else rest.pop(0)
            continue
        options.append(option + equals + value)
        if option in ("--device", "--include") and not equals and rest:
            options.append(rest.pop(0))
    if not rest:
        print(REPORT_USAGE, end="", file=sys.stderr)
        sys.exit(2)
    main(["--report", output or _report_file(rest), *options, *rest])


def _report_file(program: Sequence[str]) -> str:
    """The file of a program's report where none is named."""
    first = program[0]
    if first == "-m" and len(program) > 1:
        name = program[1]
    elif first in ("-", "-c", "-m"):
        name = "program"
    else:
        name = os.path.splitext(os.path.basename(os.path.abspath(first)))[0]
    return f"{name}.report.html"


def main(arguments: Sequence[str]) -> None:
    """Run the program that the command line after ``python -m clfuse run`` names.

    It returns when the program ends; `SystemExit` and other exceptions of the program pass through.
    """
    rest = list(arguments)
    summary = Summary()
    while rest and rest[0].startswith("--"):
        option, equals, value = rest.pop(0).partition("=")
        if option == "--help":
            rest.insert(0, option)
            break
        if option in ("--device", "--include", "--report"):
            if not (equals or rest):
                what = "FILE" if option == "--report" else option[2:].upper()
                fail(f"{option}: expected {option} {what}\n{USAGE}", 2)
            value = value if equals else rest.pop(0)
        if option == "--exact-random":
            os.environ["CLFUSE_EXACT_RANDOM"] = "on"
        elif option == "--device":
            use_device(value)
        elif option == "--include":
            summary.packages.append(value)
        elif option == "--report":
            use_report(value, summary)
        elif option in ("--stats", "--explain", "--profile"):
            summary.wanted.add(option[2:])
        else:
            fail(f"unknown option {option}\n{USAGE}", 2)
    if not rest or rest[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if rest else sys.stderr)
        sys.exit(0 if rest else 2)
    first = rest.pop(0)
    with summary:
        perform(first, rest, summary)


def perform(first: str, rest: list[str], summary: Summary) -> None:
    """Run the program that `first` names; the rest are its arguments."""
    if first in ("-m", "-c"):
        if not rest:
            fail(f"argument expected for the {first} option\n{USAGE}", 2)
        if first == "-m":
            run_module(rest[0], rest[1:], summary)
        else:
            run_code(rest[0], rest[1:], summary, name="-c", filename="<string>")
    elif first == "-":
        run_code(sys.stdin.read(), rest, summary, name="-", filename="<stdin>")
    elif first.startswith("-"):
        fail(f"unknown option {first}\n{USAGE}", 2)
    else:
        run_script(first, rest, summary)
