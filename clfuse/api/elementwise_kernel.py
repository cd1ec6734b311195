"""`ElementwiseKernel`: CuPy's, with a body in OpenCL C, fused with what is before and behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ..config import settings
from ..graph import build
from ..graph.functions import Function, called
from ..graph.ir import Node
from ..graph.number import TracedNumber
from . import kernel_text as text
from .conversion import as_handle
from .handle import (
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
from .kernel_expressions import program_of, results_of
from .kernel_text import Declared, c_type, computed, type_of
from .launching import record_launch
from .promotion import constant_of

INT64: Final = DTYPES["int64"]

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
        order. bool is computed as ``uchar``, float16 as ``float`` (a raw one is a ``half *``, for
        ``vload_half``), complex64 as ``float2``.
    operation : str
        The body: it assigns to the outputs. ``i`` is the number of the element in C order, ``n``
        and ``_ind.size()`` how many there are.
    name : str
        A C identifier; `explain` and errors show it.
    reduce_dims, no_return, return_tuple, preamble
        As CuPy's; the first changes nothing here. What the preamble defines belongs to this kernel.

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
        **options: Any,
    ) -> None:
        if options:
            raise TypeError(f"ElementwiseKernel has no option {', '.join(options)} in OpenCL")
        if not name.isidentifier() or not name.isascii():
            raise ValueError(f"kernel name {name!r}: expected a C identifier")
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
        names = text.own_names(preamble)
        self.preamble = text.renamed(preamble, names)
        body = text.renamed(operation, names)
        self._body = body.replace("_ind.size()", "n").strip().rstrip(";")
        self._numbered = [each for each in text.RESERVED if text.uses(self._body, each)]
        if not self.in_params and not self._numbered:
            self._numbered = ["n"]  # an operation has an operand
        self._is_raw = any(parameter.is_raw for parameter in self.params)
        self._functions = lru_cache(FORMS_KEPT)(self._make_functions)
        self._kernel = lru_cache(FORMS_KEPT)(self._make_kernel)

    def __repr__(self) -> str:
        return f"<ElementwiseKernel {self.name}>"

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
        made = self._launched if self._is_raw else self._recorded
        results = made(inputs, outputs, types, shape)
        if self.no_return:
            return None
        return tuple(results) if self.return_tuple or self.nout > 1 else results[0]

    def _shape(
        self, inputs: Sequence[Any], outputs: Sequence[Any], size: int | None
    ) -> tuple[int, ...]:
        shapes = [
            value._shape
            for value, parameter in zip(inputs, self.in_params, strict=True)
            if isinstance(value, Handle) and not parameter.is_raw
        ]
        outs = [
            out._shape
            for out, parameter in zip(outputs, self.out_params, strict=True)
            if out is not None and not parameter.is_raw
        ]
        if size is not None:
            if shapes or outs:
                raise ValueError(f"{self.name}: size is for kernels all of whose arrays are raw")
            return (int(size),)
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
        if settings.fusion and not self._numbered and not self.preamble:
            translated = self._translated(nodes, outputs, types, shape)
            if translated is not None:
                return translated
        reads = tuple([
            out is not None and not text.is_assigned(self._body, parameter.name)
            for out, parameter in zip(outputs, self.out_params, strict=True)
        ])
        nodes += [node_of(out) for out, reads_it in zip(outputs, reads, strict=True) if reads_it]
        functions = self._functions(tuple(sorted(types.items())), reads)
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
        inputs = tuple([(each.name, type_of(each, types)) for each in self.in_params])
        results = tuple([(each.name, type_of(each, types)) for each in self.out_params])
        program = program_of(text.concrete(self._body, types), inputs, results)
        if program is None:
            return None
        named = {name: node for (name, _), node in zip(inputs, nodes, strict=True)}
        dtype = next(dtype for _, dtype in (*inputs, *results) if dtype.kind != "b")
        made = results_of(program, named, [name for name, _ in results], dtype)
        return _delivered(outputs, [build.broadcast(node, shape) for node in made])

    def _make_functions(
        self, types: tuple[tuple[str, np.dtype], ...], reads: tuple[bool, ...]
    ) -> list[Function]:
        known = dict(types)
        inputs = [(each.name, type_of(each, known)) for each in self.in_params]
        inputs += [(name, INT64) for name in self._numbered]
        outputs = [(each.name, type_of(each, known)) for each in self.out_params]
        starts = []
        for (name, dtype), reads_it in zip(outputs, reads, strict=True):
            starts.append(f"{name}_before" if reads_it else "")
            if reads_it:
                inputs.append((f"{name}_before", dtype))
        body = text.concrete(self._body, known)
        preamble = text.concrete(self.preamble, known)
        return [
            text.function_of(self.name, body, inputs, outputs, number, starts, preamble)
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
                given[number] = fresh(build.filled(dtype.type(0), shape))
        size = math.prod(shape)
        arrays: list[tuple[Any, Declared, str]] = []
        back: list[tuple[Any, Any]] = []
        for value, parameter in zip([*inputs, *given], self.params, strict=True):
            is_input = len(arrays) < self.nin
            mode = "r"
            if not is_input:
                is_whole = not parameter.is_raw and text.is_assigned(self._body, parameter.name)
                mode = "w" if is_whole else "rw"
            if isinstance(value, Handle) and parameter.is_raw and not is_contiguous(value):
                copy = fresh(node_of(value))
                if not is_input:
                    back.append((value, copy))
                value = copy
            arrays.append((value, parameter, mode))
        is_flat = all(
            not isinstance(value, Handle)
            or parameter.is_raw
            or (value._shape == shape and is_contiguous(value))
            for value, parameter, _ in arrays
        )
        loop = (size,) if is_flat else shape
        forms = []
        arguments: list[Any] = []
        for value, parameter, mode in arrays:
            dtype = type_of(parameter, types)
            if not isinstance(value, Handle):
                forms.append("scalar")
                arguments.append((value, dtype))
            elif parameter.is_raw or is_flat:
                forms.append("raw" if parameter.is_raw else "flat")
                arguments.append((value, mode))
            else:
                forms.append("strided")
                arguments.append((stretched(value, shape), mode, "strides"))
        arguments += [np.int64(extent) for extent in loop]
        kernel = self._kernel(tuple(sorted(types.items())), tuple(forms), len(loop))
        if size:
            reason = "raw arguments are indexed by the body"
            record_launch(kernel, self.name, arguments, (size,), reason=reason)
        for target, copy in back:
            write(target, node_of(copy))
        return given

    def _make_kernel(
        self, types: tuple[tuple[str, np.dtype], ...], forms: tuple[str, ...], rank: int
    ) -> str:
        known = dict(types)
        declared, before, after = [], [], []
        for number, (parameter, form) in enumerate(zip(self.params, forms, strict=True)):
            dtype = type_of(parameter, known)
            name, kind = parameter.name, c_type(dtype)
            stored = "half" if dtype.char == "e" else kind
            is_output = number >= self.nin
            if form == "scalar":
                passed = "int" if dtype.kind == "b" else kind
                declared.append(f"const {passed} {name}_passed")
                before.append(f"const {kind} {name} = ({kind})({name}_passed);")
                continue
            const = "" if is_output else "const "
            if form == "raw":
                declared.append(f"__global {const}{stored} *{name}")
                continue
            declared.append(f"__global {const}{stored} *{name}_array")
            place = "i"
            if form == "strided":
                declared += [f"const long {name}_s{dim}" for dim in range(rank)]
                terms = [f"i{dim} * {name}_s{dim}" for dim in range(rank)]
                place = " + ".join(terms) or "0"
            load = f"{name}_array[{place}]"
            if dtype.char == "e":
                load = f"vload_half({place}, {name}_array)"
            if is_output and text.is_assigned(self._body, name):
                load = "0"
            before.append(f"{const}{kind} {name} = ({kind})({load});")
            if is_output and dtype.char == "e":
                after.append(f"vstore_half_rte({name}, {place}, {name}_array);")
            elif is_output:
                test = " != 0" if dtype.kind == "b" else ""
                after.append(f"{name}_array[{place}] = {name}{test};")
        declared += [f"const long n{dim}" for dim in range(rank)]
        index = ["const long i = get_global_id(0);"]
        size = " * ".join([f"n{dim}" for dim in range(rank)]) or "1"
        index.append(f"const long n = {size};")
        if "strided" in forms:
            index += text.decode(range(rank), "i", "rest")
        body = text.concrete(self._body, known)
        lines = "\n    ".join([*index, *before, f"{{ {body}; }}", *after])
        head = f"__kernel void {self.name}({', '.join(declared)})"
        return f"{text.concrete(self.preamble, known)}\n{head}\n{{\n    {lines}\n}}\n"


def argument_of(value: Any, parameter: Declared) -> Any:
    """A handle, or a scalar as it is."""
    if isinstance(value, Handle) or type(value) is TracedNumber:
        return value
    if not parameter.is_raw and (isinstance(value, bool | int | float | complex | np.generic)):
        return value
    return as_handle(value)


def called_on(
    name: str, function: Function, nodes: Sequence[Node], shape: tuple[int, ...]
) -> Node:
    """The function on nodes of any native dtype; a bool goes through 0 and 1."""
    inputs = [
        build.cast(node, computed(node.dtype)) if node.dtype.kind == "b" else node
        for node in nodes
    ]
    return called(name, function, inputs, shape)


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
