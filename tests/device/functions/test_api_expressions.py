"""One-line programs under NumPy and clfuse: the same kind of object, dtype, shape and values.

The lists hold one expression or statement a line. Every line starts from the same few arrays
(`SETUP`); `m` is the module. Results of a whole list are evaluated together, because every kernel
takes time to build. A lazy scalar counts as the NumPy scalar that it is. Where NumPy raises,
clfuse raises an error of that class at the call.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support import releases
from tests.support.agreement import host
from tests.support.releases import is_of_later_releases

SETUP = """
a = m.arange(12.0).reshape(3, 4)
b = m.array([[1, -2, 3, 0], [4, 5, -6, 7], [0, 0, 1, 9]])
c = m.array([1+2j, -3j, 4, 0.5-1j])
u = m.array([1, 250, 7], 'u1')
t = m.array([True, False, True, True])
f = m.array([0.5, -1.5, 2.5, m.nan, m.inf], 'f4')
h = m.array([1, 2.5, -3], 'f2')
z = m.array(3.5)
e = m.zeros((0, 3))
s = a.sum()
k = m.arange(24).reshape(2, 3, 4)
"""
TOLERANCES = {"float16": 2e-3, "float32": 1e-5, "complex64": 1e-5}
MOST_SHOWN = 20


class Gives:
    """An object that gives an array of itself."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


class Index(tuple):
    """A tuple that is not exactly one."""


def outcome(m: ModuleType, line: str) -> Any:
    """The value of an expression, or the error that it raises."""
    names: dict[str, Any] = {"m": m, "Gives": Gives, "Index": Index}
    exec(SETUP, names)
    try:
        return eval(line, names)
    except Exception as error:
        return error


def statement_outcome(m: ModuleType, line: str) -> Any:
    """All arrays after a statement, and `r` where it is set; or the error that it raises."""
    names: dict[str, Any] = {"m": m, "Gives": Gives, "Index": Index}
    exec(SETUP, names)
    try:
        exec(compile(line, "<line>", "exec"), names)
    except Exception as error:
        return error
    return [names[name] for name in "abcutfhzsk"] + [names[n] for n in "r" if n in names]


def arrays_in(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in arrays_in(item)]
    return [value] if hasattr(value, "get") and hasattr(value, "dtype") else []


def form(value: Any) -> Any:
    """A result as plain data: what kind of thing it is, and its values."""
    if isinstance(value, (list, tuple)):
        return [form(item) for item in value]
    if hasattr(value, "dtype") and not isinstance(value, type):
        kind = "scalar" if isinstance(value, np.generic) else "array"
        values = host(value)
        return kind, str(value.dtype), tuple(value.shape), values
    return "object", "callable" if callable(value) else repr(value)


