"""Corners in a photograph, found by Harris and Stephens' detector and marked in a picture.

A plain NumPy program: run it with ``python corners.py``, or unchanged on an OpenCL device with
``python -m clfuse run corners.py``. The photograph comes with scikit-image.

Harris and Stephens, A combined corner and edge detector, Alvey Vision Conference 1988.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

TITLE = "Harris corners, photograph {0[0].shape[0]} x {0[0].shape[1]}"
SENSITIVITY = 0.05
THRESHOLD = 0.01
# Binomial weights: a Gaussian window of standard deviation 1.4.
WINDOW = np.array([1, 8, 28, 56, 70, 56, 28, 8, 1]) / 256


def prepare(quick=False):
    """The input of `main`: brightness between 0 and 1."""
    photograph = data.camera()
    if quick:
        photograph = photograph[64:192, 160:288]
    return (np.asarray(photograph) / 255.0,)


def smooth(image):
    """Blur along both axes; the edge is continued outwards."""
    reach = len(WINDOW) // 2
    rows, columns = image.shape
    padded = np.pad(image, ((reach, reach), (0, 0)), mode="edge")
    image = sum(weight * padded[i : i + rows] for i, weight in enumerate(WINDOW.tolist()))
    padded = np.pad(image, ((0, 0), (reach, reach)), mode="edge")
    return sum(weight * padded[:, i : i + columns] for i, weight in enumerate(WINDOW.tolist()))


def main(image):
    """How much of a corner each pixel is, and which pixels are corners."""
    padded = np.pad(image, 1, mode="edge")
    dy = 0.5 * (padded[2:, 1:-1] - padded[:-2, 1:-1])
    dx = 0.5 * (padded[1:-1, 2:] - padded[1:-1, :-2])
    xx, xy, yy = smooth(dx * dx), smooth(dx * dy), smooth(dy * dy)
    response = xx * yy - xy * xy - SENSITIVITY * (xx + yy) ** 2
    middle = response[1:-1, 1:-1]
    largest = middle
    rows, columns = response.shape
    for i in range(3):
        for j in range(3):
            largest = np.maximum(largest, response[i : i + rows - 2, j : j + columns - 2])
    corners = np.zeros(response.shape, dtype=bool)
    corners[1:-1, 1:-1] = (middle == largest) & (middle > THRESHOLD * response.max())
    return {"response": response, "corners": corners}


def draw(results, folder):
    """Write ``corners.png`` into `folder`: the photograph with a red cross on each corner. Returns
    its path."""
    (image,) = prepare(quick=results["corners"].shape[0] < 512)
    marks = results["corners"].copy()
    for shift in range(1, 4):
        for axis in (0, 1):
            marks |= np.roll(results["corners"], shift, axis) | np.roll(
                results["corners"], -shift, axis
            )
    channels = [np.where(marks, value, image) for value in (1.0, 0.1, 0.1)]
    picture = np.rint(255 * np.stack(channels, axis=-1)).astype(np.uint8)
    path = Path(folder) / "corners.png"
    Image.fromarray(picture).save(path)
    return path


if __name__ == "__main__":
    found = main(*prepare(quick="--quick" in sys.argv))
    print(
        f"{int(found['corners'].sum())} corners, strongest response {found['response'].max():.9f}"
    )
    print("wrote", draw(found, "."))
