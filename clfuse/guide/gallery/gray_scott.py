"""Spots and stripes by reaction and diffusion: the Gray-Scott model.

Two substances spread in a plane; one feeds on the other. Explicit time steps on a
periodic grid, with the five-point Laplacian. J. E. Pearson, Science 261 (1993),
189.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "Gray-Scott model, {0[0].shape[0]} x {0[0].shape[1]}, {0[2]} steps"
SPREAD_U, SPREAD_V, FEED, KILL = 0.16, 0.08, 0.055, 0.062


def prepare(quick=False):
    """The concentrations at the start, and the number of steps."""
    size, steps = (48, 50) if quick else (256, 1200)
    rng = np.random.default_rng(1)
    u, v = np.ones((size, size)), np.zeros((size, size))
    for y, x in rng.integers(8, size - 8, (max(4, size // 4), 2)):
        u[y - 4 : y + 4, x - 4 : x + 4] = 0.5
        v[y - 4 : y + 4, x - 4 : x + 4] = 0.25
    v += 0.02 * rng.random((size, size))
    return u, v, steps


def laplacian(a):
    """The sum of the four neighbours less four times the element, on a periodic grid."""
    return (
        np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a
    )


def main(u, v, steps):
    """The concentrations after that many steps."""
    for _ in range(steps):
        reaction = u * v * v
        u, v = (
            u + SPREAD_U * laplacian(u) - reaction + FEED * (1 - u),
            v + SPREAD_V * laplacian(v) + reaction - (FEED + KILL) * v,
        )
    return {"u": u, "v": v}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    path = Path(folder) / "gray_scott.png"
    plt.imsave(path, np.asarray(results["v"]), cmap="magma")
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
