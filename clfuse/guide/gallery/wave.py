"""A wave behind two slits: the wave equation in a plane, by differences in space and time."""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "wave equation, {0[0].shape[0]} x {0[0].shape[1]}, {0[1]} steps"
# The square of the distance that a wave goes in a step, in cells: above 0.5 it grows without bound.
COURANT = 0.25
WAVELENGTH = 16.0


def prepare(quick=False):
    """Where waves pass (1) or not (0), and the number of steps."""
    height, width, steps = (40, 48, 20) if quick else (320, 400, 520)
    passes = np.ones((height, width))
    wall, half = width // 4, height // 2
    passes[:, wall : wall + 4] = 0
    for slit in (half - height // 8, half + height // 8):
        passes[slit - 7 : slit + 7, wall : wall + 4] = 1
    return passes, steps


def main(passes, steps):
    """The height of the wave after that many steps, and its mean square behind the wall."""
    before = now = np.zeros(passes.shape)
    power = np.zeros(passes.shape)
    rate = COURANT * passes[1:-1, 1:-1]
    for step in range(steps):
        after = np.zeros(passes.shape)
        center = now[1:-1, 1:-1]
        around = now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2]
        after[1:-1, 1:-1] = 2 * center - before[1:-1, 1:-1] + rate * (around - 4 * center)
        after *= passes
        after[:, 1] = np.sin(2 * np.pi * np.sqrt(COURANT) * step / WAVELENGTH)
        before, now = now, after
        power += now**2
    return {"height": now, "power": power / steps}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    path = Path(folder) / "wave.png"
    plt.imsave(path, np.asarray(results["height"]), cmap="RdBu", vmin=-1, vmax=1)
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
