"""Docstrings of NumPy's functions: parameters, notes and an example, behind the line in the source.

They come from ``docstrings.txt``, which `tests.docstrings` writes: what is said of a parameter is
the same for every function that has it, and stands there once.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

__all__ = ["FILE", "SEPARATOR", "add_to"]

FILE: Final = os.path.join(os.path.dirname(__file__), "docstrings.txt")
SEPARATOR: Final = "\f\n"
HEADING: Final = "\n\nParameters\n"


def add_to(namespace: Mapping[str, Any]) -> None:
    """Add what the file has to the docstrings of the functions in a namespace."""
    text = ""
    with suppress(OSError), open(FILE, encoding="utf-8") as file:  # help is no reason to fail
        text = file.read()
    for section in text.split(SEPARATOR)[1:]:
        name, _, rest = section.partition("\n")
        function = namespace.get(name)
        first = getattr(function, "__doc__", None)
        if first and HEADING not in first:
            # Beside sections without indentation a first part with it would be a quotation.
            function.__doc__ = f"{inspect.cleandoc(first)}\n\n{rest}"
