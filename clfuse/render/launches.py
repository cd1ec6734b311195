"""A user's kernel with its arguments: bound as it is, or called by a kernel of ours that adds
offsets; `evaluate` calls it.

What `axpy` of 100,000 rows becomes, 10 work-items a row:

    __kernel void axpy_calls(const float a, __global void *a0, const long o0, const long d0)
    {
        const long call = get_global_id(1);
        axpy(a, (__global void *)((__global char *)a0 + 4 * (o0 + call * d0)));
    }
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..dtypes import memory_type
from ..graph.launch import ArrayParameter, LocalParameter
from ..plan.schedule import UserLaunch
from ..plan.user_launches import OFFSET, scalar_dtype
from ..traits import DeviceTraits
from .arguments import (
    Binding,
    BufferArgument,
    ConstantArgument,
    IntegerArgument,
    LocalArgument,
    NumberArgument,
)
from .kernels import Rendered

MAX_DIMENSIONS = 3
"""Of an index range, in OpenCL."""


class _Arguments:
    """Parameters of the kernel, and what is passed for each."""

    def __init__(self, root: Callable[[int], int]) -> None:
        self._root = root
        self.bindings: list[Binding] = []
        self.dtypes: list[np.dtype | None] = []
        self.declared: list[str] = []

    def buffer(self, value: int, name: str, type_: str) -> str:
        self.declared.append(f"__global {type_} *{name}")
        self.bindings.append(BufferArgument(self._root(value)))
        self.dtypes.append(None)
        return name

    def local(self, nbytes: int, name: str) -> str:
        self.declared.append(f"__local void *{name}")
        self.bindings.append(LocalArgument(nbytes))
        self.dtypes.append(None)
        return name

    def integer(self, number: int, name: str) -> str:
        self.declared.append(f"const long {name}")
        self.bindings.append(IntegerArgument(number))
        self.dtypes.append(OFFSET)
        return name

    def number(self, value: np.generic, name: str) -> str:
        self.declared.append(f"const {memory_type(value.dtype)} {name}")
        self.bindings.append(NumberArgument(value))
        self.dtypes.append(value.dtype)
        return name

    def constant(self, position: int, dtype: np.dtype, name: str) -> str:
        self.declared.append(f"const {memory_type(dtype)} {name}")
        self.bindings.append(ConstantArgument(position, dtype))
        self.dtypes.append(dtype)
        return name


def render_launch(
    launch: UserLaunch, traits: DeviceTraits, root: Callable[[int], int]
) -> Rendered:
    """Write one round of a launch for a device."""
    spec, round_ = launch.spec, launch.round
    source, global_size, local_size = spec.text(traits)
    plain = round_.count == 1 and not any(round_.offsets)
    arguments = _Arguments(root)
    passed = []
    offsets, scalars = iter(round_.offsets), iter(round_.scalars)
    tables = iter(launch.tables)
    for number, parameter in enumerate(spec.parameters):
        if isinstance(parameter, ArrayParameter):
            pointer = arguments.buffer(launch.buffers[parameter.slot], f"a{number}", "void")
            column = next(offsets)
            if isinstance(column, bytes):
                place = f"{arguments.buffer(next(tables), f't{number}', 'const long')}[call]"
            elif isinstance(column, tuple):
                first = arguments.integer(column[0], f"o{number}")
                place = f"({first} + call * {arguments.integer(column[1], f'd{number}')})"
            else:
                place = "" if plain else arguments.integer(column, f"o{number}")
            # No type: the kernel's author decides how its bits are read.
            moved = f"(__global char *){pointer} + {parameter.dtype.itemsize} * {place}"
            passed.append(f"(__global void *)({moved})")
            if parameter.strided:
                passed += [
                    arguments.integer(stride, f"s{number}_{dim}")
                    for dim, stride in enumerate(parameter.strides)
                ]
        elif isinstance(parameter, LocalParameter):
            passed.append(arguments.local(parameter.nbytes, f"l{number}"))
        else:
            dtype = scalar_dtype(parameter)
            kept = next(scalars)
            if kept is not None and round_.count == 1:
                value = np.frombuffer(kept, parameter.dtype)[0].astype(dtype)
                passed.append(arguments.number(value, f"k{number}"))
            elif kept is None:
                position = launch.scalars[parameter.place]
                passed.append(arguments.constant(position, dtype, f"k{number}"))
            else:
                stored = memory_type(parameter.dtype)
                table = arguments.buffer(next(tables), f"t{number}", f"const {stored}")
                half = parameter.dtype.char == "e"
                loaded = f"vload_half(call, (__global const half *){table})"
                passed.append(loaded if half else f"{table}[call]")
    name = spec.name
    if not plain:
        name = f"{spec.name}_calls"
        call = "    const long call = 0;\n" if launch.tables else ""
        if round_.count > 1:
            call = f"    const long call = get_global_id({len(global_size)});\n"
            global_size = (*global_size, round_.count)
            local_size = None if local_size is None else (*local_size, 1)
        head = f"__kernel void {name}({', '.join(arguments.declared)})"
        body = f"{call}    {spec.name}({', '.join(passed)});"
        source = f"{source}\n{head}\n{{\n{body}\n}}\n"
    return Rendered(
        name, source, tuple(arguments.bindings), tuple(arguments.dtypes), global_size, local_size
    )
