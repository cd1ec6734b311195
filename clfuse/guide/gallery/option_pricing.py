"""Prices of European options by the formula of Black and Scholes, and their implied volatility.

The volatility that a price means is found by Newton's method, for all options at
once. The normal distribution is that of Abramowitz and Stegun, 26.2.17 (absolute
error below 7.5e-8).
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "Black-Scholes and implied volatility, {0[0].size} options"
RATE, STRIKE = 0.03, 100.0


def normal_cdf(d):
    """The chance that a normal number is below d."""
    k = 1 / (1 + 0.2316419 * np.abs(d))
    series = k * (
        0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    tail = np.exp(-0.5 * d * d) / np.sqrt(2 * np.pi) * series
    return np.where(d < 0, tail, 1 - tail)


def call(spot, years, volatility):
    """The price of a call, and by how much it grows with the volatility."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / STRIKE) + (RATE + 0.5 * volatility**2) * years) / spread
    price = spot * normal_cdf(d1) - STRIKE * np.exp(-RATE * years) * normal_cdf(d1 - spread)
    vega = spot * np.sqrt(years) * np.exp(-0.5 * d1 * d1) / np.sqrt(2 * np.pi)
    return price, vega


def prepare(quick=False):
    """Spot prices, years to expiry, and the volatility of each option."""
    count = 16 if quick else 1000
    spot, years = np.meshgrid(np.linspace(70, 140, count), np.linspace(0.5, 2, count))
    return spot, years, 0.2 + 0.1 * ((spot - STRIKE) / STRIKE) ** 2


def main(spot, years, volatility):
    """The prices, and the volatilities that these prices mean."""
    price, _ = call(spot, years, volatility)
    implied = np.full(spot.shape, 0.3)
    for _ in range(6):
        guess, vega = call(spot, years, implied)
        implied = implied - (guess - price) / vega
    return {"price": price, "implied": implied, "spot": spot, "years": years}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    spot, years, price = (np.asarray(results[name]) for name in ("spot", "years", "price"))
    figure, axes = plt.subplots(figsize=(6, 4))
    levels = axes.contourf(spot, years, price, 20, cmap="viridis")
    figure.colorbar(levels, label="price")
    axes.set(xlabel="spot price", ylabel="years to expiry")
    path = Path(folder) / "option_pricing.png"
    figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close(figure)
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
