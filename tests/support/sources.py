"""Calls that make arrays, beside NumPy's: what differs is printed. `test_sources` runs this file as
a program, with what is compiled and without."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy

import clfuse
from clfuse import numpy_releases
from clfuse._core import loading

VALUES = numpy.arange(24.0).reshape(2, 3, 4)


class Sub(numpy.ndarray):
    """A subclass, which stays NumPy's."""


class Own:
    """What gives an array when it is asked for one."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray:
        return numpy.arange(3.0)


NAMES = {
    "numpy": numpy, "x": VALUES, "t": VALUES.T, "m": VALUES[0].astype("f4"),
    "big_endian": numpy.arange(4).astype(">i4"), "Sub": Sub,
    "own": Own(), "Fraction": Fraction, "record": numpy.dtype([("a", "i4")]), "inf": float("inf"),
    "nan": float("nan"),
}  # fmt: skip

SHAPES = """3; 0; 1; (); (0,); (2, 3); (2, 0); (1, 1); [2, 3]; numpy.int64(4); (numpy.int8(2), 3);
    numpy.array([2, 3]); -1; (2, -1); 2.0; (2, 2.0); '3'; None; True; 2**70; (2**40, 2**40);
    (2**31,) * 3; 20000; (200, 200)"""
DTYPES = """bool; 'i1'; int; 'f2'; numpy.float32; complex; '>f8'; 'longlong'; object; 'S3'; 'M8[s]';
    record; 'nonsense'; None; Fraction; numpy.dtype('u8'); 3"""
ORDERS = "'C'; 'F'; 'f'; 'A'; 'K'; None; 'X'; 3"
FILLS = """1; -1; 300; 2**70; 1e300; nan; 1j; True; 'a'; None; [1, 2, 3]; x[0, 0]; numpy.float32(2);
    np.ones(3); np.ones(3).sum(); np.asarray(x)[0, 0, 0]"""
PROTOTYPES = """x; t; np.asarray(x); np.asarray(t); np.asarray(x)[:, ::2]; np.asarray(x).T[1:]; m;
    np.arange(5); np.arange(1); 3; [1, 2]; big_endian; x.view(Sub); np.ones((0, 3)); own;
    np.zeros(30000); np.asarray(x) > 3; np.asarray(x) + np.asarray(x)"""
LIKE = """; , 'f4'; , dtype=int; , order='F'; , shape=(2, 2); , subok=False; , int, 'C', True, 4;
    , device='cpu'; , foo=1"""
RANGES = """5; 0; 1; 2; -3; 2, 9; 9, 2; 9, 2, -2; 0, 1, .1; 0, 1, 0.3; 1.5, 6; 0, 5, 0; 0, inf; nan;
    0, 1e300; 2**62, 2**62 + 3; 2**70; 1j, 3; True; 'a'; 3, None; [3]; 0, 6, None;
    numpy.float32(1), 4; numpy.int8(5); numpy.uint8(250), 255; 0., 5, 2; -0., 3; 20000; 15624;
    np.ones(3).sum(); np.asarray(x)[0, 0, 3]; 0, 3, numpy.float32(.5); numpy.array(3); Fraction(3);
    15626; 0, 2**60, 2**58"""
RANGE_CALLS = """; stop=3; start=1, stop=4; 1, 7, 2, 'i2'; 1, stop=4; 3, like=x; 1, 2, 3, 4, 5;
    65500, 65600, 20, dtype='f2'; '2020-01-01', '2020-01-05', dtype='M8[D]'"""
SPACES = """0, 1; 1, 2, 0; 1, 2, 1; 1, 2, 7; 1, 2, 3.0; 1, 2, -1; 1, 2, num=5; 0, inf, 5; 1;
    1, 1e300, 5; 300, 310, 5; 1, 2, 5, False; 1, 2, 5, True, True; 1, 2, 5, retstep=True; nan, 1, 3;
    [1, 2], 3; 1, 2, 5, dtype='f4'; 1, 2, 5, dtype=int; 1, 2, 5, dtype='S2'; 1, 2j, 4;
    numpy.float32(1), 2, 4; 1, 2, num=20000; 1, 2, 5, foo=2; True, 5, 3;
    np.ones(3).sum(), 2, 4; 1, 2, numpy.int8(3); 1, 2, None; -1, 1, 6"""
MATRICES = """3; 0; 1; 3, 5; 3, None, 1; 3, M=2; 3, 3, -1; N=3; 2.0; -2; 3, -1; 200; 3, 2.0;
    3, 3, 0, 'i2'; 3, dtype='f4'; 3, dtype=object; ; 3, k=99; 3, k=.5; numpy.int8(3)"""
IDENTITIES = "3; 3, 'f4'; n=3; 3, dtype=None; 0; -1; 2.5; 3, 3; "
INDICES = """(2, 3); (2, 3), 'f4'; (2, 3), sparse=True; (0, 2); (); 3; [2, 3]; (2, -1); (200, 200);
    (5,); (1,); (2, 3), int, False"""
WINDOWS = """5; 0; 1; -3; 2.5; 5.0; True; 'a'; None; M=7; numpy.int64(6); numpy.float32(5); 20000;
    (3,); [3]; np.arange(3); np.arange(6)[4]; 3, 4, 5; foo=1"""
TRIANGLES = """3; 0; 1; 3, 1; 3, -1; 3, 0, 5; n=3; 4, k=1, m=2; 2.0; -2; 3, .5; numpy.int8(4); 300;
    3, 1, 2.5; 'a'; None; 3, m=4; 1, 0, 40; 3, 0, -1; 3, 0, None; True"""
DIAGONALS = """3; 0; 1; 3, 3; 3, ndim=1; 2.0; -1; n=4; 3, 0; 20000; 'a'; (2, 3); numpy.int8(3);
    3, 2.5"""
GIVEN = """3; 2.5; True; 1j; []; [[]]; [1]; [1, 2]; (1, 2.5); [True, 2]; [1, 2j]; [[1, 2], [3]];
    [[1, 2], [3, 4]]; [1, None]; ['a']; [1, 'a']; range(5); [range(3), range(3)];
    [2**63, 1]; [2**70, 1]; x; t; m; big_endian; x.view(Sub); x[0, 0, 0]; numpy.array(3);
    [x, x]; [x, [1]]; np.asarray(x); np.asarray(t); np.asarray(x)[:, ::2]; np.asarray(x).T;
    [np.asarray(x), x]; [np.arange(3), [1.5, 2, 3]]; [np.arange(3), 1]; [np.arange(3).sum(), 2];
    [np.asarray(m), np.asarray(m)]; [np.arange(20000), np.arange(20000)]; list(range(20000));
    numpy.arange(20000.); own; [own, own]; b'ab'; bytearray(b'xy'); Fraction(1, 2); {}; {1, 2};
    [Fraction(1, 2)]; (i for i in range(3)); np.float64(3); [numpy.float32(1), 2]; [nan, -0.0];
    [numpy.int8(1), 300]; [1e300, 1]; [[[[[[[[[[1, 2]]]]]]]]]]; [numpy.ones(3)];
    [np.arange(3) + 1, np.arange(3) * 2.5]; [big_endian, big_endian]"""
GIVEN_MORE = "; , 'f4'; , dtype='i2'; , dtype=object"
FEW_MORE = """like=x; copy=True; copy=None; copy=False; copy='yes'; subok=True; foo=1;
    copy=numpy._CopyMode.ALWAYS; None, None"""
AXES = """ndmin=3; ndmin=0; ndmin=99; ndmin=True; ndmin='a'; subok=True; copy=None;
    ndmin=4, order='F'"""


def some(text: str) -> list[str]:
    """What stands between the semicolons."""
    return [item.strip() for item in text.split(";")]


def calls() -> list[str]:
    """All that are compared, as text."""
    found = []
    for name in ("zeros", "ones", "empty"):
        for shape in some(SHAPES):
            found += [f"{name}({shape})", f"{name}(shape={shape}, dtype='f4')"]
        for dtype in some(DTYPES):
            found += [f"{name}((2, 3), {dtype})", f"{name}(4, dtype={dtype})"]
        for order in some(ORDERS):
            found += [f"{name}((2, 3), order={order})", f"{name}((2, 1, 3), int, {order})"]
        for more in ("", "3, 4, 5", "3, foo=1", "3, like=x", "3, like=3", "3, device=None"):
            found.append(f"{name}({more})")
        found += [f"{name}_like({of}{more})" for of in some(PROTOTYPES) for more in some(LIKE)]
    for shape in some(SHAPES):
        found += [f"full({shape}, 2.5)", f"full({shape}, fill_value=1j)", f"full({shape}, 7, 'i2')"]
    for value in some(FILLS):
        found += [f"full((2, 3), {value})", f"full_like(np.asarray(m), {value})"]
        found += [f"full((2, 3), {value}, {dtype})" for dtype in some(DTYPES)]
    for given in some(RANGES):
        found.append(f"arange({given})")
        found += [f"arange({given}, dtype={dtype})" for dtype in some(DTYPES)]
    found += [f"arange({given})" for given in some(RANGE_CALLS)]
    for name in ("linspace", "logspace", "geomspace"):
        found += [f"{name}({given})" for given in some(SPACES)]
    for name in ("eye", "tri"):
        found += [f"{name}({given})" for given in some(MATRICES)]
    found += [f"eye(3, 4, order={order})" for order in some(ORDERS)]
    found += [f"identity({given})" for given in some(IDENTITIES)]
    found += [f"indices({given})" for given in some(INDICES)]
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        found += [f"{name}({given})" for given in some(WINDOWS)]
    found += [f"kaiser({given}, 2.)" for given in some(WINDOWS)]
    found += [f"kaiser(6, {beta})" for beta in ("0", "beta=3", "'a'", "[1., 2.]", "nan", "inf")]
    for name in ("tril_indices", "triu_indices"):
        found += [f"{name}({given})" for given in some(TRIANGLES)]
    found += [f"diag_indices({given})" for given in some(DIAGONALS)]
    for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
        found += [f"{name}({of}{more})" for of in some(GIVEN) for more in some(GIVEN_MORE)]
        for of in ("[[1, 2], [3, 4]]", "x", "t", "np.asarray(t)"):
            found += [f"{name}({of}, order={order})" for order in some(ORDERS)]
        found += [f"{name}([1, 2], {more})" for more in some(FEW_MORE)]
    for of in ("[1, 2]", "x", "3", "np.asarray(t)"):
        found += [f"array({of}, {more})" for more in some(AXES)]
    return list(dict.fromkeys(found))


def described(value: Any, is_empty: bool) -> Any:
    """What can be told of an array, and its bytes."""
    if not hasattr(value, "shape"):
        return repr(value)
    flags = value.flags
    places = zip(value.shape, value.strides, strict=True)
    strides = [stride for extent, stride in places if extent > 1] if value.size else []
    array = numpy.asarray(value)
    content: Any = b"" if is_empty else array.tobytes()
    if array.dtype == object:
        # Two generators that lie elsewhere are no difference.
        content = re.sub(r" at 0x[0-9a-f]+", "", repr(array.tolist()))
    return (
        type(value).__name__, str(array.dtype), value.shape, strides, flags.c_contiguous,
        flags.f_contiguous, flags.writeable, content,
    )  # fmt: skip


def told(np: ModuleType, call: str, state: dict[str, str]) -> Any:
    """What a call gives or raises, and what it warns of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            with np.errstate(**state):
                value = eval(f"np.{call}", {**NAMES, "np": np})
        except Exception as error:
            answer: Any = type(error).__name__
        else:
            parts = value if isinstance(value, tuple | list) else (value,)
            answer = [described(part, call.startswith("empty")) for part in parts]
    return answer, {(str(w.message), w.category.__name__) for w in seen}


def main() -> None:
    print(loading.state())
    for state in ({}, {"all": "ignore"}, {"all": "raise"}):
        for call in calls():
            expected, found = told(numpy, call, state), told(clfuse, call, state)
            # A release without the argument says so, whatever its value is.
            is_known = "copy=" not in call or numpy_releases.at_least("2.4.0")
            if expected != found and (is_known or expected[0] != "TypeError"):
                print("DIFFERENT", state, call, str(expected)[:200], str(found)[:200])


if __name__ == "__main__":
    main()
