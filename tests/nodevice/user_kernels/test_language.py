"""Kernels written in Python: what is not in the language, and types. No device is needed."""

from __future__ import annotations

import ast
import functools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from clfuse.user_kernels.language.launch_route.c import literal
from clfuse.user_kernels.language.source import barriers
from clfuse.user_kernels.language.source.lower import lower
from clfuse.user_kernels.language.source.syntax import read_source
from clfuse.user_kernels.language.source.types import FLOAT, INT, ArrayType, strong
from tests.support import kernel_bodies

pytestmark = pytest.mark.clfuse_only
F32, F64, I32 = (np.dtype(name) for name in ("float32", "float64", "int32"))
TABLE = np.arange(3)


def function_of(body: str, head: str = "i, a, x, y") -> Any:
    return kernel_bodies.function_of(body, head, {
        "cf": cf, "np": np, "table": TABLE, "config": {}, "doubled": doubled, "there": there,
        "twice_there": twice_there, "first": first, "steps": 3, "no": False, "math": math,
        "plain": plain, "nothing": nothing,
        "shares": shares, "waits": waits,
    })


@cf.device_function
def doubled(v):
    return 2 * v


def plain(v):
    return v


@cf.device_function
def there(v):
    return v + cf.group.local_id()


@cf.device_function
def twice_there(v):
    return 2 * there(v)


@cf.device_function
def shares(v):
    t = cf.group.local_array(4)
    t[cf.group.local_id()] = v


@cf.device_function
def waits(v):
    cf.group.barrier()


@cf.device_function
def nothing(v):
    v += 1


@cf.device_function
def first(v):
    return v[0]


REFUSED = [
    ("import os", "import it outside"),
    ("from os import path", "import it outside"),
    ("async def inner(): pass", "@clfuse.device_function"),
    ("y[i] = {1, 2}", "local_array"),
    ("y[i] = {k for k in x}", "for loop"),
    ("y[i] = {k: 1 for k in x}", "local_array"),
    ("y[i] = max(x[k] for k in range(3))", "for loop"),
    ("y[i] = (yield from x)", "return the value"),
    ("assert a > 0", "CLFUSE_CHECK=bounds"),
    ("raise ValueError", "kernels raise nothing"),
    ("try:\n    y[i] = 1\nexcept ValueError:\n    pass", "kernels raise nothing"),
    ("with a:\n    pass", "nothing to enter"),
    ("global g", "return the value"),
    ("del a", "names of a kernel end"),
    ("def inner(): pass", "@clfuse.device_function"),
    ("class C: pass", "outside of the kernel"),
    ("match i:\n    case 1: pass", "if, elif"),
    ("s = (t, u) = 1, 2", "one assignment a line"),
    ("y[i] = [1, 2]", "local_array"),
    ("y[i] = {1: 2}", "local_array"),
    ("y[i] = [k for k in x]", "for loop"),
    ("f = lambda v: v", "@clfuse.device_function"),
    ("y[i] = 'text'", "no text"),
    ("y[i] = f'{i}'", "no text"),
    ("y[i] = None", "no None"),
    ("y[i] = (t := 3)", "line of its own"),
    ("y[1:3] = 0", "pass a view"),
    ("y[i] = x[..., 0]", "one number an axis"),
    ("y[i] = x.sum()", "a loop, or calculate it before the call"),
    ("y[i] = x.conjugate()", r"write numpy.conjugate\(x\)"),
    ("x.fill(3)", "methods of arrays"),
    ("y[i] = x.T", r"\.shape\[k\]"),
    ("y[i] = float('inf')", "write math.inf"),
    ("y[i] = x.astype(np.int8)", r"write numpy.float32\(x\)"),
    ("y[i] = divmod(a, 2)", "q, r = divmod"),
    ("y[i] = x @ y", "multiply the matrices outside"),
    ("y[i] = i in x", "`in` and `is`"),
    ("y[i] = x is y", "`in` and `is`"),
    ("print(i)", "look at the arrays"),
    ("y[i] = sum(x)", "reduce"),
    ("for k in x:\n    pass", "loops run over range"),
    ("for k, l in enumerate(x):\n    pass", r"one name: write `for k in range\(len\(x\)\)`"),
    ("x[i]", "thrown away"),
    ("y[i] = x[i][0]", "indexed at once"),
    ("yield i", "one value an index"),
    ("y[i] = (yield i)", "return the value"),
    ("t = 1, 2", "tuples stand in"),
    ("t = x.shape", "n, m = x.shape"),
    ("y[i] = np.add(*x)", r"no \*"),
    ("y[i] = np.sum(x)", "or let the kernel return the term"),
    ("y[i] = math.fsum(x)", "or let the kernel return the term"),
    ("y[i] = np.max(x)", "or let the kernel return the term"),
    ("y[i] = max(x)", "max takes two numbers or more; of an array write a loop"),
    ("y[i] = math.ulp(a)", "of math it has acos, .*, trunc"),
    ("y[i] = math.isqrt(i)", r"write int\(math.sqrt\(n\)\)"),
    ("b, c = math.modf(a)", r"write math.trunc\(x\)"),
    ("y[i] = np.sinc(a)", "it has NumPy's ufuncs"),
    ("y[i] = plain(a)", "decorate plain with @clfuse.device_function"),
    ("y[i] = str(i)", "not in the language"),
    ("y[i] = np.random.random()", "clfuse.philox"),
    ("t = np.zeros(3)", "clfuse.local_array"),
]


