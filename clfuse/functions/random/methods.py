"""The methods of `Generator` that draw from distributions, by kernels or by NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from clfuse.arrays import handle as handles
from clfuse.arrays.conversion import NotNative, host_scalar, host_view
from clfuse.arrays.handle import Handle
from clfuse.dispatch.numpy_errors import FLAGS, preferred_error, refuse_odd_flags

from . import distributions, several
from .known_draws import drawing_single

_Method = TypeVar("_Method", bound=Callable[..., Any])

EXAMINER: Final = np.random.Generator(np.random.PCG64(0))
"""Says what NumPy would about arguments; what it draws is thrown away."""


def natively(method: _Method) -> _Method:
    """Decorator: this method is for native bit generators, NumPy's own for the others, and where
    it says `NotNative`."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._numpy is not None:
            return self._hosted(name, args, kwargs)
        if not FLAGS.isdisjoint(kwargs):
            refuse_odd_flags(getattr(EXAMINER, name), args, kwargs)
        try:
            return method(self, *args, **kwargs)
        except NotNative as missing:
            reason = str(missing)
        except Exception as error:  # noqa: BLE001 (NumPy says which it is)
            wrong = preferred_error(error, getattr(EXAMINER, name), args, kwargs)
            if wrong is not None:
                raise wrong from None
            reason = str(error)
        return self._hosted(name, args, kwargs, reason)

    return drawing_single(call, name, EXAMINER)  # type: ignore[return-value]


def on_host(value: Any) -> Any:
    """A seed, size or parameter without handles."""
    if type(value) in handles.SCALARS:
        return host_scalar(value)
    return host_view(value) if isinstance(value, Handle) else value


class Distributions:
    """What `Generator` draws from distributions.

    Attributes
    ----------
    bit_generator : Philox4x32, numpy.random.BitGenerator
    """

    bit_generator: Any

    def _sample(self, name: str, size: Any, *parameters: Any, like: str = "") -> Any:
        examiner = getattr(EXAMINER, like or name) if parameters else None
        return distributions.sample(name, examiner, self.bit_generator, parameters, size)

    @natively
    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform between `low` and `high`."""
        return self._sample("uniform", size, low, high)

    @natively
    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal with mean `loc` and standard deviation `scale`."""
        return self._sample("normal", size, loc, scale)

    @natively
    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        """The exponential of normal numbers."""
        return self._sample("lognormal", size, mean, sigma)

    @natively
    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential with mean `scale`."""
        return self._sample("exponential", size, scale)

    @natively
    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential to both sides of `loc`."""
        return self._sample("laplace", size, loc, scale)

    @natively
    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Logistic."""
        return self._sample("logistic", size, loc, scale)

    @natively
    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Gumbel's, of largest values."""
        return self._sample("gumbel", size, loc, scale)

    @natively
    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Distance from the origin of two normal numbers."""
        return self._sample("rayleigh", size, scale)

    @natively
    def weibull(self, a: Any, size: Any = None) -> Any:
        """Weibull's, of shape `a`."""
        return self._sample("weibull", size, a)

    @natively
    def pareto(self, a: Any, size: Any = None) -> Any:
        """Pareto's second (Lomax), of shape `a`."""
        return self._sample("pareto", size, a)

    @natively
    def power(self, a: Any, size: Any = None) -> Any:
        """Density ``a * x**(a - 1)`` in [0, 1]."""
        return self._sample("power", size, a)

    @natively
    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
        """A triangle from `left` over `mode` to `right`."""
        return self._sample("triangular", size, left, mode, right)

    @natively
    def standard_cauchy(self, size: Any = None) -> Any:
        """Cauchy's with mode 0."""
        return self._sample("standard_cauchy", size)

    @natively
    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """How many of `n` trials succeed."""
        if type(n) is int and n == 1:
            if not np.ndim(p):
                EXAMINER.binomial(1, on_host(p), 0)
            return distributions.sample("bernoulli", None, self.bit_generator, (p,), size)
        return self._sample("binomial", size, n, p)

    @natively
    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Poisson's, of mean `lam`."""
        return self._sample("poisson", size, lam)

    @natively
    def geometric(self, p: Any, size: Any = None) -> Any:
        """The trials up to the first that succeeds."""
        return self._sample("geometric", size, p)

    @natively
    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """The trials that fail before `n` succeed; `n` need not be whole."""
        return self._sample("negative_binomial", size, n, p)

    @natively
    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        """How many of a sample without replacement are good."""
        return self._sample("hypergeometric", size, ngood, nbad, nsample)

    @natively
    def logseries(self, p: Any, size: Any = None) -> Any:
        """Logarithmic series."""
        return self._sample("logseries", size, p)

    @natively
    def zipf(self, a: Any, size: Any = None) -> Any:
        """Zipf's (zeta), of exponent `a`."""
        return self._sample("zipf", size, a)

    @natively
    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None
    ) -> Any:
        """Gamma of scale 1."""
        wanted = distributions.is_native_float(dtype, "standard_gamma")
        name = "standard_gamma" if wanted.itemsize == 8 else "standard_gamma float32"
        if out is None:
            return self._sample(name, size, shape, like="standard_gamma")
        extents = distributions.into(out, size, wanted)
        drawn = self._sample(name, extents, shape, like="standard_gamma")
        return distributions.deliver_draws(drawn, out)

    @natively
    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Gamma of a shape and a scale."""
        return self._sample("gamma", size, shape, scale)

    @natively
    def chisquare(self, df: Any, size: Any = None) -> Any:
        """Chi-square with `df` degrees of freedom."""
        return self._sample("chisquare", size, df)

    @natively
    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Any:
        """Chi-square that is not central: a Poisson mixture."""
        return self._sample("noncentral_chisquare", size, df, nonc)

    @natively
    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Any:
        """Fisher's F."""
        return self._sample("f", size, dfnum, dfden)

    @natively
    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Any:
        """Fisher's F that is not central."""
        return self._sample("noncentral_f", size, dfnum, dfden, nonc)

    @natively
    def standard_t(self, df: Any, size: Any = None) -> Any:
        """Student's t with `df` degrees of freedom."""
        return self._sample("standard_t", size, df)

    @natively
    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        """Beta."""
        return self._sample("beta", size, a, b)

    @natively
    def wald(self, mean: Any, scale: Any, size: Any = None) -> Any:
        """Wald's, the inverse Gaussian."""
        return self._sample("wald", size, mean, scale)

    @natively
    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Any:
        """Von Mises' on the circle, between -pi and pi."""
        return self._sample("vonmises", size, mu, kappa)

    @natively
    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        """Parts of 1: as many as `alpha` has elements."""
        return several.dirichlet(self.bit_generator, EXAMINER, alpha, size)

    @natively
    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """How often each of several outcomes comes in `n` trials."""
        return several.multinomial(self.bit_generator, EXAMINER, n, pvals, size)

    @natively
    def multivariate_hypergeometric(
        self, colors: Any, nsample: Any, size: Any = None, method: str = "marginals"
    ) -> Any:
        """How many of each color are in a sample without replacement."""
        return several.multivariate_hypergeometric(
            self.bit_generator, EXAMINER, colors, nsample, size, method
        )

    @natively
    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> Any:
        """Normal vectors: standard ones times a factor of `cov`, which NumPy finds on the host."""
        return several.multivariate_normal(
            self.bit_generator, EXAMINER, mean, cov, size, check_valid, tol, method
        )
