"""Fallback: calls that no kernel computes run in NumPy on the host, counted and announced.

The decorator `native` marks a function of ours as the counterpart of one of NumPy's. A call goes to
`host_call` where the counterpart cannot do it (it raises `conversion.NotNative`), or where NumPy's
function has no counterpart. `host_call` copies the arrays to the host, brings the results to the
device, and writes back what NumPy has written to arguments.
"""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import numpy as np

from clfuse import events
from clfuse._core import loading
from clfuse.arrays import errstate
from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import (
    Foreign,
    NotNative,
    adopt_host_array,
    from_host,
    host_copy,
    host_node,
    host_view,
)
from clfuse.arrays.handle import Handle, native_dtype, node_of
from clfuse.config import settings
from clfuse.counters import counters
from clfuse.eager import before, settled
from clfuse.errors import FallbackError, FallbackWarning
from clfuse.ir import trace
from clfuse.runtime.devices.selection import current_device
from clfuse.runtime.memory.buffers import BY_ROWS
from clfuse.user_frames import user_frame

from .numpy_errors import FLAGS, note_final, preferred_error, refuse_odd_flags
from .overrides import (
    ANSWERS_ITSELF,
    PLAIN_VALUES,
    answers_by_method,
    are_numpys,
    is_number,
    no_array,
    numpys,
    tell,
)
from .placement import call_on_device
from .registry import AT_CALL, HOSTED, NATIVE, OTHERWISE

_Function = TypeVar("_Function", bound=Callable[..., Any])

MUTATED: Final[Mapping[str, str]] = {
    "put": "a",
    "place": "arr",
    "putmask": "a",
    "copyto": "dst",
    "fill_diagonal": "a",
    "put_along_axis": "arr",
    "shuffle": "x",
    "at": "a",
    "assign_fields_by_name": "dst",
}
"""NumPy functions that write into an argument, and its name. `out` is known without."""

# -- announcing -----------------------------------------------------------------------------------


REMEMBERED: Final[dict[Callable[..., Any], tuple[Callable[..., Any], dict[Any, Any]]]] = {}
"""What `record_cache.cache_recording` made -> the function that it is of, and what it knows."""


def shares_memory() -> bool:
    """Whether the current device works in the host's memory, so that nothing has to be copied."""
    return current_device().shares_memory


def _is_announced() -> bool:
    mode = settings.fallback
    return not shares_memory() if mode == "auto" else mode != "allow"


def refuse_while_tracing(what: str, reason: str = "") -> None:
    """JitError while a function is traced: what NumPy does is in no replay."""
    tracing = trace.active()
    if tracing is not None:
        why = f" ({reason})" if reason else ""
        raise tracing.refused(
            f"{what}{why}, NumPy would do it on the host",
            "leave it outside of the function, or take another operation",
        )


def count_fallback(name: str, reason: str = "") -> None:
    """Count one operation that runs on the host, and say so as ``CLFUSE_FALLBACK`` wants it.

    For what is recorded, and for what NumPy has accepted already; the others are `announced`.

    Raises FallbackError, JitError: as `refuse_fallback`.
    """
    refuse_fallback(name, reason)
    announce_fallback(name, reason)


def refuse_fallback(name: str, reason: str = "") -> None:
    """Raise where NumPy may not do one operation on the host; nothing has been done then.

    Raises FallbackError: under ``CLFUSE_FALLBACK=raise``.
    Raises JitError: while a function is traced: a replay runs no Python.
    """
    if trace.active() is not None:
        refuse_while_tracing(f"{name}: no kernel does this", reason)
    if settings.fallback == "raise":
        frame, _ = user_frame()
        why = f" ({reason})" if reason else ""
        raise FallbackError(
            f"{name}: no kernel does this{why}, at {frame.f_code.co_filename}:{frame.f_lineno}; "
            "CLFUSE_FALLBACK=allow lets NumPy do it"
        )


