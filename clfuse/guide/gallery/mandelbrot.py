"""The Mandelbrot set: for which c the sequence z -> z * z + c stays small, and when it leaves."""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "Mandelbrot set, {0[0].shape[0]} x {0[0].shape[1]}, {0[1]} iterations"


def prepare(quick=False):
    """The numbers c, and the number of iterations."""
    height, width, iterations = (32, 48, 20) if quick else (480, 720, 80)
    y, x = np.linspace(-1.2, 1.2, height), np.linspace(-2.4, 1.2, width)
    return x[np.newaxis, :] + 1j * y[:, np.newaxis], iterations


def main(c, iterations):
    """For each number how many iterations it stays within a radius of two."""
    x, y = np.zeros(c.shape), np.zeros(c.shape)
    stays = np.zeros(c.shape)
    for _ in range(iterations):
        inside = x * x + y * y <= 4
        stays += inside
        x, y = (
            np.where(inside, x * x - y * y + c.real, x),
            np.where(inside, 2 * x * y + c.imag, y),
        )
    return {"stays": stays}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    path = Path(folder) / "mandelbrot.png"
    plt.imsave(path, np.log(np.asarray(results["stays"])), cmap="twilight_shifted")
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
