"""A user's kernel with its arguments: as it is, or with offsets and numbers for several calls.

What `axpy` of 100,000 rows becomes, 10 work-items a row:

    __kernel void axpy(const float a, __global void *a1, const long o1, const long d1)
    {
        const long call = get_global_id(1);
        __global float *x = (__global void *)((__global char *)a1 + 4 * (o1 + call * d1));
        ...
    }
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from clfuse.dtypes import memory_type
from clfuse.ir.launch_nodes import ArrayParameter, LocalParameter
from clfuse.schedule.lower.user_launches import OFFSET, scalar_dtype
from clfuse.schedule.records import UserLaunch
from clfuse.target.traits import DeviceTraits

from .arguments import (
    Binding,
    BufferArgument,
    ConstantArgument,
    IntegerArgument,
    LocalArgument,
    NumberArgument,
)
from .kernels import Rendered
from .signatures import Formal, Found, Replaced, find


class _Arguments:
    """What is passed for each parameter."""

    def __init__(self, root: Callable[[int], int]) -> None:
        self._root = root
        self.bindings: list[Binding] = []
        self.dtypes: list[np.dtype | None] = []

    def buffer(self, value: int) -> None:
        self._add(BufferArgument(self._root(value)), None)

    def local(self, nbytes: int) -> None:
        self._add(LocalArgument(nbytes), None)

    def integer(self, number: int) -> None:
        self._add(IntegerArgument(number), OFFSET)

    def number(self, value: np.generic) -> None:
        self._add(NumberArgument(value), value.dtype)

    def constant(self, position: int, dtype: np.dtype) -> None:
        self._add(ConstantArgument(position, dtype), dtype)

    def _add(self, binding: Binding, dtype: np.dtype | None) -> None:
        self.bindings.append(binding)
        self.dtypes.append(dtype)


class _Names:
    """Names of what is added, none of them in the kernel's source."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self.call = found.unused("call")

    def __call__(self, letter: str, number: int) -> str:
        return self._found.unused(f"{letter}{number}")


def render_launch(launch: UserLaunch, traits: DeviceTraits, root: Callable[[int], int]) -> Rendered:
    """Write one round of a launch for a device."""
    spec, round_ = launch.spec, launch.round
    source, global_size, local_size = spec.text(traits)
    arguments = _Arguments(root)
    if round_.count == 1 and not any(round_.offsets):
        _pass(launch, arguments, None)
    else:
        found = find(source, spec.name)
        if found is None:
            raise AssertionError(f"renderer error: the parameters of {spec.name} cannot be changed")
        names = _Names(found)
        replaced = _pass(launch, arguments, names)
        before = f"const long {names.call} = 0;" if launch.tables else ""
        if round_.count > 1:
            before = f"const long {names.call} = get_global_id({len(global_size)});"
            global_size = (*global_size, round_.count)
            local_size = None if local_size is None else (*local_size, 1)
        source = found.changed(replaced, before)
    return Rendered(
        spec.name, source, tuple(arguments.bindings), tuple(arguments.dtypes), global_size,
        local_size,
    )


def _pass(launch: UserLaunch, arguments: _Arguments, names: _Names | None) -> list[Replaced | None]:
    """Collect the arguments; what stands for every parameter, where any is to be changed."""
    spec, round_ = launch.spec, launch.round
    replaced: list[Replaced | None] = []
    offsets, scalars = iter(round_.offsets), iter(round_.scalars)
    tables = iter(launch.tables)
    for parameter in spec.parameters:
        number = len(replaced)
        if isinstance(parameter, ArrayParameter):
            arguments.buffer(launch.buffers[parameter.slot])
            column = next(offsets)
            change = None
            if names is not None and column != 0:
                pointer, itemsize = names("a", number), parameter.dtype.itemsize
                if isinstance(column, bytes):
                    arguments.buffer(next(tables))
                    table = names("t", number)
                    change = _moved(
                        pointer, itemsize, f"{table}[{names.call}]",
                        [f"__global const long *{table}"])
                elif isinstance(column, tuple):
                    arguments.integer(column[0])
                    arguments.integer(column[1])
                    first, step = names("o", number), names("d", number)
                    change = _moved(
                        pointer, itemsize, f"({first} + {names.call} * {step})",
                        [f"const long {first}", f"const long {step}"])
                else:
                    arguments.integer(column)
                    first = names("o", number)
                    change = _moved(pointer, itemsize, first, [f"const long {first}"])
            replaced.append(change)
            for stride in parameter.strides if parameter.strided else ():
                arguments.integer(stride)
                replaced.append(None)
        elif isinstance(parameter, LocalParameter):
            arguments.local(parameter.nbytes)
            replaced.append(None)
        else:
            dtype = scalar_dtype(parameter)
            kept = next(scalars)
            change = None
            if kept is not None and round_.count == 1:
                value = np.frombuffer(kept, parameter.dtype)[0].astype(dtype)
                arguments.number(value)
            elif kept is None:
                arguments.constant(launch.scalars[parameter.place], dtype)
            else:
                assert names is not None
                arguments.buffer(next(tables))
                change = _from_table(names("t", number), names.call, parameter.dtype)
            replaced.append(change)
    return replaced


def _moved(pointer: str, itemsize: int, place: str, more: list[str]) -> Replaced:
    """A pointer that begins `place` elements behind `pointer`, which has no type: the kernel's
    author decides how its bits are read."""

    def parameters(formal: Formal) -> list[str]:
        const = "const " if formal.is_constant else ""
        # A promise about what is read through the pointer is one about what it is made of.
        restrict = "restrict " if formal.is_restricted else ""
        return [f"{formal.space} {const}void *{restrict}{pointer}", *more]

    def value(formal: Formal) -> str:
        const = "const " if formal.is_constant else ""
        bytes_ = f"({formal.space} {const}char *){pointer} + {itemsize} * {place}"
        return f"({formal.space} {const}void *)({bytes_})"

    return Replaced(parameters, value)


def _from_table(table: str, call: str, dtype: np.dtype) -> Replaced:
    """A number of every call."""

    def value(formal: Formal) -> str:
        if dtype.char == "e":
            return f"vload_half({call}, (__global const half *){table})"
        if dtype.kind == "b":
            return f"{table}[{call}]"
        # Its type may be the program's own, of the same size.
        return f"*(__global const {formal.type()} *)({table} + {call})"

    stored = memory_type(dtype)
    return Replaced(lambda formal: [f"__global const {stored} *{table}"], value)
