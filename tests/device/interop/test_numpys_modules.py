"""NumPy's modules that are not clfuse's (polynomials, text, records) with arrays of ours in them,
and what else asks for NumPy's own class or for an array's address."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

Setting = Callable[..., None]

BASES = {
    "polynomial": "poly", "chebyshev": "cheb", "legendre": "leg", "hermite": "herm",
    "hermite_e": "herme", "laguerre": "lag",
}  # fmt: skip


def _operands(m: ModuleType) -> dict[str, Any]:
    return {
        "vector": m.arange(4.0) + 0.5,
        "rows": m.arange(6.0).reshape(2, 3) - 2,
        "numbers": m.array(2.5),
        "complex": m.arange(3.0) + 1j,
        "integers": m.arange(1, 4),
    }


def _outcome(call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:
        return type(error)


def _agree(actual: Any, expected: Any) -> bool:
    if isinstance(expected, type):
        return actual is expected
    if isinstance(expected, list | tuple):
        return len(actual) == len(expected) and all(map(_agree, actual, expected))
    seen = np.asarray(actual)
    return bool(
        seen.dtype == expected.dtype
        and seen.shape == expected.shape
        and np.allclose(seen, expected, rtol=1e-10, atol=1e-12)
    )


@pytest.mark.parametrize("basis", BASES)
def test_series_of_arrays_are_what_numpy_makes_of_them(
    xp: ModuleType, basis: str, setting: Setting
) -> None:
    setting(host_us=50, build_after_ms=50)  # a thousand expressions: no kernels for them
    module = getattr(np.polynomial, basis)
    short = BASES[basis]
    theirs, ours = _operands(np), _operands(xp)
    wrong = []
    for suffix, count in {
        "val": 2, "val2d": 3, "grid2d": 3, "add": 2, "mul": 2, "div": 2, "pow": 2, "der": 1,
        "int": 1, "roots": 1, "fromroots": 1, "vander": 2, "companion": 1, "line": 2,
    }.items():  # fmt: skip
        name = short + suffix
        for names in itertools.product(theirs, repeat=count):
            call = getattr(module, name)
            expected = _outcome(call, *[theirs[name] for name in names])
            actual = _outcome(call, *[ours[name] for name in names])
            if not _agree(actual, expected):
                wrong.append(f"{name}{names}: {actual}; NumPy: {expected}")
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.clfuse_only
def test_series_at_many_points_are_one_kernel(xp: ModuleType) -> None:
    x = xp.linspace(-1, 1, 300_000)
    xp.evaluate(x)
    coefficients = [0.5, 0.0, -2.0, 1.0]
    before = xp.stats()["kernels_launched"]
    made = np.polynomial.chebyshev.chebval(x, coefficients)
    curve = np.polynomial.Polynomial(coefficients, domain=[-2, 2])(x)
    assert isinstance(made, xp.ndarray)
    assert isinstance(curve, xp.ndarray)
    xp.evaluate(made, curve)
    assert xp.stats()["kernels_launched"] == before + 1
    host = np.asarray(x)
    np.testing.assert_allclose(made, np.polynomial.chebyshev.chebval(host, coefficients))
    np.testing.assert_allclose(
        curve, np.polynomial.Polynomial(coefficients, domain=[-2, 2])(host), atol=1e-15
    )


@pytest.mark.clfuse_only
def test_series_at_several_points_of_several_series(xp: ModuleType) -> None:
    x, several = xp.arange(4.0), xp.arange(6.0).reshape(3, 2)
    made = np.polynomial.polynomial.polyval(x, several)
    assert isinstance(made, xp.ndarray)
    expected = np.polynomial.polynomial.polyval(np.arange(4.0), np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("size", [3, 5000])
def test_arrays_are_read_to_text_and_records_as_numpys_are(xp: ModuleType, size: int) -> None:
    for m in (np, xp):
        x = m.arange(float(size)) % 10
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # since NumPy 2.5
            assert m.char.array(x).dtype == "S3"
            assert m.char.asarray(x)[-1] == str((size - 1) % 10).encode() + b".0"
        record = m.rec.array(x, dtype=[("a", float)])
        assert record.a[2] == 2
        both = m.rec.fromarrays([x, m.arange(size)], names="a,b")
        assert both.b[-1] == size - 1


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.parametrize("size", [5, 40_000])
def test_the_address_of_an_array_tells_what_it_shares(xp: ModuleType, size: int) -> None:
    x = xp.arange(float(size))
    xp.evaluate(x)
    address, is_readonly = x.__array_interface__["data"]
    assert isinstance(address, int)
    assert isinstance(is_readonly, bool)
    part = x[2:]
    assert part.__array_interface__["data"][0] == address + 16
    assert xp.ones(size).__array_interface__["data"][0] != address
    low, high = np.lib.array_utils.byte_bounds(part[::-1])
    assert (low, high) == (address + 16, address + 8 * size)
    assert np.asarray(x)[3] == 3


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_blocks_named_in_a_string_are_the_callers(xp: ModuleType) -> None:
    first, second = xp.arange(4.0).reshape(2, 2), xp.ones((2, 2), "i4")
    made = xp.bmat("first, second; second, first")
    expected = np.block([[np.asarray(first), np.ones((2, 2))], [np.ones((2, 2)), first]])
    assert isinstance(made, np.matrix)
    np.testing.assert_array_equal(made, expected)
    for trick in (xp.r_, xp.c_):
        made = trick["first, second; second, first"]
        assert isinstance(made, np.matrix)
        np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(xp.bmat([[first, second], [second, first]]), expected)
    named = {"a": first, "b": second}
    np.testing.assert_array_equal(xp.bmat("a b; b a", ldict=named, gdict={}), expected)
    with pytest.raises(NameError):
        xp.bmat("first, nobody")


def test_functions_of_records_take_arrays(xp: ModuleType) -> None:
    from numpy.lib import recfunctions

    x = xp.arange(3.0)
    assert recfunctions.merge_arrays(x).dtype.names == ("f0",)
    assert recfunctions.stack_arrays((x,)) is x
    table = np.array([(1,), (2,), (3,)], dtype=[("a", "i4")])
    joined = recfunctions.append_fields(table, "b", x, usemask=False)
    np.testing.assert_array_equal(joined["b"], [0, 1, 2])


def test_what_is_masked_without_a_copy_is_written_to(xp: ModuleType) -> None:
    x = xp.arange(6.0)
    masked = np.ma.masked_where(x > 3, x, copy=False)
    masked[1] = 9
    masked.data[0] = 8
    np.testing.assert_array_equal(x, [8, 9, 2, 3, 4, 5])
    copied = np.ma.masked_where(x > 3, x)
    copied[2] = 7
    assert float(x[2]) == 2


@pytest.mark.clfuse_only
def test_numpys_objects_are_instances_of_our_classes(xp: ModuleType) -> None:
    random = xp.random
    for function in (np.add, xp.add, xp.matmul, xp.frompyfunc(abs, 1, 1)):
        assert isinstance(function, xp.ufunc)
    assert not isinstance(abs, xp.ufunc)
    assert not isinstance(np.add, type(xp.matmul))
    assert isinstance(np.random.RandomState(0), random.RandomState)
    assert isinstance(np.random.default_rng(0), random.Generator)
    assert not isinstance(random.RandomState(0), random.Generator)
    assert issubclass(np.random.Generator, random.Generator)
    assert isinstance(random.default_rng().bit_generator, random.BitGenerator)
    derived = type("Derived", (random.Generator,), {})
    assert not isinstance(np.random.default_rng(0), derived)
    assert issubclass(derived, random.Generator)
    theirs = np.random.default_rng(4)
    assert random.default_rng(theirs).random() == np.random.default_rng(4).random()
    assert xp.add == np.add == xp.add
    assert xp.add not in (np.subtract, 3)


@pytest.mark.clfuse_only
def test_the_state_of_the_module_is_found_in_mtrand(xp: ModuleType) -> None:
    from sklearn.utils import check_random_state

    state = xp.random.mtrand._rand
    assert isinstance(state, xp.random.RandomState)
    assert check_random_state(state) is state
    assert xp.random.mtrand.seed is xp.random.seed
    assert xp.random.mtrand.RandomState is xp.random.RandomState
    xp.random.seed(5)
    first = state.rand(3).tolist()
    xp.random.mtrand.seed(5)
    assert xp.random.rand(3).tolist() == first


def test_numpys_assertions_take_ours(xp: ModuleType) -> None:
    from numpy.testing import assert_almost_equal, assert_equal

    x = xp.arange(4.0) / 3
    assert_equal(x, x + 0)
    assert_equal({"a": [x, 2]}, {"a": [np.arange(4.0) / 3, 2]})
    assert_almost_equal(x, x + 1e-9)
    with pytest.raises(AssertionError, match="Mismatched elements: 4 / 4"):
        assert_equal(x, x + 1)
    with pytest.raises(AssertionError, match="Mismatched elements: 4 / 4"):
        assert_almost_equal(x, x + 1)
