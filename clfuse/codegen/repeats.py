"""Kernels of one plan that differ only in their arguments are rendered once.

A chain of 100,000 operations is a thousand kernels with the same text: writing each took as long as
planning them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from clfuse.schedule.records import Kernel, Load, Scalar, Scratch, Step
from clfuse.target.traits import DeviceTraits

from .arguments import Binding, BufferArgument, ConstantArgument
from .kernels import Rendered, render

__all__ = ["Repeats"]

_PLAIN: Final = tuple(
    [field.name for field in fields(Kernel) if field.name not in ("body", "stores")]
)

_Form = tuple[Any, dict[int, int], dict[int, int]]
"""What the text depends on; value -> number and constant -> number, in order of first use."""


class Repeats:
    """Renders the kernels of one plan, for one device.

    Parameters
    ----------
    traits : DeviceTraits
    root : callable
        As `kernels.render` takes them.
    """

    def __init__(self, traits: DeviceTraits, root: Callable[[int], int]) -> None:
        self._traits = traits
        self._root = root
        self._known: dict[Any, tuple[Rendered, list[int], list[int]]] = {}

    def render(self, kernel: Kernel) -> Rendered:
        """`kernels.render`, or what it gave for an equal kernel, with this one's arguments."""
        form = _form(kernel, self._root)
        if form is None:
            return render(kernel, self._traits, self._root)
        key, values, constants = form
        known = self._known.get(key)
        if known is None:
            rendered = render(kernel, self._traits, self._root)
            self._known[key] = rendered, list(values), list(constants)
            return rendered
        rendered, old_values, old_constants = known
        by_value = dict(zip(old_values, values, strict=True))
        by_constant = dict(zip(old_constants, constants, strict=True))
        bindings: list[Binding] = []
        for binding in rendered.bindings:
            if isinstance(binding, BufferArgument):
                binding = BufferArgument(by_value[binding.value])
            elif isinstance(binding, ConstantArgument):
                binding = ConstantArgument(by_constant[binding.position], binding.dtype)
            bindings.append(binding)
        return replace(rendered, bindings=tuple(bindings))


def _form(kernel: Kernel, root: Callable[[int], int]) -> _Form | None:
    """The form of a map or of tiles; None for other kernels, of which a plan seldom has many."""
    tiling = kernel.tiling
    if tiling is None and (not kernel.kind.elementwise or kernel.then or kernel.where):
        return None
    values: dict[int, int] = {}
    constants: dict[int, int] = {}
    if tiling is None:
        form = _form_of_map(kernel, root, values, constants, {})
        return None if form is None else (tuple(form), values, constants)

    def number(value: int) -> int:
        return values.setdefault(root(value), len(values))

    form = [kernel.label, kernel.work_items, tiling.extents, tiling.lengths, tiling.around]
    form += tiling.arrays
    for stage in tiling.stages:
        part = _form_of_map(stage.kernel, root, values, constants, tiling.scratch)
        if part is None:
            return None
        form += [*part, stage.low, stage.high, tuple(stage.starts.items())]
        for each in stage.inputs:
            form.append((number(each.value), tiling.scratch[each.value], each.dtype, each.low,
                         each.high, each.shape))
        for border in stage.borders:
            form.append((number(border.value), number(border.base), border.dtype, border.shape,
                         border.box, border.low, border.high))
        form += [
            (number(store.value), store.dtype, store.access, start)
            for store, start in stage.copied
        ]
    return tuple(form), values, constants


def _form_of_map(
    kernel: Kernel,
    root: Callable[[int], int],
    values: dict[int, int],
    constants: dict[int, int],
    scratch: Mapping[int, Scratch],
) -> list[Any] | None:
    """What one loop nest adds to a form, where `scratch` says which values have such."""
    registers: dict[int, int] = {}
    form: list[Any] = [tuple([getattr(kernel, name) for name in _PLAIN if name not in _LISTS])]
    for item in kernel.body:
        if type(item) is Step:
            operands = tuple([registers[operand] for operand in item.operands])
            form.append((item.op, operands, item.dtypes, item.dtype))
        elif type(item) is Scalar:
            form.append((constants.setdefault(item.constant, len(constants)), item.dtype))
        elif type(item) is Load and item.position is None and item.other is None:
            number = values.setdefault(root(item.value), len(values))
            place = scratch.get(item.value)
            form.append((number, item.dtype, item.access, item.ahead, item.turned, place))
        else:
            return None
        registers[item.var] = len(registers)
    for store in kernel.stores:
        number = values.setdefault(root(store.value), len(values))
        place = scratch.get(store.value)
        form.append(
            (registers[store.var], store.var_dtype, number, store.dtype, store.access, store.turned,
             place)
        )
    return form


_LISTS: Final = frozenset(("accumulators", "epilogue", "results", "then"))
"""Empty in a map without sisters."""
