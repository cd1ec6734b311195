"""LAUNCH nodes become launches of user kernels: one a round, with uploads of each call's numbers.

`memory.buffers` then decides whether what is written lies in its old bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clfuse.ir.launch_nodes import ArrayParameter, LocalParameter, Round, ScalarParameter, Spec
from clfuse.ir.nodes import TABLE, Kind
from clfuse.schedule.partition.placement import Placement
from clfuse.schedule.records import LibraryCall, UserLaunch

from .emission import ValueTable

OFFSET: Final = np.dtype(np.int64)
"""Of the offsets in a table."""


def launches_of(
    placement: Placement, values: ValueTable
) -> list[tuple[int, UserLaunch | LibraryCall]]:
    """(level, launch) for every LAUNCH of the graph, in order."""
    graph = placement.graph
    written: dict[int, dict[int, int]] = {}
    for node in range(len(graph)):
        if graph.kinds[node] is Kind.PART:
            (launch,) = graph.inputs[node]
            written.setdefault(launch, {})[graph.params[node]] = values.of_node[node]
    found: list[tuple[int, UserLaunch | LibraryCall]] = []
    for node in range(len(graph)):
        if graph.kinds[node] is Kind.LAUNCH:
            made = _launches(placement, values, node, written.get(node, {}))
            found += [(placement.level[node], each) for each in made]
    return found


def _launches(
    placement: Placement, values: ValueTable, node: int, parts: dict[int, int]
) -> list[UserLaunch | LibraryCall]:
    graph = placement.graph
    spec: Spec = graph.params[node]
    arrays = len(graph.inputs[node]) - spec.scalars
    inputs = [values.of(operand) for operand in graph.inputs[node][:arrays]]
    scalars = []
    for operand in graph.inputs[node][arrays:]:
        constant = graph.constant[operand]
        assert constant is not None, "planner error: a scalar that is no constant"
        scalars.append(constant)
    olds = [None if slot.old < 0 else inputs[slot.old] for slot in spec.slots]
    buffers = []
    for old, slot in zip(olds, spec.slots, strict=True):
        if slot.part < 0:
            assert old is not None
            buffers.append(old)
        else:  # an array that is not held is written nevertheless
            value = parts.get(slot.part)
            buffers.append(values.new(slot.nbytes) if value is None else value)
    made: list[UserLaunch | LibraryCall] = []
    for round_ in spec.rounds:
        uploads = _tables(spec, round_, values)
        made += uploads
        tables = [upload.target for upload in uploads]
        made.append(UserLaunch(spec, round_, list(buffers), list(olds), scalars, tables))
        olds = list(buffers)
    return made


def _tables(spec: Spec, round_: Round, values: ValueTable) -> list[LibraryCall]:
    """The uploads of a round's numbers: see `UserLaunch.tables`; one call's are arguments."""
    uploads = []
    offsets, scalars = iter(round_.offsets), iter(round_.scalars)
    for parameter in spec.parameters:
        column: object
        if isinstance(parameter, ArrayParameter):
            column, dtype = next(offsets), OFFSET
        elif isinstance(parameter, LocalParameter):
            continue
        else:
            column, dtype = next(scalars), parameter.dtype
        if isinstance(column, bytes) and round_.count > 1:
            what = "offsets" if isinstance(parameter, ArrayParameter) else "scalars"
            reason = f"the {what} of {round_.count} calls of {spec.name} that are one launch"
            target = values.temporary(len(column), f"table of {dtype}", reason)
            uploads.append(LibraryCall(TABLE, [], target, (round_.count,), dtype, column))
    return uploads


def scalar_dtype(parameter: ScalarParameter) -> np.dtype:
    """As what a scalar arrives in a kernel: a bool as an int, a half as a float."""
    if parameter.dtype.kind == "b":
        return np.dtype(np.int32)
    return np.dtype(np.float32) if parameter.dtype.char == "e" else parameter.dtype
