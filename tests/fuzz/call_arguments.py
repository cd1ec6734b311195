"""Random arguments of NumPy's functions: operands, and a value for each parameter by its name.

An operand is text, ``made(np, dtype, shape, seed, layout)``: the same array under every module.
What a `Drawing` has drawn first decides what fits later.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import numpy as np

from tests.fuzz import call_values
from tests.fuzz.call_operands import DTYPES, LAYOUTS, SHAPES

WRAPPING: Final = ("choose", "take", "put")
"""NumPy adds the length to an index until it fits: 2 ** 63 times at most."""

COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
SCANS: Final = (
    "accumulate",
    "cumsum",
    "cumprod",
    "nancumsum",
    "nancumprod",
    "cumulative_sum",
    "cumulative_prod",
)


class Drawing:
    """Draws the arguments of one call: what was drawn first says what fits later."""

    def __init__(self, function: str, seed: int | str) -> None:
        self.random = random.Random(seed)
        self.function = function
        self.name = function.rpartition(".")[2]
        self.operands: list[tuple[str, str]] = []
        self.dtype = self.random.choice(DTYPES)
        self.shape = self.random.choice(SHAPES)
        self.hostile = self.name not in WRAPPING and self.random.random() < 0.3

    # Operands

    def operand(
        self,
        dtype: str,
        shape: tuple[int, ...],
        layouts: tuple[str, ...] = LAYOUTS,
    ) -> str:
        """The name of a new operand."""
        seed = self.random.randrange(100) * 3 + (0 if self.hostile else 1)
        layout = self.random.choice(layouts)
        name = "abcdefghijkl"[len(self.operands) % 12] + str(len(self.operands))
        self.operands.append((name, f"made(np, {dtype!r}, {shape}, {seed}, {layout!r})"))
        return name

    def array(self) -> str:
        """An operand that fits those before it, or a number."""
        if not self.operands:
            return self.operand(self.dtype, self.shape)
        if self.random.random() < 0.15:
            return self.number()
        dtype = self.dtype if self.random.random() < 0.6 else self.random.choice(DTYPES)
        return self.operand(dtype, self.fitting_shape())

    def fitting_shape(self) -> tuple[int, ...]:
        """The first operand's shape, one that is broadcast to it, or any."""
        chosen = self.random.random()
        if chosen < 0.6:
            return self.shape
        if chosen < 0.8:
            return self.shape[self.random.randint(0, len(self.shape)) :]
        if chosen < 0.9:
            return tuple(1 if self.random.random() < 0.5 else n for n in self.shape)
        return self.random.choice(SHAPES)

    def number(self) -> str:
        if self.name in COMPARISONS:  # NumPy crashes for integers that no dtype holds with where=
            return self.random.choice(("2", "3", "1.5", "True", "0.5j", "np.int8(3)"))
        return self.random.choice(
            (
                "2",
                "-1",
                "0",
                "1.5",
                "True",
                "0.5j",
                f"np.{self.scalar_type()}(1)",
                "np.float32(2.5)",
                "np.int8(3)",
                "float('nan')",
                "300",
            )
        )

    def scalar_type(self) -> str:
        return "bool_" if self.dtype == "bool" else self.dtype

    def small(self) -> str:
        return str(self.random.choice((0, 1, 1, 2, 2, 3, 4, -1)))

    def axis(self) -> str:
        n = len(self.shape)
        if self.random.random() < 0.06:
            return self.random.choice((str(n), "(0, 0)", "1.0", "(0, -1)"))
        choices = ["None", "0", "-1", *map(str, range(n))]
        if n > 1:
            choices += ["(0, 1)", "(-1, 0)", "()"]
        return self.random.choice(choices)

    def one_axis(self) -> str:
        if self.random.random() < 0.06:
            return self.random.choice((str(len(self.shape)), "None", "1.5"))
        return str(self.random.randrange(-max(1, len(self.shape)), max(1, len(self.shape))))

    def out(self) -> str:
        """An array for the result: of a shape that may be right."""
        chosen = self.random.random()
        if chosen < 0.15 and self.operands and self.shape:
            return self.operands[0][0]
        n = len(self.shape)
        shapes = [self.shape, self.shape, self.shape[1:], self.shape[:-1], ()]
        if n:
            shapes += [(1,) * n, (*self.shape[:-1], 1), (1, *self.shape[1:])]
        if self.name in SCANS:  # NumPy writes past the end of an array of another shape
            shapes = [self.shape]
        dtype = self.dtype if self.random.random() < 0.4 else self.random.choice(DTYPES)
        return self.operand(
            dtype,
            self.random.choice(shapes),
            ("plain", "plain", "reversed", "strided", "transposed", "numpy"),
        )

    def mask(self) -> str:
        chosen = self.random.random()
        if chosen < 0.2:
            return self.random.choice(("True", "False", "[True]", "np.True_"))
        return self.operand("bool" if chosen < 0.95 else self.dtype, self.fitting_shape())

    def indices(self) -> str:
        chosen = self.random.random()
        if chosen < 0.5:
            return self.random.choice(
                (
                    "0",
                    "[0, 1]",
                    "-1",
                    "[[0], [1]]",
                    "[]",
                    "[1, -1, 0]",
                    "np.array([0, 1])",
                    "np.array([-1, 0, 0])",
                    "[2, 7]",
                    "np.array([[1, 0]], 'uint8')",
                    "np.int64(1)",
                    "True",
                )
            )
        return self.operand(
            self.random.choice(("int64", "uint8", "int32", "bool")), self.fitting_shape()
        )

    def sequence(self) -> str:
        count = self.random.choice((1, 2, 2, 3))
        parts = [self.array() for _ in range(count)]
        if self.random.random() < 0.1:
            return self.array()
        return f"({', '.join(parts)},)" if self.random.random() < 0.5 else f"[{', '.join(parts)}]"

    def square(self) -> str:
        """Matrices that mostly have an inverse."""
        dtype = self.random.choice(("float32", "float64", "complex128", "int64", "bool", "float16"))
        self.dtype, self.shape = (
            dtype,
            self.random.choice(
                ((3, 3), (2, 2), (2, 3, 3), (2, 3), (1, 1), (0, 0), (0, 2, 2), (3,))
            ),
        )
        return self.operand(dtype, self.shape)

    def indices_of_bins(self) -> str:
        """NumPy writes past the end for indices next to the largest number."""
        self.hostile, self.shape = False, self.random.choice(((4,), (6,), (0,), (2, 3)))
        return self.operand(self.random.choice(("uint8", "int64", "bool", "int32")), self.shape)

    def increasing(self) -> str:
        """What is searched must be sorted."""
        self.hostile = False
        return f"np.sort({self.vector()})"

    def vector(self) -> str:
        if not self.operands:
            self.shape = self.random.choice(((4,), (4,), (6,), (1,), (0,), (3,), (), (2, 3)))
        dtype = self.dtype if self.random.random() < 0.6 else self.random.choice(DTYPES)
        return self.operand(dtype, self.shape if self.random.random() < 0.8 else (3,))

    def shape_text(self) -> str:
        size = int(np.prod(self.shape, dtype=int))
        return self.random.choice(
            (
                "(2, 3)",
                "6",
                "-1",
                "(-1,)",
                "(1, -1)",
                "()",
                "(0,)",
                str(size),
                f"({size}, 1)",
                f"(1, {size})",
                "[3, 2]",
                str(self.shape),
                "(3, 3)",
                "np.int64(3)",
                "(4, *[1])",
            )
        )

    def dtype_text(self) -> str:
        if self.random.random() < 0.15:
            return self.random.choice(
                (
                    "int",
                    "float",
                    "bool",
                    "complex",
                    "np.float32",
                    "None",
                    "'>f4'",
                    "np.dtype('int16')",
                    "'i4'",
                    "'e'",
                    "np.floating",
                )
            )
        return repr(self.random.choice(DTYPES))

    def value(self, parameter: str) -> str:
        """Text for a parameter."""
        specific = f"{self.name} {parameter}"
        values = call_values.BY_FUNCTION.get(specific)
        draw = BY_FUNCTION.get(specific)
        if values is None and draw is None:
            values, draw = call_values.BY_NAME.get(parameter), BY_NAME.get(parameter)
        if values is not None:
            return self.random.choice(values)
        return draw(self) if draw is not None else self.array()


