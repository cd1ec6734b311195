"""Single calls of all functions in their steady state, beside NumPy, on arguments of three sizes.

Each call is made until what it earns is there (`WARMING_S`), then by turns with NumPy's; a ratio is
the median of the turns. What a call gives is evaluated. Arguments are there already.

    python -m clfuse bench functions                  # what takes more than 1.2 of NumPy's time
    python -m clfuse bench functions cumsum sort      # some functions, all of their ratios
"""

from __future__ import annotations

import builtins
import math
import re
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Final

from clfuse.dataclass import frozen

__all__ = ["CALLS", "SIZES", "Measured", "arguments", "calls", "lines", "measure", "names_of"]

SIZES: Final = (100, 10_000, 1_000_000)
"""Elements of the arguments; matrices have as many, too."""

SLOW: Final = 1.2
"""Of NumPy's time, above which a call is told."""

WARMING_S: Final = 0.4
LEAST_WARMING: Final = 6
MOST_WARMING: Final = 400
TURNS: Final = 7
TURN_S: Final = 0.002
MOST_CALLS: Final = 2000

CALLS: Final = """
abs(z)|absolute(z)|acos(x)|acosh(x+1)|add(x,y)|all(b)|allclose(x,x)|amax(x)|amin(x)|angle(c)|any(~b)
append(x,y)|apply_along_axis(np.sum,1,m[:20])|apply_over_axes(np.sum,m,[0,1])|arange(n)|arccos(x)
arccosh(x+1)|arcsin(x)|arcsinh(z)|arctan(z)|arctan2(x,y)|arctanh(x)|argmax(z)|argmin(z)
argpartition(z,5)|argsort(z)|argwhere(b)|around(z,2)|array(x)|array_equal(x,x)|array_equiv(x,x)
array_split(x,4)|asanyarray(x)|asarray(x)|asarray_chkfinite(x)|ascontiguousarray(m.T)
asfortranarray(m)|asin(x)|asinh(z)|astype(x,'f4')|atan(z)|atan2(x,y)|atanh(x)|atleast_1d(x)
atleast_2d(x)|atleast_3d(x)|average(x,weights=y)|bartlett(n)|bincount(i)|bincount(i,weights=x)
bitwise_and(i,k)|bitwise_count(i)|bitwise_invert(i)|bitwise_left_shift(i,1)|bitwise_not(i)
bitwise_or(i,k)|bitwise_right_shift(i,1)|bitwise_xor(i,k)|blackman(n)|block([[m,m]])
broadcast_arrays(x,1.0)|broadcast_to(x,(2,n))|cbrt(z)|ceil(z)|choose(i%2,[x,y])|clip(z,-.5,.5)
column_stack((x,y))|compress(b,x)|concat((x,y))|concatenate((x,y,z))|conj(c)|conjugate(c)
convolve(x,x[:9],'same')|copy(x)|copysign(x,z)|copyto(w,x)|corrcoef(x,y)|correlate(x,x[:9])|cos(z)
cosh(z)|count_nonzero(b)|cov(x,y)|cross(p,q)|cumprod(x)|cumsum(x)|cumulative_prod(x)
cumulative_sum(x)|deg2rad(x)|degrees(x)|delete(x,[1,5])|diag(m)|diag_indices(9)
diag_indices_from(m)|diagflat(x[:20])|diagonal(m)|diff(x)|digitize(x,e)|divide(x,y)|divmod(z,y)
dot(x,y)|dot(m,m)|dsplit(m[:,:,None]*[1.,2],2)|dstack((x,y))|ediff1d(x)|einsum('i,i',x,y)
einsum('ij,jk->ik',m,m)|empty(n)|empty_like(x)|equal(i,k)|exp(z)|exp2(z)|expand_dims(x,0)|expm1(z)
extract(b,x)|eye(30)|fabs(z)|fill_diagonal(v,1.)|fix(z)|flatnonzero(b)|flip(x)|fliplr(m)|flipud(m)
float_power(x,2.5)|floor(z)|floor_divide(z,y)|fmax(x,y)|fmin(x,y)|fmod(z,y)|frexp(x)
full(n,2.)|full_like(x,2.)|gcd(i,k)|geomspace(1,9,n)|gradient(x)|greater(x,y)|greater_equal(x,y)
hamming(n)|hanning(n)|heaviside(z,.5)|histogram(x,20)|histogram(x,e)|histogram2d(x,y,8)
histogram_bin_edges(x,20)|histogramdd((x,y),8)|hsplit(m,2)|hstack((x,y))|hypot(x,y)|i0(x)
identity(30)|imag(c)|indices((9,9))|inner(x,y)|insert(x,3,1.)|interp(x,s,y)|intersect1d(i,k)
invert(b)|isclose(x,y)|iscomplex(c)|isfinite(x)|isin(i,[1,2,3])|isinf(x)|isnan(x)|isneginf(x)
isposinf(x)|isreal(c)|ix_(i[:9],i[:9])|kaiser(n,2.)|kron(x[:9],x[:9])|lcm(i,k)|ldexp(x,3)
left_shift(i,1)|less(x,y)|less_equal(x,y)|lexsort((x,i))|linspace(0,1,n)|log(x)|log10(x)|log1p(x)
log2(x)|logaddexp(x,y)|logaddexp2(x,y)|logical_and(b,b)|logical_not(b)|logical_or(b,b)
logical_xor(b,b)|logspace(0,1,n)|mask_indices(9,np.triu)|matmul(m,m)|matmul(m,m[0])
matrix_transpose(m)|matvec(m,m[0])|max(z)|maximum(x,y)|mean(x)|mean(m,0)|mean(m,1)|median(x)
meshgrid(x[:30],y[:30])|min(z)|minimum(x,y)|mod(z,y)|modf(z)|moveaxis(m,0,1)|multiply(x,y)
nan_to_num(x)|nanargmax(x)|nanargmin(x)|nancumprod(x)|nancumsum(x)|nanmax(x)|nanmean(x)
nanmedian(x)|nanmin(x)|nanpercentile(x,30)|nanprod(x)|nanquantile(x,.3)|nanstd(x)|nansum(x)
nanvar(x)|negative(x)|nextafter(x,y)|nonzero(b)|not_equal(x,y)|ones(n)|ones_like(x)
outer(x[:99],y[:99])|packbits(b)|pad(x,3)|partition(z,5)|percentile(x,30)|permute_dims(m,(1,0))
piecewise(x,[x<.5,x>=.5],[0.,1.])|place(w,b,[1.,2.])|poly(x[:9])|polyadd(x,y)|polyder(x)
polyfit(x[:99],y[:99],3)|polyint(x)|polymul(x[:99],y[:99])|polysub(x,y)|polyval(x[:9],y)
positive(x)|pow(x,y)|power(x,y)|power(x,3)|prod(x)|ptp(z)|put(w,i,1.)|put_along_axis(w,i,1.,0)
putmask(w,b,1.)|quantile(x,.3)|rad2deg(x)|radians(x)|ravel(m)|ravel_multi_index((i%9,k%9),(9,9))
real(c)|real_if_close(c)|reciprocal(x)|remainder(z,y)|repeat(x,2)|reshape(x,(2,-1))
resize(x,(n+9,))|right_shift(i,1)|rint(z)|roll(x,3)|rollaxis(m,1)|roots(x[:9])|rot90(m)|round(z,2)
searchsorted(s,x)|select([b],[x],0.)|setdiff1d(i,k)|setxor1d(i,k)|sign(z)|signbit(z)|sin(z)|sinc(z)
sinh(z)|sort(z)|sort(m,0)|sort_complex(c)|spacing(x)|split(x,2)|sqrt(x)|square(z)|squeeze(m[None])
stack((x,y))|std(x)|std(m,0)|subtract(x,y)|sum(x)|sum(m,0)|sum(m,1)|swapaxes(m,0,1)|take(x,i)
take_along_axis(x,i,0)|tan(z)|tanh(z)|tensordot(m,m,1)|tile(x,2)|trace(m)|transpose(m)
trapezoid(x)|tri(30)|tril(m)|tril_indices(30)|tril_indices_from(m[:9,:9])|trim_zeros(x)|triu(m)
triu_indices(30)|triu_indices_from(m[:9,:9])|true_divide(x,y)|trunc(z)|union1d(i,k)|unique(i)
unique_all(i)|unique_counts(i)|unique_inverse(i)|unique_values(i)|unpackbits(u)
unravel_index(i%9,(3,3))|unstack(m[:9])|unwrap(z)|vander(x[:99],4)|var(x)|vdot(x,y)|vecdot(x,y)
vecmat(m[0],m)|vsplit(m,2)|vstack((x,y))|where(b,x,y)|where(b)|zeros(n)|zeros_like(x)
linalg.cholesky(d)|linalg.cond(d[:9,:9])|linalg.cross(p,q)|linalg.det(d)|linalg.diagonal(m)
linalg.eig(d[:30,:30])|linalg.eigh(d[:30,:30])|linalg.eigvals(d[:30,:30])
linalg.eigvalsh(d[:30,:30])|linalg.inv(d)|linalg.lstsq(d[:8,:8],x[:8],rcond=None)
linalg.matmul(m,m)|linalg.matrix_norm(m)|linalg.matrix_power(m,3)|linalg.matrix_rank(d[:30,:30])
linalg.matrix_transpose(m)|linalg.multi_dot((m,m,m))|linalg.norm(x)|linalg.norm(m,axis=1)
linalg.outer(x[:99],y[:99])|linalg.pinv(d[:30,:30])|linalg.qr(d[:30,:30])|linalg.slogdet(d)
linalg.solve(d,m[0])|linalg.svd(d[:30,:30])|linalg.svdvals(d[:30,:30])
linalg.tensordot(m,m,axes=1)|linalg.trace(m)|linalg.vecdot(x,y)|linalg.vector_norm(x)
fft.fft(x)|fft.ifft(c)|fft.rfft(x)|fft.irfft(c)|fft.hfft(c)|fft.ihfft(x)|fft.fft2(m)|fft.ifft2(m)
fft.rfft2(m)|fft.irfft2(m)|fft.fftn(m)|fft.ifftn(m)|fft.rfftn(m)|fft.irfftn(m)|fft.fftshift(x)
fft.ifftshift(x)|fft.fftfreq(n)|fft.rfftfreq(n)
random.random(n)|random.rand(n)|random.randn(n)|random.randint(0,9,n)|random.normal(size=n)
random.uniform(size=n)|random.exponential(size=n)|random.standard_normal(n)|random.permutation(n)
random.choice(n,9)|random.shuffle(w)|random.poisson(3.,n)|random.binomial(9,.5,n)|random.random()
random.randint(9)|random.normal()
g.random(n)|g.normal(size=n)|g.integers(0,9,n)|g.standard_normal(n)|g.uniform(size=n)
g.exponential(size=n)|g.permutation(n)|g.choice(n,9)|g.random()|g.integers(9)|g.normal()
g.gamma(2.,1.,n)|g.gamma(.5,1.,n)|g.poisson(3.,n)|g.poisson(50.,n)|g.binomial(9,.5,n)
g.binomial(90,.5,n)|g.hypergeometric(5,5,3,n)|g.hypergeometric(500,500,300,n)|g.zipf(2.,n)
g.vonmises(0.,1.,n)|g.geometric(.3,n)|g.logseries(.5,n)|g.negative_binomial(3,.5,n)|g.wald(1.,1.,n)
g.chisquare(3.,n)|g.f(2.,3.,n)|g.standard_t(3.,n)|g.beta(2.,3.,n)|g.dirichlet([1.,2.],n)
g.multinomial(9,[.5,.2,.3],n)|g.multivariate_hypergeometric([3,4],2,n)|g.permuted(m,axis=1)
g.gamma(2.)|g.poisson(3.)
unique(c)|unique(i.reshape(-1,2)%9,axis=0)|intersect1d(c,c)|lexsort((c,x))|subtract.accumulate(x)
divide.accumulate(y+.5)|add.at(w,i,1.)
"""
"""Expressions, in NumPy's names: `arguments` has the others."""


