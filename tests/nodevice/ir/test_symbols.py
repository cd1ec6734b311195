"""Names of Python as names of OpenCL C: ASCII, no word of the language's, not too long."""

from __future__ import annotations

import re

import pytest

from clfuse.ir.identifiers import MOST_LETTERS, symbol


@pytest.mark.parametrize("name", ["axpy_kernel", "map_add", "_f_0", "x", "k" * MOST_LETTERS])
def test_names_that_opencl_c_takes_stay(name: str) -> None:
    assert symbol(name) == name


OTHERS = [
    "été", "Été_kernel", "größe", "grösse_ß", "变量", "kernel_exec", "enqueue_kernel", "__f", "_F",
    "<lambda>_kernel", "9lives", "a b", "", "x" * (MOST_LETTERS + 1), "x" * 5000, "ö" * 500, "x\0y",
]


def test_others_become_names_of_their_own() -> None:
    made = [symbol(name) for name in OTHERS]
    assert len({*made, *OTHERS}) == 2 * len(OTHERS)
    for text in made:
        assert text.isascii()
        assert re.fullmatch(r"(?!__|_[A-Z])[A-Za-z_]\w*", text)
        assert len(text) <= MOST_LETTERS
    assert symbol("été") == symbol("été")
    assert symbol("été") != symbol("ètè")
