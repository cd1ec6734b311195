"""A neural network from scratch: two layers learn which of three spirals a point belongs to.

Gradient descent on all points at once, with the derivatives written down.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "neural network, {0[0].shape[0]} points, {0[2].shape[1]} hidden units, {0[4]} steps"
RATE = 1.0


def prepare(quick=False):
    """Points, their classes (one column each), the weights of both layers, the number of steps."""
    each, hidden, steps = (30, 16, 10) if quick else (400, 48, 400)
    rng = np.random.default_rng(7)
    radius = np.linspace(0.05, 1, each)
    points, classes = [], []
    for k in range(3):
        angle = 4 * radius + 2 * np.pi * k / 3 + 0.12 * rng.normal(size=each)
        points.append(np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1))
        classes.append(np.tile(np.eye(3)[k], (each, 1)))
    first = 2 * rng.normal(size=(3, hidden))
    second = 0.1 * rng.normal(size=(hidden + 1, 3))
    return np.concatenate(points), np.concatenate(classes), first, second, steps


def with_one(a):
    """An array with a column of ones behind the others: what the biases are multiplied with."""
    return np.concatenate([a, np.ones((len(a), 1))], axis=1)


def probabilities(a, second):
    """The softmax of the second layer."""
    raised = np.exp(a @ second - (a @ second).max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def main(points, classes, first, second, steps):
    """The weights after that many steps, and the loss at each."""
    x = with_one(points)
    losses = []
    for _ in range(steps):
        a = with_one(np.tanh(x @ first))
        p = probabilities(a, second)
        losses.append(-(classes * np.log(p)).sum(axis=1).mean())
        error = (p - classes) / len(points)
        back = (error @ second[:-1].T) * (1 - a[:, :-1] ** 2)
        second = second - RATE * (a.T @ error)
        first = first - RATE * (x.T @ back)
    return {"first": first, "second": second, "losses": np.array(losses), "points": points}


def draw(results, folder):
    """Write the picture of what the network takes each place for into a folder; its path."""
    first, second, points = (np.asarray(results[k]) for k in ("first", "second", "points"))
    y, x = np.mgrid[-1.1:1.1:200j, -1.1:1.1:200j]
    grid = with_one(np.stack([x.ravel(), y.ravel()], axis=1))
    found = probabilities(with_one(np.tanh(grid @ first)), second).reshape(200, 200, 3)
    figure, axes = plt.subplots(figsize=(5, 5))
    axes.imshow(0.4 + 0.6 * found, extent=(-1.1, 1.1, -1.1, 1.1), origin="lower")
    kinds = np.repeat(np.arange(3), len(points) // 3)
    axes.scatter(points[:, 0], points[:, 1], s=3, c=0.6 * np.eye(3)[kinds])
    path = Path(folder) / "neural_network.png"
    figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close(figure)
    return path


if __name__ == "__main__":
    found = main(*prepare("--quick" in sys.argv))
    print(f"loss {found['losses'][-1]:.4f}")
    print("wrote", draw(found, "."))