@pytest.mark.parametrize(("body", "advice"), REFUSED, ids=[b.splitlines()[0] for b, _ in REFUSED])
def test_what_is_not_in_the_language_is_refused_at_decoration(body: str, advice: str) -> None:
    function = function_of("t = 0\n" + body)
    with pytest.raises(cf.KernelError, match=advice) as caught:
        cf.kernel(function)
    assert f"{function.__code__.co_filename}:3: in kernel" in str(caught.value)
    assert caught.value.lineno == 3
    assert isinstance(caught.value, TypeError)


NOT_ON_EVERY_PATH = [
    ("y[i] = t\nt = 3", 2, "read before it is assigned"),
    ("t += 1", 2, "read before it is assigned"),
    ("if a > 0:\n    t = 1\ny[i] = t", 4, "not every path comes by line 3"),
    ("if a > 0:\n    t = 1\nelif i:\n    t = 2\ny[i] = t", 6, "by line 3 or 5"),
    ("for k in range(len(x)):\n    t = k\ny[i] = t", 4, "by line 3"),
    ("for k in range(len(x)):\n    pass\ny[i] = k", 4, "by line 2"),
    ("for k in range(5, 5):\n    pass\ny[i] = k", 4, "by line 2"),
    ("while i > 3:\n    t = 1\n    break\ny[i] = t", 5, "by line 3"),
    ("while True:\n    if i:\n        break\n    t = 1\ny[i] = t", 6, "by line 5"),
    ("for k in range(3):\n    if i:\n        continue\n    t = 1\ny[i] = t", 6, "by line 5"),
    ("for k in range(i):\n    t = 1\nelse:\n    s = t", 5, "by line 3"),
    ("if i:\n    t = cf.local_array(3)\ny[i] = t[0]", 4, "by line 3"),
    ("if no:\n    t = 1\ny[i] = t", 4, "by line 3"),
    ("y[i] = 1 if i else t\nt = 1", 2, "read before"),
    ("t: float\ny[i] = t", 3, "by line 2"),
]


@pytest.mark.parametrize(("body", "line", "message"), NOT_ON_EVERY_PATH,
                         ids=[body for body, _, _ in NOT_ON_EVERY_PATH])
def test_a_variable_unassigned_on_a_path_is_refused(
    body: str, line: int, message: str
) -> None:
    with pytest.raises(cf.KernelError, match=message) as caught:
        cf.kernel(function_of(body))
    assert caught.value.lineno == line


@pytest.mark.parametrize("body", [
    "if a > 0:\n    t = 1\nelse:\n    return\ny[i] = t",
    "if a > 0:\n    t = 1\nelse:\n    t = 2\ny[i] = t",
    "while True:\n    t = 1\n    if i:\n        break\ny[i] = t",
    "for k in range(3):\n    t = 1\ny[i] = t + k",
    "for k in range(10, 0, -steps):\n    t = 1\ny[i] = t + k",
    "for k in range(i):\n    t = 1\n    break\nelse:\n    t = 2\ny[i] = t",
    "for k in range(i):\n    if k:\n        t = 1\n    else:\n        continue\n    y[i] = t",
    "if steps > 2:\n    t = 1\ny[i] = t",
    "if not no:\n    t = 1\ny[i] = t",
    "k = 0\nfor k in range(i):\n    pass\ny[i] = k",
])
def test_a_variable_that_every_path_assigns_is_not(body: str) -> None:
    assert cf.kernel(function_of(body)).__name__


