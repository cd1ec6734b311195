"""Light behind a round opening: diffraction by Fourier transforms.

The field in the opening is a sum of plane waves (its spectrum); each goes on with
its own phase. J. W. Goodman, Introduction to Fourier Optics, section 3.10.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "FFT optics, {0[0].shape[0]} x {0[0].shape[1]}, {0[1].shape[0]} distances"
WAVELENGTH, CELL = 0.5e-6, 4e-6
"""Metres."""


def prepare(quick=False):
    """The field in the opening, and the distances in metres."""
    size, distances = (32, 3) if quick else (512, 24)
    y, x = (np.mgrid[0:size, 0:size] - size / 2) * CELL
    opening = np.hypot(x, y) < 0.2 * size * CELL
    return opening.astype(np.complex128), np.linspace(0.02, 0.2, distances)


def main(field, distances):
    """The intensity at the last distance, and along the axis of the opening at each."""
    frequency = np.fft.fftfreq(field.shape[0], CELL)
    squared = frequency[:, np.newaxis] ** 2 + frequency[np.newaxis, :] ** 2
    along = 2 * np.pi * np.sqrt(1 / WAVELENGTH**2 - squared)
    spectrum = np.fft.fft2(field)
    rows = []
    for distance in distances:
        there = np.fft.ifft2(spectrum * np.exp(1j * along * distance))
        intensity = there.real**2 + there.imag**2
        rows.append(intensity[field.shape[0] // 2])
    return {"intensity": intensity, "along": np.stack(rows)}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    path = Path(folder) / "optics.png"
    plt.imsave(path, np.sqrt(np.asarray(results["intensity"])), cmap="inferno")
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