def _einsum(draw: Drawing) -> list[str]:
    subscripts, shapes = draw.random.choice(
        (
            ("'ij,jk->ik'", ((2, 3), (3, 3))),
            ("'ii'", ((3, 3),)),
            ("'ij->ji'", ((2, 3),)),
            ("'i,i'", ((3,), (3,))),
            ("'...j,j'", ((2, 3), (3,))),
            ("'ij,ij->j'", ((2, 3), (2, 3))),
            ("'ii->i'", ((3, 3),)),
            ("'ij->'", ((2, 3),)),
            ("'i,j,k->ijk'", ((3,), (1,), (4,))),
            ("'ij,jk'", ((2, 3), (4, 3))),
        )
    )
    return [
        subscripts,
        *(
            draw.operand(
                draw.dtype if draw.random.random() < 0.7 else draw.random.choice(DTYPES), s
            )
            for s in shapes
        ),
    ]


def _axes_or_several(draw: Drawing) -> list[str]:
    order = list(range(len(draw.shape)))
    draw.random.shuffle(order)
    return draw.random.choice(([], [str(tuple(order))], [str(i) for i in order], ["None"]))


SPREAD: Final[dict[str, Callable[[Drawing], list[str]]]] = {
    "einsum": _einsum,
    "ix_": lambda d: [
        d.operand(d.random.choice(("int64", "bool", "uint8")), (n,))
        for n in d.random.choice(((3,), (2, 3), (1, 2, 4)))
    ],
    "broadcast_shapes": lambda d: [str(d.fitting_shape()) for _ in range(3)],
    "result_type": lambda d: [
        d.array() if d.random.random() < 0.5 else d.dtype_text() for _ in range(2)
    ],
    "meshgrid": lambda d: [d.vector() for _ in range(d.random.randint(0, 3))],
    "gradient": lambda d: [
        d.random.choice(("2.0", "1", "0.5"))
        for _ in range(d.random.choice((0, 0, 1, len(d.shape))))
    ],
    "apply_along_axis": lambda d: [],
    "reshape": lambda d: [d.shape_text()],
    "transpose": _axes_or_several,
    "item": lambda d: d.random.choice(([], ["0"], [str((0,) * len(d.shape))])),
    "view": lambda d: [d.dtype_text()],
}
"""Positional arguments of functions that take any number."""

KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "max": ("keepdims", "initial", "where"),
    "min": ("keepdims", "initial", "where"),
    "mean": ("keepdims", "where"),
    "prod": ("keepdims", "initial", "where"),
    "sum": ("keepdims", "initial", "where"),
    "std": ("keepdims", "where", "mean", "correction"),
    "var": ("keepdims", "where", "mean", "correction"),
    "reduce": ("keepdims", "initial", "where"),
    "outer": ("dtype", "casting"),
    "clip": ("dtype", "casting", "where"),
    "einsum": ("dtype", "order", "casting"),
}
"""What hides behind ``**kwargs``."""

_MATRIX = (
    "cholesky",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matrix_power",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "lstsq",
    "multi_dot",
)


BY_NAME: Final[dict[str, Callable[[Drawing], str]]] = {
    "axis": Drawing.axis,
    "out": Drawing.out,
    "where": Drawing.mask,
    "dtype": Drawing.dtype_text,
    "initial": Drawing.number,
    "indices": Drawing.indices,
    "ind": Drawing.indices,
    "shape": Drawing.shape_text,
    "obj": Drawing.indices,
    "newshape": Drawing.shape_text,
    "new_shape": Drawing.shape_text,
    "repeats": lambda d: d.random.choice(
        (
            "2",
            "0",
            "3",
            "[2]",
            "-1",
            d.operand("uint8", d.shape[:1]),
            "[1, 2]",
            "[1, 2, 0]",
            "np.array([2, 0, 1])",
        )
    ),
    "m": Drawing.array,
    "axis1": Drawing.one_axis,
    "axis2": Drawing.one_axis,
    "source": Drawing.one_axis,
    "destination": Drawing.one_axis,
    "start": Drawing.one_axis,
    "axisa": Drawing.one_axis,
    "axisb": Drawing.one_axis,
    "axisc": Drawing.one_axis,
    "condition": Drawing.mask,
    "mask": Drawing.mask,
    "arrays": Drawing.sequence,
    "tup": Drawing.sequence,
    "arys": Drawing.sequence,
    "choices": Drawing.sequence,
    "condlist": lambda d: f"[{d.mask()}, {d.mask()}]",
    "choicelist": lambda d: f"[{d.array()}, {d.array()}]",
    "bins": lambda d: d.random.choice(
        ("4", "3", "[0, 1, 2, 5]", "'auto'", "np.array([-1.0, 0, 4])", "1", "0", "[2, 1]")
    ),
    "q": lambda d: d.random.choice(
        (
            "0.5",
            "[0.25, 0.75]",
            "0",
            "1",
            "[0.1, 0.5, 1.0]",
            "np.array(0.3)",
            "[]",
            "1.5",
            "[[0.5, 0.25]]",
            "np.float32(0.5)",
        )
    ),
    "weights": lambda d: d.random.choice(
        ("None", d.operand(d.random.choice(DTYPES), d.fitting_shape()))
    ),
    "stop": lambda d: d.random.choice(
        ("4", "5.5", "0", "-2", "[1, 2]", d.operand("float64", (3,)))
    ),
    "fill_value": Drawing.array,
    "object": Drawing.array,
    "x": Drawing.array,
    "to_end": Drawing.number,
    "to_begin": Drawing.number,
    "prepend": Drawing.number,
    "append": Drawing.number,
    "value": Drawing.number,
    "sample": lambda d: d.operand(d.random.choice(("float64", "int32")), (4, 2)),
}
"""Of a parameter: how its value is drawn. Others are in `call_values`; all others are arrays."""

