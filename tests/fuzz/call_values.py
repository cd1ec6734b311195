"""What parameters of NumPy's functions usually take, as text: `tests.fuzz.call_arguments` draws."""

from __future__ import annotations

import re
from typing import Final


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """Lines ``name: value | value``; what is indented goes on with the line before."""
    lines = re.sub(r"\n +", " ", text.strip()).split("\n")
    pairs = [line.split(": ", 1) for line in lines]
    return {name: tuple(values.split(" | ")) for name, values in pairs}


BY_NAME: Final = _table("""
keepdims: True | False | 1 | np.True_
casting: 'no' | 'equiv' | 'safe' | 'same_kind' | 'unsafe' | 'unsafe' | 'same_value'
order: 'C' | 'F' | 'A' | 'K' | None | 'c'
copy: True | False | None | 0
ind: 2 | 1
dimensions: (2, 3) | (3,) | () | (0, 2) | [2, 2] | (-1,)
dims: (2, 3) | (4, 4) | (9,) | 7
reps: 2 | (2, 1) | (1, 2, 1) | 0 | () | np.array([2, 1]) | [2]
n: 1 | 2 | 3 | 0 | 4 | 5 | None
N: 2 | 3 | 0 | 1 | None | 4
M: 2 | 3 | 0 | 5 | None
k: 0 | 1 | -1 | 2 | -3
num: 5 | 1 | 0 | 3 | 4
kth: 0 | 1 | -1 | [0, 1]
decimals: 0 | 1 | -1 | 2 | 3 | np.int8(1)
ddof: 0 | 1 | 2 | 0.5 | 7
correction: 0 | 1 | 1.5
stable: True | False | None
kind: None | 'quicksort' | 'stable' | 'mergesort' | 'heapsort' | 'nonsense'
side: 'left' | 'right' | 'l' | 'nonsense'
equal_nan: True | False
rtol: 1e-5 | 0.5 | 0
atol: 1e-8 | 0.5 | 0
deg: True | False
offset: 0 | 1 | -1 | 3
axes: None | (0, 1) | (1, 0) | 0 | 1 | (0,) | (-1,) | (-2, -1) | 2
mode: 'raise' | 'wrap' | 'clip'
norm: None | 'ortho' | 'forward' | 'backward' | 'x'
s: None | (2, 3) | (4,) | (3, 3) | (4, -1)
d: 1.0 | 0.5 | 2
indices_or_sections: 1 | 2 | 3 | [1] | [1, 2] | 0 | (2, 1) | [0, 5] | np.array([1])
func1d: np.sum | np.cumsum | np.sort | lambda v: v[0] | lambda v: v * 2
func: np.sum | np.max | np.mean
function: lambda *i: i[0] | lambda *i: 1 | lambda *i: sum(i)
range: None | (0, 4) | (-2.0, 2.0) | (1, 1) | (3, 1)
density: True | False | None
method: 'linear' | 'lower' | 'higher' | 'nearest' | 'midpoint' | 'inverted_cdf' | 'hazen' |
    'weibull' | 'median_unbiased' | 'averaged_inverted_cdf' | 'closest_observation' | 'x'
overwrite_input: True | False
returned: True | False
rowvar: True | False
bias: True | False
pad_width: 1 | 0 | (1, 2) | ((1, 0),) | [[2, 1]] | ((1, 2), (0, 1)) | -1 | {0: 1}
shift: 1 | -1 | 2 | (1, 2) | 0 | 7
step: 1 | 2 | -1 | 0.5
endpoint: True | False
start_or_stop: 4 | 0 | 2.5 | -1 | np.int8(3) | np.float32(1.5)
base: 10.0 | 2 | 2.5
retstep: True | False
sparse: True | False
indexing: 'ij' | 'xy'
ndmin: 0 | 1 | 3
ndmax: 0 | 1 | 2
assume_unique: True | False
return_index: True | False
return_inverse: True | False
return_counts: True | False
return_indices: True | False
invert: True | False
sorted: True
ord: None | 1 | 2 | -1 | np.inf | -np.inf | 'fro' | 'nuc' | 0 | 3.5
p: None | 1 | 2 | 'fro' | np.inf
UPLO: 'L' | 'U' | 'X'
upper: True | False
hermitian: True | False
compute_uv: True | False
full_matrices: True | False
rcond: None | 1e-3 | -1
tol: None | 1e-3
discont: None | 3.0
period: 6.283185307179586 | 4 | 2.0
left: None | -9 | 1j
right: None | 9
ddepth: 1
edge_order: 1 | 2
dx: 1.0 | 0.5 | 2
sorter: None | np.array([2, 1, 0]) | [0, 1, 2, 3]
include_initial: True | False
bitorder: 'big' | 'little' | 'x'
count: None | 3 | 9 | -2
minlength: 0 | 7
trim: 'fb' | 'f' | 'b'
wrap: True | False
increasing: True | False
full: True | False
cov: False | True
nan: 0.0 | 7
posinf: None | 9
neginf: None | -9.0
optimize: True | False
multi_index: ([0, 1], [1, 2]) | ([1], [5]) | (1, 0) | ([-1], [0])
number: 5 | -3 | 255 | 0
width: None | 8
padding: 0 | 3
beta: 1.0 | 0 | 8.6
from_: 'int8' | 'float64' | np.float32 | 'complex64'
to: 'int8' | 'float32' | 'bool'
type1: 'int8' | 'float32' | 'uint64'
type2: 'int64' | 'float16' | 'bool'
arg1: 'int8' | np.floating | np.int64
arg2: np.integer | np.floating | 'float64'
iter: [1, 2, 3] | range(4) | (x / 2 for x in range(3))
buffer: b'12345678' | bytearray(16)
max_work: -1 | 0
exclude: ()
inplace: False | True
writeable: True | False
window_shape: 2 | (2,) | (1, 2) | 9
""")
"""Values of a parameter of that name."""

