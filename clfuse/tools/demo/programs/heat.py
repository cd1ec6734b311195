"""Heat spreading in a square plate of two materials, drawn as a picture.

A plain NumPy program: run it with ``python heat.py``, or unchanged on an OpenCL device with
``python -m clfuse run heat.py``.

The heat equation ``du/dt = div(k grad u)`` in explicit time steps on a grid, with heat flowing
through the faces between the cells, and an edge that is held at zero.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

TITLE = "heat equation, {0[0].shape[0]} x {0[0].shape[1]}, {0[2]} steps"
# Above 0.25 explicit steps of the equation in two dimensions grow without bound.
STEP = 0.24


def prepare(quick=False):
    """The inputs of `main`: temperatures, how well each cell conducts (0 to 1), and the number of
    steps."""
    size, steps = (64, 20) if quick else (1024, 200)
    y, x = np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size), indexing="ij")
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    arms = np.sin(60.0 * radius + 5.0 * angle) > 0.5
    temperature = np.where(arms & (radius < 0.9), 100.0, 0.0)
    conductivity = np.where(np.abs(x) < 0.3 * (1.0 + y), 0.03, 1.0)
    return temperature, conductivity, steps


def main(temperature, conductivity, steps):
    """The temperatures after that many steps."""
    u = temperature.copy()
    vertical = STEP * 0.5 * (conductivity[1:, 1:-1] + conductivity[:-1, 1:-1])
    horizontal = STEP * 0.5 * (conductivity[1:-1, 1:] + conductivity[1:-1, :-1])
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        u[1:-1, 1:-1] = (
            inner
            + vertical[1:] * (u[2:, 1:-1] - inner)
            - vertical[:-1] * (inner - u[:-2, 1:-1])
            + horizontal[:, 1:] * (u[1:-1, 2:] - inner)
            - horizontal[:, :-1] * (inner - u[1:-1, :-2])
        )
    return {"temperature": u}


def draw(results, folder):
    """Write ``heat.png`` into `folder`: black, red, yellow, white for rising temperature. Returns
    its path."""
    heat = np.sqrt(np.clip(results["temperature"] / 100.0, 0.0, 1.0))
    bands = [np.clip(3.0 * heat - band, 0.0, 1.0) for band in range(3)]
    picture = np.rint(255 * np.stack(bands, axis=-1)).astype(np.uint8)
    path = Path(folder) / "heat.png"
    Image.fromarray(picture).save(path)
    return path


if __name__ == "__main__":
    final = main(*prepare(quick="--quick" in sys.argv))
    heat = final["temperature"]
    print(f"heat left: {heat.sum():.3f}, hottest cell: {heat.max():.6f}")
    print("wrote", draw(final, "."))