def test_paths_are_checked_again_when_outer_numbers_change() -> None:
    function = function_of("if steps > 2:\n    t = 1\ny[i] = t")
    source = read_source(function)
    function.__globals__["steps"] = 1
    with pytest.raises(cf.KernelError, match="not every path"):
        lower(source, {"a": FLOAT, "x": ArrayType(F32, 1), "y": ArrayType(F64, 1)}, ("i",))


NOT_ALL_COME = [
    ("if i > 3:\n    cf.group.barrier()", 3, "the condition in line 2"),
    ("if x[i] > 3:\n    return\ncf.group.barrier()", 4, r"the return in line 3 .*in line 2\)"),
    ("for k in range(i):\n    cf.group.barrier()", 3, "the loop in line 2"),
    ("for k in range(3):\n    if i == k:\n        break\n    cf.group.barrier()", 5, "`break`"),
    ("for k in range(3):\n    if i == k:\n        continue\n    cf.group.barrier()", 5,
     "`continue` in line 4"),
    ("for k in range(3):\n    cf.group.barrier()\n    if i == k:\n        break", 3, "`break`"),
    ("s = 0\nif i > 3:\n    s = 1\nif s:\n    cf.group.barrier()", 6, "the condition in line 5"),
    ("s = 1\nfor k in range(4):\n    if s:\n        cf.group.barrier()\n    s = i", 5, "line 4"),
    ("while x[i] > 0:\n    cf.group.barrier()", 3, "the loop in line 2"),
    ("if cf.group.local_id():\n    cf.group.barrier()", 3, "line 2"),
    ("y[i] = 1\nif y[0] > 1:\n    cf.group.barrier()", 4, "line 3"),
    ("t = cf.group.local_array(4)\nif t[0] > 1:\n    cf.group.barrier()", 4, "line 3"),
    ("if doubled(i) > 1:\n    cf.group.barrier()", 3, "line 2"),
    ("if a > 1 and i > 1:\n    cf.group.barrier()", 3, "line 2"),
    ("if a > 1:\n    if i > 1:\n        s = 1\n    else:\n        cf.group.barrier()", 6, "line 3"),
    ("for k in range(3):\n    if i == k:\n        break\nif k:\n    cf.group.barrier()", 6,
     "line 5"),
    ("t = cf.group.local_array(4)\ncf.group.barrier()\ns = t[0]\nt[i] = s\nif s:\n"
     "    cf.group.barrier()", 7, "line 6"),
    ("if there(i) > 1:\n    cf.group.barrier()", 3, "line 2"),
    ("y[i] = 1\nif first(y) > 1:\n    cf.group.barrier()", 4, "line 3"),
    ("if twice_there(1) > 1:\n    cf.group.barrier()", 3, "line 2"),
    ("p = cf.local_array(2)\np[1] = i\nif p[0]:\n    cf.group.barrier()", 5, "line 4"),
    ("p = cf.local_array(2)\np[i] = 1\nif p[0]:\n    cf.group.barrier()", 5, "line 4"),
    ("p = cf.local_array(2)\nif i:\n    p[0] = 1\nif p[0]:\n    cf.group.barrier()", 6, "line 5"),
    ("p = cf.local_array(2)\np[0] = 1\nif i:\n    p = cf.local_array(2)\nif p[0]:\n"
     "    cf.group.barrier()", 7, "line 6"),
    ("p = cf.local_array(2, np.int32)\ncf.atomic.add(p, 0, i)\nif p[0]:\n    cf.group.barrier()", 5,
     "line 4"),
]

