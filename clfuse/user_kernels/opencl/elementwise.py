"""`ElementwiseKernel`, as CuPy's: a body in OpenCL C that fuses with the operations around it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from operator import index as as_index
from typing import Any, Final

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, as_handle
from clfuse.arrays.handle import (
    DTYPES,
    Handle,
    fresh,
    is_contiguous,
    is_writeable,
    layout,
    node_of,
    view_of,
    write,
)
from clfuse.arrays.promotion import constant_of
from clfuse.config import settings
from clfuse.ir import build
from clfuse.ir.identifiers import symbol
from clfuse.ir.nodes import Node
from clfuse.ir.scalar_functions import Function, call_function
from clfuse.ir.traced_number import TracedNumber

from . import text
from .expressions import program_of, results_of
from .names import macros, require_name, require_text, words
from .record_launch import record_launch
from .text import Declared, Parts, c_type, computed_type, settle_arguments, stored_type, type_of

INT64: Final = DTYPES["int64"]

_METHODS: Final = re.compile(r"\b(\w+)\s*\.\s*(?:(size|shape|get)\s*\(\s*\)|(ndim)\b)")
"""What CuPy's arrays and index have in bodies: ``x.size()``, ``x.shape()[0]``, ``x.ndim``."""

FORMS_KEPT: Final = 64
"""Combinations of types of one kernel whose text is remembered."""


