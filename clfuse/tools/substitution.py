"""Which modules get clfuse where they import NumPy, and the import functions that give it to them.

Two ways were open. Rewriting the program's syntax tree would miss ``__import__`` and code handed to
`exec`; giving its modules a ``__builtins__`` of their own would hide from them what others add to
`builtins`. So ``builtins.__import__`` is replaced by a function that looks at the name first: an
import of anything else costs one comparison more.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.machinery import ExtensionFileLoader
from typing import Any

__all__ = ["Substitution", "load", "project_folders"]

ORIGINAL = "numpy"
OF_ORIGINAL = "numpy."
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


PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")
"""What lies in the folder of a project."""


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both absolute.

    >>> is_below("/a/b/c.py", "/a/b"), is_below("/a/bc.py", "/a/b"), is_below("/a", "/")
    (True, False, True)
    """
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def real_path(path: str) -> str:
    """`os.path.realpath` of a file, which asks for each folder once."""
    folder, name = os.path.split(os.path.abspath(path))
    place = os.path.join(_real_folder(folder), name)
    return os.path.realpath(place) if os.path.islink(place) else place


@functools.cache
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


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
    packages : iterable of str
        Top-level packages that count as the user's, though they are installed.

    served (bool): whether anybody got clfuse.
    refused (dict of str to None): top-level packages that imported NumPy and got it, in order.
    """

    def __init__(
        self, roots: Iterable[str] = (), *, main: bool = False, packages: Iterable[str] = ()
    ) -> None:
        self.roots: list[str] = []
        self.serves_original = False
        """Whether modules of NumPy's own may be the user's, as its tests are where they are run."""
        for root in roots:
            self.add_root(root)
        self.main = main
        self.packages = frozenset(packages)
        self.served = False
        self.refused: dict[str, None] = {}
        self._verdicts: dict[str, bool] = {}
        self._import: Callable[..., Any] = builtins.__import__
        self._import_module: Callable[..., Any] = importlib.import_module
        self._guarded_import = self._make_import()
        self._guarded_import_module = self._make_import_module()
        self._execute: Callable[..., Any] = ExtensionFileLoader.exec_module
        self._open_and_execute = self._make_execute()
        self._build_class: Callable[..., type] = builtins.__build_class__
        self._build_and_show = self._make_build_class()

    # -- whose code is it --------------------------------------------------------------------------

    def add_root(self, folder: str) -> None:
        """Count the modules in `folder` and below as the user's.

        A folder for installed packages, or the standard library's own, is left out: the rest of
        what lies there is not the user's.
        """
        root = os.path.realpath(folder)
        if os.path.basename(root) not in INSTALLED and root != STANDARD_LIBRARY:
            self.roots.append(root)
            self.serves_original |= ORIGINAL in root.split(os.sep)

    def is_users(self, path: str) -> bool:
        """Whether the module in the file `path` belongs to the user's program."""
        verdict = self._verdicts.get(path)
        if verdict is None:
            # The files of a folder are judged alike, but for links.
            place = path if os.path.islink(path) else os.path.dirname(path)
            verdict = self._verdicts.get(place)
            if verdict is None:
                verdict = self._verdicts[place] = self._judge(path)
            self._verdicts[path] = verdict
        return verdict

    def _judge(self, path: str) -> bool:
        # A link counts where it is and where it leads to: neither way may installed code slip in.
        paths = {os.path.abspath(path), real_path(path)}
        return any(
            any(is_below(place, root) for place in paths)
            and not any(self._is_excluded(place, root) for place in paths)
            for root in (*self.roots, *self.editable)
        )

    @cached_property
    def editable(self) -> list[str]:
        """The folders of packages that are installed as they lie (``pip install -e``)."""
        if not self.main:
            return []  # not for a program that is run
        return [
            root for root in map(os.path.realpath, editable_folders())
            if not is_below(OWN_PACKAGE, root)
        ]

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

        Code run by `exec` in a dictionary of its own is judged by the code that runs it: the frames
        from `depth` up.
        """
        frame: types.FrameType | None = None
        while namespace is None or not self._is_module(namespace):
            frame = sys._getframe(depth) if frame is None else frame.f_back
            if frame is None:
                return False
            namespace = frame.f_globals
        if self.main and namespace["__name__"] == "__main__":
            return True
        if self.packages and str(namespace["__name__"]).partition(".")[0] in self.packages:
            return True
        path = namespace.get("__file__")
        return isinstance(path, str) and self.is_users(path)

    @staticmethod
    def _is_module(namespace: Mapping[str, Any]) -> bool:
        """Whether these are globals of a module, and not of text that some code executes."""
        if "__name__" not in namespace:
            return False
        if "__file__" in namespace:
            return True
        module = sys.modules.get(namespace["__name__"])
        return module is not None and vars(module) is namespace

    def _note_refused(self, namespace: Mapping[str, Any] | None) -> None:
        package = str((namespace or {}).get("__name__", "?")).partition(".")[0]
        if package not in (ORIGINAL, REPLACEMENT) and package not in sys.stdlib_module_names:
            self.refused[package] = None

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
        (``device``, ``kernel``, ``profile``), which would hide the program's."""
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
        note_refused = self._note_refused

        def guarded_import(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            if name[:5] != ORIGINAL or level or not (name == ORIGINAL or name[5] == "."):
                module = original(name, globals, locals, fromlist, level)
                package = name.partition(".")[0]
                if package in COMPANIONS and serves(globals):
                    accompany()
                elif package == "pytest" and serves(globals):
                    self._answer_importorskip()
                return module
            if (
                not self.serves_original
                and globals is not None
                and str(globals.get("__name__"))[:6] == OF_ORIGINAL
            ):
                # NumPy imports in functions, too: a dtype's name does.
                return original(name, globals, locals, fromlist, level)
            if not serves(globals):
                note_refused(globals)
                return original(name, globals, locals, fromlist, level)
            self.served = True
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
                self.served = True
                return replacement(name)
            return original(name, package)

        import_module.__doc__ = original.__doc__
        return import_module

    def _make_execute(self) -> Callable[..., Any]:
        original = self._execute

        def exec_module(loader: ExtensionFileLoader, module: types.ModuleType) -> None:
            """Compiled code finds NumPy, whose arrays it takes: what the user's gets of ours is
            in NumPy's."""
            original(loader, module)
            package = module.__name__.partition(".")[0]
            path = real_path(loader.path)
            # Most are not the user's by their folder alone: `is_users` itself imports some.
            if not INSTALLED.isdisjoint(path.split(os.sep)) or is_below(path, STANDARD_LIBRARY):
                is_open = package in self.packages
            else:
                is_open = self.is_users(path)
            if is_open:
                patches = self._import_module(f"{REPLACEMENT}.interop.opening")
                patches.open_compiled(module)

        return exec_module

    def _make_build_class(self) -> Callable[..., type]:
        original, serves = self._build_class, self.serves

        def build_class(body: types.FunctionType, name: str, *bases: Any, **options: Any) -> type:
            """A class of the user's whose objects are arrays by ``__array__``: NumPy, of whom other
            packages ask for that, takes none of ours."""
            made = original(body, name, *bases, **options)
            method = vars(made).get("__array__") if isinstance(made, type) else None
            if isinstance(method, types.FunctionType) and serves(body.__globals__):
                protocols = self._import_module(f"{REPLACEMENT}.interop.protocols")
                made.__array__ = protocols.for_numpy(method)  # type: ignore[attr-defined]
            return made

        return build_class

    def _answer_importorskip(self) -> None:
        """Let ``pytest.importorskip("numpy")``, which looks into `sys.modules`, give a test the
        module that its import statements give it."""
        pytest: Any = sys.modules["pytest"]
        plain = pytest.importorskip
        if plain.__module__ == __name__:
            return

        @functools.wraps(plain)
        def importorskip(modname: str, *args: Any, **named: Any) -> Any:
            __tracebackhide__ = True
            found = plain(modname, *args, **named)
            if modname.partition(".")[0] == ORIGINAL and self.serves(sys._getframe(1).f_globals):
                self.served = True
                return self.replacement(modname)
            return found

        importorskip.__module__ = __name__
        pytest.importorskip = importorskip

    def install(self) -> None:
        """Put the substitution into force for this process."""
        builtins.__import__ = self._guarded_import
        importlib.import_module = self._guarded_import_module
        ExtensionFileLoader.exec_module = self._open_and_execute  # type: ignore[method-assign]
        builtins.__build_class__ = self._build_and_show

    def remove(self) -> None:
        """Put back what `install` replaced."""
        builtins.__import__ = self._import
        importlib.import_module = self._import_module
        ExtensionFileLoader.exec_module = self._execute  # type: ignore[method-assign]
        builtins.__build_class__ = self._build_class

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


# -- the folders of a project ----------------------------------------------------------------------


def project_folders(folder: str) -> Iterator[str]:
    """The folders whose modules belong to the project that a program in `folder` is part of: the
    project's, or else the one above, and those of ``PYTHONPATH``."""
    yield folder
    yield project_of(os.path.realpath(folder))
    for place in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        if place and not holds_installed(place):
            yield place


def project_of(folder: str) -> str:
    """The nearest folder with a project's file; where there is none, the one above `folder`."""
    places = ("~", os.sep, "/tmp", "/var/tmp", os.environ.get("TMPDIR", os.sep))
    shared = {os.path.realpath(os.path.expanduser(each)) for each in places}
    place = folder
    while place not in shared:
        if any(os.path.exists(os.path.join(place, name)) for name in PROJECT_FILES):
            return place
        place = os.path.dirname(place)
    above = os.path.dirname(folder)
    return folder if above in shared else above


def holds_installed(folder: str) -> bool:
    """Whether an installer has put packages into `folder` (``pip install --target``)."""
    with suppress(OSError):
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    return False


def editable_folders() -> Iterator[str]:
    """The folders of the packages that were installed with ``pip install -e``, as their installers
    have noted (PEP 610), and as setuptools did before."""
    import json  # only where a module lies elsewhere
    from urllib.parse import unquote, urlsplit

    for place in sys.path:
        if os.path.basename(place) not in INSTALLED or not os.path.isdir(place):
            continue
        for name in os.listdir(place):
            path = os.path.join(place, name)
            if name.endswith(".egg-link"):
                with open(path, encoding="utf-8") as file:
                    yield file.readline().strip()
            elif name.endswith(".dist-info"):
                with suppress(FileNotFoundError):
                    with open(os.path.join(path, "direct_url.json"), encoding="utf-8") as file:
                        found = json.load(file)
                    if found.get("dir_info", {}).get("editable"):
                        yield unquote(urlsplit(found["url"]).path)
