"""The API reference: an entry for every public name of clfuse, and the pages that hold them.

An entry has the signature, what is recorded and what the host does, the docstring where it is
clfuse's own (else its first line, and where NumPy describes the rest), and a program that is run
when the entry is made. Programs of names that have none in their docstring are in ``examples.txt``.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import re
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import clfuse
from clfuse.dispatch.registry import AT_CALL, BY_NUMPY, NATIVE
from clfuse.functions.shaping.files import FILES
from clfuse.namespace import PLAIN
from clfuse.user_kernels.language.calls.decorator import Kernel

EXAMPLES = Path(__file__).parent / "examples.txt"
SUBMODULES = ("linalg", "fft", "random", "testing", "lib", "lib.stride_tricks", "lib.mixins")
OWN_MODULES = ("config", "dask")
OF_NUMPY = re.compile(r"(?m)^Notes\n-----\nAs `numpy\.\w+`\. .*\s*\Z")
"""What `tests.docstrings` says of who computes, which an entry says by its status."""
IMPORT = ">>> import clfuse as np"
NUMPYS_PAGE = "https://numpy.org/doc/stable/reference/generated/numpy.{}.html"

STATUS = {
    "own": "clfuse's own; NumPy has no such name.",
    "recorded": "**Recorded.** Nothing runs at the call. Kernels compute it, fused with what comes "
    "before and after; NumPy computes what is too small for a device.",
    "at call": "**At the call**, by NumPy on the host: without a copy where the device shares the "
    "host's memory, with one where it does not.",
    "files": "**A file.** NumPy reads or writes it; the arrays are clfuse's.",
    "host": "**On the host**, by NumPy at the call. It counts in `stats()[\"fallbacks\"]`.",
    "nothing": "It computes nothing with arrays: it is NumPy's own object.",
    "drawn": "**Recorded.** A kernel draws the numbers where they are used, by counter. They are "
    "not NumPy's stream.",
    "module": "NumPy's own module. Its functions take arrays of clfuse's, and compute on the host.",
    "filled": "A module of clfuse's with NumPy's names; its names have entries of their own.",
    "checks": "It looks at the arrays: they are computed at the call, and compared on the host.",
}
"""What is recorded and what the host does, by kind."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the reference: its file's name, its title, and what its names have in common."""

    name: str
    title: str
    about: str


PAGES = (
    Page("own", "What clfuse adds", "Names that NumPy does not have: devices, evaluation, "
         "recording, kernels, counters, errors."),
    Page("ndarray", "The array class", "The methods and attributes of `clfuse.ndarray`."),
    Page("kernel", "Kernels in Python", "The methods of what `clfuse.kernel` makes."),
    Page("ufuncs", "Ufuncs", "Functions of each element. All are recorded, with their methods "
         "`reduce`, `accumulate`, `outer`, `at` and `reduceat`."),
    Page("math", "Sums, statistics, and other mathematics", "Folds, scans, statistics, "
         "choices by a condition, questions about values."),
    Page("shaping", "Making, joining and reshaping arrays", "What makes arrays, and what gives "
         "them another shape. Reshaping makes views where NumPy does."),
    Page("indexing", "Indexing", "What takes elements, writes them, and finds places."),
    Page("sorting", "Sorting and searching", "Sorts, quantiles, histograms, interpolation."),
    Page("products", "Products of matrices", "Products in NumPy's main namespace; "
         "[`clfuse.linalg`](linalg) has the decompositions."),
    Page("signals", "Signals", "Convolution, correlation, and packed bits."),
    Page("composed", "Functions composed of others", "NumPy's own Python functions, run with "
         "clfuse's operations in them: they are recorded as far as these are."),
    Page("files", "Files", "What reads and writes arrays."),
    Page("host", "Settings, text, and functions of the host", "Names that compute nothing on a "
         "device."),
    Page("types", "Data types and classes", "NumPy's own classes."),
    Page("constants", "Constants, index tricks, and modules", "Objects that are no functions."),
    Page("linalg", "clfuse.linalg", "Linear algebra. [Limits](../limits.md) says what is a "
         "kernel."),
    Page("fft", "clfuse.fft", "Fourier transforms: kernels on GPUs, NumPy's on CPU devices."),
    Page("random", "clfuse.random", "Random numbers, made in the kernels that use them. [Which "
         "distributions, and whose numbers](../random.md)."),
    Page("testing", "clfuse.testing", "NumPy's assertions, for arrays of both libraries."),
    Page("lib", "clfuse.lib", "What NumPy keeps in `numpy.lib`."),
    Page("config", "clfuse.config", "The settings. [Each of them](../settings.md)."),
    Page("dask", "clfuse.dask", "What Dask needs. [How to use it](../dask.md)."),
)  # fmt: skip

