"""The layers of clfuse import only what lies to their left, so that there can be no circle.

The imports are read from the source with `ast`: also those inside functions, and those that only a
type checker sees. Nothing is imported here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "clfuse"

# From left to right. Names in one row may import those before them in the row; those in a set
# never import each other. op_row and op_rows_* are the rows that ops collects.
LAYERS: tuple[tuple[str, ...] | frozenset[str], ...] = (
    (
        "openblas", "errors", "simulated_devices", "config", "_compiled", "compiled", "counters",
        "releases", "dtypes", "user_frames",
    ),
    ("op_row", "op_rows_*", "ops", "traits"),
    ("graph",),
    ("plan",),
    frozenset({"render", "runtime"}),
    (
        "unfinished", "vectors", "drawn", "interpret", "smallness", "patience", "experience",
        "recorded_again", "rest", "planned", "refused", "cutting", "tiled", "larger", "evaluate",
        "automatic", "replay",
    ),
    ("explaining", "profiling"),
    ("userkernels",),
    ("api",),
    ("language",),
    ("__init__",),
    ("dask",),
    ("verified", "run", "demo", "bench", "check", "__main__"),
)
# Third-party packages that one layer alone may import, and no other.
RESERVED = {"pyopencl": "runtime", "mako": "render"}


def rank(layer: str) -> tuple[int, int, str]:
    """Where a top-level module or package stands: row, place, and the name within a set."""
    for row, names in enumerate(LAYERS):
        for place, name in enumerate(sorted(names) if isinstance(names, frozenset) else names):
            if name == layer or (name.endswith("*") and layer.startswith(name[:-1])):
                return row, place, layer
    raise LookupError(f"{layer} is in no layer: add it to LAYERS, where it belongs")


def may_import(importer: str, imported: str) -> bool:
    """Whether the layer may import the other one."""
    if importer == imported:
        return True
    one, other = rank(importer), rank(imported)
    if one[0] == other[0] and isinstance(LAYERS[one[0]], frozenset):
        return False
    # Rows of ops are one place: they may share among themselves.
    return other[:2] <= one[:2]


def sources() -> list[Path]:
    return sorted(
        path for path in PACKAGE.rglob("*.py") if "programs" not in path.relative_to(PACKAGE).parts
    )


def layer_of(path: Path) -> str:
    top = path.relative_to(PACKAGE).parts[0]
    return top.removesuffix(".py")


def module_of(path: Path) -> list[str]:
    """The package that relative imports of this file start from, as parts."""
    parts = ["clfuse", *path.relative_to(PACKAGE).with_suffix("").parts]
    return parts[:-1]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything that a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            start = module_of(path)[:len(module_of(path)) - node.level + 1] if node.level else []
            base = [*start, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                yield node.lineno, ".".join([*base, alias.name])
        elif isinstance(node, ast.Call) and _name_of_import_call(node) is not None:
            yield node.lineno, str(_name_of_import_call(node))


def _name_of_import_call(node: ast.Call) -> str | None:
    """``importlib.import_module("pyopencl")`` and ``__import__("pyopencl")`` are imports too."""
    function = node.func
    name = (function.attr if isinstance(function, ast.Attribute)
            else function.id if isinstance(function, ast.Name) else "")
    if name not in ("import_module", "__import__") or not node.args:
        return None
    first = node.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(
        first.value, str) else None


def layer_of_import(name: str) -> str | None:
    """The layer that an import of clfuse means; ``clfuse`` itself is ``__init__``."""
    parts = name.split(".")
    if parts[0] != "clfuse":
        return None
    if len(parts) > 1 and ((PACKAGE / parts[1]).is_dir() or any(PACKAGE.glob(f"{parts[1]}.py*"))):
        return parts[1]
    return "__init__"


def test_there_is_something_to_read() -> None:
    assert len(sources()) > 10


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_layers_to_its_left(path: Path) -> None:
    own = layer_of(path)
    wrong = [f"line {line}: {name}" for line, name in imports(path)
             if (other := layer_of_import(name)) is not None and not may_import(own, other)]
    assert not wrong, f"{own} may not import: " + "; ".join(wrong)


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_runtime_imports_pyopencl_and_only_render_imports_mako(path: Path) -> None:
    wrong = [f"line {line}: {name}" for line, name in imports(path)
             if RESERVED.get(name.split(".")[0], layer_of(path)) != layer_of(path)]
    assert not wrong, f"{layer_of(path)} may not import: " + "; ".join(wrong)


def test_the_rule_itself() -> None:
    assert may_import("config", "errors")
    assert not may_import("errors", "config")
    assert may_import("render", "plan")
    assert not may_import("render", "runtime")
    assert not may_import("runtime", "render")
    assert may_import("evaluate", "runtime")
    assert not may_import("plan", "evaluate")
    assert may_import("bench", "__init__")
    assert not may_import("api", "__init__")
    assert layer_of_import("clfuse.config") == "config"
    assert layer_of_import("clfuse.sin") == "__init__"
    with pytest.raises(LookupError):
        rank("helpers")