def announce_fallback(name: str, reason: str = "") -> None:
    """Count one operation that NumPy has done on the host, and warn of it if that is wanted."""
    counters["fallbacks"] += 1
    for listener in events.listeners:
        listener.fell_back(name, reason)
    if not _is_announced():
        return
    frame, level = user_frame()
    why = f" ({reason})" if reason else ""
    warnings.warn(
        f"{name}: no kernel does this{why}; NumPy did it on the host, "
        f"at {frame.f_code.co_filename}:{frame.f_lineno}; CLFUSE_FALLBACK=allow silences this",
        FallbackWarning,
        level + 1,  # above announce_fallback itself
    )


class announced:
    """A block in which NumPy does one operation on the host, counted and announced at its end.

    Where NumPy refuses the call, its error is all that there is: nothing was done on the host, and
    a warning that is an error must not stand in its place.

    Raises
    ------
    FallbackError, JitError
        As `refuse_fallback`, before the block.
    """

    __slots__ = ("_name", "_reason")

    def __init__(self, name: str, reason: str = "") -> None:
        self._name = name
        self._reason = reason

    def __enter__(self) -> None:
        refuse_fallback(self._name, self._reason)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            announce_fallback(self._name, self._reason)


def count_copies(name: str, reason: str = "only the host has it") -> None:
    """Count a library step that is recorded: a fallback on devices where it has to copy."""
    if not shares_memory():
        count_fallback(name, reason)


# -- converting -----------------------------------------------------------------------------------


class HostArguments:
    """The arguments of one call on the host: converts handles, remembers what must be written
    back.

    `owned` says that arrays in results are new and that nobody else has them: where memory is
    shared they become the device's without a copy.
    """

    def __init__(self, *, owned: bool = False) -> None:
        self._owned = owned
        self._read: dict[int, np.ndarray] = {}
        self._handles: dict[int, Handle] = {}  # those read: they live as long as their `id` counts
        self._written: dict[int, tuple[Handle, np.ndarray]] = {}

    def writable(self, handle: Handle, *, even_read_only: bool = False) -> np.ndarray:
        """A host copy of the array whose contents `write_back` stores in it."""
        if not even_read_only and not handles.is_writeable(handle):
            raise ValueError("assignment destination is read-only")
        if id(handle) not in self._written:
            self._written[id(handle)] = (handle, host_copy(handle))
        return self._written[id(handle)][1]

    def read_only(self, handle: Handle) -> None:
        """Make a host copy of the array that NumPy cannot write to."""
        array = self._read[id(handle)] = host_copy(handle)
        self._handles[id(handle)] = handle
        array.flags.writeable = False

    def to_host(self, value: Any) -> Any:
        """`value` with every handle in it, also inside lists, tuples and dicts, as a NumPy
        array."""
        if isinstance(value, Handle):
            if id(value) in self._written:
                return self._written[id(value)][1]
            if id(value) not in self._read:
                # NumPy writes into what shares no memory with its argument: nothing does, if empty.
                array = host_view(value) if 0 not in value._shape else host_copy(value)
                is_scalar = type(value) in handles.SCALARS
                self._handles[id(value)] = value
                self._read[id(value)] = array.reshape(())[()] if is_scalar else array
            return self._read[id(value)]
        kind = type(value)
        if kind is tuple or kind is list:
            return kind([self.to_host(item) for item in value])
        if kind is dict:
            return {key: self.to_host(item) for key, item in value.items()}
        if kind is slice:
            return slice(*map(self.to_host, (value.start, value.stop, value.step)))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*[self.to_host(item) for item in value])
        return value

    def _put_back(self, objects: np.ndarray) -> None:
        """Put our arrays into an array of objects, in the places of what the call saw of them."""
        own = {id(array): place for place, array in self._read.items()}
        if not own or not objects.flags.writeable:
            return
        flat = objects.reshape(-1)
        for position in [i for i, item in enumerate(flat) if id(item) in own]:
            objects[np.unravel_index(position, objects.shape)] = self._handles[
                own[id(flat[position])]
            ]

    def write_back(self) -> None:
        """Store in the arrays what the call wrote into their copies."""
        for handle, array in self._written.values():
            handles.write(handle, host_node(array))

    def to_device(self, value: Any) -> Any:
        """A result: NumPy arrays become ours, also inside tuples, lists and dicts."""
        if isinstance(value, np.ndarray):
            for handle, array in self._written.values():
                if value is array:
                    return handle
            for key, array in self._read.items():
                if value is array:
                    return self._handles[key]
            if type(value) is not np.ndarray or native_dtype(value.dtype) is None:
                if value.dtype == object:
                    self._put_back(value)
                return value
            # A program that waits for a library goes step by step.
            return adopt_host_array(value, use=BY_ROWS) if self._owned else from_host(value)
        kind = type(value)
        if kind is tuple or kind is list:
            return kind([self.to_device(item) for item in value])
        if kind is dict:
            return {key: self.to_device(item) for key, item in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*[self.to_device(item) for item in value])
        return value