class ElementwiseKernel:
    """An element-wise operation with a body in OpenCL C, as `cupy.ElementwiseKernel` in CUDA C.

    It is recorded, and fused as NumPy's own functions are, with what it reads and with what reads
    it. With ``raw`` parameters, which the body indexes itself, it is a launch of its own.

    Parameters
    ----------
    in_params, out_params : str
        ``"T x, raw float32 table"``: types are NumPy's names, or one letter, which the arrays
        decide. Inputs broadcast by NumPy's rules; a raw array is a pointer to its elements in C
        order, with ``x.size()``, ``x.shape()[0]`` and ``x.ndim``. float16 is computed as ``float``
        (a raw one is a ``half *``, for ``vload_half``), complex64 as ``float2``. What begins with
        an underscore is reserved.
    operation : str
        The body: it assigns to the outputs, and may ``return;`` or ``continue;``. ``i`` is the
        number of the element in C order, ``_ind.get()[0]`` its place along an axis; ``n`` and
        ``_ind.size()`` are how many there are.
    name : str
        A C identifier; `explain` and errors show it.
    reduce_dims, no_return, return_tuple, preamble, loop_prep, after_loop
        As CuPy's; the first changes nothing here. What the preamble declares belongs to this
        kernel. The last two are done for every element, before and after the operation.

    Raises
    ------
    ValueError, TypeError
        The parameters cannot be read.
    KernelBuildError
        When its result is looked at: the body is not OpenCL C; `log` is the compiler's.

    Examples
    --------
    >>> import clfuse as np
    >>> squared = np.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")
    >>> squared(np.arange(4.0), 1)
    array([1., 0., 1., 4.])
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        loop_prep: str = "",
        after_loop: str = "",
        **options: Any,
    ) -> None:
        if options:
            raise TypeError(f"ElementwiseKernel has no option {', '.join(options)} in OpenCL")
        require_name(name)
        require_text(in_params=in_params, out_params=out_params, operation=operation,
                     preamble=preamble, loop_prep=loop_prep, after_loop=after_loop)
        self._written = (in_params, out_params, operation, name, reduce_dims, preamble, no_return,
                         return_tuple, loop_prep, after_loop)
        self.in_params = text.parameters(in_params)
        self.out_params = text.parameters(out_params)
        self.params = text.parameters(f"{in_params}, {out_params}" if in_params else out_params)
        if not self.out_params:
            raise ValueError(f"{name}: a kernel has an output")
        self.nin = len(self.in_params)
        self.nout = len(self.out_params)
        self.nargs = self.nin + self.nout
        self.name = name
        self.operation = operation
        self.reduce_dims = reduce_dims
        self.no_return = no_return
        self.return_tuple = return_tuple
        self.preamble = preamble
        raw = [parameter.name for parameter in self.params if parameter.is_raw]
        whole = f"{loop_prep}\n{operation}\n;{after_loop}" if loop_prep or after_loop else operation
        self._body = _plain(whole, raw).strip().rstrip(";")
        self._preamble = _plain(preamble, raw)
        in_macros = words(macros(self._preamble))
        used = words(self._body) | in_macros
        self._assigned = frozenset([
            parameter.name for parameter in self.out_params
            if parameter.name not in in_macros and text.is_assigned(self._body, parameter.name)
        ])
        self._numbered = [each for each in text.RESERVED if each in used]
        self._has_places = "_place" in used
        self._asked = frozenset(
            [name for name in raw if used & {f"_size_{name}", f"_shape_{name}", f"_ndim_{name}"}]
        )
        if not self.in_params and not self._numbered:
            self._numbered = ["n"]  # an operation has an operand
        self._is_raw = bool(raw)
        self._program = lru_cache(FORMS_KEPT)(self._make_program)
        self._functions = lru_cache(FORMS_KEPT)(self._make_functions)
        self._kernel = lru_cache(FORMS_KEPT)(self._make_kernel)

    def __repr__(self) -> str:
        return f"<ElementwiseKernel {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._written

    def __call__(self, *args: Any, size: int | None = None, block_size: int | None = None) -> Any:
        """Record the operation.

        Parameters
        ----------
        args : array_like
            The inputs, then the output arrays or none of them.
        size : int, optional
            How many elements, where all arrays are raw; raw outputs that are not passed are
            vectors of so many, of zeros at first.
        block_size : int, optional
            Changes nothing here.

        Returns
        -------
        ndarray, or tuple of ndarray for several outputs

        Raises
        ------
        TypeError
            The number of arguments or a type is wrong.
        ValueError
            Shapes do not broadcast; an output has another shape, or is read-only; the number of
            elements is not decided, or twice.
        """
        if block_size is not None and as_index(block_size) <= 0:
            raise ValueError(f"{self.name}: block_size is {block_size}: expected a positive number")
        if size is not None:
            size = as_index(size)
            if size < 0:
                raise ValueError(f"{self.name}: size is {size}: expected a number of elements")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"{self.name}: wrong number of arguments: {len(args)}; {self.nin} inputs, and "
                f"{self.nout} outputs or none"
            )
        inputs = [argument_of(value, parameter) for value, parameter in zip(
            args, self.in_params, strict=False)]
        outputs: list[Any] = list(args[self.nin :]) or [None] * self.nout
        for out in outputs:
            if out is not None and not isinstance(out, Handle):
                raise TypeError(f"{self.name}: an output is a {type(out).__name__}, not an ndarray")
            if out is not None and not is_writeable(out):
                raise ValueError("output array is read-only")
        types = text.decide_types(self.name, self.params, [*inputs, *outputs])
        for out, parameter in zip(outputs, self.out_params, strict=True):
            if out is None and parameter.is_raw and size is None:
                raise ValueError(f"{self.name}: pass the raw output {parameter.name}, or size=")
        shape = self._shape(inputs, outputs, size)
        inputs = settle_arguments(inputs, self.in_params, types)
        made = self._launched if self._is_raw else self._recorded
        results = made(inputs, outputs, types, shape)
        if self.no_return:
            return None
        return tuple(results) if self.return_tuple or self.nout > 1 else results[0]

    def _shape(
        self, inputs: Sequence[Any], outputs: Sequence[Any], size: int | None
    ) -> tuple[int, ...]:
        given = [
            value
            for value, parameter in zip(inputs, self.in_params, strict=True)
            if isinstance(value, (Handle, np.generic)) and not parameter.is_raw
        ]
        shapes = [
            value._shape for value in given
            if isinstance(value, Handle) and type(value) not in handles.SCALARS
        ]
        outs = [
            out._shape
            for out, parameter in zip(outputs, self.out_params, strict=True)
            if out is not None and not parameter.is_raw
        ]
        if size is not None:
            if shapes or outs:
                raise ValueError(f"{self.name}: size is for kernels all of whose arrays are raw")
            return (size,)
        if not shapes and not outs and given:
            return ()  # of sums and means of arrays, for instance
        if not shapes and not outs:
            raise ValueError(f"{self.name}: the loop size is undecided: pass size=")
        shape = np.broadcast_shapes(*shapes) if shapes else outs[0]
        for out in outs:
            if out != shape:
                raise ValueError(f"{self.name}: an output has shape {out}, the loop {shape}")
        return shape

    # -- fused ------------------------------------------------------------------------------------

    def _recorded(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        types: dict[str, np.dtype],
        shape: tuple[int, ...],
    ) -> list[Any]:
        nodes = [
            node_of(value) if isinstance(value, Handle)
            else constant_of(value, type_of(parameter, types))
            for value, parameter in zip(inputs, self.in_params, strict=True)
        ]
        if "i" in self._numbered:
            nodes.append(build.reshape(build.iota(math.prod(shape)), shape))
        if "n" in self._numbered:
            nodes.append(build.constant(np.int64(math.prod(shape))))
        if self._has_places:
            for dim, extent in enumerate(shape):
                along = [extent if other == dim else 1 for other in range(len(shape))]
                nodes.append(build.reshape(build.iota(extent), tuple(along)))
        if settings.fusion and not self._numbered and not self._has_places and not self.preamble:
            translated = self._translated(nodes, outputs, types, shape)
            if translated is not None:
                return translated
        reads = tuple([
            out is not None and parameter.name not in self._assigned
            for out, parameter in zip(outputs, self.out_params, strict=True)
        ])
        nodes += [node_of(out) for out, reads_it in zip(outputs, reads, strict=True) if reads_it]
        functions = self._functions(tuple(sorted(types.items())), reads, len(shape))
        results = []
        for function, parameter in zip(functions, self.out_params, strict=True):
            node = called_on(f"kernel_{self.name}", function, nodes, shape)
            results.append(build.cast(node, type_of(parameter, types)))
        return _delivered(outputs, results)

    def _translated(
        self,
        nodes: Sequence[Node],
        outputs: Sequence[Any],
        types: dict[str, np.dtype],
        shape: tuple[int, ...],
    ) -> list[Any] | None:
        """The results as NumPy's functions make them, where those can say what the body does."""
        program = self._program(tuple(sorted(types.items())))
        if program is None:
            return None
        named = {each.name: node for each, node in zip(self.in_params, nodes, strict=True)}
        dtypes = [type_of(each, types) for each in self.params]
        dtype = next(dtype for dtype in dtypes if dtype.kind != "b")
        made = results_of(program, named, [each.name for each in self.out_params], dtype)
        return _delivered(outputs, [build.broadcast(node, shape) for node in made])

    def _make_program(self, types: tuple[tuple[str, np.dtype], ...]) -> Any:
        known = dict(types)
        inputs = tuple([(each.name, type_of(each, known)) for each in self.in_params])
        results = tuple([(each.name, type_of(each, known)) for each in self.out_params])
        return program_of(text.concrete(self._body, known), inputs, results)

    def _make_functions(
        self, types: tuple[tuple[str, np.dtype], ...], reads: tuple[bool, ...], rank: int
    ) -> list[Function]:
        known = dict(types)
        parts = Parts(self._preamble, known, self.params)
        inputs = [(each.name, type_of(each, known)) for each in self.in_params]
        inputs += [(name, INT64) for name in self._numbered]
        body = parts.concrete(self._body)
        if self._has_places:
            inputs += [(f"_i{dim}", INT64) for dim in range(rank)]
            body = f"{_places(rank)}\n{body}"
        outputs = [(each.name, type_of(each, known)) for each in self.out_params]
        starts = []
        for (name, dtype), reads_it in zip(outputs, reads, strict=True):
            starts.append(f"_before_{name}" if reads_it else "")
            if reads_it:
                inputs.append((f"_before_{name}", dtype))
        return [
            text.function_of(self.name, body, inputs, outputs, number, starts, parts.preamble)
            for number in range(self.nout)
        ]

    # -- as a launch -------------------------------------------------------------------------------

    def _launched(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        types: dict[str, np.dtype],
        shape: tuple[int, ...],
    ) -> list[Any]:
        given = list(outputs)
        for number, (out, parameter) in enumerate(zip(outputs, self.out_params, strict=True)):
            if out is None:
                dtype = type_of(parameter, types)
                given[number] = fresh(build.full(dtype.type(0), shape))
        size = math.prod(shape)
        arrays: list[tuple[Any, Declared, str]] = []
        back: list[tuple[Any, Any]] = []
        for value, parameter in zip([*inputs, *given], self.params, strict=True):
            is_input = len(arrays) < self.nin
            mode = "r"
            if not is_input:
                is_whole = not parameter.is_raw and parameter.name in self._assigned
                mode = "w" if is_whole else "rw"
            if isinstance(value, Handle) and parameter.is_raw and not is_contiguous(value):
                copy = fresh(node_of(value))
                if not is_input:
                    back.append((value, copy))
                value = copy
            arrays.append((value, parameter, mode))
        is_flat = not self._has_places and all(
            not isinstance(value, Handle)
            or parameter.is_raw
            or (value._shape == shape and is_contiguous(value))
            for value, parameter, _ in arrays
        )
        loop = (size,) if is_flat else shape
        forms = []
        sizes = [np.int64(extent) for extent in loop]
        arguments: list[Any] = []
        for value, parameter, mode in arrays:
            dtype = type_of(parameter, types)
            if not isinstance(value, Handle):
                forms.append("scalar")
                arguments.append((value, dtype))
            elif parameter.is_raw or is_flat:
                forms.append("raw" if parameter.is_raw else "flat")
                arguments.append((value, mode))
                if parameter.name in self._asked:
                    forms[-1] = f"raw {len(value._shape)}"
                    sizes += [np.int64(extent) for extent in value._shape]
            else:
                forms.append("strided")
                arguments.append((stretched(value, shape), mode, "strides"))
        arguments += sizes
        kernel = self._kernel(tuple(sorted(types.items())), tuple(forms), len(loop))
        if size:
            reason = "raw arguments are indexed by the body"
            record_launch(kernel, symbol(f"kernel_{self.name}"), arguments, (size,), reason=reason)
        for target, copy in back:
            write(target, node_of(copy))
        return given

    def _make_kernel(
        self, types: tuple[tuple[str, np.dtype], ...], forms: tuple[str, ...], rank: int
    ) -> str:
        known = dict(types)
        parts = Parts(self._preamble, known, self.params)
        declared, sizes, before, after = [], [], [], []
        for number, (parameter, form) in enumerate(zip(self.params, forms, strict=True)):
            dtype = type_of(parameter, known)
            name, kind, stored = parameter.name, c_type(dtype), stored_type(dtype)
            const = "" if number >= self.nin else "const "
            if form == "scalar":
                passed = "int" if dtype.kind == "b" else kind
                declared.append(f"const {passed} _scalar_{name}")
                before.append(f"const {kind} {name} = ({kind})(_scalar_{name});")
                continue
            declared.append(f"__global {const}{stored} *_array_{name}")
            if form.startswith("raw"):
                element = f"__global {const}{kind if dtype.kind == 'b' else stored}"
                before.append(f"{element} *{name} = ({element} *)_array_{name};")
                if form != "raw":
                    extents = [f"_n{dim}_{name}" for dim in range(int(form[4:]))]
                    sizes += [f"const long {extent}" for extent in extents]
                    before += _shape_of(name, extents)
                continue
            place = "i"
            if form == "strided":
                declared += [f"const long _step{dim}_{name}" for dim in range(rank)]
                terms = [f"_i{dim} * _step{dim}_{name}" for dim in range(rank)]
                place = " + ".join(terms) or "0"
            load = f"_array_{name}[{place}]"
            if dtype.char == "e":
                load = f"vload_half({place}, _array_{name})"
            if not const and name in self._assigned:
                load = "0"
            before.append(f"{const}{kind} {name} = ({kind})({load});")
            if not const and dtype.char == "e":
                after.append(f"vstore_half_rte({name}, {place}, _array_{name});")
            elif not const:
                after.append(f"_array_{name}[{place}] = {name};")
        declared += [f"const long _n{dim}" for dim in range(rank)] + sizes
        index = ["const long i = get_global_id(0);"]
        size = " * ".join([f"_n{dim}" for dim in range(rank)]) or "1"
        index.append(f"const long n = {size};")
        if "strided" in forms or self._has_places:
            index += text.decode(range(rank), "i", "_rest")
        if self._has_places:
            index.append(_places(rank))
        body = text.block_of(parts.concrete(self._body), " ".join([*after, "return;"]))
        lines = "\n    ".join([*index, *before, body, *after])
        head = f"__kernel void {symbol(f'kernel_{self.name}')}({', '.join(declared)})"
        return f"{parts.preamble}\n{head}\n{{\n    {lines}\n}}\n"


