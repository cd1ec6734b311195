"""Random walks: after n steps of length one a walker is about the root of n away.

The walkers are drawn where they are needed: under clfuse with other numbers than
NumPy's, so the estimates agree within their standard errors.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "{0[0]} random walks of {0[1]} steps"


def prepare(quick=False):
    """The number of walkers and of steps."""
    return (500, 50) if quick else (10_000, 500)


def main(walkers, steps):
    """The mean squared distance from the start, divided by the steps, which is one; some walks."""
    rng = np.random.default_rng(6)
    angle = 2 * np.pi * rng.random((walkers, steps))
    x, y = np.cumsum(np.cos(angle), axis=1), np.cumsum(np.sin(angle), axis=1)
    squared = (x[:, -1] ** 2 + y[:, -1] ** 2) / steps
    return {
        "estimate": squared.mean(),
        "standard_error": squared.std() / np.sqrt(walkers),
        "x": x[:12],
        "y": y[:12],
    }


def draw(results, folder):
    """Write the picture of some walks into a folder; its path."""
    figure, axes = plt.subplots(figsize=(5, 4))
    for x, y in zip(np.asarray(results["x"]), np.asarray(results["y"])):
        axes.plot(x, y, linewidth=0.8)
    axes.plot(0, 0, "ko")
    axes.set(aspect="equal")
    path = Path(folder) / "random_walks.png"
    figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close(figure)
    return path


if __name__ == "__main__":
    found = main(*prepare("--quick" in sys.argv))
    print(f"{found['estimate']:.3f} +- {found['standard_error']:.3f}")
    print("wrote", draw(found, "."))
