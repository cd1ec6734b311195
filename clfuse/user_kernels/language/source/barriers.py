"""Barrier check: refuses barriers that not all work-items of a group come to.

OpenCL C leaves undefined what happens then: a device may wait for ever. These values differ between
the work-items of a group: the innermost index, ``local_id()``, elements that are read at such
places or from arrays that the kernel writes to, all that is calculated from these, and variables
that are assigned where only some of the work-items come. Of local memory all read the same at the
same place, if no work-item can write to the array between the same two barriers (`_Intervals`).
"""

from __future__ import annotations

from typing import Final

from clfuse.dataclass import frozen

from . import tree
from .accumulations import expressions
from .checked_source import Source

_NEEDED: Final = "local_id, size, group_id, barrier and local_array of clfuse.group"


def check(source: Source, function: tree.Function, group: int) -> None:
    """Raise KernelError for a barrier that only some work-items of a group come to.

    Also for what needs groups in a kernel that has none (`group` is 0).
    """
    if not group:
        line = _needs_groups(function.body)
        if not line and any(array.shared for array in function.local_arrays.values()):
            line = source.tree.lineno
        if line:
            raise source.error(line, f"{_NEEDED} need work-groups: write @clfuse.kernel(group=64)")
    elif any(isinstance(statement, tree.Barrier) for statement in tree.statements(function.body)):
        _Walk(source, function).run()


def _needs_groups(body: list[tree.Stmt]) -> int:
    """The line of the first barrier, or question about the group; 0 where there is none."""
    for statement in tree.statements(body):
        if isinstance(statement, tree.Barrier):
            return statement.line
        for each in expressions(statement):
            if isinstance(each, tree.Group):
                return each.line
            if isinstance(each, tree.Call) and _needs_groups(each.function.body):
                return each.line
    return 0


def _knows_its_place(function: tree.Function) -> bool:
    """Whether a function asks which work-item of the group calls it, or shares memory with the
    others."""
    if any(array.shared for array in function.local_arrays.values()):
        return True
    every = [
        each for statement in tree.statements(function.body) for each in expressions(statement)
    ]
    return any(
        (isinstance(each, tree.Group) and each.what == "local_id")
        or (isinstance(each, tree.Call) and _knows_its_place(each.function))
        for each in every
    )


@frozen
class _Some:
    """Why only some work-items come to a place."""

    line: int
    what: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.what} in line {self.line}{self.reason}"


_State = frozenset[tree.Load | str] | None
"""What happened of the arrays of a group since the last barrier, on some path: what was read, and
the names of what was written to. None where no path leads."""


def _either(*states: _State) -> _State:
    """One of these paths was taken."""
    found = [state for state in states if state is not None]
    return frozenset().union(*found) if found else None


class _Intervals:
    """Finds loads from arrays of a group that a work-item may write to between the same barriers.

    All work-items are on one path where conditions are the same for all of them. Where they are
    not, `_Walk` takes what is read on one side for different anyway, and what is written there is
    on the path of those who come behind it: barriers are refused before they are together again.
    """

    def __init__(self, function: tree.Function) -> None:
        self.unsettled: set[tree.Load] = set()
        self._breaks: list[_State] = []
        self._continues: list[_State] = []
        # What they hold at first is undefined: as if somebody wrote to them.
        shared = [name for name, array in function.local_arrays.items() if array.shared]
        self._block(function.body, frozenset(shared))

    def _block(self, body: list[tree.Stmt], state: _State) -> _State:
        for statement in body:
            if state is None:
                break
            if isinstance(statement, tree.For | tree.While):
                state = self._loop(statement, state)
                continue
            state = self._touched(statement, state)
            if isinstance(statement, tree.Barrier):
                state = frozenset()
            elif isinstance(statement, tree.If):
                state = _either(
                    self._block(statement.body, state), self._block(statement.orelse, state)
                )
            elif isinstance(statement, tree.Return):
                state = None
            elif isinstance(statement, tree.Jump):
                jumps = self._breaks if statement.word == "break" else self._continues
                jumps[-1] = _either(jumps[-1], state)
                state = None
        return state

    def _loop(self, node: tree.For | tree.While, state: frozenset[tree.Load | str]) -> _State:
        if isinstance(node, tree.For):  # the range is looked at once
            state = self._touched(node, state)
        while True:
            if isinstance(node, tree.While):
                state = self._touched(node, state)
            self._breaks.append(None)
            self._continues.append(None)
            end = self._block(node.body, state)
            again = _either(state, end, self._continues.pop())
            left = self._breaks.pop()
            if again is None or again == state:
                return _either(state, left)
            state = again

    def _touched(
        self, node: tree.Stmt, state: frozenset[tree.Load | str]
    ) -> frozenset[tree.Load | str]:
        """The state behind what a statement itself reads and writes."""
        every = list(expressions(node))
        read = {each for each in every if isinstance(each, tree.Load) and each.is_local}
        written = {each.array for each in every if isinstance(each, tree.Atomic) and each.is_local}
        if isinstance(node, tree.Store) and node.is_local:
            written.add(node.array)
        state = state | read | written
        if read or written:
            self.unsettled |= {
                each for each in state if isinstance(each, tree.Load) and each.array in state
            }
        return state


