"""k-means: points in a plane fall into groups, each around its mean (Lloyd's algorithm)."""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "k-means, {0[0].shape[0]} points, {0[1].shape[0]} groups, {0[2]} rounds"


def prepare(quick=False):
    """The points, the first guess of the means, and the number of rounds."""
    count, rounds = (200, 4) if quick else (60_000, 15)
    rng = np.random.default_rng(2)
    centers = rng.uniform(-4, 4, (7, 2))
    points = centers[rng.integers(0, 7, count)] + rng.normal(0, 0.55, (count, 2))
    return points, points[:7].copy(), rounds


def nearest(points, means):
    """For each point which mean is nearest."""
    apart = points[:, np.newaxis, :] - means[np.newaxis, :, :]
    return (apart**2).sum(axis=2).argmin(axis=1)


def main(points, means, rounds):
    """The means, and each point's group."""
    groups = np.arange(len(means))
    for _ in range(rounds):
        is_in = nearest(points, means)[:, np.newaxis] == groups
        members = is_in.sum(axis=0)
        sums = np.where(is_in[:, :, np.newaxis], points[:, np.newaxis, :], 0).sum(axis=0)
        means = sums / np.maximum(members, 1)[:, np.newaxis]
    return {"means": means, "group": nearest(points, means), "points": points}


def draw(results, folder):
    """Write the picture into a folder; its path."""
    points, group = np.asarray(results["points"])[:6000], np.asarray(results["group"])[:6000]
    means = np.asarray(results["means"])
    figure, axes = plt.subplots(figsize=(5, 4))
    axes.scatter(points[:, 0], points[:, 1], s=2, c=group, cmap="tab10", vmax=9)
    axes.scatter(means[:, 0], means[:, 1], s=80, c="black", marker="x")
    path = Path(folder) / "kmeans.png"
    figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close(figure)
    return path


if __name__ == "__main__":
    print("wrote", draw(main(*prepare("--quick" in sys.argv)), "."))
