"""Specialization: a kernel's function with its types, one for arguments of the same kinds."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from clfuse.arrays.handle import downcasts
from clfuse.user_kernels.language.array_route.accesses import Domain
from clfuse.user_kernels.language.source import barriers
from clfuse.user_kernels.language.source.checked_source import Source
from clfuse.user_kernels.language.source.lower import lower
from clfuse.user_kernels.language.source.tree import Function

FUNCTIONS_KEPT: Final = 256
"""Typed functions of one kernel: a number of its surroundings that changes makes another one."""


class Specializations:
    """A kernel's source, and what it is for the kinds of arguments that it was called with.

    source (Source)
    group (int): work-items of a work-group; 0 where a kernel has none.
    fixed (tuple of (Source, expression)): numbers of the surroundings, as far as the kernel was
        found to use them.
    """

    def __init__(self, source: Source, group: int, on_more_fixed: Callable[[], None]) -> None:
        self.source = source
        self.group = group
        self.fixed: tuple[tuple[Source, ast.expr], ...] = ()
        self._on_more_fixed = on_more_fixed  # called where typing finds more such numbers
        self._functions: dict[Any, Function] = {}

    def captured(self) -> tuple[Any, ...]:
        """The numbers of the surroundings as they are now."""
        return tuple([
            (type(value), repr(value))
            for value in [source.dotted(node) for source, node in self.fixed]
        ]) if self.fixed else ()

    def function(self, kinds: list[Any], rank: int) -> Function:
        """The typed function for arguments of these kinds, behind so many indices."""
        names = self.source.parameters
        key = (rank, downcasts(), self.captured(), *kinds)
        found = self._functions.get(key)
        if found is None:
            typed = dict(zip(names[rank:], kinds, strict=True))
            found = lower(self.source, typed, names[:rank])
            barriers.check(self.source, found, self.group)
            fixed = {(where, ast.unparse(node)): (where, node) for where, node in self.fixed}
            for (where, text), (node, _) in found.captured.items():
                fixed[where, text] = (where, node)
            if len(fixed) > len(self.fixed):
                self.fixed = tuple(fixed.values())
                self._on_more_fixed()
            if len(self._functions) >= FUNCTIONS_KEPT:
                self._functions.clear()
            self._functions[(rank, downcasts(), self.captured(), *kinds)] = found
        return found

    def check_groups(self, domain: Domain) -> None:
        """Raise ValueError where the last range is no whole number of groups."""
        extent = domain[-1][1] - domain[-1][0]
        if self.group and extent % self.group:
            raise ValueError(
                f"{self.source.function.__name__} has groups of {self.group}: the last range must "
                f"be a multiple of that, not {extent}"
            )
