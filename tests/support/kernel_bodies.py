"""Functions and kernels whose bodies are text, and whether a kernel leaves what its body leaves in
plain Python; tests of kernels' language, with a device and without one, call these."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np

_number = itertools.count()


def function_of(body: str, head: str, scope: dict[str, Any], name: str = "") -> Any:
    """A function whose source can be read, with the parameters `head`; its body begins in line 2.

    It sees what is in `scope` now.
    """
    number = next(_number)
    name = name or f"body{number}"
    text = f"def {name}({head}):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    filename = f"<{name}-{number}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope = dict(scope)
    exec(compile(text, filename, "exec"), scope)
    return scope[name]


def kernel_of(
    body: str, head: str, scope: dict[str, Any], name: str = "", **options: Any
) -> Any:
    """`function_of` as a kernel, with the options of ``clfuse.kernel``."""
    import clfuse

    return clfuse.kernel(function_of(body, head, scope, name), **options)


def compare(kernel: Any, ranges: Any, given: list[Any]) -> None:
    """The kernel leaves what its body leaves in Python; arrays in `given` are NumPy's."""
    import clfuse

    expected = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
    kernel.python(ranges, *expected)
    device = [clfuse.asarray(each) if isinstance(each, np.ndarray) else each for each in given]
    kernel(ranges, *device)
    names = kernel.__clfuse_source__.parameters[-len(given):]
    for name, actual, wanted in zip(names, device, expected, strict=True):
        if isinstance(wanted, np.ndarray):
            rtol = 1e-6 if wanted.dtype.char in "fe" else 1e-13
            np.testing.assert_allclose(actual.get(), wanted, rtol=rtol, err_msg=name)
