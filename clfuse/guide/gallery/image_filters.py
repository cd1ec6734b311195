"""Filters of a picture: blur, edges by Sobel's operator, and a sharper picture by an unsharp mask.

Filters that are products of a row and a column go over the rows first and the
columns then.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "image filters, {0[0].shape[0]} x {0[0].shape[1]}"


def prepare(quick=False):
    """A picture of rings and bars with noise, brightness from 0 to 1."""
    height, width = (48, 64) if quick else (960, 1280)
    y, x = np.mgrid[-1 : 1 : height * 1j, -1.33 : 1.33 : width * 1j]
    rings = 0.5 + 0.5 * np.sin(50 * np.hypot(x + 0.4, y) ** 2)
    bars = (np.sin(24 * x + 6 * y) > 0) & (np.abs(y) < 0.5)
    picture = np.where(x < 0.1, rings, 0.15 + 0.7 * bars)
    noise = np.random.default_rng(9).normal(0, 0.08, picture.shape)
    return (np.clip(picture + noise, 0, 1),)


def along(a, weights, axis):
    """A filter along an axis; what lies beyond an edge is the edge."""
    half = len(weights) // 2
    widths = [(half, half) if k == axis else (0, 0) for k in range(2)]
    padded = np.pad(a, widths, mode="edge")
    count = a.shape[axis]
    parts = [padded[k : k + count] if axis == 0 else padded[:, k : k + count]
             for k in range(len(weights))]  # fmt: skip
    return sum(w * part for w, part in zip(weights, parts))


def main(picture):
    """The picture blurred, its edges, and sharper."""
    offsets = np.arange(-6, 7)
    gauss = np.exp(-(offsets**2) / (2 * 2.0**2))
    gauss = [float(w) for w in gauss / gauss.sum()]
    blurred = along(along(picture, gauss, 0), gauss, 1)
    across = along(along(blurred, [1, 2, 1], 0), [-1, 0, 1], 1)
    down = along(along(blurred, [-1, 0, 1], 0), [1, 2, 1], 1)
    edges = np.sqrt(across**2 + down**2)
    sharper = np.clip(picture + 1.5 * (picture - blurred), 0, 1)
    return {"picture": picture, "blurred": blurred, "edges": edges, "sharper": sharper}


def draw(results, folder):
    """Write four pictures as one into a folder; its path."""
    names = ("picture", "blurred", "edges", "sharper")
    parts = [np.asarray(results[name])[::2, ::2] for name in names]
    parts[2] = parts[2] / parts[2].max()
    path = Path(folder) / "image_filters.png"
    plt.imsave(path, np.block([parts[:2], parts[2:]]), cmap="gray", vmin=0, vmax=1)
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