CLASSES = {"ndarray": "ndarray", "kernel": "Kernel"}
"""Pages of classes -> these."""

INTERNAL = ("forget_calls",)
"""Methods that clfuse itself calls."""

BY_FOLDER = {
    "functions.math": "math", "functions.shaping": "shaping", "functions.indexing": "indexing",
    "functions.sorting": "sorting", "functions.linalg": "products", "functions.fft": "signals",
    "classes.printing": "host", "arrays.errstate": "host", "interop.nditer": "host",
}  # fmt: skip
"""Where a function of the main namespace is defined -> its page."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the reference says of one name.

    Attributes
    ----------
    path : str
        The name below ``clfuse``: ``"linalg.inv"``.
    page : str
        The page that has it.
    directive : str
        Sphinx's name for its kind: function, class, method, attribute, data, module.
    signature : str
        ``"(a, axis=None)"``; empty where it is not called.
    status : str
        A key of `STATUS`.
    text : str
        Its docstring without examples, or the first line of NumPy's.
    program : str
        Lines of a doctest; they begin with the import.
    numpys : bool
        Whether `text` is NumPy's.
    """

    path: str
    page: str
    directive: str
    signature: str
    status: str
    text: str
    program: str
    numpys: bool


# -- what an object is -----------------------------------------------------------------------------


def public(module: Any) -> list[str]:
    """The public names of a module."""
    return [name for name in dir(module) if not name.startswith("_")]


def signature_of(found: Any, reference: Any) -> str:
    """NumPy's signature where it has one, else ours, without annotations."""
    for each in (reference, found):
        try:
            signature = inspect.signature(each)
        except (TypeError, ValueError):
            continue
        bare = [
            parameter.replace(annotation=parameter.empty)
            for parameter in signature.parameters.values()
        ]
        text = str(inspect.Signature(bare))
        return re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", text)
    doc = getattr(reference, "__doc__", None) or ""
    head = re.match(r"\w+(\([^\n]*\))\n", doc)
    return head[1] if head else "()"


def status_of(found: Any, reference: Any, module: str) -> str:
    """A key of `STATUS`, from the tables by which calls are dispatched."""
    if reference is None:
        return "own"
    if isinstance(reference, types.ModuleType):
        return "module" if found is reference else "filled"
    if isinstance(reference, np.ufunc):
        return "recorded" if reference in BY_NUMPY else "host"
    if inspect.isclass(reference) or not callable(reference) or found is reference:
        return "recorded" if reference is np.ndarray else "nothing"
    if module == "testing":
        return "checks"
    if reference in FILES:
        return "files"
    if reference in AT_CALL:
        return "at call"
    if reference in NATIVE:
        return "recorded"
    return "nothing" if not module and reference.__name__ in PLAIN else "host"


def page_of(name: str, found: Any, reference: Any, status: str) -> str:
    """The page of a name of the main namespace."""
    if reference is None or name == "ndarray":
        return "own"
    if isinstance(reference, np.ufunc):
        return "ufuncs"
    if inspect.isclass(reference):
        return "types"
    if isinstance(reference, types.ModuleType) or not callable(reference):
        return "constants"
    if status in ("files", "nothing"):
        return "files" if status == "files" else "host"
    defined = (inspect.unwrap(found).__module__ or "").removeprefix("clfuse.")
    for folder, page in BY_FOLDER.items():
        if defined.startswith(folder):
            return page
    return "products" if name in ("matmul", "matvec", "vecmat", "vecdot") else "composed"


# -- programs --------------------------------------------------------------------------------------


@cache
def examples() -> dict[str, str]:
    """Name -> the statements of ``examples.txt``."""
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    rows = [line.partition(": ") for line in lines if line and not line.startswith("#")]
    return {name: source for name, _, source in rows}


def program_for(path: str, found: Any) -> str:
    """The statements that show a name: from the file, or what is the same for all of a kind."""
    if path in examples():
        return examples()[path]
    if inspect.isclass(found) and issubclass(found, np.generic):
        return f"np.ones(2, np.{path}).dtype"
    if isinstance(found, types.ModuleType):
        return f"np.{path}.__name__"
    if not callable(found):
        return f"type(np.{path}).__name__"
    return f"callable(np.{path})"


