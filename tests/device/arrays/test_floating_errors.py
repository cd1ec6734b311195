"""Floating-point errors: raised at the call where they are to raise, warned of where NumPy
calculates in the end, and never where they are ignored."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import assert_bitwise, host
from tests.support.marks import compiled
from tests.support.releases import IS_BEFORE_2_4

KINDS = ("divide by zero", "overflow", "underflow", "invalid value")

ERRORS: dict[str, Callable[[Any], Any]] = {
    "divide": lambda m: m.array([1.0, 2.0]) / 0,
    "divide in place": lambda m: m.array([1.0, 2.0]).__itruediv__(m.zeros(2)),
    "divide into out": lambda m: m.divide(m.ones(2), m.zeros(2), out=m.ones(2)),
    "log": lambda m: m.log(m.array([0.0, 1.0])),
    "overflow": lambda m: m.array([1e300, 1.0]) * 1e300,
    "float32 overflow": lambda m: m.exp(m.array([1e3, 1.0], "float32")),
    "underflow": lambda m: m.array([1e-300]) * 1e-300,
    "underflow of some": lambda m: m.array([1.0, 1e-300]) * m.array([1.0, 1e-300]),
    "underflow of a number": lambda m: m.array(1e-300) * 1e-300,
    "sqrt": lambda m: m.sqrt(m.array([-1.0, 4.0])),
    "inf - inf": lambda m: m.array([np.inf]) - m.array([np.inf]),
    "integers": lambda m: m.array([1, 2]) // m.array([0, 1]),
    "remainder": lambda m: m.array([1, 2]) % m.array([0, 1]),
    "divmod": lambda m: m.divmod(m.array([1.0]), m.array([0.0])),
    "sum": lambda m: m.array([1e308, 1e308]).sum(),
    "mean": lambda m: m.mean(m.array([np.inf, -np.inf])),
    "reduce": lambda m: m.multiply.reduce(m.array([1e200, 1e200])),
    "complex": lambda m: m.array([1j]) / 0,
    "large": lambda m: 1 / m.arange(300_000.0),
    "cast to integers": lambda m: m.array([np.nan, 1.0]).astype(int),
    "cast to less": lambda m: m.array([1e300, 1.0]).astype("float32"),
    "cast of integers": lambda m: m.array([100_000, 1]).astype("float16"),
    "cast of complex": lambda m: m.array([1e300j, 1.0]).astype("complex64"),
    "cast of a scalar": lambda m: (m.array([1e300, 1.0]) * 1).max().astype("float32"),
    "array of a dtype": lambda m: m.array(m.array([np.nan, 1.0]), dtype=int),
    "assignment": lambda m: written(m, lambda x: x.__setitem__(slice(None), m.array([np.nan, 1]))),
    "assignment through indices": lambda m: written(
        m, lambda x: x.__setitem__([0, 1], m.array([np.inf, 1.0]))
    ),
    "assignment through a mask": lambda m: written(
        m, lambda x: x.__setitem__(m.array([True, False]), m.array([np.nan, 1.0])[0])
    ),
    "copyto": lambda m: written(
        m, lambda x: m.copyto(x, m.array([np.nan, 1.0]), casting="unsafe")
    ),
    "joined": lambda m: m.concatenate([m.array([1e300])], dtype="float32", casting="unsafe"),
    "into a narrower out": lambda m: m.add(
        m.array([1e300, 1.0]), 1, out=m.zeros(2, "float32"), casting="unsafe"
    ),
    "operands in less": lambda m: m.add(
        m.array([1e300, 1.0]), 1, dtype="float32", casting="unsafe"
    ),
    "operands as integers": lambda m: m.add(
        m.array([np.nan, 1.0]), 1, dtype=int, casting="unsafe"
    ),
    "narrower in place": lambda m: m.zeros(2, "float32").__iadd__(m.array([1e300, 1.0])),
    "sum in less": lambda m: m.array([1e300, 1.0]).sum(dtype="float32"),
    "cumsum": lambda m: m.cumsum(m.array([1e308, 1e308])),
    "cumsum of float32": lambda m: m.array([3e38, 3e38], "float32").cumsum(),
    "cumprod": lambda m: m.cumprod(m.array([1e200, 1e200])),
    "accumulate": lambda m: m.add.accumulate(m.array([np.inf, -np.inf])),
    "nancumsum": lambda m: m.nancumsum(m.array([1e308, 1e308])),
    "cumulative_sum": lambda m: m.cumulative_sum(m.array([1e308, 1e308])),
    "matmul": lambda m: m.array([[1e308]]) @ m.array([[1e308]]),
    "matmul of infinities": lambda m: m.array([[np.inf, np.inf]]) @ m.array([[1.0], [-1.0]]),
    "large matmul": lambda m: m.full((300, 300), 1e308) @ m.full((300, 300), 1e308),
    "large fft": lambda m: m.fft.fft(m.full((8, 1 << 16), 1e308)),
    "matrix and vector": lambda m: m.array([[1e308]]) @ m.array([1e308]),
    "vectors": lambda m: m.array([1e308]) @ m.array([1e308]),
    "dot": lambda m: m.dot(m.array([[1e308]]), m.array([[1e308]])),
    "dot of vectors": lambda m: m.dot(m.array([1e308, 1.0]), m.array([1e308, 1.0])),
    "dot with a number": lambda m: m.dot(m.array(1e308), m.array([1e308, 1.0])),
    "inner": lambda m: m.inner(m.array([1e308]), m.array([1e308])),
    "tensordot": lambda m: m.tensordot(m.array([[1e308]]), m.array([[1e308]]), 1),
    "fft": lambda m: m.fft.fft(m.array([1e308, 1e308])),
    "fft of real numbers": lambda m: m.fft.rfft(m.array([1e308, 1e308, 1e308])),
    "fft over two axes": lambda m: m.fft.ifft2(m.full((2, 2), 1e308)),
    "norm": lambda m: m.linalg.norm(m.array([1e308, 1.0])),
    "norm of rows": lambda m: m.linalg.norm(m.array([[1e308, 1.0]]), axis=1),
    "norm of complex numbers": lambda m: m.linalg.norm(m.array([1e308j, 1.0])),
    "norm by sizes": lambda m: m.linalg.norm(m.array([1.7e308, 1.7e308]), 1),
    "norm of order -1": lambda m: m.linalg.norm(m.array([0.0, 2.0]), -1),
    "norm of order -2": lambda m: m.linalg.norm(m.array([0.0, 2.0]), -2),
    "norm of order -2, of rows": lambda m: m.linalg.norm(m.array([[0.0, 2.0]]), -2, axis=1),
    "norm of order 3": lambda m: m.linalg.norm(m.array([1e200, 2.0]), 3),
    "norm of order -3, of large ones": lambda m: m.linalg.norm(m.array([1e200]), -3),
    "norm of a matrix": lambda m: m.linalg.norm(m.full((2, 2), 1e308), "fro"),
    "norm of a matrix by columns": lambda m: m.linalg.norm(m.full((2, 2), 1e308), 1),
    "vecdot": lambda m: m.vecdot(m.array([1e308]), m.array([1e308])),
    "matvec": lambda m: m.matvec(m.array([[1e308]]), m.array([1e308])),
}



def written(m: Any, write: Callable[[Any], Any]) -> Any:
    """An array of integers after something was written to it."""
    x = m.zeros(2, int)
    write(x)
    return x


def _is_met(call: Callable[[Any], Any]) -> bool:
    """Whether the installed NumPy meets an error: older ones lack a function, or take what BLAS
    gives without a look."""
    with np.errstate(all="raise"):
        try:
            call(np)
        except FloatingPointError:
            return True
        except AttributeError:
            return False
    return False


if IS_BEFORE_2_4:
    ERRORS = {name: call for name, call in ERRORS.items() if _is_met(call)}

AT_THE_CALL = {
    **ERRORS,
    "multiply.accumulate": lambda m: m.multiply.accumulate(m.array([np.inf, 0.0])),
    "det": lambda m: m.linalg.det(m.array([[1e200, 0.0], [0.0, 1e200]])),
    "std": lambda m: m.std(m.array([np.inf, 1.0])),
}


pytestmark = pytest.mark.usefixtures("host_calculates")


@pytest.fixture(autouse=True)
def small_programs_on_the_host(xp: ModuleType, request: pytest.FixtureRequest) -> None:
    if xp is not np:
        request.getfixturevalue("setting")(host_us=50, fallback="allow")


def _warned(call: Callable[[Any], Any], module: ModuleType) -> set[str]:
    """The floating-point warnings of a call and of looking at its result."""
    with warnings.catch_warnings(record=True) as caught, module.errstate(all="warn"):
        warnings.resetwarnings()
        warnings.simplefilter("always")
        result = call(module)
        for part in result if isinstance(result, tuple) else (result,):
            np.asarray(part)
    # NumPy names lines of its own where a method of its class is written in Python.
    assert module is np or all(item.filename == __file__ for item in caught)
    return {str(item.message) for item in caught if str(item.message).startswith(KINDS)}


def _has_kernels_of_library_calls(xp: ModuleType) -> bool:
    return xp is not np and xp.get_device().traits.schedule == "gpu"


@pytest.mark.parametrize("name", AT_THE_CALL)
def test_errors_that_are_to_raise_raise_at_the_call(xp: ModuleType, name: str) -> None:
    messages = []
    for module in (np, xp):
        with module.errstate(all="raise"), pytest.raises(FloatingPointError) as raised:
            AT_THE_CALL[name](module)
        messages.append(str(raised.value))
        met: list[Any] = []
        with module.errstate(all="call", call=lambda *error, met=met: met.append(error)):
            AT_THE_CALL[name](module)
        messages.append(str(sorted(set(met))))
    assert messages[:2] == messages[2:]


@pytest.mark.parametrize("name", ERRORS)
def test_what_numpy_calculates_in_the_end_warns_as_numpy(xp: ModuleType, name: str) -> None:
    expected = _warned(ERRORS[name], np)
    assert expected
    kernels = {"large", "large fft"} if _has_kernels_of_library_calls(xp) else {"large"}
    if name not in kernels:  # these have no flags
        assert _warned(ERRORS[name], xp) == expected


def test_what_is_recorded_in_a_block_that_ignores_never_warns(xp: ModuleType) -> None:
    for name, call in ERRORS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with xp.errstate(all="ignore"):
                result = call(xp)
            with xp.errstate(all="warn"):
                for part in result if isinstance(result, tuple) else (result,):
                    assert host(part).shape is not None, name


def test_masked_elements_and_compared_infinities_do_not_warn(xp: ModuleType) -> None:
    def masked(m: Any) -> Any:
        return m.divide(m.ones(2), m.array([0.0, 1.0]), out=m.zeros(2),
                        where=m.array([False, True]))

    def close(m: Any) -> Any:
        return m.isclose(m.array([np.inf, 1.0]), m.array([np.inf, 1.0]))

    def contracted(m: Any) -> Any:
        return m.einsum("ij,jk", m.array([[1e308]]), m.array([[1e308]]))

    def truth(m: Any) -> Any:
        return m.array([np.nan, 0.0]).astype(bool)

    calls = (masked, close, contracted, truth, lambda m: m.vdot(m.ones(1) * 1e308, m.ones(1) * 1e9))
    for call in (*calls, lambda m: m.nanmean(m.array([np.nan, 1.0]))):
        assert _warned(call, xp) == _warned(call, np) == set()


def test_an_error_that_is_caught_leaves_arrays_as_they_were(xp: ModuleType) -> None:
    x = xp.arange(4.0)
    with xp.errstate(divide="raise"):
        try:
            y = 1 / x
        except FloatingPointError:
            y = x + 1
    assert_bitwise(y, np.arange(4.0) + 1)


UNSEEN: dict[str, Callable[[Any], Any]] = {
    "divide": lambda m: m.array([1.0, 2.0]) / 0,
    "reversed": lambda m: 1 / m.array([0.0, 1.0]),
    "two": lambda m: m.array([1.0, 0.0]) / m.zeros(2),
    "log": lambda m: m.log(m.array([0.0, -1.0])),
    "in place": lambda m: m.array([1.0, 2.0]).__itruediv__(m.array([0.0, 1.0])),
    "out": lambda m: m.divide(m.array([1.0, 2]), m.array([0.0, 1]), out=m.array([5.0, 6])),
    "product": lambda m: m.array([1e200, 1.0]) @ m.array([1e200, 1.0]),
    "numbers": lambda m: m.exp(710),
    "of NumPy's own code": lambda m: m.cov(m.array([1.0])),
}


@compiled
@pytest.mark.clfuse_only
@pytest.mark.parametrize("name", UNSEEN)
def test_small_arrays_on_the_host_warn_of_the_users_line(
    xp: ModuleType, name: str
) -> None:
    def warned(m: Any) -> tuple[Any, set[tuple[str, str, int]]]:
        with warnings.catch_warnings(record=True) as caught, m.errstate(all="warn"):
            warnings.resetwarnings()
            warnings.simplefilter("always")
            made = UNSEEN[name](m)  # nobody looks at it
        return made, {(str(w.message), w.filename, w.lineno) for w in caught}

    expected, theirs = warned(np)
    actual, ours = warned(xp)
    users = {warning for warning in theirs if warning[1] == __file__}
    assert users <= ours
    assert users
    if name != "of NumPy's own code":  # where NumPy warns of lines of its own too
        assert ours == theirs
    assert_bitwise(actual, expected)
    with warnings.catch_warnings(), xp.errstate(all="warn"), pytest.raises(RuntimeWarning):
        warnings.simplefilter("error")
        UNSEEN[name](xp)


def test_seterr_and_decorators_change_the_mode_and_put_it_back(xp: ModuleType) -> None:
    before = xp.seterr(all="raise")
    try:
        with pytest.raises(FloatingPointError):
            xp.sqrt(-xp.ones(3))
    finally:
        xp.seterr(**before)
    assert np.isnan(host(xp.sqrt(-xp.ones(3)))).all()

    @xp.errstate(invalid="raise")
    def root(x: Any) -> Any:
        return xp.sqrt(x)

    with pytest.raises(FloatingPointError):
        root(-xp.ones(3))
    assert np.isnan(host(xp.sqrt(-xp.ones(3)))).all()


@pytest.mark.clfuse_only
def test_the_mode_changes_no_kernel(xp: ModuleType, setting, launched) -> None:
    setting(host_us=0)

    def program() -> None:
        x = xp.arange(1e5) + 1
        with xp.errstate(divide="ignore"):
            y = 1 / x
        xp.evaluate(y * (1 / x), y)

    assert launched(program) == 1


@pytest.mark.clfuse_only
def test_a_block_in_one_thread_ends_no_block_in_another(xp: ModuleType) -> None:
    def other() -> None:
        with xp.errstate(all="ignore"):
            xp.evaluate(xp.ones(3) / 0)

    with xp.errstate(all="raise"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with pytest.raises(FloatingPointError):
            xp.ones(3) / 0


EMPTY_SLICES: dict[str, Callable[[Any], Any]] = {
    "nanmean": lambda m: m.nanmean(m.array([[np.nan, np.nan], [1.0, np.nan]]), 1),
    "nanvar": lambda m: m.nanvar(m.array([[np.nan, np.nan], [1.0, np.nan]]), axis=1),
    "nanstd": lambda m: m.nanstd(m.array([1.0, np.nan]), ddof=1),
    "nanmax": lambda m: m.nanmax(m.array([[np.nan, np.nan], [1.0, np.nan]]), axis=1),
    "nanmin": lambda m: m.nanmin(m.array([np.nan])),
    "nanmedian": lambda m: m.nanmedian(m.array([np.nan, np.nan])),
    "masked mean": lambda m: m.mean(m.arange(4.0), where=m.array([False])),
    "mean of nothing": lambda m: m.mean(m.arange(4.0), where=False),
    "masked var": lambda m: m.var(m.arange(6.0).reshape(2, 3), 1, where=m.array([[True], [False]])),
    "nothing wrong": lambda m: m.nanmax(m.array([[np.nan, 2.0], [1.0, np.nan]]), axis=1),
}


@pytest.mark.parametrize("name", EMPTY_SLICES)
def test_slices_without_a_number_are_warned_of_at_the_call(xp: ModuleType, name: str) -> None:
    found = []
    for module in (np, xp):
        with warnings.catch_warnings(record=True) as caught, module.errstate(all="ignore"):
            warnings.simplefilter("always")
            EMPTY_SLICES[name](module)
        found.append([str(item.message) for item in caught])
    assert found[0] == found[1]