def agree(actual: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(
            agree(one, other) for one, other in zip(actual, expected, strict=True))
    if expected[0] == "object" or actual[:3] != expected[:3]:
        return bool(actual == expected) if len(actual) == len(expected) == 2 else False
    if expected[3].dtype.kind not in "fc":
        return bool(np.all(actual[3] == expected[3]))
    tolerance = TOLERANCES.get(expected[1], 1e-12)
    return np.allclose(actual[3], expected[3], rtol=tolerance, atol=0, equal_nan=True)


# What NumPy before 2.4 does otherwise, and nobody misses; the first ends its process.
OF_LATER_RELEASES = frozenset("""
a.flat[()]=1
a.flat[()]
a.flat[a==a]
a.flat[a>5]=[1,2]
a.flat[m.arange(5)>0]
m.count_nonzero(b)
m.count_nonzero(c)
m.histogram(m.array([1,1+2e-16]*10))
""".split("\n")) if releases.IS_BEFORE_2_4 else frozenset()


def check(lines: list[str], xp: ModuleType, run: Any) -> None:
    """Run every line under both modules and say which differ."""
    problems = []
    lines = [line for line in lines if line not in OF_LATER_RELEASES]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        actual = [run(xp, line) for line in lines]
        getattr(xp, "evaluate", lambda *arrays: None)(*arrays_in(actual))
        for line, one in zip(lines, actual, strict=True):
            other = run(np, line)
            if isinstance(one, Exception) or isinstance(other, Exception):
                if not isinstance(one, type(other)) and not is_of_later_releases(one, other):
                    problems.append(f"{line}: {one!r}, NumPy: {other!r}")
            elif not agree(form(one), form(other)):
                problems.append(f"{line}: {form(one)}, NumPy: {form(other)}")
    shown = "\n".join(problem[:500] for problem in problems[:MOST_SHOWN])
    assert not problems, f"{len(problems)} of {len(lines)} lines differ\n{shown}"


LINES = {
    "creation": r"""
m.array(5)
m.array([1,2],ndmin=2)
m.array([[1,2],[3,4]],order='F')
m.array('abc')
m.array([None,1])
m.asarray([1,'a'])
m.array([s, 2.0])
m.array([a[0], a[1]])
m.array([[s, 1],[2, s]])
m.array([a[0], [1,2,3,4]])
m.asarray(a) is a
m.array(a) is a
m.ascontiguousarray(s)
m.ascontiguousarray(z)
m.asfortranarray(a).strides
m.asfortranarray(a).flags.f_contiguous
m.zeros((2,3),order='F').strides
m.zeros(3,dtype=object)
m.zeros(3,dtype='U3')
m.ones((2,),dtype='M8[s]')
m.full((2,2),[1,2])
m.full(2,s)
m.full((2,),1j,dtype='f4')
m.full_like(a,2.5,dtype=int)
m.zeros_like([1,2])
m.ones_like(5)
m.empty_like(a).shape
m.arange(3,dtype='f2')
m.arange(0,3,0.7)
m.arange(5,0,-2)
m.arange(0.5,3)
m.arange(3j)
m.arange(s-60)
m.arange(10,dtype='c8')
m.linspace(0,1,5,retstep=True)
m.linspace(0,1,0,retstep=True)
m.linspace(0,1j,1,retstep=True)
m.linspace(m.array([0,1]),1j,0,endpoint=False,retstep=True,dtype='c8')
m.linspace(m.array([0,1]),10,3)
m.linspace(0,s,3)
m.linspace(1,10,4,dtype=int)
m.linspace(0,1,5,axis=-1)
m.linspace([1,2],[3,4],3,axis=1)
m.linspace(0,1+1j,3)
m.linspace(0,1,-1)
m.linspace(2,2,3)
m.linspace(0,1,5,False)
m.logspace(0,2,3)
m.logspace(0,2,3,base=2)
m.logspace(0,2,3,dtype=int)
m.geomspace(1,1000,4)
m.geomspace(-1,-1000,4)
m.rint(m.geomspace(1,256,9)).astype(int)
m.geomspace(1j,1000j,4)
m.geomspace(0,1)
m.eye(3,k=1,dtype=bool)
m.eye(2,order='F').flags.f_contiguous
m.eye(3,k=2**63)
m.eye(3,k=-2**70)
m.triu(a,2**63)
m.tri(3,k=1.5)
m.tril(a,-1.5)
m.triu(a,-0.5)
m.zeros(3,device='elsewhere')
m.asarray(a,device=3)
m.identity(3,dtype='i1')
m.tri(3)
m.tril(a)
m.triu(k,1)
m.tril(m.arange(3))
m.tril(5)
m.diag(m.arange(3),-1)
m.diag(a,1)
m.diag(k)
m.diagflat(a[:2,:2],1)
m.indices((2,3))
m.indices((2,3),sparse=True)
m.indices((2,3),dtype='f4')
m.meshgrid(m.arange(3),m.arange(2))
m.meshgrid(m.arange(3),m.arange(2),indexing='ij',sparse=True)
m.meshgrid(m.arange(3),m.arange(2),indexing='zz')
m.mgrid[0:3]
m.mgrid[0:3,1:5:2]
m.mgrid[0:1:5j]
m.mgrid[0j:3]
m.mgrid[0:3:0.5,5:0:-2]
m.mgrid[0:2:-2.5j,3:3]
m.mgrid[1:0,0:2]
m.mgrid[1:0,m.arange(3)[1]:2]
m.mgrid[0:3,:3j]
m.mgrid[0:3:0,0:2]
m.mgrid[0:3,2]
m.ogrid[0:2,3:3]
m.ogrid[0:3,0:2]
m.r_[a[0],0,s]
m.r_[1:4,0]
m.c_[a[0],a[1]]
m.fromfunction(lambda i,j:i+j,(2,3))
m.fromiter(range(3),float)
m.frombuffer(b'abc','u1')
m.fromstring('1 2 3',sep=' ')
m.vander(m.arange(4))
m.vander([1,2,3],2)
m.vander(a)
m.copy(a.T).strides
m.copy(a.T,order='C').strides
a.T.copy().strides
a.T.copy('K').strides
(a.T+1).strides
(a.T+a.T).strides
(a.T*2.0).flags.f_contiguous
m.sin(k.transpose(2,0,1)).strides
k.transpose(1,0,2).sum(1).strides
k.transpose(2,0,1).sum(1).strides
a.T.astype('f4').strides
m.zeros_like(a.T).strides
m.ones_like(k.transpose(1,2,0)).strides
m.where(a.T>2,a.T,0).strides
""",
    "attributes and protocols": r"""
a.T.flags.c_contiguous
a.flags.num
a.flags['C_CONTIGUOUS']
a.flags.fnc
repr(a.flags)
a[::2].strides
a[:,::-1].strides
a[None].strides
a.nbytes
a.itemsize
a.size
z.ndim
a.base is None
a[1:].base is a
a[1:][0:1].base is a
a.T.base is a
a.real is a
c.real.base is c
c.imag
c.real.strides
a.imag
c.T
k.mT.shape
a[0].mT
a.flat[3]
a.flat[1:3]
list(a.flat)
a.flat[[1,2]]
len(a.flat)
hash(a)
repr(s)
repr(a)
repr(f)
str(a)
str(s)
f'{s:.3f}'
f'{z:.2f}'
f'{a[0,1]:5.1f}'
f'{a}'
f'{a:.2f}'
format(s)
repr(m.arange(2000))
repr(m.zeros((0,3)))
str(c)
int(s)
float(z)
complex(s)
bool(s)
bool(a)
bool(e)
bool(m.array([1]))
float(a)
float(m.array([1.0]))
int(m.array(3))
round(s,1)
round(m.float32(2.567),1)
s.is_integer()
s.as_integer_ratio()
s.hex()
s.item()
s.tolist()
type(s.item()).__name__
a.item(3)
a.item(1,2)
a.item()
a.tolist()
a.tobytes()
a.T.tobytes()
a.T.tobytes('F')
len(a)
len(z)
len(s)
[x for x in a[0]]
[type(x).__name__ for x in a[0]]
[x.shape for x in a]
iter(z)
iter(s)
3.0 in a
99 in a
list(s)
a[0,0] == 0
isinstance(s, m.floating)
isinstance(s, m.ndarray)
isinstance(s, float)
isinstance(b.sum(), m.integer)
isinstance(b.sum(), int)
isinstance(a, m.ndarray)
isinstance(m.all(t), m.bool_)
m.isscalar(s)
m.isscalar(a)
m.ndim(s)
m.shape(a)
m.size(a,1)
{s: 1}[66.0]
[10,20,30,40][b[0,2]]
range(b[0,2])
'abcd'[b[0,0]]
max(a[0])
sum(a[0])
sorted(a[0])
min(s, 3)
divmod(s, 7)
divmod(a, 4)
divmod(7, a)
a.dtype == 'f8'
""",
}


@pytest.mark.parametrize("group", LINES)
def test_expressions_give_what_numpy_gives(group: str, xp: ModuleType) -> None:
    check(LINES[group].split("\n")[1:-1], xp, outcome)