class _Walk:
    """Goes over the statements until no variable more is found to differ."""

    def __init__(self, source: Source, function: tree.Function) -> None:
        self.source = source
        self.function = function
        self.unsettled = _Intervals(function).unsettled
        self.varying: set[str] = set()  # variables, and arrays of one work-item alone
        self.left: _Some | None = None  # a return that some have taken
        self.breaks: list[_Some | None] = []  # one that some have taken, a loop each
        self.continues: list[_Some | None] = []  # one that some have taken in this round

    def run(self) -> None:
        while True:
            before = set(self.varying)
            self.left = None
            self._block(self.function.body, None, False)
            if self.varying == before:
                break
        self.left = None
        self._block(self.function.body, None, True)

    def _block(self, body: list[tree.Stmt], some: _Some | None, refuses: bool) -> None:
        for statement in body:
            jumps = (*self.breaks, *self.continues)
            here = some or self.left or next((why for why in jumps if why), None)
            for each in expressions(statement):
                if isinstance(each, tree.Atomic) and each.is_local:
                    self.varying.add(each.array)
            if isinstance(statement, tree.Barrier):
                if here is not None and refuses:
                    raise self.source.error(
                        statement.line,
                        f"not all work-items of a group come to this barrier: the {here} is not "
                        "the same for all of them; write the barrier where all come by, and put "
                        "conditions around the statements between barriers",
                    )
            elif isinstance(statement, tree.Assign):
                if here is not None or self._varies(statement.value):
                    self.varying.add(statement.name)
            elif isinstance(statement, tree.AssignMany):
                if here is not None or self._varies(statement.call):
                    self.varying.update(statement.names)
            elif isinstance(statement, tree.Store):
                parts = (statement.value, *statement.indices)
                if statement.is_local and (here is not None or any(map(self._varies, parts))):
                    self.varying.add(statement.array)
            elif isinstance(statement, tree.Cleared):
                if here is not None:
                    self.varying.add(statement.name)
            elif isinstance(statement, tree.If):
                inner = here
                if inner is None and self._varies(statement.test):
                    inner = _Some(statement.line, "condition", self._unsettled(statement.test))
                self._block(statement.body, inner, refuses)
                self._block(statement.orelse, inner, refuses)
            elif isinstance(statement, tree.For | tree.While):
                self._loop(statement, here, refuses)
            elif isinstance(statement, tree.Return):
                if here is not None:
                    self.left = self.left or _Some(statement.line, "return", f" (under the {here})")
            elif isinstance(statement, tree.Jump) and here is not None:
                jumps_of = self.breaks if statement.word == "break" else self.continues
                why = _Some(statement.line, f"`{statement.word}`", f" (under the {here})")
                jumps_of[-1] = jumps_of[-1] or why

    def _loop(self, node: tree.For | tree.While, some: _Some | None, refuses: bool) -> None:
        bounds: list[tree.Expr] = (
            [node.test] if isinstance(node, tree.While) else [node.start, node.stop, node.step]
        )
        if some is None and any(self._varies(bound) for bound in bounds):
            some = _Some(node.line, "loop", self._unsettled(*bounds))
        if isinstance(node, tree.For) and some is not None:
            self.varying.add(node.name)
        # Who leaves the loop is missing in the next round: the body is looked at once for that.
        self.breaks.append(None)
        self.continues.append(None)
        self._block(node.body, some, False)
        self.continues[-1] = None
        self._block(node.body, some, refuses)
        self.continues.pop()
        if self.breaks.pop() is not None and isinstance(node, tree.For):
            self.varying.add(node.name)  # it stays what it was when some left

    def _varies(self, node: tree.Expr) -> bool:
        return any(self._is_varying(each) for each in expressions(node))

    def _is_varying(self, node: tree.Expr) -> bool:
        if isinstance(node, tree.Index):
            return node.axis == len(self.function.indices) - 1
        if isinstance(node, tree.Group):
            return node.what == "local_id"
        if isinstance(node, tree.Local):
            return node.name in self.varying
        if isinstance(node, tree.Load):
            return self._is_varying_load(node)
        if isinstance(node, tree.Call):
            read = [node.arrays[name] for name in node.function.reads]
            return _knows_its_place(node.function) or not self.function.writes.isdisjoint(read)
        return isinstance(node, tree.Atomic)

    def _is_varying_load(self, node: tree.Load) -> bool:
        """Whether work-items may read different values at the same place."""
        if self._is_shared(node):
            return node in self.unsettled
        return node.array in (self.varying if node.is_local else self.function.writes)

    def _is_shared(self, node: tree.Load) -> bool:
        return node.is_local and self.function.local_arrays[node.array].shared

    def _unsettled(self, *nodes: tree.Expr) -> str:
        """What to say of local memory that somebody may write to while it is read here."""
        for each in (each for node in nodes for each in expressions(node)):
            if (
                isinstance(each, tree.Load)
                and self._is_shared(each)
                and self._is_varying_load(each)
            ):
                return f" (`{each.array}` may be written to meanwhile: put a barrier between)"
        return ""