def calls(names: Sequence[str] = ()) -> list[str]:
    """Those of `CALLS`, or those of the functions with these names."""
    found = [each for line in CALLS.strip().splitlines() for each in line.split("|")]
    if not names:
        return found
    return [each for each in found if _function(each) in names]


def names_of(expressions: Sequence[str]) -> set[str]:
    """The functions that expressions call: ``sum``, ``linalg.norm``, ``g.random``."""
    return {_function(each) for each in expressions}


def _function(expression: str) -> str:
    found = re.match(r"[\w.]+", expression)
    assert found is not None
    return found[0]


def arguments(np: Any, size: int) -> dict[str, Any]:
    """What the expressions of `CALLS` are about, by name."""
    import numpy

    draw = numpy.random.default_rng(0)
    side = max(int(math.sqrt(size)), 2)
    matrix = draw.random((side, side)) * 0.8 + 0.1
    given = {
        "x": draw.random(size) * 0.8 + 0.1, "y": draw.random(size) * 0.8 + 0.1,
        "z": draw.random(size) * 2 - 1, "w": draw.random(size),
        "s": numpy.sort(draw.random(size)), "e": numpy.linspace(0, 1, 21),
        "i": draw.integers(0, size, size), "k": draw.integers(0, size, size),
        "u": draw.integers(0, 255, size).astype(numpy.uint8), "b": draw.random(size) < 0.5,
        "c": draw.random(size) + 1j * draw.random(size), "m": matrix, "v": matrix.copy(),
        "d": matrix @ matrix.T / side + numpy.eye(side),
        "p": draw.random((max(size // 3, 1), 3)), "q": draw.random((max(size // 3, 1), 3)),
    }  # fmt: skip
    made = {name: np.array(value) for name, value in given.items()}
    return {**made, "n": size, "g": np.random.default_rng(0)}


@frozen
class Measured:
    """A call's time: of NumPy in microseconds, and of clfuse in units of that."""

    call: str
    size: int
    numpy_us: float
    ratio: float


def measure(expression: str, size: int, given: dict[ModuleType, dict[str, Any]]) -> Measured:
    """One call on arguments of one size; `given` are NumPy's arguments and clfuse's."""
    functions = [_prepared(np, expression, names) for np, names in given.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts = [_warm(function) for function in functions]
        turns = []
        for _ in range(TURNS):
            turns.append([
                _timed(function, count) for function, count in zip(functions, counts, strict=True)
            ])
    numpy_us = statistics.median(theirs for theirs, _ in turns) * 1e6
    return Measured(
        expression, size, numpy_us, statistics.median(ours / theirs for theirs, ours in turns)
    )


def _prepared(np: Any, expression: str, given: dict[str, Any]) -> Callable[[], None]:
    """The call, as a user's program makes it, with what it gives computed."""
    prefix = "" if expression.startswith("g.") else "np."
    names = {**given, "np": np, "__name__": "program", "__builtins__": builtins}
    call = eval(f"lambda: {prefix}{expression}", names)
    evaluate = getattr(np, "evaluate", None)
    found = call()
    if evaluate is None:
        return call  # type: ignore[no-any-return]
    if hasattr(found, "_storage"):
        return lambda: evaluate(call())
    if isinstance(found, (tuple, list)) and all(hasattr(each, "_storage") for each in found):
        return lambda: evaluate(*call())
    return call  # type: ignore[no-any-return]


def _warm(function: Callable[[], None]) -> int:
    """Call it until what it earns is there; how often it is called in a turn."""
    start = time.perf_counter()
    for number in range(MOST_WARMING):
        function()
        if number >= LEAST_WARMING and time.perf_counter() - start > WARMING_S:
            break
    return min(max(int(TURN_S / max(_timed(function, 1), 1e-7)), 1), MOST_CALLS)


def _timed(function: Callable[[], None], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count


def lines(names: Sequence[str], *, sizes: Sequence[int] = SIZES) -> Iterator[str]:
    """The table: of all functions what is slow, of some all."""
    import numpy

    import clfuse

    from .table import geometric_mean

    which = "" if names else f", above {SLOW}"
    yield f"Times in units of NumPy's{which}; in brackets NumPy's in us."
    found = []
    for size in sizes:
        given = {np: arguments(np, size) for np in (numpy, clfuse)}
        for expression in calls(names):
            each = measure(expression, size, given)
            found.append(each)
            if names or each.ratio > SLOW:
                yield f"{size:>9,}  {expression:34}{each.ratio:8.2f} ({each.numpy_us:,.1f})"
    for size in sizes:
        ratios = [each.ratio for each in found if each.size == size]
        if ratios:
            above = sum(ratio > SLOW for ratio in ratios)
            yield (
                f"{size:>9,}  geometric mean {geometric_mean(ratios):.2f}; above {SLOW}:"
                f" {above} of {len(ratios)}"
            )
