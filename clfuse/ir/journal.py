"""The journal of the running evaluation: what restores the nodes if it ends early.

`journal` holds, from before the first launch of a plan until all nodes are right, what has to be
put in order should it end early. That is done at once; but a second interrupt may come meanwhile,
and then the next evaluation does it. `rests` are the plans of which a part is still to be run
(`engine.resume`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from .nodes import Kind, Node

__all__ = ["Refused", "finish_below", "journal", "rests", "settle"]

journal: Final[list[Any]] = [None]
"""A function and its arguments, for `settle` to call. It may be called twice."""

_settled: Final[list[Any]] = [None]
"""What `settle` is calling."""

rests: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Every `engine.resume.Rest` that was begun, and is not finished; empty as a rule."""


class Refused(Exception):
    """The driver takes no program with these kernels of a plan, or no launch of them, for what
    `error` says."""

    def __init__(self, kernels: Sequence[Any], error: Exception) -> None:
        super().__init__(str(error))
        self.kernels = kernels
        self.error = error


def settle() -> None:
    """Put in order what the last evaluation has left, if it ended early."""
    found = journal[0]
    if found is None or found is _settled[0]:  # it may evaluate something itself
        return
    _settled[0] = found
    try:
        function, arguments = found
        function(*arguments)
        journal[0] = None
    finally:
        _settled[0] = None


def finish_below(nodes: Iterable[Node], compute: Callable[[Sequence[Node], Refused], None]) -> None:
    """Do the rest of every plan that these nodes, or what they are computed from, wait for.

    `compute` computes nodes in another way than by kernels that were refused.
    """
    stack = [node for node in nodes if node.buffer is None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node.buffer is not None:
            continue
        if node.op.kind is Kind.SUSPENDED:
            node.param.finish(node, compute)
            continue
        for operand in node.inputs:
            if operand.buffer is None and operand not in seen:
                seen.add(operand)
                stack.append(operand)
