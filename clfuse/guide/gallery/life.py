"""The game of life: a cell lives on with two or three neighbours, and is born with three."""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "game of life, {0[0].shape[0]} x {0[0].shape[1]}, {0[1]} generations"


def prepare(quick=False):
    """The cells at the start, and the number of generations."""
    size, generations = (32, 10) if quick else (1024, 100)
    return (np.random.default_rng(8).random((size, size)) < 0.3).astype(np.uint8), generations


def main(cells, generations):
    """The cells after that many generations, and in how many each was alive."""
    lived = np.zeros(cells.shape, np.int32)
    for _ in range(generations):
        rows = cells + np.roll(cells, 1, 0) + np.roll(cells, -1, 0)
        around = rows + np.roll(rows, 1, 1) + np.roll(rows, -1, 1) - cells
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype(np.uint8)
        lived += cells
    return {"cells": cells, "lived": lived}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    lived, cells = np.asarray(results["lived"]), np.asarray(results["cells"])
    path = Path(folder) / "life.png"
    corner = (np.sqrt(lived) + 6.0 * cells)[:160, :240]
    plt.imsave(path, np.kron(corner, np.ones((3, 3))), cmap="viridis")
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
