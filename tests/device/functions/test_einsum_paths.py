"""`einsum` by a path: NumPy multiplies step by step, each step in the dtypes of its operands."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.agreement import Batch
from tests.support.hostile import ordinary

EXTENTS = dict(zip("aijklc", (3, 20, 20, 20, 20, 6), strict=True))
PATHS = (True, "optimal", ["einsum_path", (1, 2), (0, 1)], ["einsum_path", (0, 1, 2)])


def operands(subscripts: str, dtypes: tuple[str, ...]) -> list[Any]:
    found = []
    for place, part in enumerate(subscripts.split("->")[0].split(",")):
        shape = [EXTENTS[label] for label in part.replace("...", "a")]
        data = ordinary(place, shape, "int8", "small")
        if "float16" in dtypes:  # no sum is rounded
            data = data % 2
        found.append(data.astype(dtypes[place]))
    return found


def rounding(expected: Any) -> Any:
    """What sums in another order may differ by."""
    found = np.asarray(expected)
    if found.dtype.kind not in "fc":
        return 0
    bound = 200 * float(np.finfo(found.dtype).eps) * max(float(np.abs(found).max()), 1e-3)
    return np.full(found.shape, bound * (1 + 1j) if found.dtype.kind == "c" else bound)


@pytest.mark.parametrize("path", PATHS, ids=("greedy", "optimal", "pairs", "together"))
def test_each_step_is_of_the_dtype_of_its_operands(path: Any, xp: ModuleType) -> None:
    batch = Batch(xp)
    for dtypes in (
        ("int8", "int8", "int16"), ("int16", "int8", "int8"), ("float16", "int8", "uint8"),
        ("float32", "bool", "bool"), ("uint8", "int8", "complex64"),
    ):  # fmt: skip
        for subscripts in ("ij,jk,kl", "a...,...,c...->ac...", "ij,ij,j->"):

            def product(m: Any, s: str = subscripts, d: tuple[str, ...] = dtypes) -> Any:
                return m.einsum(s, *map(m.asarray, operands(s, d)), optimize=path)

            batch.same(f"{subscripts} {dtypes}", product, bound=rounding(product(np)))
    batch.check()


@pytest.mark.parametrize("dtype", [None, "float64"])
def test_sums_of_one_operand_alone_wrap_as_numpys(dtype: Any, xp: ModuleType) -> None:
    batch = Batch(xp)
    data = operands("ij,jk->", ("int8", "int8"))
    batch.same(
        "ij,jk->",
        lambda m: m.einsum("ij,jk->", *map(m.asarray, data), optimize=True, dtype=dtype),
    )
    batch.check()


@pytest.mark.parametrize("subscripts", ["i,i", "i,i->", "ij,ji->", "i,j->", "i,ij,j->", "ij->"])
def test_numbers_are_of_numpys_class(subscripts: str, xp: ModuleType) -> None:
    data = operands(subscripts, ("float64",) * 3)
    for optimize in (False, True, "optimal"):
        expected = np.einsum(subscripts, *data, optimize=optimize)
        actual = xp.einsum(subscripts, *map(xp.asarray, data), optimize=optimize)
        assert isinstance(actual, xp.ndarray) == isinstance(expected, np.ndarray)