def _plain(operation: str, raw: Sequence[str]) -> str:
    """A text in which methods of raw arrays and of the index are names.

    >>> _plain("x.size() - _ind.size() + y.size()", ["x"])
    '_size_x - n + y.size()'
    """

    def name(found: re.Match[str]) -> str:
        owner, method = found[1], found[2] or found[3]
        if owner == "_ind":
            return {"size": "n", "get": "_place"}.get(method, found[0])
        return f"_{method}_{owner}" if owner in raw and method != "get" else found[0]

    return _METHODS.sub(name, operation)


def _places(rank: int) -> str:
    """The index in every dimension as an array."""
    return f"const long _place[] = {{{', '.join([f'_i{dim}' for dim in range(rank)]) or '0'}}};"


def _shape_of(name: str, extents: Sequence[str]) -> list[str]:
    """What a raw array's size, shape and number of dimensions are called in a body."""
    return [
        f"const long _size_{name} = {' * '.join(extents) or '1'};",
        f"const long _shape_{name}[] = {{{', '.join(extents) or '1'}}};",
        f"const int _ndim_{name} = {len(extents)};",
    ]


def argument_of(value: Any, parameter: Declared) -> Any:
    """A handle, or a scalar as it is; TypeError for what is neither."""
    if isinstance(value, Handle) or type(value) is TracedNumber:
        return value
    if not parameter.is_raw and (isinstance(value, bool | int | float | complex | np.generic)):
        return value
    return array_of(value, parameter.name)