MEANWHILE = [
    # what it holds at first is undefined
    ("if t[0] > 1:\n    cf.group.barrier()", 4),
    # written to before it is read, behind it, at the same time, or in the round after
    ("cf.group.barrier()\nt[0] = a\nif t[0] > 1:\n    cf.group.barrier()", 6),
    ("cf.group.barrier()\nif t[0] > 1:\n    cf.group.barrier()\nt[i] = a", 5),
    ("cf.group.barrier()\nif i > 1:\n    t[1] = a\nelse:\n    y[i] = 1\nif t[0] > 1:\n"
     "    cf.group.barrier()", 9),
    ("while True:\n    t[i] = a\n    cf.group.barrier()\n    if t[0] > 1:\n        break", 5),
    ("cf.group.barrier()\nwhile t[0] > 1:\n    cf.group.barrier()\n    t[i] = a", 5),
    ("for k in range(3):\n    t[i] = a\n    if a > k:\n        cf.group.barrier()\n"
     "        continue\nif t[0] > 1:\n    cf.group.barrier()", 9),
    ("cf.group.barrier()\nif i > 1:\n    y[i] = t[1]\nelse:\n    t[1] = 1\ncf.group.barrier()\n"
     "for k in range(2):\n    if t[k]:\n        cf.group.barrier()\n    if i:\n        continue\n"
     "    t[0] = 1", 11),
    ("cf.group.barrier()\nfor k in range(2):\n    if t[k]:\n        cf.group.barrier()\n"
     "    if k == 1:\n        break\n    t[i] = 1", 6),
    ("cf.group.barrier()\ncf.atomic.add(t, 0, 1)\nif t[0] > 1:\n    cf.group.barrier()", 6),
    ("cf.group.barrier()\nfor k in range(t[0]):\n    cf.group.barrier()\n    t[1] = 3\n"
     "    cf.group.barrier()\nt[0] = 2\ny[i] = 2\nif t[1]:\n    cf.group.barrier()", 5),
]


@pytest.mark.parametrize(("body", "line"), MEANWHILE, ids=[body for body, _ in MEANWHILE])
def test_what_others_may_write_is_no_condition_for_a_barrier(
    body: str, line: int
) -> None:
    source = read_source(function_of("t = cf.group.local_array(4, np.int32)\n" + body))
    kinds = {"a": INT, "x": ArrayType(F32, 1), "y": ArrayType(F64, 1)}
    with pytest.raises(cf.KernelError, match=r"all work-items .*`t` may be written") as caught:
        barriers.check(source, lower(source, kinds, ("i",)), 4)
    assert caught.value.lineno == line


ALL_COME = [
    "if t[0] > 1:\n    cf.group.barrier()",
    "while t[0] > 1:\n    cf.group.barrier()\n    t[i] = a\n    cf.group.barrier()",
    "while True:\n    cf.group.barrier()\n    t[i] = a\n    cf.group.barrier()\n    if t[0]:\n"
    "        break",
    "for k in range(t[1]):\n    cf.group.barrier()\n    if t[k]:\n        continue\n"
    "    cf.group.barrier()",
    "if t[cf.group.group_id() % 4] > a:\n    return\ncf.group.barrier()",
    "if first(x) > doubled(1):\n    cf.group.barrier()",
    "p = cf.local_array(2)\np[1] = a\nif p[0] < p[1]:\n    cf.group.barrier()",
    "s = 2\nwhile s > 0:\n    if i < s:\n        t[i] += t[i + s]\n    cf.group.barrier()\n"
    "    s //= 2\nif t[0] > a:\n    cf.group.barrier()",
    "for k in range(a):\n    t[i] = k\n    cf.group.barrier()\n    y[i] = t[3 - i]\n"
    "    cf.group.barrier()\nwhile t[1]:\n    cf.group.barrier()\n    t[i] = a\n"
    "    cf.group.barrier()",
    "for k in range(t[1]):\n    cf.group.barrier()\n    t[i] = k",
    "if a > 1:\n    t[i] = 2\nelif t[2]:\n    cf.group.barrier()",
    "while True:\n    t[i] += 1\n    if a:\n        break\n    cf.group.barrier()\n"
    "    if t[0]:\n        break\n    cf.group.barrier()",
    "if a:\n    cf.group.barrier()\n    t[0] = 1\n    cf.group.barrier()\nelif t[2]:\n"
    "    cf.group.barrier()",
]


