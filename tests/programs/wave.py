"""A plucked string with a heavy half: the wave equation by leapfrog steps, slices written in place,
energy kept.
"""

import numpy as np

n, steps = 401, 800
x = np.linspace(0.0, 1.0, n)
speed = np.where(x < 0.5, 1.0, 0.5)
courant = (0.5 * speed[1:-1]) ** 2

before = np.minimum(x / 0.3, (1.0 - x) / 0.7)
now = before.copy()
largest = np.empty(steps)
for step in range(steps):
    after = np.zeros_like(now)
    after[1:-1] = 2.0 * now[1:-1] - before[1:-1] + courant * (now[2:] - 2.0 * now[1:-1] + now[:-2])
    before, now = now, after
    largest[step] = np.abs(now).max()

print("string:", now[::50])
print(
    "highest at steps:", np.argsort(-largest, kind="stable")[:4], "lowest at", int(largest.argmin())
)
print(f"largest: {largest.max():.9f}, at the end {largest[-1]:.9f}")