def shown(source: str, module: Any = clfuse) -> tuple[str, int]:
    """Run statements with ``np`` as `module`: a doctest of them, and how many fallbacks there were.

    Raises
    ------
    Exception
        What a statement raises.
    """
    names: dict[str, Any] = {"np": module}
    lines = [IMPORT]
    before = clfuse.stats()["fallbacks"]
    for statement in ast.parse(source).body:
        lines.append(f">>> {ast.get_source_segment(source, statement)}")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(statement, ast.Expr):
                code = compile(ast.Expression(statement.value), path_of(source), "eval")
                value = eval(code, names)
                if value is not None:
                    print(repr(value))
            else:
                exec(compile(ast.Module([statement], []), path_of(source), "exec"), names)
        lines += printed.getvalue().splitlines()
    return "\n".join(lines), clfuse.stats()["fallbacks"] - before


def path_of(source: str) -> str:
    """What a traceback calls these statements."""
    return f"<example: {source}>"


# -- entries ---------------------------------------------------------------------------------------


def sections_of(docstring: str) -> tuple[str, str]:
    """A docstring of ours: what comes before its examples, and these."""
    text = inspect.cleandoc(docstring)
    head, _, rest = text.partition("\nExamples\n--------\n")
    return OF_NUMPY.sub("", head).rstrip(), rest.strip()


def first_line(docstring: str) -> str:
    """The sentence by which NumPy's docstring begins, behind the signature that may come first."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    if re.match(r"\w+\(.*\)$", paragraphs[0].replace("\n", " ")):
        paragraphs = paragraphs[1:]
    text = paragraphs[0] if paragraphs else ""
    lines = [line for line in text.splitlines() if not re.fullmatch(r"[=\-~^]+|\.\. .*", line)]
    return " ".join(line.strip() for line in lines)


def directive_of(found: Any) -> str:
    """Sphinx's name for the kind of an object."""
    if isinstance(found, types.ModuleType):
        return "data"
    if inspect.isclass(found):
        return "exception" if issubclass(found, BaseException) else "class"
    return "function" if callable(found) else "data"


def entry(path: str, page: str, found: Any, reference: Any, status: str) -> Entry:
    """The entry of one name; its program is run where its docstring has none."""
    doc = getattr(found, "__doc__", None) or ""
    numpys = IMPORT not in doc and reference is not None
    if numpys:
        text, program = first_line(doc), ""
    else:
        text, program = sections_of(doc)
    if not callable(found) and not isinstance(found, types.ModuleType) and reference is not None:
        text = ""  # what a number says of itself is what its class says
    if not program:
        program, fallbacks = shown(program_for(path, found))
        if page == "random" and callable(found) and not inspect.isclass(found):
            status = "host" if fallbacks else "drawn" if ".shape" in program else "nothing"
    directive = directive_of(found)
    signature = signature_of(found, reference) if callable(found) else ""
    if directive == "exception":
        signature = ""
    return Entry(path, page, directive, signature, status, text, program, numpys)


def main_namespace() -> Iterator[Entry]:
    """Entries of ``clfuse`` itself."""
    for name in public(clfuse):
        found, reference = getattr(clfuse, name), getattr(np, name, None)
        known = hasattr(np, name)
        status = status_of(found, reference, "") if known else "own"
        if reference is None and known:
            status = "nothing"  # newaxis
        page = page_of(name, found, reference, status)
        if reference is None and known:
            page = "constants"
        yield entry(name, page, found, reference, status)


def submodule(name: str) -> Iterator[Entry]:
    """Entries of one of NumPy's submodules."""
    ours, numpys = (importlib.import_module(f"{top}.{name}") for top in ("clfuse", "numpy"))
    for each in public(ours):
        found, reference = getattr(ours, each), getattr(numpys, each, None)
        status = status_of(found, reference, name)
        yield entry(f"{name}.{each}", name.partition(".")[0], found, reference, status)


def own_module(name: str) -> Iterator[Entry]:
    """Entries of a module that NumPy does not have."""
    module = importlib.import_module(f"clfuse.{name}")
    for each in module.__all__:
        found = getattr(module, each)
        text, program = sections_of(getattr(found, "__doc__", None) or "")
        if not callable(found):
            text = ""
        directive = directive_of(found)
        signature = signature_of(found, None) if directive == "function" else ""
        yield Entry(f"{name}.{each}", name, directive, signature, "own", text, program, False)


