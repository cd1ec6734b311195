"""Whether an evaluation ended early, and who brings that to an end; `rest` says what it leaves.

`journal` says, from before the first launch of a plan until all nodes are right, what has to be put
in order should it end early. It is done at once; but a second interrupt may come between, and then
whoever evaluates next does it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, Final

from .graph.ir import Kind, Node

__all__ = ["finish_below", "journal", "rests", "settle"]

journal: Final[list[Any]] = [None]
"""A function and its arguments: what `settle` calls. It may be called twice."""

rests: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Every `rest.Rest` that was begun, and is not finished; empty as a rule."""


def settle() -> None:
    """Put in order what the last evaluation has left, if it ended early."""
    found = journal[0]
    if found is not None:
        function, arguments = found
        function(*arguments)
        journal[0] = None


def finish_below(nodes: Iterable[Node]) -> None:
    """Do the rest of every plan that these nodes, or what they are computed from, wait for."""
    stack = [node for node in nodes if node.buffer is None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node.buffer is not None:
            continue
        if node.op.kind is Kind.SUSPENDED:
            node.param.finish()
            continue
        for operand in node.inputs:
            if operand.buffer is None and operand not in seen:
                seen.add(operand)
                stack.append(operand)
