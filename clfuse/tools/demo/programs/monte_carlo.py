"""The price of an Asian option, estimated from random price paths.

A plain NumPy program: run it with ``python monte_carlo.py``, or unchanged on an OpenCL device with
``python -m clfuse run monte_carlo.py``.

The option pays what the average of the price over a year exceeds the strike price by. Normal
numbers are made from uniform ones by Box and Muller's method (Annals of Mathematical Statistics 29,
1958).
"""

import sys

import numpy as np

TITLE = "Monte Carlo, {0[1]:,} price paths of {0[2]} steps"
SPOT = 100.0
STRIKE = 95.0
RATE = 0.05
VOLATILITY = 0.25


def prepare(quick=False):
    """The inputs of `main`: the seed, the number of paths, the number of steps (even) in each."""
    return 1, (20_000 if quick else 500_000), 12


def main(seed, paths, steps):
    """The estimated price, and the standard error of that estimate."""
    rng = np.random.default_rng(seed)
    interval = 1.0 / steps
    drift = (RATE - 0.5 * VOLATILITY**2) * interval
    spread = VOLATILITY * np.sqrt(interval)
    logarithm = np.zeros(paths)
    total = np.zeros(paths)
    for _ in range(steps // 2):
        radius = np.sqrt(-2.0 * np.log(1.0 - rng.random(paths)))
        angle = 2.0 * np.pi * rng.random(paths)
        for normal in (radius * np.cos(angle), radius * np.sin(angle)):
            logarithm = logarithm + drift + spread * normal
            total = total + np.exp(logarithm)
    payoff = np.exp(-RATE) * np.maximum(SPOT * total / steps - STRIKE, 0.0)
    return {"estimate": payoff.mean(), "standard_error": payoff.std(ddof=1) / np.sqrt(paths)}


if __name__ == "__main__":
    price = main(*prepare(quick="--quick" in sys.argv))
    print(f"price {price['estimate']:.4f}, standard error {price['standard_error']:.4f}")
