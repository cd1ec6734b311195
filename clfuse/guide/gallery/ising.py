"""The Ising model at its critical temperature: spins that like to be as their neighbours.

Metropolis steps on a checkerboard: first all white squares, then all black ones, so
that no spin changes together with a neighbour. The random numbers are drawn before.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "Ising model, {0[0].shape[0]} x {0[0].shape[1]}, {0[1].shape[0]} sweeps"
TEMPERATURE = 2 / np.log(1 + np.sqrt(2))


def prepare(quick=False):
    """The spins at the start (1 and -1), and a random number for each spin, color and sweep."""
    size, sweeps = (16, 6) if quick else (512, 40)
    rng = np.random.default_rng(4)
    spins = np.where(rng.random((size, size)) < 0.5, 1.0, -1.0)
    return spins, rng.random((sweeps, 2, size, size), dtype=np.float32)


def main(spins, numbers):
    """The spins after all sweeps, and the mean of them after each."""
    size = spins.shape[0]
    color = np.add.outer(np.arange(size), np.arange(size)) % 2
    means = []
    for sweep in numbers:
        for parity in range(2):
            around = (
                np.roll(spins, 1, 0) + np.roll(spins, -1, 0)
                + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            )
            chance = np.exp(-2 * spins * around / TEMPERATURE)
            spins = np.where((sweep[parity] < chance) & (color == parity), -spins, spins)
        means.append(spins.mean())
    return {"spins": spins, "means": np.array(means)}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    path = Path(folder) / "ising.png"
    plt.imsave(path, np.asarray(results["spins"]), cmap="bone")
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
