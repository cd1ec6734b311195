"""A round trip through forty towns, shortened by reversals, and a report on it: lists as indices,
as what is assigned, as operands and arguments of functions.
"""

import numpy as np

rng = np.random.default_rng(12)
towns = rng.random((40, 2))
distance = np.sqrt(((towns[:, None] - towns) ** 2).sum(axis=-1))
np.fill_diagonal(distance, 0)


def length(tour):
    return distance[tour, np.roll(tour, -1)].sum()


tour, seen = [0], np.zeros(40, bool)
seen[0] = True
while not seen.all():
    away = np.where(seen, np.inf, distance[tour[-1]])
    tour.append(int(away.argmin()))
    seen[tour[-1]] = True
print(f"nearest town next: {length(tour):.6f}", tour[:8])

for start in range(1, 38):
    for stop in range(start + 1, 40, 2):
        other = tour[:start] + tour[start:stop][::-1] + tour[stop:]
        if length(other) < length(tour) - 1e-9:
            tour = other
print(f"after reversals: {length(tour):.6f}", np.argsort(tour)[:8])

table = np.zeros((4, 3))
for quarter in range(4):
    part = tour[10 * quarter : 10 * quarter + 10]
    table[quarter] = [np.mean(towns[part, 0]), np.mean(towns[part, 1]), length(part)]
table[[0, 3]] = table[[3, 0]]
table[:, [0, 1]] -= [0.5, 0.5]
print(np.round(table * [100, 100, 1], 4))
print("weights:", table @ [1, -1, 2], "widest:", np.argmax([np.ptp(row) for row in table]))

steps = [distance[a, b] for a, b in zip(tour, tour[1:] + tour[:1], strict=True)]
print(f"{np.mean(steps):.6f} {np.max(steps):.6f} {np.std(steps):.6f} {np.linalg.norm(steps):.6f}")
print(np.cross([*towns[0], 0], [*towns[1], 0]), np.hypot([3, 5], [4, 12]), np.cumsum([1, 2, 3]))
