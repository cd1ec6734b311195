"""Two discs of stars that pass each other: gravity between all pairs.

Leapfrog steps; the force between two stars is softened, so that none is thrown out
by a close encounter.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "n-body problem, {0[0].shape[0]} stars, {0[3]} steps"
SOFTENING, TIME_STEP = 0.1, 0.03


def disc(rng, count, center, drift):
    """Positions and velocities of stars that circle around a heavy one."""
    radius = 0.3 + 0.7 * np.sqrt(rng.random(count))
    angle = 2 * np.pi * rng.random(count)
    position = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    speed = np.sqrt(1 / radius)
    velocity = np.stack([-speed * np.sin(angle), speed * np.cos(angle)], axis=1)
    position[0], velocity[0] = 0, 0
    return position + np.array(center), velocity + np.array(drift)


def prepare(quick=False):
    """Positions, velocities and masses of the stars, and the number of steps."""
    count, steps = (32, 4) if quick else (250, 45)
    rng = np.random.default_rng(3)
    discs = [disc(rng, count, (-1.2, -0.5), (0.8, 0)), disc(rng, count, (1.2, 0.5), (-0.8, 0))]
    mass = np.full(2 * count, 1e-4)
    mass[[0, count]] = 1.0
    position, velocity = (np.concatenate(parts) for parts in zip(*discs))
    return position, velocity, mass, steps


def acceleration(position, mass):
    """What all others do to each star: an array like `position`."""
    apart = position[np.newaxis, :, :] - position[:, np.newaxis, :]
    squared = (apart**2).sum(axis=2) + SOFTENING**2
    return (apart * (mass / (squared * np.sqrt(squared)))[:, :, np.newaxis]).sum(axis=1)


def main(position, velocity, mass, steps):
    """Positions and velocities after that many steps."""
    position, velocity = position.copy(), velocity.copy()
    pull = acceleration(position, mass)
    for _ in range(steps):
        velocity += 0.5 * TIME_STEP * pull
        position += TIME_STEP * velocity
        pull = acceleration(position, mass)
        velocity += 0.5 * TIME_STEP * pull
    return {"position": position, "velocity": velocity}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    x, y = np.asarray(results["position"]).T
    figure, axes = plt.subplots(figsize=(5, 5), facecolor="black")
    half = len(x) // 2
    axes.scatter(x[:half], y[:half], s=2, c="#ffcf70")
    axes.scatter(x[half:], y[half:], s=2, c="#8fc7ff")
    axes.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal")
    axes.axis("off")
    path = Path(folder) / "nbody.png"
    figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close(figure)
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
