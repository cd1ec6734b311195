"""`ReductionKernel`, as CuPy's: a map, a fold and a last step in OpenCL C.

The map is fused with the operations that make its operands. Sums, products, extremes and bit
operations are NumPy's own reductions; any other fold is a launch in two stages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from clfuse.arrays.handle import (
    DTYPES,
    Handle,
    fresh,
    is_writeable,
    layout,
    node_of,
    result,
    view_of,
)
from clfuse.arrays.promotion import constant_of
from clfuse.config import settings
from clfuse.ir import build
from clfuse.ir.identifiers import symbol
from clfuse.ir.nodes import Node
from clfuse.ir.scalar_functions import Function

from . import text
from .elementwise import FORMS_KEPT, argument_of, called_on, stretched, written
from .expressions import program_of, results_of
from .names import macros, require_name, require_text, without_comments, words
from .record_launch import record_launch
from .text import Parts, c_type, settle_arguments, stored_type, type_of

INT64: Final = DTYPES["int64"]

FOLDS: Final = {
    "a+b": "add", "a*b": "multiply", "a&b": "bitwise_and", "a|b": "bitwise_or",
    "a^b": "bitwise_xor", "min(a,b)": "minimum", "max(a,b)": "maximum", "fmin(a,b)": "fmin",
    "fmax(a,b)": "fmax", "a<b?a:b": "minimum", "a>b?a:b": "maximum", "b<a?b:a": "minimum",
    "b>a?b:a": "maximum",
}
"""Expressions that NumPy has a reduction for."""

NEUTRAL: Final = {
    "add": ("0",), "multiply": ("1",), "bitwise_or": ("0",), "bitwise_xor": ("0",),
    "bitwise_and": ("-1", "~0"),
}
"""Identities that change nothing, so that the reduction's own will do."""

CHUNK: Final = 256
"""Elements that one work-item folds, at least, where an axis is folded in two stages."""

MAX_CHUNKS: Final = 1024
"""Parts of an axis: the second stage folds those of a result in one work-item."""