BY_FUNCTION: Final = _table("""
matrix_power n: 0 | 1 | 2 | -1 | 3
qr mode: 'reduced' | 'complete' | 'r' | 'raw' | 'x'
convolve mode: 'full' | 'same' | 'valid'
correlate mode: 'full' | 'same' | 'valid'
pad mode: 'constant' | 'edge' | 'linear_ramp' | 'maximum' | 'mean' | 'median' | 'minimum' |
    'reflect' | 'symmetric' | 'wrap'
polyfit deg: 0 | 1 | 2 | [0, 2]
polyder m: 1 | 2 | 0 | -1
polyint m: 1 | 2 | 0
polyint k: None | 3 | [1, 2]
isin kind: None | 'sort' | 'table'
tri M: None | 3 | 4
eye M: None | 3 | 2
histogram2d bins: 3 | [2, 3] | (2, [0, 1, 2.5])
histogramdd bins: 3 | [2, 3]
tensordot axes: 0 | 1 | 2 | ([0], [0]) | ((-1,), (0,))
percentile q: 50 | [25, 75.5] | 0 | 100 | 101 | [[10, 20]]
nanpercentile q: 50 | [25, 75.5] | 0 | 100 | 101
ravel_multi_index multi_index: ([0, 1], [1, 2]) | ([1], [5]) | (1, 0) | ([-1], [0]) |
    np.array([[0, 1], [1, 1]])
unravel_index indices: 3 | [3, 4] | np.array([[0, 5]]) | 100 | -1
unravel_index shape: (2, 3) | (4, 4) | 6 | (2, 2, 2)
moveaxis source: 0 | -1 | (0, 1) | [0]
moveaxis destination: -1 | 0 | (1, 0) | [1]
identity n: 3 | 0 | 1 | -1
fftfreq n: 4 | 5 | 1 | 0
rfftfreq n: 4 | 5 | 1
diag_indices n: 3 | 0
diag_indices ndim: 2 | 1 | 3
tril_indices n: 3 | 0 | 4
triu_indices n: 3 | 0 | 4
tril_indices m: None | 2
triu_indices m: None | 2
bartlett M: 5 | 1 | 0 | 4
blackman M: 5 | 1 | 0
hamming M: 5 | 1 | 0
hanning M: 5 | 1 | 0
kaiser M: 5 | 1 | 0
apply_over_axes axes: 0 | [0] | [0, 1]
isdtype dtype: np.dtype('float32') | np.int64
isdtype kind: 'integral' | 'real floating' | 'numeric' | np.float32
logspace start: 0 | 1.5 | -2 | [0, 1]
geomspace start: 1 | 1.5 | -2 | [1, 2]
geomspace stop: 8 | 100.0 | -4 | [4, 9]
arange stop: None | 4 | 7.5
reduceat indices: [0] | [0, 1] | [1, 0] | [0, 2, 1] | []
expand_dims axis: 0 | -1 | (0, 1) | 1 | (0, -1) | 5
cov ddof: None | 0 | 1
digitize bins: [0, 1, 2] | [2, 1] | np.array([0.5, 1.5]) | []
full_like shape: None | 3 | (2, 2)
zeros_like shape: None | 3 | (2, 2)
ones_like shape: None | 3 | (2, 2)
empty_like shape: None | 3 | (2, 2)
quantile weights: None
dumps file: None
round decimals: 0 | 1 | -1 | 2
require requirements: None | 'C' | ['F', 'W'] | 'O'
matvec axes: [(-2, -1), -1, -1] | None
vecmat axes: [-1, (-2, -1), -1]
matmul axes: [(-2, -1), (-2, -1), (-2, -1)] | [(0, 1), (1, 0), (0, 1)] | [0]
vecdot axes: [0, 0] | [-1, -1] | [0, 0, ()]
vecdot axis: 0 | -1
trim_zeros axis: None | 0 | -1
concatenate axis: 0 | 1 | None | -1
concat axis: 0 | 1 | None | -1
stack axis: 0 | 1 | -1 | 3
unstack axis: 0 | 1 | -1 | 3
fromfunction shape: (2, 3) | (3,) | () | (0, 2)
empty shape: (2, 3) | 3 | () | -1
insert obj: 0 | 1 | -1 | [0, 1] | slice(0, 2) | [] | 9 | np.array([1, 1])
delete obj: 0 | 1 | -1 | [0, 1] | slice(0, 2) | [] | 9 | np.array([1, 1]) | [True, False, True]
at indices: 0 | [0, 1] | [0, 0] | slice(None) | -1 | ([0, 0],) | np.array([1, 1, 0]) | ... | [9]
kaiser beta: 1.0 | 0 | 8.6
real_if_close tol: 100 | 1.5
""")
"""Values of one function's parameter: these come before those of `BY_NAME`."""