BY_FUNCTION: Final[dict[str, Callable[[Drawing], str]]] = {
    **{f"{name} a": Drawing.square for name in _MATRIX},
    "cond x": Drawing.square,
    "svdvals x": Drawing.square,
    "matrix_rank A": Drawing.square,
    "lstsq a": Drawing.square,
    "solve b": lambda d: d.operand(d.dtype, d.random.choice((d.shape[-1:], d.shape, (2,)))),
    "lstsq b": lambda d: d.operand(d.dtype, d.shape[:1]),
    "multi_dot arrays": lambda d: f"[{d.square()}, {d.square()}]",
    "cross a": lambda d: _triples(d),
    "cross b": lambda d: _triples(d),
    "cross x1": lambda d: _triples(d),
    "cross x2": lambda d: _triples(d),
    **{
        f"{name} {p}": Drawing.vector
        for name, ps in (
            ("convolve", "av"),
            ("correlate", "av"),
            ("polyval", "p"),
            ("polyadd", ("a1", "a2")),
            ("polysub", ("a1", "a2")),
            ("polymul", ("a1", "a2")),
            ("polydiv", "uv"),
            ("polyder", "p"),
            ("polyint", "p"),
            ("roots", "p"),
            ("poly", ("seq_of_zeros",)),
            ("polyfit", "xyw"),
            ("histogram2d", "xy"),
            ("interp", ("fp",)),
            ("vander", "x"),
            ("trim_zeros", ("filt",)),
            ("diag", "v"),
        )
        for p in ps
    },
    "polyint p": Drawing.vector,
    "bincount weights": lambda d: d.operand(
        d.random.choice(("float64", "int32", "float32")), d.shape
    ),
    "unpackbits a": lambda d: d.operand("uint8", d.shape),
    "linspace start": lambda d: d.random.choice(
        ("0", "1.5", "-2", "[0, 1]", "1j", d.operand("float32", (3,)))
    ),
    "rollaxis axis": Drawing.one_axis,
    "swapaxes axis1": Drawing.one_axis,
    "angle z": Drawing.array,
    "cov fweights": lambda d: d.operand("int64", d.shape[-1:]),
    "cov aweights": lambda d: d.operand("float64", d.shape[-1:]),
    "searchsorted a": Drawing.increasing,
    "interp xp": Drawing.increasing,
    "bincount x": Drawing.indices_of_bins,
    "select default": Drawing.number,
    "std mean": lambda d: d.operand("float64", (*d.shape[:-1], 1)),
    "var mean": lambda d: d.operand("float64", (*d.shape[:-1], 1)),
    "clip min": Drawing.array,
    "clip max": Drawing.array,
    "sliding_window_view x": Drawing.array,
    "common_type arrays": Drawing.array,
    "unwrap p": Drawing.array,
    "fill_diagonal val": Drawing.array,
    "astype dtype": Drawing.dtype_text,
    "take_along_axis indices": lambda d: d.operand("int64", d.shape),
    "put_along_axis indices": lambda d: d.operand("uint8", d.shape),
    "array_split axis": Drawing.one_axis,
    "split axis": Drawing.one_axis,
    "multi_dot out": Drawing.out,
    "nan_to_num x": Drawing.array,
    "ediff1d to_end": lambda d: d.random.choice(("None", d.number(), d.vector())),
    "divmod out": lambda d: f"({d.out()}, {d.out()})",
    "modf out": lambda d: f"({d.out()}, {d.out()})",
    "frexp out": lambda d: f"({d.out()}, {d.out()})",
    "byteswap a": Drawing.array,
    "sort axis": Drawing.one_axis,
    "isclose b": Drawing.array,
    "normalize a": Drawing.array,
    "__getitem__ key": lambda d: _key(d),
    "__setitem__ key": lambda d: _key(d),
    "ndim a": Drawing.array,
}
"""Of one function's parameter."""


def _triples(draw: Drawing) -> str:
    draw.shape = draw.random.choice(((3,), (2, 3), (2,), (4, 3), (3, 3)))
    return draw.operand(draw.dtype, draw.shape)


def _key(draw: Drawing) -> str:
    return draw.random.choice(
        (
            "0",
            "-1",
            "()",
            "...",
            "None",
            "slice(1, None)",
            "(slice(None), 0)",
            "(..., 0)",
            "[0, 1]",
            "(..., None)",
            "slice(None, None, -1)",
            "(0, [1, 0])",
            "np.array([0, 0])",
            "True",
            "[True]",
            "(slice(None), [0, 1], None)",
            "5",
            draw.mask(),
            draw.indices(),
        )
    )