class ReductionKernel:
    """A reduction with OpenCL C for its parts, as `cupy.ReductionKernel` in CUDA C.

    Parameters
    ----------
    in_params, out_params : str
        As of `ElementwiseKernel`; one output.
    map_expr : str
        What is folded, of the inputs; an expression. ``_in_ind.size()`` and ``_out_ind.size()``
        are how many elements there are before and after the reduction, here and below.
    reduce_expr : str
        Of ``a`` and ``b``: associative and commutative. Where it is ``a + b``, ``a * b``,
        ``min(a, b)``, ``max(a, b)`` or a bit operation, the reduction is NumPy's, and fuses.
    post_map_expr : str
        A statement that assigns to the output, of ``a``.
    identity : str
        What a fold starts with; empty: its first element.
    name : str
    reduce_type : str, optional
        The type of ``a`` and ``b`` in C, or a dtype's name: the output's unless given. A type that
        the preamble defines is folded by one work-item a result.
    reduce_dims, preamble
        As of `ElementwiseKernel`.

    Examples
    --------
    >>> import clfuse as np
    >>> norm = np.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    >>> norm(np.arange(6.0).reshape(2, 3), axis=1)
    array([2.23606798, 7.07106781])
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        **options: Any,
    ) -> None:
        if options:
            raise TypeError(f"ReductionKernel has no option {', '.join(options)} in OpenCL")
        require_name(name)
        require_text(in_params=in_params, out_params=out_params, map_expr=map_expr,
                     reduce_expr=reduce_expr, post_map_expr=post_map_expr, preamble=preamble)
        self._written = (in_params, out_params, map_expr, reduce_expr, post_map_expr, identity,
                         name, reduce_type, reduce_dims, preamble)
        self.in_params = text.parameters(in_params)
        self.out_params = text.parameters(out_params)
        self.params = text.parameters(f"{in_params}, {out_params}")
        if len(self.out_params) != 1 or not self.in_params:
            raise ValueError(f"{name}: a reduction has inputs, and one output")
        if any(parameter.is_raw for parameter in self.params):
            raise ValueError(f"{name}: a reduction has no raw parameters in OpenCL")
        self.nin, self.nout, self.nargs = len(self.in_params), 1, len(self.params)
        self.name = name
        self.identity = "" if identity is None else without_comments(str(identity)).strip()
        self.reduce_type = reduce_type or self.out_params[0].type
        self.reduce_dims = reduce_dims
        self.preamble = _plain(preamble)
        self.map_expr, self.reduce_expr, self.post_map_expr = (
            without_comments(_plain(part)).strip().rstrip(";")
            for part in (map_expr, reduce_expr, post_map_expr)
        )
        used = words("\n".join([
            self.map_expr, self.reduce_expr, self.post_map_expr, macros(self.preamble)
        ]))
        self._sizes = tuple([name for name in _SIZES if name in used])
        self._program = lru_cache(FORMS_KEPT)(self._make_program)
        self._steps = lru_cache(FORMS_KEPT)(self._make_steps)
        self._kernels = lru_cache(FORMS_KEPT)(self._make_kernels)

    def __repr__(self) -> str:
        return f"<ReductionKernel {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._written

    def __call__(
        self, *args: Any, axis: Any = None, keepdims: bool = False, out: Any = None
    ) -> Any:
        """Record the reduction.

        Parameters
        ----------
        args : array_like
            The inputs, broadcast together, then the output or nothing.
        axis : int or tuple of int, optional
            Which axes are folded; all without it.
        keepdims : bool
            Whether they stay, with length 1.
        out : ndarray, optional
            As the last of `args`.

        Raises
        ------
        TypeError, ValueError
            As of `ElementwiseKernel`; also for an axis that there is not, or that is empty without
            an identity.
        """
        if len(args) not in (self.nin, self.nargs) or (len(args) == self.nargs and out is not None):
            raise TypeError(
                f"{self.name}: wrong number of arguments: {len(args)}; {self.nin} inputs, and an "
                "output or none"
            )
        out = args[self.nin] if len(args) == self.nargs else out
        inputs = [
            argument_of(value, parameter)
            for value, parameter in zip(args, self.in_params, strict=False)
        ]
        if out is not None and not isinstance(out, Handle):
            raise TypeError(f"{self.name}: an output is a {type(out).__name__}, not an ndarray")
        if out is not None and not is_writeable(out):
            raise ValueError("output array is read-only")
        types = text.decide_types(self.name, self.params, [*inputs, out])
        inputs = settle_arguments(inputs, self.in_params, types)
        shape = np.broadcast_shapes(
            *[value._shape for value in inputs if isinstance(value, Handle)]
        )
        axes = _axes(axis, len(shape))
        kept = tuple([extent for dim, extent in enumerate(shape) if dim not in axes])
        wanted = kept
        if keepdims:
            wanted = tuple([1 if dim in axes else extent for dim, extent in enumerate(shape)])
        if out is not None and out._shape != wanted:
            raise ValueError(f"{self.name}: the output has shape {out._shape}, the result {wanted}")
        count = math.prod([shape[dim] for dim in axes])
        if not count and not self.identity:
            raise ValueError(
                f"zero-size array to reduction operation {self.name} which has no identity"
            )
        known = tuple(sorted(types.items()))
        fold = self._fold(types)
        if not count or fold is not None or not math.prod(kept):
            node = self._recorded(inputs, types, known, shape, axes, fold, count)
        else:
            node = self._launched(inputs, types, known, shape, axes)
        node = build.reshape(build.cast(node, type_of(self.out_params[0], types)), wanted)
        return result(node) if out is None else written(out, node)

    def _reduced_dtype(self, types: dict[str, np.dtype]) -> np.dtype | None:
        """What is folded, where it is a number."""
        if self.reduce_type in types:
            return types[self.reduce_type]
        in_c = text.dtype_of(self.reduce_type)
        if in_c is not None:
            return in_c
        try:
            return DTYPES.get(np.dtype(self.reduce_type).name)
        except TypeError:
            return None

    def _fold(self, types: dict[str, np.dtype]) -> str | None:
        """The reduction of NumPy's that the expression is, if it is one of numbers."""
        dtype = self._reduced_dtype(types)
        name = FOLDS.get(re.sub(r"\s", "", self.reduce_expr))
        if name is None or dtype is None or dtype.kind == "b":
            return None
        if dtype.kind == "c" and name != "add":
            return None
        if dtype.kind == "f" and name.startswith("bitwise"):
            return None
        return name

    # -- fused ------------------------------------------------------------------------------------

    def _recorded(
        self,
        inputs: Sequence[Any],
        types: dict[str, np.dtype],
        known: tuple[tuple[str, np.dtype], ...],
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        fold: str | None,
        count: int,
    ) -> Node:
        dtype = self._reduced_dtype(types)
        kept = tuple([extent for dim, extent in enumerate(shape) if dim not in axes])
        if dtype is None:
            dtype = type_of(self.out_params[0], types)
        mapped, posted = self._steps(known, dtype, fold, bool(count))
        if not count or not math.prod(kept):
            folded = build.full(dtype.type(0), kept)
        else:
            nodes = [
                node_of(value) if isinstance(value, Handle)
                else constant_of(value, type_of(parameter, types))
                for value, parameter in zip(inputs, self.in_params, strict=True)
            ]
            folded = self._step(dtype, nodes, types, shape, kept, mapped)
            if axes:
                assert fold is not None
                folded = build.reduce(fold, folded, axes, dtype)
        operands = (folded, *self._size_nodes(shape, kept))
        return called_on(f"kernel_{self.name}_post", posted, operands, kept)

    def _step(
        self,
        dtype: np.dtype,
        nodes: Sequence[Node],
        types: dict[str, np.dtype],
        shape: tuple[int, ...],
        kept: tuple[int, ...],
        function: Function,
    ) -> Node:
        """What is folded: by NumPy's functions where they can say it, else by `function`."""
        program = self._program(tuple(sorted(types.items())), dtype)
        if program is None or self.preamble or not settings.fusion:
            operands = (*nodes, *self._size_nodes(shape, kept))
            return called_on(f"kernel_{self.name}_map", function, operands, shape)
        named = {each.name: node for each, node in zip(self.in_params, nodes, strict=True)}
        return build.broadcast(results_of(program, named, ["_mapped"], dtype)[0], shape)

    def _make_program(self, types: tuple[tuple[str, np.dtype], ...], dtype: np.dtype) -> Any:
        known = dict(types)
        inputs = tuple([(each.name, type_of(each, known)) for each in self.in_params])
        body = text.concrete(f"_mapped = {self.map_expr}", known)
        return program_of(body, inputs, (("_mapped", dtype),))

    def _size_nodes(self, shape: tuple[int, ...], kept: tuple[int, ...]) -> list[Node]:
        """The operands that `_sizes` names."""
        known = {"_in_size": math.prod(shape), "_out_size": math.prod(kept)}
        return [build.constant(np.int64(known[name])) for name in self._sizes]

    def _make_steps(
        self,
        known: tuple[tuple[str, np.dtype], ...],
        dtype: np.dtype,
        fold: str | None,
        has_elements: bool,
    ) -> tuple[Function, Function]:
        """What comes before and after the fold."""
        types = dict(known)
        inputs = [(each.name, type_of(each, types)) for each in self.in_params]
        parts = Parts(self.preamble, types, self.params)
        sizes = [(name, INT64) for name in self._sizes]

        def function(body: str, operands: list[tuple[str, np.dtype]], target: str,
                     kind: np.dtype) -> Function:
            return text.function_of(self.name, parts.concrete(body), [*operands, *sizes],
                                    [(target, kind)], 0, [""], parts.preamble)

        mapped = function(f"_mapped = {self.map_expr}", inputs, "_mapped", dtype)
        kind = c_type(dtype)
        body = f"const {kind} a = _folded;\n{self.post_map_expr}"
        if not has_elements:
            body = f"const {kind} a = {self.identity or '0'};\n{self.post_map_expr}"
        elif fold is not None and self.identity and self.identity not in NEUTRAL.get(fold, ()):
            both = f"({self.reduce_expr})"
            if dtype.kind == "f" and fold in ("minimum", "maximum"):
                both = f"a != a ? a : {both}"  # NaN stays
            body = (
                f"const {kind} a = _folded, b = ({kind})({self.identity});\n"
                f"const {kind} _both = {both};\n"
                f"{{ const {kind} a = _both;\n{self.post_map_expr};\n}}"
            )
        out = self.out_params[0]
        return mapped, function(body, [("_folded", dtype)], out.name, type_of(out, types))

    # -- as launches -------------------------------------------------------------------------------

    def _launched(
        self,
        inputs: Sequence[Any],
        types: dict[str, np.dtype],
        known: tuple[tuple[str, np.dtype], ...],
        shape: tuple[int, ...],
        axes: tuple[int, ...],
    ) -> Node:
        order = (*[dim for dim in range(len(shape)) if dim not in axes], *axes)
        rank = len(shape) - len(axes)
        extents = tuple([shape[dim] for dim in order])
        kept, folded = extents[:rank], extents[rank:]
        count = math.prod(folded)
        dtype = self._reduced_dtype(types)
        chunks = min(MAX_CHUNKS, -(-count // CHUNK)) if dtype is not None else 1
        length = -(-count // chunks)
        chunks = -(-count // length)
        forms = tuple(["array" if isinstance(value, Handle) else "scalar" for value in inputs])
        first, second = self._kernels(known, forms, rank, len(folded), chunks > 1)
        arguments: list[Any] = []
        for value, parameter in zip(inputs, self.in_params, strict=True):
            if isinstance(value, Handle):
                arguments.append((_turned(stretched(value, shape), order), "r", "strides"))
            else:
                arguments.append((value, type_of(parameter, types)))
        out = type_of(self.out_params[0], types)
        sizes = [np.int64(extent) for extent in extents]
        reason = f"no reduction of NumPy's folds by {self.reduce_expr}"
        results = fresh(build.full(out.type(0), kept))
        numbers = [*sizes, np.int64(length), np.int64(count)]
        items = math.prod(kept)
        name = symbol(f"kernel_{self.name}")
        if chunks == 1:
            record_launch(first, name, [*arguments, (results, "w"), *numbers], (items, 1),
                          reason=reason)
            return node_of(results)
        assert dtype is not None
        parts = fresh(build.full(dtype.type(0), (*kept, chunks)))
        record_launch(first, name, [*arguments, (parts, "w"), *numbers], (items, chunks),
                      reason=reason)
        finish = [(parts, "r"), (results, "w"), np.int64(chunks), np.int64(math.prod(extents))]
        record_launch(second, f"{name}_last", finish, (items,), reason=reason)
        return node_of(results)

    def _make_kernels(
        self,
        known: tuple[tuple[str, np.dtype], ...],
        forms: tuple[str, ...],
        rank: int,
        folded: int,
        is_split: bool,
    ) -> tuple[str, str]:
        """The first stage, which is the only one where `is_split` is false, and the second."""
        types = dict(known)
        dtype = self._reduced_dtype(types)
        parts = Parts(self.preamble, types, self.params)
        kind = parts.concrete(self.reduce_type) if dtype is None else c_type(dtype)
        out = self.out_params[0]
        out_type = c_type(type_of(out, types))
        identity = parts.concrete(self.identity)
        dims = range(rank + folded)
        declared, places, loads, formal = [], [], [], []
        for parameter, form in zip(self.in_params, forms, strict=True):
            name, given = parameter.name, type_of(parameter, types)
            formal.append(f"const {c_type(given)} {name}")
            if form == "scalar":
                passed = "int" if given.kind == "b" else c_type(given)
                declared.append(f"const {passed} _scalar_{name}")
                loads.append(f"_scalar_{name}")
                continue
            declared.append(f"__global const {stored_type(given)} *_array_{name}")
            declared += [f"const long _step{dim}_{name}" for dim in dims]
            terms = " + ".join([f"_i{dim} * _step{dim}_{name}" for dim in dims]) or "0"
            places.append(f"const long _place_{name} = {terms};")
            loads.append(_load(f"_array_{name}", given, f"_place_{name}"))
        sizes = [f"const long {name}" for name in self._sizes]
        post = text.block_of(parts.concrete(self.post_map_expr), f"return {out.name};")
        head = (
            f"{parts.preamble}\n"
            f"static inline {kind} _map({', '.join([*formal, *sizes])})\n"
            f"{{ return (\n{parts.concrete(self.map_expr)}\n); }}\n"
            f"static inline {kind} _fold({kind} a, {kind} b)\n"
            f"{{ return (\n{parts.concrete(self.reduce_expr)}\n); }}\n"
            f"static inline {out_type} _post({', '.join([f'{kind} a', *sizes])})\n"
            f"{{ {out_type} {out.name} = 0;\n{post}\nreturn {out.name}; }}\n"
        )
        extents = [f"_n{dim}" for dim in dims]
        target = type_of(out, types)
        target_place = "get_global_id(0)"
        posted = f"_post({', '.join(['_a', *self._sizes])})"
        value = posted
        if is_split:
            assert dtype is not None
            target, value = dtype, "_a"
            target_place = "get_global_id(0) * get_global_size(1) + get_global_id(1)"
        numbers = ", ".join([f"const long {name}" for name in (*extents, "_length", "_count")])
        inner = " ".join([*text.decode(range(rank, rank + folded), "_j", "_rest"), *places])
        mapped = f"_map({', '.join([*loads, *self._sizes])})"
        start, begin = f"{kind} _a = ({kind})({identity});", "_low"
        if dtype is None:
            start = f"{kind} _a = {identity};"
        if not self.identity or is_split:
            start = f"{kind} _a; {{ const long _j = _low; {inner} _a = {mapped}; }}"
            begin = "_low + 1"
        name = symbol(f"kernel_{self.name}")
        first = (
            f"{head}__kernel void {name}({', '.join(declared)}, "
            f"__global {stored_type(target)} *_result, {numbers})\n{{\n"
            f"    const long _in_size = {' * '.join(extents) or '1'};\n"
            f"    const long _out_size = {' * '.join(extents[:rank]) or '1'};\n"
            f"    {' '.join(text.decode(range(rank), 'get_global_id(0)', '_row'))}\n"
            "    const long _low = get_global_id(1) * _length;\n"
            "    const long _high = min(_low + _length, _count);\n"
            f"    {start}\n    for (long _j = {begin}; _j < _high; _j++) {{\n"
            f"        {inner} _a = _fold(_a, {mapped});\n    }}\n"
            f"    {_store(value, target, target_place)}\n}}\n"
        )
        if not is_split:
            return first, ""
        assert dtype is not None
        start = f"{kind} _a = {_load('_parts', dtype, '_first')};"
        if self.identity:
            start += f" _a = _fold(({kind})({identity}), _a);"
        target = type_of(out, types)
        second = (
            f"{head}__kernel void {name}_last(__global const {stored_type(dtype)} *_parts, "
            f"__global {stored_type(target)} *_result, const long _chunks, const long _in_size)\n"
            "{\n    const long _out_size = get_global_size(0);\n"
            f"    const long _first = get_global_id(0) * _chunks;\n    {start}\n"
            "    for (long _place = _first + 1; _place < _first + _chunks; _place++)\n"
            f"        _a = _fold(_a, {_load('_parts', dtype, '_place')});\n"
            f"    {_store(posted, target, 'get_global_id(0)')}\n}}\n"
        )
        return first, second


_SIZES: Final = ("_in_size", "_out_size")
"""Elements that are folded and that are left: ``_in_ind.size()`` and ``_out_ind.size()``."""


def _plain(part: str) -> str:
    return re.sub(r"\b(_in|_out)_ind\s*\.\s*size\s*\(\s*\)", r"\1_size", part)


def _load(array: str, dtype: np.dtype, place: str) -> str:
    return f"vload_half({place}, {array})" if dtype.char == "e" else f"{array}[{place}]"


def _store(value: str, dtype: np.dtype, place: str) -> str:
    if dtype.char == "e":
        return f"vstore_half_rte({value}, {place}, _result);"
    return f"_result[{place}] = {value};"


def _turned(value: Any, order: tuple[int, ...]) -> Any:
    """A view with its axes in another order."""
    offset, strides = layout(value)
    shape = tuple([value._shape[dim] for dim in order])
    turned = tuple([strides[dim] for dim in order])
    return view_of(value, shape, offset, turned, rearranged=True)


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    found = np.lib.array_utils.normalize_axis_tuple(axis, rank)
    return tuple(sorted(found))
