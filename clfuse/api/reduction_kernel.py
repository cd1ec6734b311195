"""`ReductionKernel`: CuPy's, in OpenCL C. What it maps is fused with what it reads; sums, products,
extremes and bit operations are NumPy's own reductions, any other fold is a launch in two stages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ..config import settings
from ..graph import build
from ..graph.functions import Function, called
from ..graph.ir import Node
from . import kernel_text as text
from .elementwise_kernel import FORMS_KEPT, argument_of, called_on, stretched, written
from .handle import DTYPES, Handle, fresh, is_writeable, layout, node_of, result, view_of
from .kernel_expressions import program_of, results_of
from .kernel_text import c_type, type_of
from .launching import record_launch
from .promotion import constant_of

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
        What is folded, of the inputs; an expression.
    reduce_expr : str
        Of ``a`` and ``b``: associative and commutative. Where it is ``a + b``, ``a * b``,
        ``min(a, b)``, ``max(a, b)`` or a bit operation, the reduction is NumPy's, and fuses.
    post_map_expr : str
        A statement that assigns to the output, of ``a``.
    identity : str
        What a fold starts with; empty: its first element.
    name : str
    reduce_type : str, optional
        The type of ``a`` and ``b``: the output's unless given. A type that the preamble defines is
        folded by one work-item a result.
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
        if not name.isidentifier() or not name.isascii():
            raise ValueError(f"kernel name {name!r}: expected a C identifier")
        self.in_params = text.parameters(in_params)
        self.out_params = text.parameters(out_params)
        self.params = text.parameters(f"{in_params}, {out_params}")
        if len(self.out_params) != 1 or not self.in_params:
            raise ValueError(f"{name}: a reduction has inputs, and one output")
        if any(parameter.is_raw for parameter in self.params):
            raise ValueError(f"{name}: a reduction has no raw parameters in OpenCL")
        self.nin, self.nout, self.nargs = len(self.in_params), 1, len(self.params)
        self.name = name
        self.identity = "" if identity is None else str(identity)
        self.reduce_type = reduce_type or self.out_params[0].type
        self.reduce_dims = reduce_dims
        names = text.own_names(preamble)
        self.identity = text.renamed(self.identity, names)
        self.preamble = text.renamed(preamble, names)
        self.map_expr, self.reduce_expr, self.post_map_expr = (
            text.renamed(part, names).strip().rstrip(";")
            for part in (map_expr, reduce_expr, post_map_expr)
        )
        self._type = text.renamed(self.reduce_type, names)
        self._steps = lru_cache(FORMS_KEPT)(self._make_steps)
        self._kernels = lru_cache(FORMS_KEPT)(self._make_kernels)

    def __repr__(self) -> str:
        return f"<ReductionKernel {self.name}>"

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
        try:
            return DTYPES.get(np.dtype(self.reduce_type).name)
        except TypeError:
            return _C_TYPES.get(self.reduce_type)

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
            folded = build.filled(dtype.type(0), kept)
        else:
            nodes = [
                node_of(value) if isinstance(value, Handle)
                else constant_of(value, type_of(parameter, types))
                for value, parameter in zip(inputs, self.in_params, strict=True)
            ]
            folded = self._step(f"mapped = {self.map_expr}", "mapped", dtype, nodes, types, shape,
                                mapped)
            if axes:
                assert fold is not None
                folded = build.reduce(fold, folded, axes, dtype)
        return called(f"kernel_{self.name}_post", posted, (folded,), kept)

    def _step(
        self,
        body: str,
        target: str,
        dtype: np.dtype,
        nodes: Sequence[Node],
        types: dict[str, np.dtype],
        shape: tuple[int, ...],
        function: Function,
    ) -> Node:
        """What is folded: by NumPy's functions where they can say it, else by `function`."""
        inputs = tuple([(each.name, type_of(each, types)) for each in self.in_params])
        program = program_of(text.concrete(body, types), inputs, ((target, dtype),))
        if program is None or self.preamble or not settings.fusion:
            return called_on(f"kernel_{self.name}_map", function, nodes, shape)
        named = {name: node for (name, _), node in zip(inputs, nodes, strict=True)}
        return build.broadcast(results_of(program, named, [target], dtype)[0], shape)

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
        preamble = text.concrete(self.preamble, types)

        def function(body: str, operands: list[tuple[str, np.dtype]], target: str,
                     kind: np.dtype) -> Function:
            body = text.concrete(body, types)
            outputs = [(target, kind)]
            return text.function_of(self.name, body, operands, outputs, 0, [""], preamble)

        mapped = function(f"mapped = {self.map_expr}", inputs, "mapped", dtype)
        body = self.post_map_expr
        a = "folded"
        if not has_elements:
            a = self.identity or "0"
        elif fold is not None and self.identity and self.identity not in NEUTRAL.get(fold, ()):
            kind = c_type(dtype)
            start = f"const {kind} a = folded, b = ({kind})({self.identity});"
            a = f"({self.reduce_expr})"
            body = f"{start} const {kind} c = {a}; {{ const {kind} a = c; {body}; }}"
            a = ""
        if a:
            body = f"const {c_type(dtype)} a = {a}; {body}"
        out = self.out_params[0]
        return mapped, function(body, [("folded", dtype)], out.name, type_of(out, types))

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
        results = fresh(build.filled(out.type(0), kept))
        numbers = [*sizes, np.int64(length), np.int64(count)]
        items = math.prod(kept)
        if chunks == 1:
            record_launch(first, self.name, [*arguments, (results, "w"), *numbers], (items, 1),
                          reason=reason)
            return node_of(results)
        assert dtype is not None
        parts = fresh(build.filled(dtype.type(0), (*kept, chunks)))
        record_launch(first, self.name, [*arguments, (parts, "w"), *numbers], (items, chunks),
                      reason=reason)
        record_launch(second, f"{self.name}_last",
                      [(parts, "r"), (results, "w"), np.int64(chunks)], (items,), reason=reason)
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
        kind = text.concrete(self._type, types) if dtype is None else c_type(dtype)
        out = self.out_params[0]
        head = (
            f"{text.concrete(self.preamble, types)}\n"
            f"static inline {kind} {self.name}_fold({kind} a, {kind} b)\n"
            f"{{ return ({text.concrete(self.reduce_expr, types)}); }}\n"
        )
        declared, loads = [], []
        dims = range(rank + folded)
        for parameter, form in zip(self.in_params, forms, strict=True):
            c = c_type(type_of(parameter, types))
            half = type_of(parameter, types).char == "e"
            if form == "scalar":
                passed = "int" if type_of(parameter, types).kind == "b" else c
                declared.append(f"const {passed} {parameter.name}_passed")
                loads.append(f"const {c} {parameter.name} = ({c})({parameter.name}_passed);")
                continue
            declared.append(f"__global const {'half' if half else c} *{parameter.name}_array")
            declared += [f"const long {parameter.name}_s{dim}" for dim in dims]
            place = " + ".join([f"i{dim} * {parameter.name}_s{dim}" for dim in dims]) or "0"
            array = f"{parameter.name}_array"
            load = f"vload_half({place}, {array})" if half else f"{array}[{place}]"
            loads.append(f"const {c} {parameter.name} = {load};")
        target, target_kind = "result", type_of(out, types)
        if is_split:
            assert dtype is not None
            target_kind = dtype
        stored = "half" if target_kind.char == "e" else c_type(target_kind)
        sizes = ", ".join([f"const long n{dim}" for dim in dims] + ["const long length",
                                                                   "const long count"])
        decode = text.decode(range(rank), "get_global_id(0)", "row")
        inner = text.decode(range(rank, rank + folded), "j", "rest")
        mapped = " ".join([*inner, *loads])
        mapped += f" const {kind} b = ({text.concrete(self.map_expr, types)});"
        identity = text.concrete(self.identity, types)
        start = f"{kind} a = {f'({kind})({identity})' if dtype is not None else identity};"
        begin = "low"
        if not self.identity or is_split:
            start = f"{kind} a; {{ const long j = low; {mapped} a = b; }}"
            begin = "low + 1"
        place = f"get_global_id(0){' * get_global_size(1) + get_global_id(1)' if is_split else ''}"
        end = _store("a", target_kind, place, target) if is_split else self._post(types, place)
        first = (
            f"{head}__kernel void {self.name}({', '.join(declared)}, __global {stored} *{target}, "
            f"{sizes})\n{{\n    {' '.join(decode)}\n"
            "    const long low = get_global_id(1) * length, high = min(low + length, count);\n"
            f"    {start}\n    for (long j = {begin}; j < high; j++) {{ {mapped} "
            f"a = {self.name}_fold(a, b); }}\n    {end}\n}}\n"
        )
        if not is_split:
            return first, ""
        assert dtype is not None
        half = dtype.char == "e"
        load = "vload_half(place, parts)" if half else "parts[place]"
        start = f"{kind} a; {{ const long place = first; a = {load}; }}"
        if self.identity:
            start += f" a = {self.name}_fold(({kind})({identity}), a);"
        stored = "half" if type_of(out, types).char == "e" else c_type(type_of(out, types))
        second = (
            f"{head}__kernel void {self.name}_last("
            f"__global const {'half' if half else kind} *parts, "
            f"__global {stored} *result, const long chunks)\n{{\n"
            f"    const long first = get_global_id(0) * chunks;\n    {start}\n"
            "    for (long place = first + 1; place < first + chunks; place++)\n"
            f"        a = {self.name}_fold(a, {load});\n"
            f"    {self._post(types, 'get_global_id(0)')}\n}}\n"
        )
        return first, second

    def _post(self, types: dict[str, np.dtype], place: str) -> str:
        out = self.out_params[0]
        dtype = type_of(out, types)
        body = text.concrete(self.post_map_expr, types)
        store = _store(out.name, dtype, place, "result")
        return f"{c_type(dtype)} {out.name} = 0; {{ {body}; }} {store}"


_C_TYPES: Final = {
    "float": DTYPES["float32"], "double": DTYPES["float64"], "char": DTYPES["int8"],
    "uchar": DTYPES["uint8"], "short": DTYPES["int16"], "ushort": DTYPES["uint16"],
    "int": DTYPES["int32"], "uint": DTYPES["uint32"], "long": DTYPES["int64"],
    "ulong": DTYPES["uint64"], "float2": DTYPES["complex64"], "double2": DTYPES["complex128"],
}
"""OpenCL C's names, which may say what is folded."""


def _store(name: str, dtype: np.dtype, place: str, target: str) -> str:
    if dtype.char == "e":
        return f"vstore_half_rte({name}, {place}, {target});"
    return f"{target}[{place}] = {name}{' != 0' if dtype.kind == 'b' else ''};"


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
