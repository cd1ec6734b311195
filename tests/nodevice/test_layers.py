"""The modules of clfuse import only what stands before them in ORDER, and never in a circle.

The imports are read from the source with `ast`: also those inside functions, and those that only a
type checker sees. Nothing is imported here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "clfuse"

ORDER = """
    process dataclass openblas user_frames errors target.simulated_devices config _core counters
    events numpy_releases dtypes advice tracebacks progress
    ops target.costs target.traits target.fourier target.products target.scatters target.verified
    ir
    schedule.access
    schedule.kinds schedule.fourier_tables schedule.library_forms schedule.records
    schedule.dataflow schedule.graph schedule.rounds schedule.cost
    schedule.traffic schedule.device_libraries schedule.rewrite
    schedule.partition schedule.shape
    schedule.lower schedule.memory schedule.fuse schedule.finish schedule.verify schedule.planner
    schedule
    codegen.arguments codegen.signatures codegen.relaxed codegen.lines codegen.templates
    codegen.kinds codegen
    runtime.files runtime.drivers runtime.context runtime.simulated runtime.devices runtime.memory
    runtime.host runtime.launches runtime
    interpreter policy engine
    arrays eager dispatch
    functions.indexing functions.attributes functions.math functions.rebound functions.shaping
    functions.sorting functions.linalg functions.fft functions.random functions
    interop classes tracing control
    user_kernels.opencl
    user_kernels.language.source user_kernels.language.array_route
    user_kernels.language.launch_route user_kernels.language.calls user_kernels
    api numpy_submodules namespace __init__
    dask tools __main__
""".split()
"""From the ground to the roof: modules, and packages for all that is in them. A module belongs to
the longest of these names that its own begins with."""

APART = [("codegen", "runtime")]
"""Packages that do not import each other, in either direction."""

DOORS = {"policy": "policy.choice", "eager": "eager"}
"""Packages of which others import one module."""

NAMES_OF_EAGER = 5
"""What its door has, and nothing else is imported from it."""

RESERVED = {"pyopencl": "runtime", "mako": "codegen"}
"""Third-party packages that one package alone may import."""

FLOOR = 17
"""Most modules that lie side by side in a package."""

LINES = 600


def modules() -> dict[str, Path]:
    """Every module by its dotted name within the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        if "programs" in parts or parts[0] == "guide":  # plain programs of NumPy's
            continue
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        found[".".join(parts)] = path
    return found


MODULES = modules()


def rank(name: str) -> int:
    """Where a module stands in ORDER."""
    places = [
        place for place, entry in enumerate(ORDER)
        if name == entry or name.startswith(f"{entry}.")
    ]
    if not places:
        raise LookupError(f"{name} is in no layer: add it to ORDER, where it belongs")
    return max(places, key=lambda place: len(ORDER[place]))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything that a file imports."""
    package = ["clfuse", *path.relative_to(PACKAGE).with_suffix("").parts][:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
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


def module_of(imported: str) -> str | None:
    """The module of clfuse that an import means; ``clfuse`` itself is ``__init__``."""
    parts = imported.split(".")
    if parts[0] != "clfuse":
        return None
    for end in range(len(parts), 1, -1):
        if ".".join(parts[1:end]) in MODULES:
            return ".".join(parts[1:end])
    return "_core" if parts[1:2] == ["_core"] else "__init__"


@cache
def imported_modules(name: str) -> dict[str, int]:
    """The modules of clfuse that a module imports, and the first line that does."""
    found: dict[str, int] = {}
    for line, imported in imports(MODULES[name]):
        other = module_of(imported)
        if other is not None and other != name:
            found.setdefault(other, line)
    return found


def circles(graph: dict[str, list[str]]) -> list[list[str]]:
    """The sets of names, at least two in each, that reach each other (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in graph[name]:
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            start = stack.index(name)
            if len(stack) - start > 1:
                found.append(sorted(stack[start:]))
            del stack[start:]

    for name in graph:
        if name not in number:
            visit(name)
    return found


def test_there_is_something_to_read() -> None:
    assert len(MODULES) > 100
    assert set(imported_modules("engine.evaluate")) >= {"errors", "ir.nodes"}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_what_stands_before_it(name: str) -> None:
    wrong = [
        f"line {line}: {other}" for other, line in imported_modules(name).items()
        if rank(other) > rank(name) or any(
            {one, another} == {name.split(".")[0], other.split(".")[0]} for one, another in APART
        )
    ]
    assert not wrong, f"{name} may not import: " + "; ".join(wrong)


@pytest.mark.parametrize("name", MODULES)
def test_only_runtime_imports_pyopencl_and_only_codegen_mako(name: str) -> None:
    own = name.split(".")[0]
    wrong = [f"line {line}: {imported}" for line, imported in imports(MODULES[name])
             if RESERVED.get(imported.split(".")[0], own) != own]
    assert not wrong, f"{name} may not import: " + "; ".join(wrong)


def test_packages_with_a_door_are_entered_by_it() -> None:
    wrong = [
        f"{name}: {other}" for name in MODULES for other in imported_modules(name)
        for package, door in DOORS.items()
        if other.startswith(f"{package}.") and other != door and not name.startswith(package)
    ]
    assert wrong == []


def test_eager_is_entered_by_five_names() -> None:
    door = ast.parse(MODULES["eager"].read_text(encoding="utf-8"))
    (listed,) = [
        ast.literal_eval(node.value) for node in door.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"  # type: ignore[attr-defined]
    ]
    assert len(listed) == NAMES_OF_EAGER
    used = {
        imported.split(".")[2] for name, path in MODULES.items() if not name.startswith("eager")
        for _, imported in imports(path) if imported.startswith("clfuse.eager.")
    }
    assert used == set(listed)


def test_there_is_no_circle_of_imports() -> None:
    # `from . import x` names the package too, whose `__init__` imports nothing in turn.
    graph = {name: list(imported_modules(name)) for name in MODULES}
    assert circles(graph) == []


def test_circles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": [], "e": ["f"], "f": ["e", "a"]}
    assert circles(graph) == [["a", "b", "c"], ["e", "f"]]


def test_packages_have_few_modules_and_modules_few_lines() -> None:
    floors: dict[Path, int] = {}
    for path in MODULES.values():
        floors[path.parent] = floors.get(path.parent, 0) + (path.name != "__init__.py")
    assert {str(path): count for path, count in floors.items() if count > FLOOR} == {}
    lines = {name: path.read_text(encoding="utf-8").count("\n") for name, path in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > LINES} == {}


def test_the_rule_itself() -> None:
    assert rank("target.simulated_devices") < rank("config") < rank("target.traits")
    assert rank("ir.nodes") < rank("schedule.records") < rank("schedule.lower.emission")
    assert rank("schedule.verify") < rank("schedule.planner") < rank("codegen.kernels")
    assert rank("classes.ndarray") < rank("__init__") < rank("tools.bench.command")
    assert module_of("clfuse.config") == "config"
    assert module_of("clfuse.ir.nodes.Node") == "ir.nodes"
    assert module_of("clfuse._core.compiled") == "_core"
    assert module_of("clfuse.sin") == "__init__"
    assert module_of("numpy.sin") is None
    with pytest.raises(LookupError):
        rank("helpers")
