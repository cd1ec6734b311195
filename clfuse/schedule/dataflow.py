"""Data flow: what an item of a kernel's body reads, renumbered copies of bodies, and which values
of a plan lie in the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .records import Accumulator, Item, Kernel, Load, Prefix, Schedule, Step


def operands_of(item: Item) -> tuple[int, ...]:
    """The registers that an item is made of."""
    if isinstance(item, Step):
        return item.operands
    if isinstance(item, Prefix):
        return (item.operand,)
    if isinstance(item, Load):
        return tuple([var for var in (item.position, item.other) if var is not None])
    return ()


def needed_items(body: list[Item], wanted: set[int]) -> list[Item]:
    """The items that the registers `wanted` are made of."""
    needed = set(wanted)
    kept = []
    for item in reversed(body):
        if item.var not in needed:
            continue
        kept.append(item)
        needed.update(operands_of(item))
    return kept[::-1]


def operations_of(items: Sequence[Item]) -> list[str]:
    """Names of the operations that `items` perform, in order."""
    names = []
    for item in items:
        if isinstance(item, Step):
            names.append(item.op.name)
        elif isinstance(item, Prefix):
            names.append(f"accumulate {item.name}")
        elif isinstance(item, Load) and item.position is not None:
            names.append("gather")
    return names


def prefixes(items: Iterable[Item]) -> list[Prefix]:
    """The scans among some items."""
    return [item for item in items if isinstance(item, Prefix)]


def of_registers(item: Item, registers: Mapping[int, int]) -> Item:
    """An item that is made of other registers."""
    if isinstance(item, Step):
        return replace(item, operands=tuple([registers[operand] for operand in item.operands]))
    if isinstance(item, Prefix):
        return replace(item, operand=registers[item.operand])
    if isinstance(item, Load) and operands_of(item):
        position = None if item.position is None else registers[item.position]
        other = None if item.other is None else registers[item.other]
        return replace(item, position=position, other=other)
    return item


def fold_of_registers(fold: Accumulator, registers: Mapping[int, int]) -> Accumulator:
    """A fold of other registers."""
    position = None if fold.position is None else registers[fold.position]
    return replace(fold, operand=registers[fold.operand], position=position)


def renumber_registers(kernel: Kernel, first: int) -> Kernel:
    """The same with registers from `first` on, in all its bodies."""

    def later(items: Sequence[Item]) -> list[Item]:
        registers = {item.var: item.var + first for item in items}
        registers.update([(fold.var, fold.var + first) for fold in kernel.accumulators])
        return [replace(of_registers(item, registers), var=item.var + first) for item in items]

    made = []
    for body in kernel.phases:
        registers = {item.var: item.var + first for item in body.body}
        folds = [
            replace(fold_of_registers(fold, registers), var=fold.var + first)
            for fold in body.accumulators
        ]
        made.append(
            replace(
                body,
                body=later(body.body),
                stores=[replace(store, var=store.var + first) for store in body.stores],
                accumulators=folds,
                epilogue=later(body.epilogue),
                results=[replace(store, var=store.var + first) for store in body.results],
            )
        )
    return replace(made[0], then=made[1:])


def storage_roots(schedule: Schedule) -> Callable[[int], int]:
    """Value -> the first value in the same bytes."""
    first: dict[Any, int] = {}
    roots = []
    for number, value in enumerate(schedule.values):
        if value.slot is not None:
            place: Any = ("slot", value.slot)
            if value.slot in schedule.reuses:
                place = ("buffer", schedule.reuses[value.slot])
        else:
            place = ("buffer", value.buffer) if value.buffer is not None else ("none", number)
        roots.append(first.setdefault(place, number))
    return roots.__getitem__
