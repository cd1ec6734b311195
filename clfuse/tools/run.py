"""``python -m clfuse run``: a plain NumPy program with clfuse in NumPy's place.

Nothing in the program changes. While it runs, ``import numpy`` (in every spelling, also
``importlib.import_module("numpy")``) gives clfuse to the program itself and to the modules beside
it: its folder and below. Installed packages and the standard library get the real NumPy, because
compiled code in them needs its C interface. `Substitution` decides by file which a module gets.

Two ways were open. Rewriting the program's syntax tree would miss ``__import__`` and code handed to
`exec`; giving its modules a ``__builtins__`` of their own would hide from them what others add to
`builtins`. So ``builtins.__import__`` is replaced by a function that looks at the name first: an
import of anything else costs one comparison more. Its frames are taken out of tracebacks that reach
the user.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

__all__ = ["Substitution", "load", "main"]

USAGE = """\
usage: python -m clfuse run [--device SPEC] [--exact-random]
                            (SCRIPT | -m MODULE | -c CODE | -) [ARGUMENT ...]

Run a NumPy program unchanged: `import numpy` gives clfuse in it and in the modules beside it.
--exact-random: random numbers are those that NumPy draws for the same seeds, made on the host.
"""

ORIGINAL = "numpy"
REPLACEMENT = "clfuse"
# Top-level package -> its module that looks arrays up by class, and ours that says how.
COMPANIONS = {"dask": ("dask.array", "clfuse.dask")}
# What installers call the folders that they install into: pip, and Debian's packages.
INSTALLED = frozenset({"site-packages", "dist-packages"})
STANDARD_LIBRARY = os.path.realpath(os.path.dirname(os.__file__))
AS_IMPORTLIB = "<frozen importlib._bootstrap> of clfuse run"
"""The file that the import function names as its own: warnings pass over frames whose file has
"importlib" and "_bootstrap" in its name, so that those of a module that is imported are for the
line that imports it."""
OWN_PACKAGE = os.path.realpath(os.path.dirname(os.path.dirname(__file__)))


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both absolute.

    >>> is_below("/a/b/c.py", "/a/b"), is_below("/a/bc.py", "/a/b"), is_below("/a", "/")
    (True, False, True)
    """
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


