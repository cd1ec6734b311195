"""Writes the rest of the docstrings of NumPy's functions: parameters, what differs, an example.

    python -m tests.docstrings          # after a change of `PARAMETERS`, of `EXAMPLES`, or of names

The first line of each is in the source. What is the same for many is put together here, from the
signature and from the words for each parameter, into ``clfuse/functions/docstrings.txt``, which
`clfuse.functions.documenting` adds. `tests/device/functions/test_docstrings.py` compares the
file with what this makes, and runs the examples.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import clfuse
from clfuse.functions.documenting import FILE, SEPARATOR
from clfuse.namespace import coverage

KINDS = {
    "native": "It is clfuse's own. Arrays that it makes of recorded ones are recorded, too.",
    "files": "NumPy reads or writes the file; the array is clfuse's.",
    "library": "NumPy does it at the call, without a copy where memory is shared.",
    "host": "NumPy does it on the host; it counts as a fallback.",
    "numpy": "It computes nothing.",
}
"""What `clfuse.namespace.coverage` says of a function, in words."""

ARRAY = "array_like"

PARAMETERS = {
    "A": (ARRAY, "What is repeated."),
    "M": ("int, optional", "Columns; as many as rows where it is left out."),
    "N": ("int", "Rows, or columns of a Vandermonde matrix."),
    "a": (ARRAY, "What it is done to; numbers and lists are taken, too."),
    "a1": (ARRAY, "One side of the comparison."),
    "a2": (ARRAY, "The other side."),
    "a_max": ("array_like or None", "Upper bounds."),
    "a_min": ("array_like or None", "Lower bounds."),
    "allow_pickle": ("bool, optional", "Whether files may hold objects, which can run code."),
    "append": ("array_like, optional", "Joined behind `a` before the differences."),
    "args": ("optional", "Further arguments, as NumPy's function takes them."),
    "arr": (ARRAY, "What it is done to."),
    "array": (ARRAY, "What it is done to."),
    "arrays": ("sequence of array_like", "What is joined; in one dtype afterwards."),
    "ary": (ARRAY, "What it is done to."),
    "arys": (ARRAY, "Arrays, each for itself."),
    "atol": ("float, optional", "The difference that is allowed whatever the size."),
    "axes": ("sequence of int, optional", "Which axes, in which order."),
    "axis": ("int, tuple of int or None, optional", "Along which axes; negative ones count back."),
    "axis1": ("int, optional", "The first of two axes."),
    "axis2": ("int, optional", "The second."),
    "axisa": ("int, optional", "The axis of `a` that holds the vectors."),
    "axisb": ("int, optional", "The axis of `b` that holds the vectors."),
    "axisc": ("int, optional", "The axis of the result that holds the vectors."),
    "b": (ARRAY, "The other operand."),
    "base": ("array_like, optional", "What is raised to the powers."),
    "bins": (ARRAY, "Edges in order, or how many bins of equal width."),
    "bitorder": ("{'big', 'little'}, optional", "Which bit of a byte comes first."),
    "buffer": ("buffer", "An object whose bytes are read."),
    "casting": ("str, optional", "Which conversions are allowed, as in `numpy.can_cast`."),
    "choicelist": ("list of array_like", "What is taken where each condition holds first."),
    "choices": ("sequence of array_like", "What the numbers in `a` choose from."),
    "condition": (ARRAY, "Where it is true or not zero."),
    "condlist": ("list of array_like", "Conditions; the first that is true decides."),
    "copy": ("bool or None, optional", "Whether the result has memory of its own."),
    "correction": ("float, optional", "Another name of `ddof`."),
    "count": ("int, optional", "How many items; -1: all."),
    "data": (ARRAY, "What the matrix holds."),
    "ddof": ("float, optional", "What is taken off the number of elements in the divisor."),
    "decimals": ("int, optional", "Digits behind the point; negative ones are before it."),
    "default": ("scalar, optional", "What stands where no condition is true."),
    "deg": ("bool, optional", "Degrees in place of radians."),
    "density": ("bool, optional", "Whether the area is made 1."),
    "descending": ("bool, optional", "The largest first; NaN are last in any case."),
    "destination": ("int or sequence of int", "Where these axes are afterwards."),
    "device": ("str or Device, optional", "Where it is made; the current device if left out."),
    "dimensions": ("sequence of int", "The shape of the grid."),
    "dims": ("tuple of int", "The shape that the indices are for."),
    "dst": ("ndarray", "What is written to."),
    "dtype": ("dtype, optional", "Of the result, and of what is computed on the way."),
    "dx": ("float, optional", "The distance of the points where `x` is left out."),
    "edge_order": ("{1, 2}, optional", "The order of the differences at the ends."),
    "encoding": ("str, optional", "For files that Python 2 wrote."),
    "endpoint": ("bool, optional", "Whether `stop` is the last number."),
    "equal_nan": ("bool, optional", "Whether NaN is equal to NaN."),
    "f": (ARRAY, "Values on a grid."),
    "file": ("str, path or file", "What is read."),
    "fill_value": (ARRAY, "What every element is."),
    "fix_imports": ("bool, optional", "For files that Python 2 wrote."),
    "flags": ("sequence of str, optional", "Flags of the iterator."),
    "fp": (ARRAY, "Values at the points `xp`."),
    "func1d": ("callable", "It gets one vector after the other."),
    "function": ("callable", "It gets the arrays of the indices."),
    "gdict": ("dict, optional", "Global names of a text."),
    "include_initial": ("bool, optional", "Whether it begins with the neutral element."),
    "increasing": ("bool, optional", "Whether the powers grow from left to right."),
    "ind": (ARRAY, "Places in the flattened array."),
    "indexing": ("{'xy', 'ij'}, optional", "Which axis the first vector goes along."),
    "indices": (ARRAY, "Places; negative ones count from the end."),
    "indices_or_sections": ("int or sequence of int", "How many equal parts, or where to cut."),
    "initial": ("scalar, optional", "What the fold begins with; an empty one is this."),
    "iter": ("iterable", "What gives the items."),
    "k": ("int, optional", "Which diagonal, or how many turns; 0 is the main diagonal."),
    "keepdims": ("bool, optional", "Whether folded axes stay, with one element."),
    "keys": (ARRAY, "Keys; the last decides first."),
    "kind": ("str, optional", "The sort, as NumPy names it; any but ``stable`` may be another."),
    "kth": ("int or sequence of int", "Places that hold what they would hold if all were sorted."),
    "kwargs": ("optional", "Further named arguments, as NumPy's function takes them."),
    "ldict": ("dict, optional", "Local names of a text."),
    "left": ("number, optional", "The value before the first point."),
    "like": ("optional", "An array whose library makes the result; as in NumPy."),
    "m": (ARRAY, "What it is done to."),
    "mask": (ARRAY, "Where it is true."),
    "max": ("array_like, optional", "Upper bounds, by the standard's name."),
    "max_header_size": ("int, optional", "The longest header that is read."),
    "max_work": ("int, optional", "How long NumPy may search for shared bytes."),
    "mean": ("array_like, optional", "The mean, where it is known."),
    "method": ("str, optional", "Which of NumPy's definitions of a quantile."),
    "min": ("array_like, optional", "Lower bounds, by the standard's name."),
    "minlength": ("int, optional", "How many bins there are at least."),
    "mmap_mode": ("str, optional", "Leave the file on the disk, and map it."),
    "mode": ("str, optional", "What is done at the ends, as NumPy names it."),
    "multi_index": ("tuple of array_like", "An array of indices for each axis."),
    "n": ("int, optional", "How often, or the number of rows."),
    "nan": ("number, optional", "What stands for NaN."),
    "neginf": ("number, optional", "What stands for negative infinity."),
    "new_shape": ("int or tuple of int", "The shape of the result."),
    "num": ("int, optional", "How many numbers."),
    "obj": ("str or sequence", "Blocks, or a text that names them."),
    "offset": ("int, optional", "Where it begins: bytes of a buffer, or a diagonal."),
    "op": ("ndarray or sequence of array_like", "What is iterated over."),
    "op_flags": ("list, optional", "Flags of each operand."),
    "operands": ("str and array_like", "Subscripts, then the operands."),
    "optimize": ("bool or str, optional", "Whether an order of the products is searched for."),
    "options": ("optional", "Further named arguments, as NumPy's function takes them."),
    "order": ("str, optional", "C for rows, F for columns, A and K for that of the operand; where"
              " elements are sorted, the field that decides."),
    "out": ("ndarray, optional", "What the result is written to, and what is returned."),
    "overwrite_input": ("bool, optional", "Whether `a` may be used as memory; it is never needed."),
    "pad_width": ("int or sequence", "How much is put before and behind each axis."),
    "period": ("number, optional", "The period of the points."),
    "posinf": ("number, optional", "What stands for infinity."),
    "prepend": ("array_like, optional", "Joined before `a`, before the differences."),
    "prototype": (ARRAY, "What shape and dtype are taken from."),
    "q": (ARRAY, "Which of them: 0 to 100 for percentiles, 0 to 1 for quantiles."),
    "range": ("tuple of two floats, optional", "The first and the last edge."),
    "repeats": ("int or sequence of int", "How often each element is repeated."),
    "reps": ("int or sequence of int", "How often along each axis."),
    "requirements": ("str or sequence of str, optional", "What the memory must be, as C or W."),
    "retstep": ("bool, optional", "Whether the step is returned, too."),
    "returned": ("bool, optional", "Whether the sum of the weights is returned, too."),
    "right": ("bool or number, optional", "Which end of a bin is closed; or the value behind the"
              " last point."),
    "rtol": ("float, optional", "The difference that is allowed, as a part of `b`."),
    "sep": ("str, optional", "What stands between numbers in a text."),
    "shape": ("int or tuple of int, optional", "The shape of the result; one -1 where it is said"
              " by the rest."),
    "shift": ("int or tuple of int", "By how many places."),
    "side": ("{'left', 'right'}, optional", "The first place that is right, or the last."),
    "sorter": ("array_like of int, optional", "The order in which `a` is sorted."),
    "source": ("int or sequence of int", "Which axes are moved."),
    "sparse": ("bool, optional", "Whether axes that repeat the same have one element."),
    "src": (ARRAY, "What is written."),
    "stable": ("bool, optional", "Whether equal elements keep their order."),
    "start": ("array_like, optional", "The first number, or the place to move an axis to."),
    "start_or_stop": ("number", "The first number, or the end where it is alone."),
    "step": ("number, optional", "From each number to the next."),
    "stop": ("array_like, optional", "The end."),
    "string": ("str", "The text that is read."),
    "subok": ("bool, optional", "Whether classes derived from NumPy's are kept."),
    "to_begin": ("array_like, optional", "What stands before the differences."),
    "to_end": ("array_like, optional", "What stands behind them."),
    "tup": ("sequence of array_like", "What is joined."),
    "v": (ARRAY, "The other operand, or what is looked for or written."),
    "val": (ARRAY, "Numbers, or what is written."),
    "vals": (ARRAY, "What is written, one value for each place."),
    "values": (ARRAY, "What is written or joined."),
    "varargs": ("number or array_like", "Distances of the points along each axis."),
    "weights": ("array_like, optional", "What each element counts."),
    "where": ("array_like of bool, optional", "Which elements are taken."),
    "wrap": ("bool, optional", "Whether it goes on below, in a high matrix."),
    "x": (ARRAY, "Numbers, or where they lie."),
    "xi": (ARRAY, "Vectors, one for each axis."),
    "xp": (ARRAY, "Points in rising order."),
    "y": (ARRAY, "Numbers; or what stands where a condition is false."),
    "z": (ARRAY, "Numbers."),
}
"""Parameter -> its kind and what it is, in words that are true of every function that has it."""

EXAMPLES = """
all([True, False]) -> np.False_
allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]) -> True
amax([3, 1, 2]) -> np.int64(3)
amin([3, 1, 2]) -> np.int64(1)
angle(1j, deg=True) -> np.float64(90.0)
any([True, False]) -> np.True_
append([1, 2], [3]) -> array([1, 2, 3])
apply_along_axis(max, 1, [[1, 3], [2, 0]]) -> array([3, 2])
arange(3) -> array([0, 1, 2])
argmax([3, 9, 2]) -> np.int64(1)
argmin([3, 9, 2]) -> np.int64(2)
argpartition([3, 1, 2], 0)[0] -> np.int64(1)
argsort([3, 1, 2]) -> array([1, 2, 0])
argwhere([0, 5, 0, 7]).tolist() -> [[1], [3]]
around([0.5, 1.5, 2.25], 1) -> array([0.5, 1.5, 2.2])
array2string(np.arange(3)) -> '[0 1 2]'
array_equal([1, 2], [1, 2]) -> True
array_equiv([1, 1], [[1, 1], [1, 1]]) -> True
array_repr(np.arange(3)) -> 'array([0, 1, 2])'
array_split(np.arange(3), 2) -> [array([0, 1]), array([2])]
array_str(np.arange(3)) -> '[0 1 2]'
asanyarray([1, 2]) -> array([1, 2])
asarray([1, 2]) -> array([1, 2])
ascontiguousarray([1, 2]) -> array([1, 2])
asfortranarray([[1, 2]]).shape -> (1, 2)
asmatrix([[1, 2]]).shape -> (1, 2)
astype(np.asarray([1.9, 2.1]), int) -> array([1, 2])
atleast_1d(3) -> array([3])
atleast_2d([1, 2]).shape -> (1, 2)
atleast_3d([1, 2]).shape -> (1, 2, 1)
average([1.0, 3.0], weights=[3, 1]) -> np.float64(1.5)
bincount([0, 1, 1, 3]) -> array([1, 2, 0, 1])
bmat([[np.eye(1), np.ones((1, 1))]]).shape -> (1, 2)
broadcast_arrays([1, 2], [[3]])[1].tolist() -> [[3, 3]]
broadcast_shapes((3, 1), (4,)) -> (3, 4)
broadcast_to([1, 2], (2, 2)).tolist() -> [[1, 2], [1, 2]]
choose([0, 1], [[1, 2], [3, 4]]) -> array([1, 4])
clip([1, 5, 9], 2, 8) -> array([2, 5, 8])
column_stack(([1, 2], [3, 4])).tolist() -> [[1, 3], [2, 4]]
compress([True, False], [1, 2]) -> array([1])
concat(([1], [2])) -> array([1, 2])
concatenate(([1, 2], [3])) -> array([1, 2, 3])
convolve([1, 2], [1, 1]) -> array([1, 3, 2])
copy([1, 2]) -> array([1, 2])
copyto(np.zeros(2), 1) -> None
correlate([1, 2, 3], [1, 1]) -> array([3, 5])
count_nonzero([[0, 1], [2, 3]], axis=0) -> array([1, 2])
cross([1, 0, 0], [0, 1, 0]) -> array([0, 0, 1])
cumprod([1, 2, 3]) -> array([1, 2, 6])
cumsum([1, 2, 3]) -> array([1, 3, 6])
cumulative_prod([1, 2, 3]) -> array([1, 2, 6])
cumulative_sum([1, 2, 3]) -> array([1, 3, 6])
diag([1, 2]).tolist() -> [[1, 0], [0, 2]]
diagflat([1, 2]).tolist() -> [[1, 0], [0, 2]]
diagonal([[1, 2], [3, 4]]) -> array([1, 4])
diff([1, 4, 9]) -> array([3, 5])
digitize([0.5, 1.5], [0, 1, 2]) -> array([1, 2])
dot([1, 2], [3, 4]) -> np.int64(11)
dsplit(np.zeros((1, 1, 4)), 2)[0].shape -> (1, 1, 2)
dstack(([1], [2])).shape -> (1, 1, 2)
ediff1d([1, 4, 9]) -> array([3, 5])
einsum("ij,ij->i", [[1, 2], [3, 4]], [[1, 0], [0, 1]]) -> array([1, 4])
einsum_path("ij,jk", np.ones((2, 2)), np.ones((2, 2)))[0] -> ['einsum_path', (0, 1)]
empty((2, 3)).shape -> (2, 3)
empty_like([1, 2]).dtype -> dtype('int64')
expand_dims([1, 2], 0).shape -> (1, 2)
extract([True, False], [1, 2]) -> array([1])
eye(2).tolist() -> [[1.0, 0.0], [0.0, 1.0]]
fill_diagonal(np.zeros((2, 2)), 1) -> None
fix([1.7, -1.7]) -> array([ 1., -1.])
flatnonzero([0, 5, 7]) -> array([1, 2])
flip([1, 2, 3]) -> array([3, 2, 1])
fliplr([[1, 2]]).tolist() -> [[2, 1]]
flipud([[1], [2]]).tolist() -> [[2], [1]]
from_dlpack(np.arange(3)) -> array([0, 1, 2])
frombuffer(b"ab", np.uint8) -> array([97, 98], dtype=uint8)
fromfile(os.devnull, np.uint8).size -> 0
fromfunction(lambda i: 2 * i, (3,)) -> array([0., 2., 4.])
fromiter(range(3), int) -> array([0, 1, 2])
fromstring("1 2", sep=" ") -> array([1., 2.])
full(2, 7) -> array([7, 7])
full_like([1, 2], 7) -> array([7, 7])
geomspace(1, 100, 3) -> array([  1.,  10., 100.])
gradient([1.0, 4.0, 9.0]) -> array([3., 4., 5.])
histogram([1, 2, 2], bins=[1, 2, 3])[0] -> array([1, 2])
hsplit(np.arange(4), 2) -> [array([0, 1]), array([2, 3])]
hstack(([1], [2])) -> array([1, 2])
identity(2).tolist() -> [[1.0, 0.0], [0.0, 1.0]]
imag([1 + 2j]) -> array([2.])
indices((2, 2))[0].tolist() -> [[0, 0], [1, 1]]
inner([1, 2], [3, 4]) -> np.int64(11)
interp(1.5, [1, 2], [10, 20]) -> np.float64(15.0)
isclose([1.0], [1.0 + 1e-9]) -> array([ True])
iscomplex([1, 1j]) -> array([False,  True])
iscomplexobj([1j]) -> True
isneginf([-np.inf]) -> array([ True])
isposinf([np.inf]) -> array([ True])
isreal([1, 1j]) -> array([ True, False])
isrealobj([1.0]) -> True
ix_([0, 1], [2])[0].shape -> (2, 1)
kron([1, 2], [1, 1]) -> array([1, 1, 2, 2])
lexsort(([1, 0], [5, 5])) -> array([1, 0])
linspace(0, 1, 3) -> array([0. , 0.5, 1. ])
load(file) -> array([1, 2])
logspace(0, 2, 3) -> array([  1.,  10., 100.])
matrix_transpose([[1, 2]]).tolist() -> [[1], [2]]
max([3, 1, 2]) -> np.int64(3)
may_share_memory(np.arange(3), np.arange(3)) -> False
mean([1, 2, 6]) -> np.float64(3.0)
meshgrid([1, 2], [3])[0].tolist() -> [[1, 2]]
min([3, 1, 2]) -> np.int64(1)
moveaxis(np.zeros((2, 3, 4)), 0, -1).shape -> (3, 4, 2)
nan_to_num([np.nan, 1.0]) -> array([0., 1.])
nancumprod([2.0, np.nan, 3.0]) -> array([2., 2., 6.])
nancumsum([2.0, np.nan, 3.0]) -> array([2., 2., 5.])
nanmax([1.0, np.nan]) -> np.float64(1.0)
nanmean([1.0, np.nan, 3.0]) -> np.float64(2.0)
nanmedian([1.0, np.nan, 3.0]) -> np.float64(2.0)
nanmin([1.0, np.nan]) -> np.float64(1.0)
nanpercentile([1.0, np.nan, 3.0], 50) -> np.float64(2.0)
nanprod([2.0, np.nan]) -> np.float64(2.0)
nanquantile([1.0, np.nan, 3.0], 0.5) -> np.float64(2.0)
nanstd([1.0, np.nan, 3.0]) -> np.float64(1.0)
nansum([1.0, np.nan]) -> np.float64(1.0)
nanvar([1.0, np.nan, 3.0]) -> np.float64(1.0)
ndim([[1, 2]]) -> 2
nested_iters(np.ones((2, 2)), [[0], [1]])[1].ndim -> 1
nonzero([0, 5, 7])[0] -> array([1, 2])
ones(2) -> array([1., 1.])
ones_like([5, 6]) -> array([1, 1])
outer([1, 2], [3, 4]).tolist() -> [[3, 4], [6, 8]]
packbits([1, 0, 1]) -> array([160], dtype=uint8)
pad([1, 2], 1) -> array([0, 1, 2, 0])
partition([3, 1, 2], 0)[0] -> np.int64(1)
permute_dims(np.zeros((2, 3))).shape -> (3, 2)
place(np.zeros(2), [True, False], [5]) -> None
prod([2, 3]) -> np.int64(6)
ptp([1, 5]) -> np.int64(4)
put(np.zeros(3), [0], 5) -> None
put_along_axis(np.zeros(3), np.array([0]), 5, 0) -> None
putmask(np.zeros(2), [True, False], 5) -> None
ravel([[1, 2], [3, 4]]) -> array([1, 2, 3, 4])
ravel_multi_index(([1], [2]), (3, 4)) -> array([6])
real([1 + 2j]) -> array([1.])
repeat([1, 2], 2) -> array([1, 1, 2, 2])
require([1, 2], float) -> array([1., 2.])
reshape([1, 2, 3, 4], (2, 2)).tolist() -> [[1, 2], [3, 4]]
resize([1, 2], 3) -> array([1, 2, 1])
roll([1, 2, 3], 1) -> array([3, 1, 2])
rollaxis(np.zeros((2, 3, 4)), 2).shape -> (4, 2, 3)
rot90([[1, 2]]).tolist() -> [[2], [1]]
round([1.25, 2.75], 1) -> array([1.2, 2.8])
searchsorted([1, 3, 5], 4) -> np.int64(2)
select([[True, False]], [[1, 2]], 9) -> array([1, 9])
seterr().keys() >= {"over", "divide"} -> True
shape([[1, 2]]) -> (1, 2)
shares_memory(np.arange(3), np.arange(3)) -> False
sinc([0.0]) -> array([1.])
size([[1, 2]]) -> 2
sort([3, 1, 2]) -> array([1, 2, 3])
split(np.arange(4), 2) -> [array([0, 1]), array([2, 3])]
squeeze([[1, 2]]) -> array([1, 2])
stack(([1], [2])).tolist() -> [[1], [2]]
std([1.0, 3.0]) -> np.float64(1.0)
sum([1, 2, 3]) -> np.int64(6)
swapaxes(np.zeros((2, 3)), 0, 1).shape -> (3, 2)
take([5, 6, 7], [0, 2]) -> array([5, 7])
take_along_axis(np.array([5, 6]), np.array([1]), 0) -> array([6])
tensordot([[1, 2]], [[1, 2], [3, 4]], 1).tolist() -> [[7, 10]]
tile([1, 2], 2) -> array([1, 2, 1, 2])
trace([[1, 2], [3, 4]]) -> np.int64(5)
transpose([[1, 2]]).shape -> (2, 1)
trapezoid([1, 2, 3]) -> np.float64(4.0)
tri(2).tolist() -> [[1.0, 0.0], [1.0, 1.0]]
tril([[1, 2], [3, 4]]).tolist() -> [[1, 0], [3, 4]]
triu([[1, 2], [3, 4]]).tolist() -> [[1, 2], [0, 4]]
unpackbits(np.array([160], np.uint8), count=3) -> array([1, 0, 1], dtype=uint8)
unravel_index(6, (3, 4)) -> (np.int64(1), np.int64(2))
unstack([[1, 2], [3, 4]])[1] -> array([3, 4])
vander([1, 2], 2).tolist() -> [[1, 1], [2, 1]]
var([1.0, 3.0]) -> np.float64(1.0)
vdot([1, 2], [3, 4]) -> np.int64(11)
vsplit(np.zeros((4, 1)), 2)[0].shape -> (2, 1)
vstack(([1], [2])).tolist() -> [[1], [2]]
where([True, False], 1, 0) -> array([1, 0])
zeros(2) -> array([0., 0.])
zeros_like([1, 2]) -> array([0, 0])
"""
"""A call of each function, without the module, and what it gives."""

BEFORE = {
    "fromfile": ["import os"],
    "load": ["import io", "file = io.BytesIO()", "np.save(file, [1, 2])", "_ = file.seek(0)"],
}
"""Function -> what comes before its call."""


def examples() -> Iterator[tuple[str, list[str], str]]:
    """Function, the lines of a program, and what is printed of the last."""
    for line in EXAMPLES.split("\n"):
        if line:
            call, _, shown = line.partition(" -> ")
            name = call.partition("(")[0]
            if not hasattr(np, name):
                continue  # an older release
            yield name, [*BEFORE.get(name, ()), f"np.{call}"], "" if shown == "None" else shown


def rest_of(name: str, program: list[str], shown: str) -> str:
    """What follows the first line of a docstring."""
    lines = ["Parameters", "----------"]
    for parameter in inspect.signature(getattr(clfuse, name)).parameters.values():
        kind, text = PARAMETERS[parameter.name]
        stars = {parameter.VAR_POSITIONAL: r"\*", parameter.VAR_KEYWORD: r"\*\*"}
        lines += [f"{stars.get(parameter.kind, '')}{parameter.name} : {kind}", f"    {text}"]
    where = KINDS[coverage()[name]]
    lines += ["", "Notes", "-----", f"As `numpy.{name}`. {where}"]
    lines += ["", "Examples", "--------", ">>> import clfuse as np"]
    lines += [f">>> {line}" for line in program]
    return "\n".join([*lines, *([shown] if shown else [])])


def text() -> str:
    """The file."""
    found = [f"{name}\n{rest_of(name, program, shown)}\n" for name, program, shown in examples()]
    release = ".".join(np.__version__.split(".")[:2])
    head = f"Written by `python -m tests.docstrings` with NumPy {release}.\n"
    return SEPARATOR.join([head, *found])


if __name__ == "__main__":
    Path(FILE).write_text(text(), encoding="utf-8")
    sys.exit(0)