def members(page: str, owner: type, numpys: type) -> Iterator[Entry]:
    """Entries of the methods and attributes of a class; those that have a docstring."""
    for name in public(owner):
        found, reference = getattr(owner, name), getattr(numpys, name, None)
        doc = getattr(found, "__doc__", None)
        if not doc or name in INTERNAL:
            continue
        text = first_line(doc) if owner is clfuse.ndarray else sections_of(doc)[0]
        is_method = callable(found)
        signature = signature_of(found, None) if is_method else ""
        signature = re.sub(r"^\(self(?:, )?", "(", signature)
        directive = "method" if is_method else "attribute"
        status = "own" if owner is clfuse.ndarray and reference is None else ""
        path = f"{CLASSES[page]}.{name}"
        yield Entry(path, page, directive, signature, status, text, "", False)


@cache
def entries() -> tuple[Entry, ...]:
    """Every entry, in the order of the pages' names."""
    found = [*main_namespace(), *members("ndarray", clfuse.ndarray, np.ndarray)]
    found += members("kernel", Kernel, object)
    for name in SUBMODULES:
        found += submodule(name)
    for name in OWN_MODULES:
        found += own_module(name)
    return tuple(found)


# -- pages -----------------------------------------------------------------------------------------


def described(each: Entry) -> Iterator[str]:
    """Lines of reStructuredText about one name, below its directive."""
    from sphinx.ext.napoleon import Config, NumpyDocstring

    if each.numpys and each.text:
        yield escaped(each.text)
        yield ""
    elif each.text:
        converted = NumpyDocstring(
            each.text, Config(napoleon_use_rtype=False), what="function", name=each.path
        )
        yield from str(converted).splitlines()
        yield ""
    if each.status:
        yield STATUS[each.status].replace('`stats()["fallbacks"]`', '``stats()["fallbacks"]``')
        yield ""
    if each.numpys and each.directive != "data" and not each.path.startswith(("testing", "lib")):
        yield f"`NumPy's description <{NUMPYS_PAGE.format(each.path)}>`__"
        yield ""
    if each.program:
        yield from each.program.splitlines()
        yield ""


def escaped(text: str) -> str:
    """A sentence of NumPy's, as plain text: its roles and references lead nowhere here."""
    text = re.sub(r":[\w:]+:`~?([^`<]*?)(?: <[^`]*>)?`", r"``\1``", text)
    text = re.sub(r"\[\w+\]_", "", text)
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    parts = re.split(r"(``.*?``)", text)
    return "".join(p if p.startswith("``") else re.sub(r"([*_|\\])", r"\\\1", p) for p in parts)


def text_of(page: Page) -> str:
    """A page, in reStructuredText."""
    about = re.sub(r"\[(.*?)\]\((?:\.\./)?([\w.]+?)(?:\.md)?\)", _link, page.about)
    lines = [page.title, "=" * len(page.title), "", about, "", ".. py:currentmodule:: clfuse", ""]
    mine = [each for each in entries() if each.page == page.name]
    name = CLASSES.get(page.name, "")
    if name:
        lines += [f".. py:class:: {name}", "   :no-index:", ""]
    for each in sorted(mine, key=lambda each: each.path.casefold()):
        indent = "   " if name else ""
        target = each.path.removeprefix(f"{name}.")
        lines.append(f"{indent}.. py:{each.directive}:: {target}{each.signature}")
        lines.append("")
        lines += [f"{indent}   {line}".rstrip() for line in described(each)]
        lines.append("")
    return "\n".join(lines)


def _link(match: re.Match[str]) -> str:
    text, target = match.groups()
    place = target if target in {page.name for page in PAGES} and ".md" not in match[0] else None
    return f":doc:`{text.replace('`', '')} <{place or '../' + target}>`"


def write(folder: Path) -> None:
    """Write every page, and the index of them, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (folder / f"{page.name}.rst").write_text(text_of(page), encoding="utf-8")
    rows = [f"   {page.name}" for page in PAGES]
    count = len(entries())
    index = [
        "API reference", "=============", "",
        f"All {count} public names: what each is called with, what is recorded and what the host "
        "does, and a program that was run when this page was made. In the programs ``np`` is "
        "clfuse.", "",
        ".. toctree::", "   :maxdepth: 1", "", *rows, "",
    ]  # fmt: skip
    (folder / "index.rst").write_text("\n".join(index), encoding="utf-8")