@pytest.mark.parametrize("body", ALL_COME)
def test_a_barrier_under_a_uniform_read_is_not_refused(body: str) -> None:
    head = "t = cf.group.local_array(4, np.int32)\nt[i] = 1\ncf.group.barrier()\n"
    source = read_source(function_of(head + body))
    kinds = {"a": INT, "x": ArrayType(F32, 1), "y": ArrayType(F64, 1)}
    barriers.check(source, lower(source, kinds, ("i",)), 4)


@pytest.mark.parametrize(("body", "line", "message"), NOT_ALL_COME,
                         ids=[body for body, _, _ in NOT_ALL_COME])
def test_a_barrier_that_some_of_a_group_skip_is_refused(
    body: str, line: int, message: str
) -> None:
    source = read_source(function_of(body))
    kinds = {"a": FLOAT, "x": ArrayType(F32, 1), "y": ArrayType(F64, 1)}
    with pytest.raises(cf.KernelError, match="not all work-items .*" + message) as caught:
        barriers.check(source, lower(source, kinds, ("i",)), 4)
    assert caught.value.lineno == line


@pytest.mark.parametrize("body", [
    "cf.group.barrier()", "y[i] = cf.group.size()", "t = cf.group.local_array(3)\nt[0] = i",
])
def test_what_needs_a_group_is_refused_in_kernels_without(body: str) -> None:
    source = read_source(function_of(body))
    kinds = {"a": FLOAT, "x": ArrayType(F32, 1), "y": ArrayType(F64, 1)}
    with pytest.raises(cf.KernelError, match=r"write @clfuse.kernel\(group=64\)"):
        barriers.check(source, lower(source, kinds, ("i",)), 0)


IN_THE_LANGUAGE = """
Assign AugAssign Expr For If While Break Continue Return Pass
AnnAssign BinOp BoolOp Compare Constant IfExp UnaryOp Call Attribute Name Subscript Tuple
"""
NOT_HERE = "AsyncFor AsyncWith Await Nonlocal TryStar TypeAlias Interpolation TemplateStr"
"""Await and its kind need an ``async def``, nonlocal a function around it, which are refused
themselves; the others newer Pythons."""


def test_every_other_construct_has_a_refusal_that_is_tested() -> None:
    tested = {
        type(node).__name__ for body, _ in REFUSED for node in ast.walk(ast.parse(body))
    }
    kinds = [*ast.stmt.__subclasses__(), *ast.expr.__subclasses__()]
    every = {kind.__name__ for kind in kinds if not kind.__subclasses__()}
    assert every - tested - {*IN_THE_LANGUAGE.split(), *NOT_HERE.split()} == set()


def test_what_is_no_plain_function_is_refused() -> None:
    for head in ("*i", "i, *, x", "i, x=None", "i, /, x", "i, **x"):
        with pytest.raises(cf.KernelError, match=r"positional|default"):
            cf.kernel(function_of("pass", head))
    with pytest.raises(cf.KernelError, match="no Python function"):
        cf.kernel(np.sin)
    with pytest.raises(cf.KernelError, match="decorate a `def`"):
        cf.kernel(lambda i, x: x)
    scope: dict[str, Any] = {}
    exec(compile("def unread(i): pass", "<unread>", "exec"), scope)
    with pytest.raises(cf.KernelError, match="source of unread cannot be read"):
        cf.kernel(scope["unread"])


def test_a_function_that_another_decorator_made_is_refused() -> None:
    @functools.wraps(plain)
    def twice(v: Any) -> Any:
        return 2 * plain(v)

    for decorate in (cf.kernel, cf.device_function):
        with pytest.raises(cf.KernelError, match="decorate the `def` itself"):
            decorate(twice)


def test_a_group_is_a_number_of_work_items() -> None:
    with pytest.raises(ValueError, match="group=-1"):
        cf.kernel(function_of("pass"), group=-1)
    with pytest.raises(TypeError, match="number of a group's work-items"):
        cf.kernel(function_of("pass"), group=1.5)


def test_comments_and_text_may_be_left_of_the_function() -> None:
    @cf.kernel
    def loose(i, x):
        """Text
  that begins further left."""
# as does this
        x[i] = 2 + \
    1

    x = np.zeros(3)
    loose.python(3, x)
    assert x.tolist() == [3, 3, 3]
    with pytest.raises(cf.KernelError, match=r"\.py:\d+: in kernel broken: `'text'`") as caught:
        @cf.kernel
        def broken(i, x):
