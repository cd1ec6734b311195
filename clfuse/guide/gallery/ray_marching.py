"""Spheres on a floor, by ray marching: a ray goes as far as nothing can be.

The scene is a function that gives the distance to the nearest surface. J. C. Hart,
The Visual Computer 12 (1996), 527.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "ray marching, {0[0].shape[0]} x {0[0].shape[1]}, {0[2]} steps"
SPHERES = [(-1.1, 0.0, 4.0, 1.0), (0.9, -0.4, 3.0, 0.6), (0.7, -0.6, 1.9, 0.4)]
FLOOR = -1.0
LIGHT = (0.57, 0.74, -0.36)


def prepare(quick=False):
    """The directions of the rays by component, and the number of steps."""
    height, width, steps = (24, 36, 20) if quick else (240, 360, 64)
    y = np.linspace(0.8, -0.8, height)[:, np.newaxis]
    x = np.linspace(-1.2, 1.2, width)[np.newaxis, :]
    norm = np.sqrt(x * x + y * y + 2.25)
    return x / norm, y / norm, steps


def distance(x, y, z):
    """How far the nearest surface is."""
    found = y - FLOOR
    for cx, cy, cz, radius in SPHERES:
        sphere = np.sqrt((x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2) - radius
        found = np.minimum(found, sphere)
    return found


def main(dx, dy, steps):
    """How bright each ray's end is, from 0 to 1, and how far it went."""
    dz = np.sqrt(1 - dx * dx - dy * dy)
    far = np.zeros(dx.shape)
    for _ in range(steps):
        far = np.minimum(far + distance(far * dx, far * dy, far * dz), 30.0)
    x, y, z = far * dx, far * dy, far * dz
    step = 1e-4
    here = distance(x, y, z)
    normal = [
        (distance(x + step, y, z) - here) / step,
        (distance(x, y + step, z) - here) / step,
        (distance(x, y, z + step) - here) / step,
    ]
    shine = np.clip(sum(n * light for n, light in zip(normal, LIGHT)), 0, 1)
    # The same march towards the light: what meets something lies in a shadow.
    lx, ly, lz = LIGHT
    gone = np.full(dx.shape, 0.02)
    for _ in range(steps):
        closest = distance(x + gone * lx, y + gone * ly, z + gone * lz)
        gone = np.minimum(gone + np.maximum(closest, 0), 10.0)
    lit = np.where(gone > 5, 1.0, 0.25)
    checks = np.where((np.floor(x) + np.floor(z)) % 2 == 0, 1.0, 0.6)
    checked = np.where(y < FLOOR + 0.01, checks, 1.0)
    return {"bright": (0.1 + 0.9 * shine * lit * checked) * np.exp(-0.08 * far), "far": far}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    path = Path(folder) / "ray_marching.png"
    plt.imsave(path, np.asarray(results["bright"]), cmap="gray", vmin=0)
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
