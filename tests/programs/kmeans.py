"""Lloyd's k-means on three clouds of points: distances, argmin, boolean masks, selections."""

import numpy as np

rng = np.random.default_rng(3)
truth = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
points = np.concatenate([centre + 0.7 * rng.standard_normal((200, 2)) for centre in truth])
centres = points[[0, 250, 500]]

steps = 0
moving = True
while moving:
    distances = ((points[:, np.newaxis] - centres) ** 2).sum(axis=2)
    labels = distances.argmin(axis=1)
    moved = np.array([points[labels == k].mean(axis=0) for k in range(len(centres))])
    moving = np.abs(moved - centres).max() > 1e-12
    centres = moved
    steps += 1

print("steps:", steps)
print("centres:")
print(np.round(centres, 6))
print("sizes:", np.bincount(labels).tolist())
print(f"inertia: {distances.min(axis=1).sum():.8f}")