# a comment
            x[i] = "text"
    with open(__file__) as file:
        assert file.read().splitlines()[caught.value.lineno - 1].strip() == 'x[i] = "text"'


@cf.kernel
def pickled(i, x):
    x[i] = i


def test_kernels_are_pickled_by_their_names() -> None:
    for each in (pickled, doubled):
        assert pickle.loads(pickle.dumps(each)) is each


def typed(body: str, **kinds: Any) -> Any:
    source = read_source(function_of(body))
    known = {"a": FLOAT, "x": ArrayType(F32, 1), "y": ArrayType(F64, 1)} | kinds
    return lower(source, known, ("i",))


DISAGREE = [
    ("t = x[i]\nt = y[i]", r":3: .*`t` would be float64 here and is float32 elsewhere"),
    ("if i:\n    t = x[i] > 0\nelse:\n    t = 3", ":5: .*`t` would be int here and is bool"),
    ("y[i] = x[i] if i else y[i]", "is float32 or float64: convert one"),
    ("return x[i] if i else y[i]", "is float32 or float64"),
    ("if i:\n    return x[i]\nreturn y[i]", "returns float64 here and float32 elsewhere"),
    ("if i:\n    return x[i]", "not every path returns"),
    ("y[i] = t\nt = 3", "`t` is read before it is assigned"),
    ("y[i] = x", "is an array: give the indices"),
    ("y[i] = x[i, 0]", "has 1 axes, and 2 indices"),
    ("y[i] = x[a]", "is float: an integer is needed"),
    ("y[i] = x[x[i]]", "is float32: an integer is needed"),
    ("y[i] = a[i]", "is a number here"),
    ("for k in range(0, 5, 0):\n    pass", r":2: .*range takes no step of 0"),
    ("y[i] = 2**70", r"^\S+:2: in kernel \w+: `2 \*\* 70`: integers of kernels have 64 bits"),
    ("y[i] = np.random.random()", "clfuse.philox"),
    ("t = np.zeros(3)", "clfuse.local_array"),
    ("y[i] = table[0]", "arrays are passed as arguments"),
    ("y[i] = config", "dict is nothing that kernels calculate with"),
    ("y[i] = missing", "'missing' is not defined"),
    ("y[i] = x[i] & 3", "numpy.bitwise_and is not for float32, int"),
    ("y[i] = np.sum(x[i])", "not in the language of kernels"),
    ("y[i] = np.add(i)", "add takes 2"),
    ("y[i] = np.round(a)", r"write numpy.rint\(x\)"),
    ("y[i] = round(a, 2)", "write numpy.rint"),
    ("x = 1", "`x` is an array: write to its elements"),
    ("x += 1", r"give the indices of an element, x\[i\]"),
    ("t = cf.local_array(3)\nt = cf.local_array(4)\ny[i] = t[0]", "another shape or dtype"),
    ("q, r, s = divmod(a, 2)", "divmod gives two numbers"),

    ("y[i] = len(a)", "`a` is no array here"),
    ("y[i] = x.shape[i]", "axes are known"),
    ("y[i] = x.shape[1]", "has 1 axes"),
    ("b, c = x.shape", "has 1 axes, and there are 2 names"),
    ("b, c = a.shape", "`a` is no array here"),
    ("y[i] = 1j", "write .real"),
    ("y[i] = 1j < a", "no order|cannot compare|no"),
    ("y[i] = i ** i", r"float\(i\) \*\* j"),
    ("y[i] = 1 / 0", "ZeroDivisionError"),
    ("y[i] = 1 << 70", "64 bits"),
    ("t = cf.local_array(i)", "sizes of local arrays are known"),
    ("t = cf.local_array(4, 'text')", "no text"),
    ("y[i] = cf.local_array(4)", "stands alone"),
    ("t = cf.local_array(4)\nt = 3", "is a local array"),
    ("cf.atomic.add(x, i)", r"write clfuse.atomic.add\(x, i, value\)"),
    ("cf.atomic.max(x, i, 1)", "atomics are for"),
    ("cf.group.wait()", "no such name"),
    ("y[i] = cf.philox.uniform(a, i)", "both integers"),
    ("doubled(3, 4)", r"doubled takes \(v\)"),
    ("b, c = doubled(3)", "as many values"),
    ("y[i] = nothing(a)", "returns nothing: call it on a line of its own"),
    ("t = cf.local_array(3)\ny[i] = first(t)", "a local array, which no function is given"),
    ("shares(a)", "arrays of the group stand in the kernel itself"),
    ("waits(a)", "barriers stand in the kernel itself"),
    ("b, c = np.modf(a)", r"several numbers; write math.trunc\(x\)"),
    ("y[i] = np.divmod(a, 2)", r"write q, r = divmod\(x, y\)"),
    ("y[i] = pow(i, 2, 3)", r"write x \*\* y % m"),
    ("y[i] = np.longdouble(a)", "no such dtype"),
    ("t = np.uint8(i)\nif i:\n    t = 300", ":4: .*integer 300 out of bounds for uint8"),
    ("y[i] = np.uint8(i) if i else -1", "integer -1 out of bounds for uint8"),
    ("y[i] = np.where(i, np.uint8(i), 256)", "integer 256 out of bounds for uint8"),
    ("y[i] = min(np.uint64(i), -1)", "integer -1 out of bounds for uint64"),
    ("if i:\n    return np.int8(3)\nreturn 128", ":4: .*integer 128 out of bounds for int8"),
    ("k = np.int64(i)\nk += 2**63", "9223372036854775808 out of bounds for int64"),
]


