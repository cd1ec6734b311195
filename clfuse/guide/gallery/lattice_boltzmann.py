"""Flow around a cylinder: the lattice Boltzmann method with nine velocities.

Particles on a grid move to their neighbours, and relax towards equilibrium where
they meet (Bhatnagar, Gross, Krook). The cylinder sends them back where they came
from.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "lattice Boltzmann, {0[0].shape[1]} x {0[0].shape[2]}, {0[2]} steps"
VELOCITIES = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)]
WEIGHTS = [4 / 9] + 4 * [1 / 9] + 4 * [1 / 36]
BACK = [0, 2, 1, 4, 3, 6, 5, 8, 7]
RELAXATION, SPEED = 0.56, 0.1


def equilibrium(density, vy, vx):
    """How many particles have each velocity where all is at rest."""
    square = 1.5 * (vy * vy + vx * vx)
    along = [3 * (dy * vy + dx * vx) for dy, dx in VELOCITIES]
    return [w * density * (1 + a + 0.5 * a * a - square) for w, a in zip(WEIGHTS, along)]


def prepare(quick=False):
    """Particles by velocity and place, where the cylinder is, and the number of steps."""
    height, width, steps = (24, 48, 10) if quick else (60, 180, 400)
    y, x = np.mgrid[0:height, 0:width]
    cylinder = (y - height / 2 - 1) ** 2 + (x - width / 5) ** 2 < (height / 9) ** 2
    vx = SPEED * (1 + 0.01 * np.sin(2 * np.pi * y / height))
    particles = np.stack(equilibrium(np.ones((height, width)), 0 * vx, vx))
    return particles, cylinder, steps


def main(particles, cylinder, steps):
    """The density and the velocity of the flow after that many steps."""
    inflow = particles[:, :, 0].copy()
    moving = list(particles)
    for _ in range(steps):
        moving = [np.roll(f, shift, (0, 1)) for f, shift in zip(moving, VELOCITIES)]
        density = sum(moving[1:], moving[0])
        vy = sum(dy * f for (dy, _), f in zip(VELOCITIES, moving) if dy) / density
        vx = sum(dx * f for (_, dx), f in zip(VELOCITIES, moving) if dx) / density
        rest = equilibrium(density, vy, vx)
        relaxed = [f + (r - f) / RELAXATION for f, r in zip(moving, rest)]
        moving = [np.where(cylinder, moving[BACK[k]], relaxed[k]) for k in range(9)]
        for f, at_rest in zip(moving, inflow):
            f[:, 0] = at_rest
    return {"density": density, "vy": np.where(cylinder, 0, vy), "vx": np.where(cylinder, 0, vx)}


def draw(results, folder):
    """Write the picture of the flow's rotation into a folder; its path."""
    vy, vx = np.asarray(results["vy"]), np.asarray(results["vx"])
    rotation = np.gradient(vy, axis=1) - np.gradient(vx, axis=0)
    path = Path(folder) / "lattice_boltzmann.png"
    plt.imsave(path, np.kron(rotation, np.ones((3, 3))), cmap="RdBu", vmin=-0.02, vmax=0.02)
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
