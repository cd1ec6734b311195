"""Fronts: what of NumPy's answers for small arrays, before the function of ours that records.

A front is a function of the compiled part. Where it does not take a call, it asks the function
that it stands before. Without the compiled part there are no fronts: every call is recorded.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from clfuse._core import loading
from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.host_array import (
    AT_ONCE,
    DEFER,
    LOOKED_AT_NBYTES,
    PRODUCT_SHARE,
    bring_to_host,
    strided_elements,
)
from clfuse.arrays.numpy_calls import name_in, raising
from clfuse.arrays.promotion import BOOL
from clfuse.arrays.view_steps import Step
from clfuse.engine.evaluate import evaluate_nodes
from clfuse.interpreter.interpret import warning_of
from clfuse.ir.nodes import loop
from clfuse.runtime.memory.buffers import Buffer, HostBuffer
from clfuse.target.costs import COSTS

from . import creation, table
from .bringing import MASK_ADDITIONS, bring_factors, fits, is_brief
from .table import ALL, ROWS, Row
from .writes import writable_memory

_VIEWING: Final = {getattr(np, name): getattr(np.ndarray, name) for name in table.OPERANDS_OF_VIEWS}

_OF_NUMBERS: Final = frozenset((*_VIEWING, *table.VIEWING, np.flip, np.diag))
"""Functions to which a number, or a list of numbers, is an array that is made at the call."""


def before(reference: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    """`plain`, which answers for NumPy's function `reference`, with NumPy itself before it where
    the tables say so."""
    core = loading.load()
    if core is None:
        return plain
    call = plain
    row = ROWS.get(reference)
    if isinstance(reference, np.ufunc):  # none of NumPy's: those are ours
        row = table.FOREIGN._replace(operands=reference.nin, most=reference.nin)
    if row is not None:
        if reference in table.MORE_THAN_METHODS:
            row = row._replace(method=None)
        call = _reader(core, plain, table.IN_PLACE_OF.get(reference, reference), row)
        if reference is np.dot:
            call = core.product_of_two(call)
        elif reference is np.copy:
            call = core.copier(call)
        elif reference is np.diag:
            call = core.viewer_of_matrices(call, np.ndarray.diagonal, 1)
        elif reference is np.where:
            call = core.chooser(call, _choices())
    elif reference is np.array:
        call = core.of_arrays(plain, _reader(core, plain, reference, Row(1, table.ELEMENTS, 1, 2)))
    elif reference is np.flip:
        call = core.flipper(plain)
    elif reference in table.WRITING:
        call = core.writer(plain, reference, table.WRITING[reference], True)
    elif reference in table.VIEWING:
        by_name = table.NAMED.get(reference)
        call = core.viewer(plain, reference, table.VIEWING[reference], by_name)
    elif reference in table.VIEWING_ALL:
        by_place = core.viewer_of_all(plain, reference, table.VIEWING_ALL[reference])
        # The others ask their argument for its shape: lists raise AttributeError, as with NumPy.
        takes_lists = reference is np.array_split
        call = core.of_listed(by_place, False, frozenset()) if takes_lists else by_place
    elif reference in table.VIEWING_EACH:
        call = core.viewer_of_each(
            plain, reference, table.VIEWING_EACH[reference], table.NUMPYS_NUMBERS
        )
    elif reference in table.VIEWING_PARTS:
        by_place = core.viewer_of_parts(plain, table.VIEWING_PARTS[reference].__get__)
        call = core.of_listed(core.of_one(plain, by_place), False, frozenset())
    elif reference in _VIEWING:
        operands = table.OPERANDS_OF_VIEWS[reference.__name__]
        call = core.viewer(plain, _VIEWING[reference], operands, table.NAMED.get(reference))
    if reference in _OF_NUMBERS:
        scalars = table.NUMPYS_NUMBERS if reference in table.OF_SCALARS else frozenset()
        call = core.of_listed(call, True, scalars)
    if reference in creation.SOURCES:
        is_method = not isinstance(reference, types.BuiltinFunctionType)
        call = core.source(call, *creation.SOURCES[reference], is_method)
    if reference in (np.asarray, np.asanyarray):
        call = core.itself(call)
    return call if call is plain else functools.update_wrapper(call, plain)


def _choices() -> dict[Any, Any]:
    """The operation of `where` by dtype; (dtype, class) of numbers that may stand for an array."""
    found: dict[Any, Any] = {}
    for dtype in handles.DTYPES.values():
        found[dtype] = loop("where", (BOOL, dtype, dtype), dtype)
        found.update({(dtype, int): True} if dtype.kind in "iufc" else {})
        found.update({(dtype, float): True} if dtype.kind in "fc" else {})
    return found


def settled(reference: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    """`plain`, which runs NumPy's code step by step and may wait in it, with NumPy itself before it
    also where operands are small and only recorded: those are computed first."""
    core, row = loading.load(), ROWS.get(reference)
    if core is None or row is None:
        return plain
    operands = row.operands
    apply = table.IN_PLACE_OF.get(reference, reference)
    attempt = _reader(core, lambda *args, **kwargs: DEFER, apply, row)

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        nodes = []
        for value in (*args[:operands], *kwargs.values()):
            for item in value if type(value) is list or type(value) is tuple else (value,):
                if type(item) is handles.ARRAY:
                    nodes.append(item._storage.node)
        if nodes and not all(type(node.buffer) is HostBuffer for node in nodes) and (
            all(map(is_brief, nodes))
        ):
            evaluate_nodes(nodes)
            for node in nodes:
                if type(node.buffer) is Buffer:
                    bring_to_host(node)
            answer = attempt(*args, **kwargs)
            if answer is not DEFER:
                return answer
        return plain(*args, **kwargs)

    return call


def _reader(core: Any, plain: Callable[..., Any], apply: Callable[..., Any], row: Row) -> Any:
    method = None if row.method is None else getattr(np.ndarray, row.method)
    refused = table.REFUSED - {"copy"} if apply is np.ndarray.astype else table.REFUSED
    return core.reader(
        plain, apply, method, row.operands, row.most, row.cost, row.weight, row.as_is, row.is_loop,
        refused,
    )  # fmt: skip


def connect(core: Any, array: Any, ufunc: Any) -> None:
    """Give the compiled part what it uses of this package, and put fronts before the methods of
    arrays and of ufuncs."""
    core.connect_calls(_names())
    core.connect_sources(creation.compiled_names())
    for name, (operands, cost) in table.UFUNC_METHODS.items():
        _replace(ufunc, name, core.method_of_ufunc, name, operands, cost)
    _replace(ufunc, "at", core.writing_method_of_ufunc, "at", 3)
    for name, row in table.METHODS.items():
        plain = getattr(array, name)
        call = _reader(core, plain, getattr(np.ndarray, name), row)
        setattr(array, name, functools.update_wrapper(call, plain))
    _replace(array, "copy", core.copier)
    for name in table.VIEWS:
        _replace(array, name, core.viewer, getattr(np.ndarray, name), ALL)
    turned = core.viewer(array.T.fget, np.ndarray.transpose, 0)
    array.T = property(turned, doc=array.T.__doc__)
    for attribute in table.VIEWING_PARTS.values():
        own = getattr(array, attribute.__name__)
        seer = core.viewer_of_parts(own.fget, attribute.__get__)
        setattr(array, attribute.__name__, property(seer, own.fset, doc=own.__doc__))
    for name, operands in table.WRITERS.items():
        _replace(array, name, core.writer, getattr(np.ndarray, name), operands, True)


def _replace(owner: type, name: str, make: Callable[..., Any], *about: Any) -> None:
    """Put the front that `make` gives before a method."""
    plain = getattr(owner, name)
    setattr(owner, name, functools.update_wrapper(make(plain, *about), plain))


def _names() -> dict[str, Any]:
    """What ``_core/eager_calls.pxi`` and its neighbours use of clfuse besides."""
    return {
        "DTYPE": np.dtype,
        "QUIET": errstate.QUIET,
        "Step": Step,
        "at_once_share": AT_ONCE,
        "bring": bring_to_host,
        "bring_factors": bring_factors,
        "context": raising(),
        "costs": tuple(table.Cost),
        "fits": fits,
        "gather_additions": COSTS.gather_additions,
        "lists": (table.DEEPEST_LIST, table.LONGEST_LIST),
        "looked_at_nbytes": LOOKED_AT_NBYTES,
        "mask_additions": MASK_ADDITIONS,
        "name_in": name_in,
        "options": table.OPTIONS,
        "owned": writable_memory,
        "product_share": AT_ONCE * PRODUCT_SHARE,
        "raising": raising,
        "refused": table.REFUSED,
        "seen": strided_elements,
        "warning_of": warning_of,
    }