def _parameters(function: Any) -> tuple[str, ...]:
    """Names of the positional parameters; none where the function does not tell."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType | type):
        return _parameters_of(function)
    # Of the class's method, which is kept: the bound one would keep its object.
    method = getattr(type(owner), function.__name__, None)
    return () if method is None else _parameters_of(method)[1:]


@functools.lru_cache(maxsize=1024)
def _parameters_of(function: Any) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    )


def _mutated_names(name: str, arguments: Mapping[str, Any]) -> Iterable[str]:
    if name in MUTATED:
        yield MUTATED[name]
    if arguments.get("out") is not None:
        yield "out"
    if name == "nan_to_num" and not arguments.get("copy", True):
        yield "x"
    if arguments.get("overwrite_input"):
        yield "a"


def host_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    reason: str = "",
    name: str = "",
    *,
    library: bool = False,
) -> Any:
    """Call NumPy's `function` on host copies of the arrays, and bring the results to the device.

    Arrays that it writes into (`out=`, `MUTATED`) are written back. NumPy scalars, and arrays of
    dtypes that stay on the host, come back as they are. `library` says that the host is the right
    place for it, and that it gives new arrays: where memory is shared nothing is copied, and that
    counts as a library call.
    """
    name = name or getattr(function, "__name__", repr(function))
    library = library and shares_memory()
    if library:
        counters["library_calls"] += 1
    else:
        refuse_fallback(name, reason)
    if are_numpys(args) and are_numpys(kwargs.values()):
        return _plain_call(function, args, kwargs, reason, name, library)
    arguments = HostArguments(owned=library)
    named: dict[str, Any] = dict(kwargs)
    if len(args) > 0:
        named.update(zip(_parameters(function), args, strict=False))
    function_name = name.rpartition(".")[2]
    if function_name in MUTATED and args:
        named[MUTATED[function_name]] = args[0]
    for mutated in _mutated_names(function_name, named):
        target = named.get(mutated)
        for item in target if isinstance(target, tuple) else (target,):
            if isinstance(item, Handle):
                if named.get("overwrite_input") and not handles.is_writeable(item):
                    arguments.read_only(item)  # NumPy may leave it alone
                else:
                    arguments.writable(item)
    on_host = [arguments.to_host(value) for value in args]
    named_on_host = {key: arguments.to_host(value) for key, value in kwargs.items()}
    try:
        result = function(*on_host, **named_on_host)
    except Exception as error:
        if not isinstance(error, ValueError) or _NO_ARRAY not in str(error):
            note_final(error, function)
            raise
        # The ``__array__`` of a class of the user's makes arrays of ours: NumPy does not take them.
        result = function(
            *[arguments.to_host(_as_array(value)) for value in on_host],
            **{key: arguments.to_host(_as_array(value)) for key, value in named_on_host.items()},
        )
    if not library:
        announce_fallback(name, reason)
    arguments.write_back()
    return arguments.to_device(result)


def _plain_call(
    function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any], reason: str,
    name: str, library: bool,
) -> Any:  # fmt: skip
    """`host_call` of arguments none of which is ours."""
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        note_final(error, function)
        raise
    kind = type(result)
    if not library:
        announce_fallback(name, reason)
    if kind is np.ndarray and native_dtype(result.dtype) is not None:
        # A program that waits for a library goes step by step.
        return adopt_host_array(result, use=BY_ROWS) if library else from_host(result)
    if kind in PLAIN_VALUES or issubclass(kind, np.ndarray):
        return result
    return HostArguments(owned=library).to_device(result)


_NO_ARRAY: Final = "object __array__ method not producing an array"


def _as_array(value: Any) -> Any:
    """`value`, or the array of ours that its ``__array__`` gives."""
    if isinstance(value, np.ndarray | np.generic) or not hasattr(type(value), "__array__"):
        return value
    found = value.__array__()
    return found if isinstance(found, Handle) else value


# -- marking --------------------------------------------------------------------------------------


def name_in_errors(function: Any, name: str) -> None:
    """Let Python's TypeErrors about the arguments of `function`, and of what it wraps, show
    `name`."""
    while function is not None and function.__module__.startswith("clfuse."):
        function.__qualname__ = name
        function = getattr(function, "__wrapped__", None)


def native(
    *references: Any, method: bool = False, library: bool = False, numbers: bool = False
) -> Callable[[_Function], _Function]:
    """Decorator: this function answers for NumPy's `references`, and leaves to it what it cannot
    do.

    `method` says that NumPy's function asks its first argument's method: that of a scalar returns
    scalars, also where the array's would return a 0-d array, such as the one given as `out`.
    `library` says that what is left to NumPy is a library call, as for `host_call`. `numbers` says
    that calls on nothing but Python's and NumPy's numbers are NumPy's: there is no array in them.
    """

    def mark(function: _Function) -> _Function:
        reference = references[0]
        asked = reference.__name__ if method or reference in ASKING else ""
        name_in_errors(function, reference.__name__)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            is_odd = asked and args and type(args[0]) is not handles.ARRAY
            if is_odd and answers_by_method(args[0], asked, kwargs):
                return _by_method(reference, args, kwargs)
            if kwargs:
                if "device" in kwargs:
                    return call_on_device(call, args, kwargs)
                if kwargs.get("like") is not None:
                    return like(public, args, kwargs)
                if not FLAGS.isdisjoint(kwargs):
                    refuse_odd_flags(reference, args, kwargs)
                if type(kwargs.get("out")) in handles.SCALARS:
                    raise TypeError("return arrays must be of ArrayType")
            if errstate.mode[0] is errstate.STRICT and reference in errstate.CALCULATING:
                return host_call(reference, args, kwargs, errstate.CHECKED, library=True)
            if numbers and args and is_number(args[0]) and no_array(args, kwargs):
                return reference(*args, **kwargs)
            try:
                made = function(*args, **kwargs)
            except Foreign as foreign:
                return dispatch_to(public, foreign.value, args, kwargs)
            except NotNative as missing:
                reason = str(missing)
                other = OTHERWISE.get(reference)
                if other is not None:
                    return other(*args, **kwargs)
            except Exception as error:
                wrong = preferred_error(error, reference, args, kwargs)
                if wrong is error:
                    raise
                if wrong is not None:
                    raise wrong from None
                reason = str(error)
            else:
                is_0d = method and type(made) is handles.ARRAY and not made._shape
                if is_0d and args and type(args[0]) in handles.SCALARS:
                    return handles.result(node_of(made))
                return made
            return host_call(
                reference, args, kwargs, reason, _qualified(reference), library=library
            )

        known = REMEMBERED.get(function)
        core = loading.load()
        if known is not None and core is not None:
            call = functools.update_wrapper(core.recalling(call, *known), call)
        public: Any = before(reference, call)
        if isinstance(reference, types.BuiltinFunctionType) and getattr(public, "is_method", True):
            public = _NoMethod(public)
        for known in references:
            NATIVE[known] = public
        return public  # type: ignore[no-any-return]

    return mark


class _NoMethod(staticmethod):  # type: ignore[type-arg]
    """A function that is no method as a class attribute: what NumPy writes in C is none either."""

    def __reduce__(self) -> Any:
        return self.__qualname__


# -- arrays of others -----------------------------------------------------------------------------


def like(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``function(..., like=other)`` makes: if it is no array of ours, `other` decides
    (NEP 35)."""
    other = kwargs["like"]
    kwargs = {name: value for name, value in kwargs.items() if name != "like"}
    answer = getattr(type(other), "__array_function__", None)
    if answer is None:
        raise TypeError(
            "The `like` argument must be an array-like that implements the `__array_function__` "
            "protocol."
        )
    if isinstance(other, Handle) or answer is np.ndarray.__array_function__:
        return function(*args, **kwargs)
    return dispatch_to(function, other, args, kwargs)