class Substitution:
    """Gives clfuse to whoever imports NumPy from a file under `roots`; everybody else gets NumPy.

    Use it as a context manager, or `install` it for the rest of the process.

    Parameters
    ----------
    roots : iterable of str
        Folders of the user's program. A module in one of them, or below, counts as the user's
        unless it is installed (a ``site-packages`` folder on the way down, or the standard library)
        or part of clfuse.
    main : bool
        Whether ``__main__`` counts as the user's, wherever its file is.
    """

    def __init__(self, roots: Iterable[str] = (), *, main: bool = False) -> None:
        self.roots: list[str] = []
        for root in roots:
            self.add_root(root)
        self.main = main
        self._verdicts: dict[str, bool] = {}
        self._import: Callable[..., Any] = builtins.__import__
        self._import_module: Callable[..., Any] = importlib.import_module
        self._guarded_import = self._make_import()
        self._guarded_import_module = self._make_import_module()

    # -- whose code is it --------------------------------------------------------------------------

    def add_root(self, folder: str) -> None:
        """Count the modules in `folder` and below as the user's.

        A folder for installed packages, or the standard library's own, is left out: the rest of
        what lies there is not the user's.
        """
        root = os.path.realpath(folder)
        if os.path.basename(root) not in INSTALLED and root != STANDARD_LIBRARY:
            self.roots.append(root)

    def is_users(self, path: str) -> bool:
        """Whether the module in the file `path` belongs to the user's program."""
        verdict = self._verdicts.get(path)
        if verdict is None:
            # A link counts where it is and where it leads to: neither way may installed code slip
            # in.
            paths = {os.path.abspath(path), os.path.realpath(path)}
            verdict = self._verdicts[path] = any(
                any(is_below(place, root) for place in paths)
                and not any(self._is_excluded(place, root) for place in paths)
                for root in self.roots
            )
        return verdict

    @staticmethod
    def _is_excluded(path: str, root: str) -> bool:
        inside = path[len(root) :] if is_below(path, root) else path
        if not INSTALLED.isdisjoint(inside.split(os.sep)):
            return True
        # The program may itself lie in such a folder (the demo's do): then it is not a reason to
        # refuse.
        return any(
            is_below(path, folder) and not is_below(root, folder)
            for folder in (STANDARD_LIBRARY, OWN_PACKAGE)
        )

    def serves(self, namespace: Mapping[str, Any] | None, depth: int = 2) -> bool:
        """Whether code that runs in `namespace` (a module's globals) is to get clfuse.

        Code run by `exec` in a bare dictionary is judged by the code that runs it: the frames from
        `depth` up.
        """
        frame: types.FrameType | None = None
        while namespace is None or "__name__" not in namespace:
            frame = sys._getframe(depth) if frame is None else frame.f_back
            if frame is None:
                return False
            namespace = frame.f_globals
        if self.main and namespace["__name__"] == "__main__":
            return True
        path = namespace.get("__file__")
        return isinstance(path, str) and self.is_users(path)

    # -- what they get -----------------------------------------------------------------------------

    def replacement(self, name: str) -> Any:
        """The module that stands for ``numpy`` or ``numpy.<...>``.

        clfuse's own where there is one, be it a submodule or an attribute; else NumPy's
        (``numpy.testing``, ``numpy.typing``), which is then also reachable from clfuse by
        attribute, as a submodule is from its package.
        """
        target = self._import_module(REPLACEMENT)
        if self.main:
            type(target.ndarray).shown_module = ORIGINAL  # ``print(type(x))``
        path = ""
        for step in name.split(".")[1:]:
            path += f".{step}"
            # Importing a submodule makes it an attribute. Only then may the package's
            # ``__getattr__`` answer.
            if step not in vars(target) and not self._import_own(f"{REPLACEMENT}{path}"):
                found = getattr(target, step, None) or self._import_module(f"{ORIGINAL}{path}")
                if isinstance(found, types.ModuleType) and f"{ORIGINAL}{path}" not in sys.modules:
                    # Whoever imports by name, as pickles do, looks for it there.
                    self._import_module(f"{ORIGINAL}{path}")
                setattr(target, step, found)
            target = getattr(target, step)
        return target

    def everything(self) -> types.ModuleType:
        """What ``from numpy import *`` takes its names from: NumPy's, none of `REPLACEMENT`'s own
        (``device``, ``kernel``, ``profile``), which would hide the program's.
        """
        target = self.replacement(ORIGINAL)
        names = self._import_module(ORIGINAL).__all__
        module = types.ModuleType(ORIGINAL)
        vars(module).update({name: getattr(target, name) for name in names}, __all__=names)
        return module

    def _accompany(self) -> None:
        """Import what registers clfuse's arrays with a library that asks for that, once the program
        has imported both."""
        for library, companion in COMPANIONS.values():
            if library in sys.modules and REPLACEMENT in sys.modules:
                self._import_module(companion)

    def _import_own(self, name: str) -> bool:
        try:
            self._import_module(name)
        except ModuleNotFoundError as error:
            # Only a clfuse module that does not exist: one that misses something itself must say
            # so.
            if error.name is None or not name.startswith(error.name):
                raise
            return False
        return True

    def _make_import(self) -> Callable[..., Any]:
        original, serves, replacement = self._import, self.serves, self.replacement
        everything, accompany = self.everything, self._accompany

        def guarded_import(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            if name[:5] != ORIGINAL or level or not (name == ORIGINAL or name[5] == "."):
                module = original(name, globals, locals, fromlist, level)
                if name.partition(".")[0] in COMPANIONS and serves(globals):
                    accompany()
                return module
            if not serves(globals):
                return original(name, globals, locals, fromlist, level)
            module = replacement(name)
            accompany()
            if not fromlist:
                return replacement(ORIGINAL)
            if "*" in fromlist and name == ORIGINAL:
                return everything()
            for wanted in fromlist:
                # ``from numpy import testing`` may name a submodule that nobody has imported yet.
                if wanted != "*" and not hasattr(module, wanted):
                    try:
                        replacement(f"{name}.{wanted}")
                    except ModuleNotFoundError:
                        continue  # the import statement itself raises ImportError, with the name
            return module

        guarded_import.__code__ = guarded_import.__code__.replace(co_filename=AS_IMPORTLIB)
        return guarded_import

    def _make_import_module(self) -> Callable[..., Any]:
        original, serves, replacement = self._import_module, self.serves, self.replacement

        def import_module(name: str, package: str | None = None) -> Any:
            if name.partition(".")[0] == ORIGINAL and serves(sys._getframe(1).f_globals):
                return replacement(name)
            return original(name, package)

        import_module.__doc__ = original.__doc__
        return import_module

    def install(self) -> None:
        """Put the substitution into force for this process."""
        builtins.__import__ = self._guarded_import
        importlib.import_module = self._guarded_import_module

    def remove(self) -> None:
        """Put back what `install` replaced."""
        builtins.__import__ = self._import
        importlib.import_module = self._import_module

    def __enter__(self) -> Substitution:
        self.install()
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def load(path: str, name: str) -> types.ModuleType:
    """Execute the source file `path` as a new module called `name`, and return it.

    The module is not left in `sys.modules`: the demo loads each program twice, under two libraries.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python source file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- tracebacks ------------------------------------------------------------------------------------


def without_own_frames(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """`traceback` as if python had run the program: without this file's frames and its callers'."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    own = (execute.__code__.co_filename, AS_IMPORTLIB)
    starts = (execute.__code__, compile_program.__code__)
    last = max((i for i, frame in enumerate(frames) if frame.tb_frame.f_code in starts), default=-1)
    kept = [f for f in frames[last + 1 :] if f.tb_frame.f_code.co_filename not in own]
    following = None
    for frame in reversed(kept):
        frame.tb_next, following = following, frame
    return following


def clean_tracebacks(error: BaseException) -> None:
    """Take our frames out of the tracebacks of `error`, its causes, contexts and members."""
    pending: list[BaseException] = [error]
    seen: set[int] = set()
    while pending:
        error = pending.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = without_own_frames(error.__traceback__)
        members = getattr(error, "exceptions", ())
        related = [error.__cause__, error.__context__]
        if isinstance(members, tuple):
            related.extend(members)
        pending.extend(other for other in related if isinstance(other, BaseException))


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
    globals.
    """
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
    ``-I``).
    """
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = folder


def compile_program(source: bytes | str, filename: str) -> types.CodeType:
    """Compile a program's source; a syntax error is shown as python shows it, with no frames above
    it.
    """
    try:
        return compile(source, filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        sys.excepthook = show_without_own_frames(sys.excepthook)
        raise


def fail(message: str, code: int) -> NoReturn:
    print(f"clfuse run: {message}", file=sys.stderr)
    sys.exit(code)


def run_script(path: str, arguments: Sequence[str]) -> None:
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
    Substitution([folder], main=True).install()
    loader = importlib.machinery.SourceFileLoader("__main__", filename)
    namespace = replace_main(__file__=filename, __loader__=loader, __cached__=None)
    execute(compile_program(source, filename), namespace)


def run_module(name: str, arguments: Sequence[str]) -> None:
    """Run the module or package `name` as ``python -m name`` would.

    The folder of its top-level package counts as the program's, and the current one.
    """
    folder = os.getcwd()
    set_first_path(folder)
    sys.argv[:] = ["-m", *arguments]
    substitution = Substitution([folder], main=True)
    top = find_module(name.partition(".")[0])
    for place in top.submodule_search_locations or ():
        # An installed package stays installed, also when it is the one that runs (pytest, timeit).
        if INSTALLED.isdisjoint(os.path.realpath(place).split(os.sep)):
            substitution.add_root(place)
    substitution.install()
    spec = find_module(name)
    if spec.submodule_search_locations is not None:
        spec = find_module(f"{name}.__main__")
    get_code = getattr(spec.loader, "get_code", None)
    code = None if get_code is None else get_code(spec.name)
    if code is None:
        fail(f"no code object available for {spec.name}", 1)
    sys.argv[0] = spec.origin or "-m"
    namespace = replace_main(
        __file__=spec.origin,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
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


def run_code(source: str, arguments: Sequence[str], *, name: str, filename: str) -> None:
    """Run program text: that of ``-c`` or of standard input."""
    sys.argv[:] = [name, *arguments]
    set_first_path("")
    Substitution([os.getcwd()], main=True).install()
    namespace = replace_main(__loader__=importlib.machinery.BuiltinImporter)
    if name == "-":
        namespace["__file__"] = filename
    execute(compile_program(source, filename), namespace)


def main(arguments: Sequence[str]) -> None:
    """Run the program that the command line after ``python -m clfuse run`` names.

    It returns when the program ends; `SystemExit` and other exceptions of the program pass through.
    """
    rest = list(arguments)
    while rest and rest[0].startswith(("--device", "--exact-random")):
        if rest[0] == "--exact-random":
            os.environ["CLFUSE_EXACT_RANDOM"] = "on"
            del rest[0]
            continue
        option, equals, value = rest.pop(0).partition("=")
        if option != "--device" or not (equals or rest):
            fail(f"{option}: expected --device SPEC\n{USAGE}", 2)
        os.environ["CLFUSE_DEVICE"] = value if equals else rest.pop(0)
    if not rest or rest[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if rest else sys.stderr)
        sys.exit(0 if rest else 2)
    first = rest.pop(0)
    if first in ("-m", "-c"):
        if not rest:
            fail(f"argument expected for the {first} option\n{USAGE}", 2)
        if first == "-m":
            run_module(rest[0], rest[1:])
        else:
            run_code(rest[0], rest[1:], name="-c", filename="<string>")
    elif first == "-":
        run_code(sys.stdin.read(), rest, name="-", filename="<stdin>")
    elif first.startswith("-"):
        fail(f"unknown option {first}\n{USAGE}", 2)
    else:
        run_script(first, rest)