@pytest.mark.parametrize(("body", "message"), DISAGREE, ids=[body for body, _ in DISAGREE])
def test_types_that_disagree_are_an_error_with_the_line(body: str, message: str) -> None:
    with pytest.raises(cf.KernelError, match=message):
        typed(body)


@pytest.mark.parametrize("index", ["3, 0", "-4, 0", "0, 2", "i, -3"])
def test_a_literal_beyond_a_local_array_is_an_index_error(index: str) -> None:
    with pytest.raises(IndexError, match=r"`t` in line 3: index .* out of bounds for axis"):
        typed(f"t = cf.local_array((3, 2))\ny[i] = t[{index}]")
    typed(f"t = cf.local_array((3, 2))\nif no:\n    y[i] = t[{index}]")


def test_types_are_numpys() -> None:
    found = typed(
        "s = 0.0\nn = 0\n"
        "for k in range(3):\n    s += x[k]\n    n += 1\n"
        "p = a * x[i]\nq = i / 2\nr = i // 2\nu = x[i] + y[i]\nv = x[i] > 1\nw = np.int8(3) + n\n"
        "z = doubled(x[i])\nm = min(i, 3)\nc = i > 0 and n < 3\nd = (i > 0) + (i > 1)\n"
        "e = np.sin(i)\nf = x[i] ** 2\ng = int(x[i])\nh = 0.1 if v else x[i]\n"
    ).locals
    assert {name: str(kind) for name, kind in found.items()} == {
        "s": "float32", "n": "int", "k": "int", "p": "float32", "q": "float", "r": "int",
        "u": "float64", "v": "bool", "w": "int8", "z": "float32", "m": "int", "c": "bool",
        "d": "int", "e": "float64", "f": "float32", "g": "int", "h": "float32",
    }
    assert str(typed("return i, x[i], 0.5").results[1]) == "float32"
    small = {"x": ArrayType(np.dtype(np.uint8), 1)}
    with pytest.raises(cf.KernelError, match="300 out of bounds for uint8"):
        typed("y[i] = x[i] + 300", **small)
    assert str(typed("t = x[i] == 300", **small).locals["t"]) == "bool"


@cf.device_function
def itself(v):
    return itself(v)


def test_functions_that_call_themselves_are_refused() -> None:
    with pytest.raises(cf.KernelError, match="cannot call themselves"):
        lower(itself.__clfuse_source__, {"v": INT})


def test_literals_keep_every_bit() -> None:
    assert literal(-0.0, F64) == "((double)(-0x0.0p+0))"
    assert literal(np.inf, F32) == "((float)(INFINITY))"
    assert literal(-(2**63), np.dtype(np.int64)) == "LONG_MIN"
    assert literal(1 + 2j, np.dtype(np.complex64)).startswith("(float2)(")
    assert strong(F32).key is F32