def dispatch_to(
    function: Callable[..., Any], other: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Let the class of `other` answer for our `function` (NEP 18): it gets NumPy's, unless its
    program imported clfuse; where it knows no arrays of ours, NumPy's in their place."""
    kinds: dict[int, type] = {}  # ours and NumPy's are equal
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, list | tuple) else (value,):
            if hasattr(type(item), "__array_function__"):
                kinds[id(type(item))] = type(item)
    kind = type(other)
    tell(kind)
    reference = numpys(function)
    made = kind.__array_function__(other, reference, tuple(kinds.values()), args, dict(kwargs))
    if made is not NotImplemented:
        return made
    return host_call(reference, args, kwargs, f"{kind.__name__} answers for itself")


def ask_operands(
    function: np.ufunc, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What classes with an `__array_ufunc__` answer for a call of NumPy's ufunc; where they know no
    arrays of ours, as pandas', they are asked about NumPy's."""
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        if "all returned NotImplemented" not in str(error):
            raise
    return host_call(function, args, kwargs, ANSWERS_ITSELF)


ASKING: Final = frozenset(
    (np.argpartition, np.argsort, np.compress, np.nonzero, np.ptp, np.squeeze, np.swapaxes,
     np.transpose)
)  # fmt: skip
"""What asks its first argument's method too, beside what `native` is told of."""


def _by_method(function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
    arguments = HostArguments()
    named = {key: arguments.to_host(value) for key, value in kwargs.items()}
    return function(*map(arguments.to_host, args), **named)


def _qualified(function: Any) -> str:
    """The function's name, as below ``numpy.``."""
    module = getattr(function, "__module__", None) or ""
    name = str(getattr(function, "__name__", repr(function)))
    inside = module.removeprefix("numpy.")
    return f"{inside}.{name}" if inside in ("linalg", "fft") else name


def at_call(*functions: Callable[..., Any]) -> None:
    """Let NumPy do these at once, on the device's memory: results of shapes that are not known
    before, or errors that are.

    They give new arrays. Devices that have to copy count a fallback.
    """
    for function in functions:
        NATIVE[function] = before(function, settled(function, _at_call(function)))
        AT_CALL.add(function)


def _at_call(function: Callable[..., Any]) -> Callable[..., Any]:
    name = _qualified(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return host_call(function, args, kwargs, name=name, library=True)

    return call


@functools.lru_cache(maxsize=1024)
def make_hosted(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """NumPy's `function` as one of ours that always runs on the host."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("like") is not None:
            return like(call, args, kwargs)
        return host_call(function, args, kwargs, name=name)

    HOSTED.setdefault(function, call)
    return call