def array_of(value: Any, name: str) -> Any:
    """A handle of what is passed for an array; TypeError if a device has no such elements."""
    try:
        return as_handle(value)
    except NotNative as error:
        raise TypeError(f"{name}: {type(value).__name__} is no array of numbers: {error}") from None


def called_on(name: str, function: Function, nodes: Sequence[Node], shape: tuple[int, ...]) -> Node:
    """The function on nodes of any native dtype; a bool goes through 0 and 1."""
    inputs = [
        build.cast(node, computed_type(node.dtype)) if node.dtype.kind == "b" else node
        for node in nodes
    ]
    return call_function(name, function, inputs, shape)


def written(out: Any, node: Node) -> Any:
    write(out, node)
    return out


def _delivered(outputs: Sequence[Any], nodes: Sequence[Node]) -> list[Any]:
    """The results: new arrays, or those that were given for them."""
    return [
        fresh(node) if out is None else written(out, node)
        for out, node in zip(outputs, nodes, strict=True)
    ]


def stretched(value: Any, shape: tuple[int, ...]) -> Any:
    """An array as a view of the loop's shape."""
    if value._shape == shape:
        return value
    offset, strides = layout(value)
    lead = len(shape) - len(value._shape)
    stretched = (0,) * lead + tuple(
        [0 if extent == 1 else step for extent, step in zip(value._shape, strides, strict=True)]
    )
    return view_of(value, shape, offset, stretched, rearranged=True)
