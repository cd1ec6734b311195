"""The price of an Asian option, estimated from random price paths.

It pays what the average of a price over a year exceeds the strike price by. The
paths are drawn where they are needed: under clfuse with other numbers than NumPy's,
so the estimates agree within their standard errors.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "Monte Carlo, {0[0]} price paths of {0[1]} steps"
SPOT, STRIKE, RATE, VOLATILITY = 100.0, 95.0, 0.05, 0.25


def prepare(quick=False):
    """The number of paths and of steps."""
    return (2_000, 12) if quick else (500_000, 12)


def main(paths, steps):
    """The estimated price and its standard error, and some of the payoffs."""
    rng = np.random.default_rng(1)
    drift = (RATE - 0.5 * VOLATILITY**2) / steps
    spread = VOLATILITY / np.sqrt(steps)
    logarithm, total = np.zeros(paths), np.zeros(paths)
    for _ in range(steps):
        logarithm = logarithm + drift + spread * rng.standard_normal(paths)
        total = total + np.exp(logarithm)
    payoff = np.exp(-RATE) * np.maximum(SPOT * total / steps - STRIKE, 0)
    return {
        "estimate": payoff.mean(),
        "standard_error": payoff.std() / np.sqrt(paths),
        "payoff": payoff[:20_000],
    }


def draw(results, folder):
    """Write the histogram of the payoffs into a folder; its path."""
    payoff = np.asarray(results["payoff"])
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.hist(payoff[payoff > 0], bins=60, color="tab:blue")
    axes.axvline(float(results["estimate"]), color="black", label="price")
    axes.set(xlabel="discounted payoff, where there is one", ylabel="paths")
    axes.legend()
    path = Path(folder) / "monte_carlo.png"
    figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close(figure)
    return path


if __name__ == "__main__":
    found = main(*prepare("--quick" in sys.argv))
    print(f"price {found['estimate']:.4f} +- {found['standard_error']:.4f}")
    print("wrote", draw(found, "."))
