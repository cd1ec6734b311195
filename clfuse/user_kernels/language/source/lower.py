"""Type inference: `Source` and the types of the arguments -> `tree.Function`.

Statements are here, expressions in `expressions`. A variable has one type in the whole function:
the join of the types of all that is assigned to it. It is found by going over the body until
nothing changes, because a loop may assign further down what it reads further up.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from . import definite_assignment, tree
from .calls import Functions
from .checked_source import MISSING, Source
from .expressions import changes_arrays
from .intrinsics import is_of_group, local_array
from .syntax import body_of, is_divmod, is_shape
from .types import INT, ArrayType, Disagreement, Type, element_type, join

_ROUNDS: Final = 12
"""More than a chain of variables, each typed by the one after it, is long."""


def lower(
    source: Source,
    kinds: dict[str, Type | ArrayType],
    indices: tuple[str, ...] = (),
    functions: dict[Any, tree.Function] | None = None,
    calling: tuple[Source, ...] = (),
) -> tree.Function:
    """The function with its types.

    Parameters
    ----------
    source : Source
    kinds : dict
        The parameters that are no indices.
    indices : tuple of str
        The kernel's own indices.
    functions : dict
        Functions that it calls, found before.
    calling : tuple of Source
        The functions around this call: functions cannot call themselves.

    Raises KernelError: names line and types.
    """
    functions = {} if functions is None else functions
    # With the numbers of the surroundings as they are now.
    definite_assignment.check(source, body_of(source))
    types: dict[str, Type] = {}
    results: list[Type] = []
    for _ in range(_ROUNDS):
        one = _Pass(source, kinds, indices, functions, calling, dict(types), list(results))
        body = [*one.own_parameters(), *one.block(body_of(source))]
        if one.types == types and one.results == results:
            break
        types, results = one.types, one.results
    function = one.function
    function.body = body
    function.locals = {n: t for n, t in one.types.items() if n not in function.local_arrays}
    function.results = tuple(one.results)
    if one.results and not _returns(body):
        raise source.error(
            source.tree.lineno, "not every path returns a value: end it with `return ...`"
        )
    return function


def _temporary(target: ast.expr, number: int) -> str:
    """A variable for what is calculated before any target of a statement is assigned."""
    return f"{ast.unparse(target)}'{target.lineno}'{number}"


def _returns(body: list[tree.Stmt]) -> bool:
    """Whether every path through the statements ends with a return."""
    for statement in body:
        if isinstance(statement, tree.Return):
            return True
        if (
            isinstance(statement, tree.If)
            and _returns(statement.body)
            and _returns(statement.orelse)
        ):
            return True
        if isinstance(statement, tree.While) and _is_endless(statement):
            return True
    return False


def _is_endless(node: tree.While) -> bool:
    """Whether nothing but a return ends a loop."""
    return isinstance(node.test, tree.Const) and bool(node.test.value) and not _breaks(node.body)


def _breaks(body: list[tree.Stmt]) -> bool:
    """Whether there is a ``break`` for the loop around it."""
    return any(
        (isinstance(each, tree.Jump) and each.word == "break")
        or (isinstance(each, tree.If) and (_breaks(each.body) or _breaks(each.orelse)))
        for each in body
    )


class _Pass(Functions):
    """One way through the body, with the types that are known so far."""

    def __init__(
        self,
        source: Source,
        kinds: dict[str, Type | ArrayType],
        indices: tuple[str, ...],
        functions: dict[Any, tree.Function],
        calling: tuple[Source, ...],
        types: dict[str, Type],
        results: list[Type],
    ) -> None:
        function = tree.Function(source.name, source.filename, indices)
        function.parameters = tuple(kinds)
        function.scalars = {n: k for n, k in kinds.items() if isinstance(k, Type)}
        function.arrays = {n: k for n, k in kinds.items() if isinstance(k, ArrayType)}
        super().__init__(source, function, functions, (*calling, source), types)
        self.results = results
        self.loops = 0
        self.ended: list[str | None] = []  # the variable of every loop that says how it ended

    def type_function(self, other: Source, kinds: dict[str, Type | ArrayType]) -> tree.Function:
        """Another function of the language with its types; known from the second time on."""
        key = (id(other), tuple(kinds.items()))
        found = self.functions.get(key)
        if found is None:
            found = lower(other, kinds, (), self.functions, self.calling)
            self.functions[key] = found
        return found

    def own_parameters(self) -> list[tree.Stmt]:
        """Parameters that the body assigns to: variables, which begin as what was passed."""
        found: list[tree.Stmt] = []
        line = self.source.tree.lineno
        for name in self.source.parameters:
            if name not in self.source.locals:
                continue
            if name in self.function.indices:
                value: tree.Expr = tree.Index(INT, line, self.function.indices.index(name))
            elif name in self.function.scalars:
                value = tree.Scalar(self.function.scalars[name], line, name)
            else:
                continue  # refused where it is assigned
            self._bind(name, value, self.source.tree, found)
        return found

    def block(self, body: list[ast.stmt]) -> list[tree.Stmt]:
        """The statements, one after the other."""
        found: list[tree.Stmt] = []
        for statement in body:
            getattr(self, f"_{type(statement).__name__.lower()}")(statement, found)
        return found

    # -- assignments ------------------------------------------------------------------------------

    def _pass(self, node: ast.Pass, out: list[tree.Stmt]) -> None:
        pass

    def _annassign(self, node: ast.AnnAssign, out: list[tree.Stmt]) -> None:
        if node.value is not None:
            plain = ast.Assign([node.target], node.value)
            self._assign(ast.copy_location(plain, node), out)

    def _assign(self, node: ast.Assign, out: list[tree.Stmt]) -> None:
        target = node.targets[0]
        if len(node.targets) > 1:
            name = _temporary(target, 0)
            self._bind(name, self.value(node.value), node, out)
            for each in node.targets:
                self._assign_to(each, self.local(name, node), out)
        elif isinstance(target, ast.Tuple):
            self._assign_many(node, target, out)
        elif isinstance(target, ast.Name) and self._declares(target, node.value):
            if not self.function.local_arrays[target.id].shared:
                out.append(tree.Cleared(node.lineno, target.id))
        else:
            self._assign_to(target, self.value(node.value), out)

    def _assign_many(self, node: ast.Assign, target: ast.Tuple, out: list[tree.Stmt]) -> None:
        halves = is_divmod(self.source, node.value)
        if isinstance(node.value, ast.Tuple) or is_shape(node.value) or halves:
            if isinstance(node.value, ast.Tuple):
                values = [self.value(element) for element in node.value.elts]
            elif halves:
                assert isinstance(node.value, ast.Call)
                if len(target.elts) != 2:
                    raise self.source.error(node, "divmod gives two numbers: q, r = divmod(x, y)")
                pair = [self.value(element) for element in node.value.args]
                if any(map(changes_arrays, pair)):
                    pair = self._kept(pair, node.value, out)
                values = [self.binary(node, kind(), *pair) for kind in (ast.FloorDiv, ast.Mod)]
            else:
                values = self.shape(node.value, len(target.elts))
            names = [_temporary(e, n) for n, e in enumerate(target.elts)]
            # All values are calculated before any is assigned: a, b = b, a.
            for name, value in zip(names, values, strict=True):
                self._bind(name, value, node, out)
            for element, name in zip(target.elts, names, strict=True):
                self._assign_to(element, self.local(name, node), out)
            return
        call = self.call_of_function(node.value)
        if call is None and isinstance(node.value, ast.Call):
            self.value(node.value)  # says what is wrong with it, if it does not give one number
        if call is None or len(call.function.results) != len(target.elts):
            raise self.source.error(
                node, "the right side must return as many values as there are names"
            )
        temporary = [_temporary(element, n) for n, element in enumerate(target.elts)]
        for name, result in zip(temporary, call.function.results, strict=True):
            self.declare(name, result, node)
        out.append(tree.AssignMany(node.lineno, temporary, call))
        for element, name in zip(target.elts, temporary, strict=True):
            self._assign_to(element, self.local(name, node), out)

    def _assign_to(self, target: ast.expr, value: tree.Expr, out: list[tree.Stmt]) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value, target, out)
            return
        assert isinstance(target, ast.Subscript)
        self._store(target, self.place(target), value, out)

    def _store(
        self,
        target: ast.expr,
        place: tuple[str, list[tree.Expr], bool],
        value: tree.Expr,
        out: list[tree.Stmt],
    ) -> None:
        name, indices, is_local = place
        dtype = self.element(name)
        value = self.stored(value, dtype, target)
        if not is_local:
            self.function.writes.add(name)
        out.append(tree.Store(target.lineno, name, indices, value, is_local))

    def _bind(self, name: str, value: tree.Expr, node: ast.AST, out: list[tree.Stmt]) -> None:
        self.declare(name, value.type, node)
        self.fits(value, self.types[name].dtype, node)
        out.append(tree.Assign(getattr(node, "lineno", 0), name, value))

    def declare(self, name: str, found: Type, node: ast.AST) -> None:
        if name in self.function.arrays:
            raise self.source.error(
                node, f"`{name}` is an array: write to its elements, or give what is calculated "
                "another name"
            )
        if name in self.function.local_arrays:
            raise self.source.error(node, f"`{name}` is a local array: write to its elements")
        known = self.types.get(name)
        if known is None:
            self.types[name] = found
            return
        try:
            self.types[name] = join(known, found)
        except Disagreement:
            raise self.source.error(
                node,
                f"`{name}` would be {found} here and is {known} elsewhere in the function: give "
                f"one of them another name, or convert it: numpy.{known.dtype.name}(...)",
            ) from None

    def _declares(self, target: ast.Name, value: ast.expr) -> bool:
        """Whether the statement is ``name = clfuse.local_array(...)``; notes it."""
        if not isinstance(value, ast.Call):
            return False
        function = self.source.dotted(value.func)
        is_shared = is_of_group(function, "local_array")
        if not is_shared and function is not local_array:
            return False
        if is_shared and len(self.calling) > 1:
            raise self.source.error(
                value, "local arrays of the group stand in the kernel itself, as barriers do"
            )
        options = {word.arg: word.value for word in value.keywords}
        given = dict(zip(("shape", "dtype"), value.args, strict=False)) | options
        if not given or not given.keys() <= {"shape", "dtype"}:
            raise self.source.error(value, "write local_array(shape, dtype)")
        shape = self._constant_shape(given["shape"])
        dtype: Any = float
        if "dtype" in given:
            dtype = self.source.dotted(given["dtype"])
        found = None if dtype is MISSING else element_type(dtype)
        if found is None:
            raise self.source.error(value, "the dtype must be one of NumPy's, by name: np.float32")
        if target.id in self.types or target.id in self.function.arrays:
            raise self.source.error(
                target, f"`{target.id}` is something else elsewhere in the function: give one of "
                "them another name"
            )
        made = tree.LocalArray(found, shape, is_shared)
        known = self.function.local_arrays.setdefault(target.id, made)
        if known != made:
            raise self.source.error(
                target, f"`{target.id}` is a local array of another shape or dtype elsewhere in "
                "the function: give one of them another name"
            )
        self.reason(value, "local arrays")
        return True

    def _constant_shape(self, node: ast.expr) -> tuple[int, ...]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        values = [self.constant(part) for part in parts]
        if not all(type(value) is int and value > 0 for value in values):
            raise self.source.error(
                node, "sizes of local arrays are known when the kernel is written: positive "
                "literals, or numbers from outside of the kernel"
            )
        return tuple(values)

    def _augassign(self, node: ast.AugAssign, out: list[tree.Stmt]) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            if target.id in self.function.arrays:
                raise self.source.error(
                    node, f"`{target.id}` is an array: give the indices of an element, "
                    f"{target.id}[i]"
                )
            old = self.local(target.id, target)
        else:
            assert isinstance(target, ast.Subscript)
            old = self.subscript(target)
            assert isinstance(old, tree.Load)
            new = self.value(node.value)
            if any(map(changes_arrays, (*old.indices, new))):
                # The element that is read is written, whatever the rest changes meanwhile.
                old.indices = self._kept(old.indices, target, out)
            value = self.binary(node, node.op, old, new)
            self._store(target, (old.array, old.indices, old.is_local), value, out)
            return
        self._bind(target.id, self.binary(node, node.op, old, self.value(node.value)), target, out)

    def _kept(
        self, values: list[tree.Expr], node: ast.expr, out: list[tree.Stmt]
    ) -> list[tree.Expr]:
        """The values in variables of their own, in this order."""
        names = [f"{_temporary(node, place)}'{node.col_offset}" for place in range(len(values))]
        for name, value in zip(names, values, strict=True):
            self._bind(name, value, node, out)
        return [self.local(name, node) for name in names]

    # -- control ----------------------------------------------------------------------------------

    def _if(self, node: ast.If, out: list[tree.Stmt]) -> None:
        test = self.truth(node.test)
        if isinstance(test, tree.Const):
            out += self.block(node.body if test.value else node.orelse)
            return
        self.is_conditional = True
        out.append(tree.If(node.lineno, test, self.block(node.body), self.block(node.orelse)))

    def _for(self, node: ast.For, out: list[tree.Stmt]) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        bounds = [self.integer(argument) for argument in node.iter.args]
        zero, one = self.number(0, node), self.number(1, node)
        if len(bounds) == 1:
            bounds = [zero, bounds[0], one]
        elif len(bounds) == 2:
            bounds.append(one)
        if isinstance(bounds[2], tree.Const) and bounds[2].value == 0:
            raise self.source.error(node.iter, "range takes no step of 0")
        self.declare(node.target.id, INT, node.target)
        orelse = self._begin(node, out)
        body = self.block(node.body)
        out.append(tree.For(node.lineno, node.target.id, bounds[0], bounds[1], bounds[2], body))
        self._end(orelse, out)

    def _while(self, node: ast.While, out: list[tree.Stmt]) -> None:
        self.reason(node, "a while loop")
        test = self.truth(node.test)
        orelse = self._begin(node, out)
        out.append(tree.While(node.lineno, test, self.block(node.body)))
        self._end(orelse, out)

    def _begin(self, node: ast.For | ast.While, out: list[tree.Stmt]) -> list[ast.stmt]:
        """Before a loop; its ``else``, which runs unless a variable says that `break` ended it."""
        self.loops += 1
        self.is_conditional = True
        self.ended.append(f"else'{node.lineno}" if node.orelse else None)
        if node.orelse:
            self._set_ended(node, True, out)
        return node.orelse

    def _set_ended(self, node: ast.AST, value: bool, out: list[tree.Stmt]) -> None:
        name = self.ended[-1]
        if name is not None:
            self._bind(name, self.number(value, node), node, out)

    def _end(self, orelse: list[ast.stmt], out: list[tree.Stmt]) -> None:
        self.loops -= 1
        name = self.ended.pop()
        if name is not None:
            body = self.block(orelse)
            out.append(tree.If(orelse[0].lineno, self.local(name, orelse[0]), body, []))

    def _break(self, node: ast.Break, out: list[tree.Stmt]) -> None:
        self.reason(node, "break")
        self._set_ended(node, False, out)
        out.append(tree.Jump(node.lineno, "break"))

    def _continue(self, node: ast.Continue, out: list[tree.Stmt]) -> None:
        self.reason(node, "continue")
        out.append(tree.Jump(node.lineno, "continue"))

    def _return(self, node: ast.Return, out: list[tree.Stmt]) -> None:
        if self.loops:
            self.reason(node, "return inside of a loop")
        parts: list[ast.expr] = []
        if isinstance(node.value, ast.Tuple):
            parts = node.value.elts
        elif node.value is not None:
            parts = [node.value]
        values = [self.value(part) for part in parts]
        if not values and self.source.returns_value:
            raise self.source.error(node, "another return has a value: return one here too")
        if self.results and len(self.results) != len(values):
            raise self.source.error(node, f"another return has {len(self.results)} values")
        if not self.results:
            self.results = [value.type for value in values]
        for place, value in enumerate(values):
            known = self.results[place]
            try:
                self.results[place] = join(known, value.type)
            except Disagreement:
                raise self.source.error(
                    node,
                    f"returns {value.type} here and {known} elsewhere: convert one of them, "
                    f"numpy.{known.dtype.name}(...)",
                ) from None
            self.fits(value, self.results[place].dtype, node)
        out.append(tree.Return(node.lineno, values))

    def _expr(self, node: ast.Expr, out: list[tree.Stmt]) -> None:
        call = node.value
        assert isinstance(call, ast.Call)
        function = self.source.dotted(call.func)
        if is_of_group(function, "barrier"):
            if len(self.calling) > 1:
                raise self.source.error(node, "barriers stand in the kernel itself")
            self.reason(node, "a barrier")
            out.append(tree.Barrier(node.lineno))
            return
        found = self.call_of_function(call)
        if found is not None:
            out.append(tree.AssignMany(node.lineno, [], found))
            return
        out.append(tree.Do(node.lineno, self.effect(call)))

