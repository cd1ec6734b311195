"""The class `ufunc`, of which ``clfuse.sin`` and all other ufuncs are instances.

A call finds the loop that NumPy would take (`arrays.promotion`), records one node an output, and
returns. Loops that the op tables lack, and dtypes that stay on the host, run in NumPy
(`dispatch.host_call`). NumPy computes a call that has only scalars of NumPy and Python: there is no
array to keep on a device.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy._core import umath

from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, as_handle, as_mask, cast
from clfuse.arrays.expressions import broadcast_shapes, convert
from clfuse.arrays.handle import Handle, is_writeable, lacks_fp64, native_dtype, node_of, result
from clfuse.arrays.host_array import SCALARS, operand_of
from clfuse.arrays.memory_order import arrange_axes, parse_order, turned_nodes
from clfuse.arrays.numpy_calls import call_at_user_line
from clfuse.arrays.outputs import (
    NO_OUT,
    arranged,
    deliver,
    given_outputs,
    order_of_result,
    outputs,
    shape_with_outputs,
)
from clfuse.arrays.promotion import (
    COMPARISONS_OF_INTS,
    WEAK,
    Casting,
    Resolution,
    comparison_with_unrepresentable,
    constant_of,
    resolve,
    weak_kind,
)
from clfuse.arrays.views import reshape_view
from clfuse.config import changed, settings
from clfuse.dispatch import host_call
from clfuse.dispatch.numpy_errors import (
    deprecate_third,
    error_to_raise,
    note_final,
    preferred_error,
    refused_by_numpy,
)
from clfuse.dispatch.overrides import (
    ANSWERS_ITSELF,
    AnswersItself,
    answers_itself,
    is_for_numpy,
    refuse_foreign,
)
from clfuse.dispatch.registry import BY_NUMPY, UFUNCS
from clfuse.dispatch.stand_ins import StandInType
from clfuse.engine.evaluate import host_view as stored_view
from clfuse.functions.indexing.taking import at as update_at
from clfuse.ir import build
from clfuse.ir.nodes import Node, Op, loud
from clfuse.ir.size_limits import MOST_AXES
from clfuse.ir.traced_number import TracedNumber, concrete
from clfuse.numpy_releases import UNINITIALIZED
from clfuse.ops.table import UFUNCS as ROWS
from clfuse.user_frames import user_stacklevel

from .folds import fold
from .scans import accumulate_array


class ufunc(metaclass=StandInType, stands_for=np.ufunc):
    """A NumPy ufunc whose calls on arrays of clfuse's are recorded.

    Attributes that are not described here are NumPy's own: `nin`, `nout`, `nargs`, `ntypes`,
    `types`, `identity`, `signature`, `resolve_dtypes`.
    """

    __module__ = "clfuse"

    def __init__(self, function: np.ufunc) -> None:
        self.numpy = function
        self.nin = function.nin
        self.nout = function.nout
        self.__name__ = function.__name__
        self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        self.loops: dict[Any, Any] = {}
        """Keys of the operands (of one: its dtype) -> operation, to record it without a call.

        Only loops that need no look at the values: an integer power's exponents are checked.
        """
        row = ROWS.get(self.__name__)
        self.weight = 1.0 if row is None else row.weight
        """What it takes NumPy an element, in additions."""
        self._plain: dict[Any, Op] = {}
        """What `loops` holds, as plain operations: see `arrays.errstate`."""
        self.fast: Callable[..., Any] | None = None
        """The operator, if it has been made: of two operands by `operators`, of one where it is
        compiled (`classes.acceleration`)."""
        self.quick: Any = None
        """What the compiled part reads of it at a call (`classes.acceleration`)."""
        self._resolutions: dict[tuple[Any, ...], Resolution] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.numpy, name)

    def __repr__(self) -> str:
        return repr(self.numpy)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same ufunc, NumPy's or ours: `__array_ufunc__` is given NumPy's."""
        return self.numpy is getattr(other, "numpy", other)

    def __hash__(self) -> int:
        return hash(self.numpy)

    def __reduce__(self) -> Any:
        return _named, (self.__name__,)

    # -- calling ----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != self.nin:
            try:
                return self._call_with_options(args, kwargs)
            except Exception as error:  # noqa: BLE001 (NumPy says which it is)
                raise error_to_raise(error, self.numpy, *args, **kwargs) from None
        kind = type(args[0])
        if kind in SCALARS and type(args[-1]) in SCALARS and len(args) < 3:
            return call_at_user_line(self.numpy, *args)
        if len(args) == 1 and kind is handles.ARRAY:
            (array,) = args
            if self.fast is not None:
                return self.fast(array)
            op = self.loops.get(array._dtype)
            shape = array._shape
            view = array._view
            if op is not None and shape and (view is None or view.ordered):
                node = array._storage.node if view is None else node_of(array)
                return handles.recorded_array(op, (node,), shape, op.dtype)
        elif len(args) == 2 and self.fast is not None:
            other = type(args[1])
            if kind is handles.ARRAY and (
                other is handles.ARRAY or other in handles.SCALARS or other is float or other is int
            ):
                return self.fast(*args)
        return self.record(*args)

    def record(self, *args: Any) -> Any:
        """Call on `nin` operands of any kind, without options: what the fast paths leave."""
        try:
            operands = _operands(args)
        except AnswersItself:
            return host_call.ask_operands(self.numpy, args, {})
        except NotNative as missing:
            return host_call.host_call(self.numpy, args, {}, str(missing))
        keys, values, shapes, has_array = operands
        if not has_array:
            return call_at_user_line(self.numpy, *args)
        resolution = self._resolve(keys)
        if resolution.ops is None:
            return host_call.host_call(self.numpy, args, {}, _without_kernel(keys))
        if errstate.mode[0] == errstate.STRICT and errstate.may_err(resolution.ops[0]):
            return host_call.host_call(self.numpy, args, {}, errstate.CHECKED, library=True)
        shape = shapes[0] if len(shapes) == 1 else broadcast_shapes(*shapes)
        nodes = self._nodes(keys, values, resolution, shape)
        if not isinstance(nodes, tuple):
            return result(build.broadcast(nodes, shape))
        return self._results(args, nodes, self._all_voiced(resolution), shape)

    def _results(
        self,
        args: tuple[Any, ...],
        nodes: tuple[Node, ...],
        ops: tuple[Op, ...],
        shape: tuple[int, ...],
        asked: Any = "K",
    ) -> Any:
        """New arrays, one an output, lying in memory as NumPy's would under ``order=asked``."""
        order = order_of_result(args, shape, asked)
        if order is None:
            made = [result(build.elementwise(op, nodes, shape)) for op in ops]
        else:
            turned = turned_nodes(args, nodes, shape, order)
            extents = tuple([shape[axis] for axis in order])
            made = [arrange_axes(build.elementwise(op, turned, extents), order) for op in ops]
        return made[0] if self.nout == 1 else tuple(made)

    def learn(self, keys: tuple[Any, ...]) -> None:
        """Enter the loop for operands of these dtypes (or Python types) into `loops`."""
        self._resolve(keys)

    def _resolve(self, keys: tuple[Any, ...]) -> Resolution:
        found = self._resolutions.get(keys)
        if found is None and settings.fp64 == "downcast":
            found = self._resolutions.get((lacks_fp64(), *keys))
        if found is None:
            found = resolve(self.numpy, keys, (None,) * self.nout)
            if found.is_double and settings.fp64 == "downcast":
                # Not in `loops`, too: readers of it do not look which device is the current one.
                self._resolutions[(lacks_fp64(), *keys)] = found
                return found
            self._resolutions[keys] = found
            if found.ops is not None and self.nout == 1:
                if self.nin == 1:
                    self._plain[keys[0]] = found.ops[0]
                elif self.__name__ != "power" or found.inputs[1].kind != "i":
                    self._plain[keys] = found.ops[0]
                self.fill_loops()
        return found

    def _voiced(self, op: Op) -> Op:
        """The operation that is recorded in the mode in force."""
        is_loud = errstate.mode[0] is errstate.LOUD and errstate.may_err(op)
        return loud(op, self.__name__) if is_loud else op

    def _all_voiced(self, resolution: Resolution) -> tuple[Op, ...]:
        """Those of a call: by zero an integer is divided once, though for two results."""
        ops = resolution.ops
        assert ops is not None
        if len(ops) > 1 and resolution.inputs[0].kind in "iu":
            return (self._voiced(ops[0]), *ops[1:])
        return tuple(map(self._voiced, ops))

    def forget_loops(self) -> None:
        """Ask NumPy anew which loops there are: others stand for those of double precision."""
        self._resolutions.clear()
        self._plain.clear()
        self.loops.clear()

    def fill_loops(self) -> None:
        """Let `loops` hold the operations of the mode that is in force."""
        self.loops.clear()
        for key, op in self._plain.items():
            if errstate.mode[0] != errstate.STRICT or not errstate.may_err(op):
                self.loops[key] = self._voiced(op)

    def _nodes(
        self,
        keys: tuple[Any, ...],
        values: list[Any],
        resolution: Resolution,
        shape: tuple[int, ...],
        mask: Node | None = None,
    ) -> tuple[Node, ...] | Node:
        """The operands as nodes; or the answer itself where no loop has to look at them."""
        nodes = []
        for position, (key, value) in enumerate(zip(keys, values, strict=True)):
            if key in WEAK:
                dtype = resolution.inputs[position]
                if self.__name__ in _LOOKS_AT and dtype.kind in "iu":
                    value = concrete(value)
                try:
                    value = constant_of(value, dtype)
                except OverflowError:
                    if np.dtype(bool) in keys:
                        raise
                    answer = comparison_with_unrepresentable(
                        self.__name__, dtype, value, scalar_first=position == 0
                    )
                    if answer is None:
                        raise
                    return answer
            nodes.append(value)
        if self.__name__ == "power" and resolution.inputs[1].kind == "i" and 0 not in shape:
            _refuse_negative_exponents(convert(nodes[1], resolution.inputs[1]), mask)
        return tuple(nodes)

    def _call_with_options(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nin = self.nin
        if not nin <= len(args) <= self.nargs or ("out" in kwargs and len(args) > nin):
            # NumPy's TypeError; it looks at no argument before it counts them.
            return self.numpy(*args, **kwargs)
        if len(args) > nin and self.__name__ in ("maximum", "minimum"):
            deprecate_third()
        outs_given = given_outputs(args[nin:], kwargs.get("out"))
        if any(map(answers_itself, (*args[:nin], *outs_given, kwargs.get("where")))):
            return host_call.ask_operands(self.numpy, args, kwargs)
        outs, as_array = outputs(self.nout, args[nin:], kwargs.get("out", NO_OUT))
        args = args[:nin]
        options = {key: value for key, value in kwargs.items() if key != "out"}
        where = options.pop("where", True)
        casting = options.pop("casting", "same_kind")
        signature = self._signature(options)
        order = parse_order(options.get("order"))
        if not options.keys() <= {"order", "subok"}:
            return self.numpy(*[None] * nin, **options)  # NumPy's TypeError
        if type(options.get("subok", True)) is not bool:
            raise TypeError("'subok' must be a boolean")
        given = [out for out in outs if out is not None]
        every = {**kwargs, "out": tuple(outs)} if given else kwargs
        try:
            keys, values, shapes, has_array = _operands(args)
            if not has_array and not any(isinstance(item, Handle) for item in (where, *given)):
                return self.numpy(*args, **every)
            resolution = self._resolve_fully(keys, values, outs, signature, casting)
            if resolution.ops is None:
                raise NotNative(_without_kernel(keys))
            casts_may_err = errstate.casts_may_err(keys, resolution.inputs)
            may_err = casts_may_err or errstate.may_err(resolution.ops[0])
            if may_err and errstate.mode[0] == errstate.STRICT:
                raise NotNative(errstate.CHECKED)
            mask = None if where is True else node_of(as_mask(where))
        except AnswersItself:
            return host_call.ask_operands(self.numpy, args, every)
        except NotNative as missing:
            reason = str(missing)
            return host_call.host_call(
                self.numpy, args, every, reason, library=reason == errstate.CHECKED
            )
        if mask is not None:
            shapes = [*shapes, mask.shape]
        shape = shape_with_outputs(shapes, given)
        nodes = self._nodes(keys, values, resolution, shape, mask)
        if casts_may_err and type(nodes) is tuple:
            nodes = tuple(map(cast, nodes, resolution.inputs))
        if UNINITIALIZED and mask is not None and not given and "out" not in kwargs:
            warnings.warn(UNINITIALIZED, UserWarning, user_stacklevel())
        if not given and mask is None and not as_array and type(nodes) is tuple:
            return self._results(args, nodes, self._all_voiced(resolution), shape, order)
        results = []
        # NumPy leaves masked elements alone.
        ops = resolution.ops if mask is not None else self._all_voiced(resolution)
        for op, out in zip(ops, outs, strict=True):
            if isinstance(nodes, tuple):
                node = build.elementwise(op, nodes, shape)
            else:
                node = build.broadcast(nodes, shape)
            made = deliver(node, out, mask, as_array, self.__name__)
            results.append(made if given else arranged(made, (*args, where), shape, order))
        return results[0] if self.nout == 1 else tuple(results)

    def _signature(self, options: dict[str, Any]) -> Any:
        """The ``signature=`` of the call; ``dtype=`` is one that names the outputs only."""
        signature = options.pop("signature", options.pop("sig", None))
        dtype = options.pop("dtype", None)
        if dtype is None:
            return signature
        if signature is not None:
            raise TypeError("cannot specify both 'signature' and 'dtype'")
        if isinstance(dtype, type) and issubclass(dtype, np.dtype):
            # A class of dtypes, such as type(x.dtype); the stubs want to be told of what.
            dtype = dtype()  # type: ignore[call-overload]
        return (None,) * self.nin + (np.dtype(dtype),) * self.nout

    def _resolve_fully(
        self,
        keys: tuple[Any, ...],
        values: list[Any],
        outs: list[Any],
        signature: Any,
        casting: Casting,
    ) -> Resolution:
        dtypes = tuple(None if out is None else out.dtype for out in outs)
        if isinstance(signature, list):
            signature = tuple(signature)
        return resolve(self.numpy, keys, dtypes, signature, casting, values)

    # -- methods ----------------------------------------------------------------------------------

    @refused_by_numpy
    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> Any:
        """Fold an axis with the ufunc: `numpy.ufunc.reduce`."""
        options = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims, "where": where}
        defaults = (0, None, None, False, True)
        options = {k: v for (k, v), d in zip(options.items(), defaults, strict=True) if v is not d}
        if initial is not np._NoValue:
            options["initial"] = initial
        try:
            if errstate.mode[0] is errstate.STRICT:
                raise NotNative(errstate.CHECKED)
            return fold(self.numpy, array, axis, dtype, out, keepdims, initial, where)
        except NotNative as missing:
            reason = str(missing)
        except Exception as error:  # noqa: BLE001 (NumPy says which it is)
            wrong = preferred_error(error, self.numpy.reduce, (array,), options)
            if wrong is not None:
                raise wrong from None
            reason = str(error)
        return host_call.host_call(
            self.numpy.reduce, (array,), options, reason, f"{self.__name__}.reduce"
        )

    @refused_by_numpy
    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Every partial result along an axis: `numpy.ufunc.accumulate`."""
        reason = ANSWERS_ITSELF
        if not is_for_numpy(array):
            try:
                return accumulate_array(self.numpy, array, axis, dtype, out)
            except NotNative as missing:
                reason = str(missing)
        return self._on_host("accumulate", (array,), axis, dtype, out, reason)

    @refused_by_numpy
    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """Fold slices of an axis: `numpy.ufunc.reduceat`."""
        from .segment_folds import reduceat_array  # seldom used: the import is to be short

        reason = ANSWERS_ITSELF
        if not is_for_numpy(array):
            try:
                return reduceat_array(self, array, indices, axis, dtype, out)
            except NotNative as missing:
                reason = str(missing)
        return self._on_host("reduceat", (array, indices), axis, dtype, out, reason)

    @refused_by_numpy
    def at(self, a: Any, indices: Any, *b: Any) -> Any:
        """Write through indices, each of them once for every time it is named: `numpy.ufunc.at`."""
        if any(map(answers_itself, (a, *b))):
            return self.numpy.at(a, indices, *b)
        try:
            update_at(self.numpy, a, indices, b)
        except NotNative as missing:
            reason = str(missing)
        else:
            return None
        arguments = host_call.HostArguments()
        with host_call.announced(f"{self.__name__}.at", reason):
            if isinstance(a, Handle):
                target = arguments.writable(a, even_read_only=True)
                if not is_writeable(a):
                    target.flags.writeable = False  # NumPy says why not, or writes to it
            try:
                self.numpy.at(*[arguments.to_host(value) for value in (a, indices, *b)])
            except Exception as error:
                note_final(error, self.numpy.at)
                raise
        arguments.write_back()
        return None

    @refused_by_numpy
    def outer(self, A: Any, B: Any, /, **kwargs: Any) -> Any:
        """The ufunc on all pairs of elements: `numpy.ufunc.outer`."""
        if self.nin != 2 or self.signature is not None or answers_itself(A) or answers_itself(B):
            return self.numpy.outer(A, B, **kwargs)
        try:
            left, right = as_handle(A), as_handle(B)
        except NotNative as missing:
            return host_call.host_call(
                self.numpy.outer, (A, B), kwargs, str(missing), f"{self.__name__}.outer"
            )
        rank = len(left._shape) + len(right._shape)
        if rank > MOST_AXES:
            raise ValueError(
                f"maximum supported dimension for an ndarray is {MOST_AXES}, but the result would "
                f"have {rank}"
            )
        return self(reshape_view(left, left._shape + (1,) * len(right._shape)), right, **kwargs)

    def _on_host(
        self, method: str, args: tuple[Any, ...], axis: Any, dtype: Any, out: Any, reason: str = ""
    ) -> Any:
        arguments = host_call.HostArguments()
        # A class that answers itself is told of what was asked for, and of no more.
        options = (("axis", axis, 0), ("dtype", dtype, None), ("out", out, None))
        function = getattr(self.numpy, method)
        with host_call.announced(f"{self.__name__}.{method}", reason):
            for item in out if isinstance(out, tuple) else (out,):
                if isinstance(item, Handle):
                    arguments.writable(item)
            given = {
                name: arguments.to_host(value)
                for name, value, usual in options
                if value is not usual
            }
            operands = [arguments.to_host(item) for item in args]
            try:
                value = function(*operands, **given)
            except Exception as error:
                note_final(error, function)
                raise
        arguments.write_back()
        return arguments.to_device(value)


def _named(name: str) -> ufunc:
    ours: ufunc = UFUNCS[name]
    return ours


# -- operands and results -------------------------------------------------------------------------


_LOOKS_AT: Final = frozenset([*COMPARISONS_OF_INTS, "power"])
"""Ufuncs for which it matters whether a Python int fits into an integer dtype, or what it is."""


def _operands(
    args: tuple[Any, ...],
) -> tuple[tuple[Any, ...], list[Any], list[tuple[int, ...]], bool]:
    """Keys, nodes (a Python scalar: itself), the nodes' shapes, and whether any is an array."""
    keys: list[Any] = []
    values: list[Any] = []
    shapes: list[tuple[int, ...]] = []
    has_array = False
    for value in args:
        kind = type(value)
        if kind in WEAK or kind is TracedNumber:
            keys.append(weak_kind(value))
            values.append(value)
            continue
        if isinstance(value, Handle):
            has_array = True
        elif kind is bool or isinstance(value, np.generic):
            if kind is not bool and native_dtype(value.dtype) is None:
                raise NotNative(f"dtype {value.dtype} does not live on devices")
            value = np.bool_(value) if kind is bool else value
            keys.append(native_dtype(value.dtype))
            values.append(build.constant(value))
            shapes.append(())
            continue
        else:
            refuse_foreign(value)
            has_array = True
            value = as_handle(value)
        keys.append(value._dtype)
        values.append(operand_of(value))
        shapes.append(value._shape)
    return tuple(keys), values, shapes, has_array


