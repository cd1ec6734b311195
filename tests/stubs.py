"""Writes the stubs of clfuse, by which type checkers and editors know its names.

    python -m tests.stubs          # after a change of the public names

NumPy's stubs say what its names are: `clfuse` has them all, so its stub takes them over, of
whatever release is installed. Jedi knows those alone that are imported by name, so that these stand
there too. The names beyond NumPy's come from the imports in ``clfuse/__init__.py``.
`tests/nodevice/test_stubs.py` compares what this makes with the files, and with ``dir(clfuse)``.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np

import clfuse
from clfuse.namespace import SUBMODULES, exported

PACKAGE = Path(clfuse.__file__).parent

RELEASE = ".".join(np.__version__.split(".")[:2])
"""NumPy's, whose names are listed."""

HEAD = f'''\
# Written by `python -m tests.stubs` with NumPy {RELEASE}.
# ruff: noqa
"""{{0}}"""

'''


def own_imports() -> dict[str, tuple[str, str]]:
    """Public name beyond NumPy's -> the module that it is imported from, and its name there."""
    found: dict[str, tuple[str, str]] = {}
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                name = alias.asname or alias.name
                found[name] = f".{node.module or ''}", alias.name
    return found


def numpys_names(module: str) -> list[str]:
    """What the stub of a module of NumPy's has for its public names."""
    path = Path(np.__file__).parent.joinpath(*module.split(".")[1:])
    path = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)  # NumPy 2.0 says of what type it is, and no more
        if isinstance(target, ast.Name) and target.id == "__all__" and value is not None:
            listed: list[str] = ast.literal_eval(value)
            return sorted(listed)
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    found = {alias.name for node in imports for alias in node.names if alias.asname == alias.name}
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return sorted(name for name in found if name[0] != "_")


def taken_over(module: str) -> list[str]:
    """The lines that import all names of a module of NumPy's."""
    names = [f"from {module} import {name} as {name}" for name in numpys_names(module)]
    return [f"from {module} import *", *names]


def package() -> str:
    """The stub of the package."""
    numpys = set(exported())
    imports = own_imports()
    lines = [
        HEAD.format("NumPy's interface on OpenCL devices: the types of its names are NumPy's."),
        *taken_over("numpy"),
        "from numpy import __array_namespace_info__ as __array_namespace_info__",
        "from numpy import __version__ as __version__",
        "",
    ]
    lines += [
        "from {} import {} as {}".format(*imports[name], name)
        for name in sorted(set(clfuse.__all__) - numpys)
    ]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def stubs() -> dict[Path, str]:
    """File -> text."""
    made = {PACKAGE / "__init__.pyi": package()}
    for name in SUBMODULES:
        is_package = any(other.startswith(f"{name}.") for other in SUBMODULES)
        path = PACKAGE.joinpath(*name.split("."), *(["__init__"] if is_package else []))
        text = HEAD.format(f"NumPy's ``numpy.{name}``, with clfuse's arrays.")
        made[path.with_suffix(".pyi")] = text + "\n".join(taken_over(f"numpy.{name}")) + "\n"
    return made


if __name__ == "__main__":
    for path, text in stubs().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.exit(0)
