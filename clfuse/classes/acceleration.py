"""Puts the compiled cases (``clfuse/_core/compiled.pyx``) before methods of the array classes."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from clfuse._core import loading
from clfuse.arrays import errstate, handle, host_array, promotion
from clfuse.config import changed, settings
from clfuse.counters import counters
from clfuse.dispatch.registry import UFUNCS
from clfuse.eager import connect
from clfuse.engine import evaluate
from clfuse.events import recorders
from clfuse.functions.indexing import subscripts
from clfuse.functions.math.ufunc import ufunc
from clfuse.interop import buffers
from clfuse.ir import build, nodes, trace
from clfuse.policy.choice import begin_program, known_works, works_of_kernels
from clfuse.runtime.memory.blocks import Counted
from clfuse.runtime.memory.buffers import (
    AS_A_WHOLE,
    BY_ROWS,
    IN_PARTS,
    SELECTED,
    Block,
    Buffer,
    HostBuffer,
)
from clfuse.target.costs import COSTS

from . import operators

__all__ = ["accelerate"]

def accelerate(array: type) -> None:
    """Let the methods of `array` try the compiled cases first, if there are any."""
    core = loading.load()
    if core is None:
        return
    core.connect(_names(array))
    begin_program()
    core.connect_numpy()
    nodes.pending = core.pending
    core.settle()
    changed.append(core.settle)
    errstate.underflow_minded.append(core.mind_underflow)
    connect(core, array, ufunc)
    core.connect_remembered(
        {
            "COMPACT": nodes.Kind.COMPACT,
            "native_dtype": handle.native_dtype,
            "no_value": np._NoValue,
            "scalar_classes": handle.SCALAR_OF,
        }
    )
    accelerate_looks(core)
    core.connect_company(evaluate.lock)
    for slot, descriptor in (("_storage", core.Cell()), ("_view", core.Sight())):
        setattr(handle.Handle, slot, descriptor)
    core.export_buffers((array, *handle.SCALARS), buffers.lend_memory)
    for short, name in operators.BINARY.items():
        function = UFUNCS[name]
        about = function.numpy, function.weight
        loops = function.loops
        plain = getattr(array, f"__{short}__")
        # To divide by a power of two is to multiply: only `operators.divide` knows.
        method = core.binary(plain, *about, loops, short != "truediv")
        setattr(array, f"__{short}__", method)
        dunder = f"__r{short}__"
        setattr(array, dunder, core.reflected(getattr(array, dunder), *about, loops))
        dunder = f"__i{short}__"
        apply = getattr(operator, f"i{short}")
        setattr(array, dunder, core.in_place(getattr(array, dunder), apply, function.weight))
    dunder, weight = "__ipow__", UFUNCS["power"].weight
    setattr(array, dunder, core.in_place(getattr(array, dunder), operator.ipow, weight))
    for short, name in operators.COMPARISONS.items():
        function = UFUNCS[name]
        dunder = f"__{short}__"
        plain = getattr(array, dunder)
        method = core.binary(plain, function.numpy, function.weight, function.loops, True)
        setattr(array, dunder, method)
    for short, name in operators.UNARY.items():
        function = UFUNCS[name]
        dunder = f"__{short}__"
        plain = getattr(array, dunder)
        method = core.unary(plain, function.numpy, function.weight, function.loops)
        setattr(array, dunder, method)
    for function in UFUNCS.values():
        loops = function.loops
        if function.fast is not None:
            function.fast = core.binary(function.fast, function.numpy, function.weight, loops, True)
        elif function.nin == 1 and function.nout == 1 and function.signature is None:
            plain = operators.unary(function)
            function.fast = core.unary(plain, function.numpy, function.weight, loops)
    for short in ("and", "or", "xor", "lshift", "rshift", "pos", "invert"):
        function = UFUNCS[operators.BINARY.get(short) or operators.UNARY[short]]
        dunder = f"__{short}__"
        plain = getattr(handle.SCALAR, dunder)
        method = core.of_scalar(plain, function.numpy, function.weight)
        setattr(handle.SCALAR, dunder, method)
    for name in operators.of_one:
        operators.of_one[name] = UFUNCS[name].fast
    dunder = "__matmul__"
    setattr(array, dunder, core.product(getattr(array, dunder)))
    matmul = UFUNCS["matmul"]
    matmul.fast = getattr(array, dunder)
    for function in UFUNCS.values():
        function.quick = core.Quick(function)
    core.put_into_slot_of_calls(ufunc, type(matmul))
    quick = {
        function.numpy: function.quick
        for function in UFUNCS.values()
        if function.fast is not None and function.nin == 2
    }
    for dunder, compiled in (
        ("__iter__", core.iterator),
        ("__getitem__", core.getitem),
        ("__setitem__", core.setitem),
        ("__array_ufunc__", lambda plain: core.array_ufunc(plain, quick)),
    ):
        setattr(array, dunder, compiled(getattr(array, dunder)))
    core.put_into_slots(_names_of_slots())
    core.let_yield((np.float64, np.float32, np.int64, np.int32, np.complex128))
    core.put_into_slots_of_numbers(handle.SCALAR, handle.SCALARS)
    core.let_view()
    core.keep_spare()


def accelerate_looks(core: Any) -> None:
    """Let what programs do to see a value try the compiled cases first."""
    core.connect_looks(
        {
            "Block": Block,
            "Buffer": Buffer,
            "evaluate_nodes": evaluate.evaluate_nodes,
            "scalars": handle.SCALARS,
        }
    )
    kind = handle.SCALAR
    for name, convert in operators.CONVERSIONS.items():
        setattr(kind, name, core.converting(getattr(kind, name), convert))
    kind.item = functools.update_wrapper(core.item(kind.item), kind.item)
    Block.__del__ = core.giving_back(Block.__del__, counters)  # type: ignore[method-assign]
    Counted.__del__ = core.uncounting(counters)  # type: ignore[method-assign]


def _names(array: type) -> dict[str, Any]:
    """What the compiled cases use of clfuse."""
    return {
        "ARRAY": array,
        "Buffer": Buffer,
        "FLOAT64": promotion.FLOAT64,
        "Handle": handle.Handle,
        "HostBuffer": HostBuffer,
        "Indexed": host_array.Indexed,
        "DEFER": host_array.DEFER,
        "LOUD": errstate.LOUD,
        "NUMPY": np.ndarray,
        "Storage": nodes.Storage,
        "View": handle.View,
        "additions_a_us": host_array.ADDITIONS_A_US,
        "boundary": nodes.boundary,
        "c_strides": handle.c_strides,
        "check": nodes.check,
        "check_at": nodes.check_at,
        "recorders": recorders,
        "constants": promotion.constants,
        "element": subscripts.element,
        "expect_rows": host_array.expect_rows,
        "few_additions": host_array.FEW_ADDITIONS,
        "fresh_share": host_array.FRESH_SHARE,
        "loop_additions": COSTS.loop_additions,
        "known_works": known_works,
        "leaves": host_array.LEAVES,
        "longest_path": host_array.LONGEST_PATH,
        "made": host_array.wrap_result,
        "mode": errstate.mode,
        "native": host_array.NATIVE_DTYPES,
        "node_of": handle.node_of,
        "operations": nodes.operations,
        "part": host_array.view_elements,
        "recorded": nodes.recorded,
        "rows_of_a_loop": host_array.ROWS_OF_A_LOOP,
        "rows_share": host_array.ROWS_SHARE,
        "scalars": host_array.SCALARS,
        "selected_share": host_array.SELECTED_SHARE,
        "settings": vars(settings),
        "standard": host_array.standard,
        "tracers": trace.tracers,
        "updates": build.UPDATES,
        "uses": (AS_A_WHOLE, IN_PARTS, BY_ROWS, SELECTED),
        "views": build.VIEWS,
        "works_of_kernels": works_of_kernels,
    }


def _names_of_slots() -> dict[str, Any]:
    """What ``_core/eager_operators.pxi`` uses of clfuse besides."""
    names = {
        **operators.BINARY, **operators.COMPARISONS, **operators.UNARY,
        "matmul": "matmul", "pow": "power",
    }  # fmt: skip
    return {
        "absolute": np.absolute,
        "comparisons": (
            np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal,
        ),
        "negative": np.negative,
        "square": np.square,
        "ufuncs": {short: getattr(np, name) for short, name in names.items()},
        "weights": {short: UFUNCS[name].weight for short, name in names.items()},
    }