def _refill() -> None:
    for function in BY_NUMPY.values():
        if function._plain:
            function.fill_loops()


errstate.changed.append(_refill)


_fp64: Final = [""]
"""The setting under which loops were found."""


def _follow_settings() -> None:
    now = vars(settings).get("fp64", "")
    if now and now != _fp64[0]:
        _fp64[0] = now
        for function in BY_NUMPY.values():
            function.forget_loops()


changed.append(_follow_settings)


def _without_kernel(keys: tuple[Any, ...]) -> str:
    names = [key.__name__ if isinstance(key, type) else str(key) for key in keys]
    return f"not for {', '.join(names)}"


def _refuse_negative_exponents(exponent: Node, mask: Node | None) -> None:
    """Integer powers are checked when they are recorded: NumPy raises at the call, if the mask lets
    it look at the element."""
    if exponent.dtype.kind != "i":
        return
    is_negative = np.less(_values_of(exponent), 0)
    if np.any(is_negative if mask is None else np.logical_and(is_negative, _values_of(mask))):
        raise ValueError("Integers to negative integer powers are not allowed.")


def _values_of(node: Node) -> Any:
    return node.param if node.op.name == "constant" else stored_view(node)


def _collect() -> None:
    for function in vars(np).values():  # not dir(): that would import numpy's lazy submodules
        if isinstance(function, np.ufunc) and function not in BY_NUMPY:
            ours = ufunc(function)
            BY_NUMPY[function] = ours
            UFUNCS[function.__name__] = ours
    # numpy.clip is a function around a ufunc that has no public name.
    clip: np.ufunc = vars(umath)["clip"]
    BY_NUMPY[clip] = UFUNCS["clip"] = ufunc(clip)


_collect()
