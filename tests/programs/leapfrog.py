"""Five bodies under gravity, by kick-drift-kick steps: broadcasting over pairs, in-place
arithmetic, conserved sums.
"""

import numpy as np

mass = np.array([1.0, 3e-3, 1e-3, 2e-3, 5e-4])
distance = np.array([0.0, 1.0, 1.7, 2.6, 4.0])
angle = np.array([0.0, 0.3, 2.1, 4.4, 5.5])
position = distance[:, None] * np.stack([np.cos(angle), np.sin(angle), 0.05 * angle], axis=1)
velocity = np.zeros_like(position)
speed = np.sqrt(1.0 / distance[1:])
velocity[1:, 0] = -speed * np.sin(angle[1:])
velocity[1:, 1] = speed * np.cos(angle[1:])
velocity -= (mass[:, None] * velocity).sum(axis=0) / mass.sum()


def acceleration(position):
    apart = position[np.newaxis, :, :] - position[:, np.newaxis, :]
    squared = (apart**2).sum(axis=-1) + 1e-6
    return (apart * (mass / squared**1.5)[..., np.newaxis]).sum(axis=1)


def energy(position, velocity):
    kinetic = 0.5 * (mass * (velocity**2).sum(axis=1)).sum()
    apart = position[None] - position[:, None]
    pairs = np.triu(mass[:, None] * mass / np.sqrt((apart**2).sum(axis=-1) + 1e-6), k=1)
    return kinetic - pairs.sum()


start = energy(position, velocity)
step = 0.01
pull = acceleration(position)
for _ in range(300):
    velocity += 0.5 * step * pull
    position += step * velocity
    pull = acceleration(position)
    velocity += 0.5 * step * pull

print("positions:")
print(np.round(position, 7))
print("momentum is zero:", bool(np.abs((mass[:, None] * velocity).sum(axis=0)).max() < 1e-12))
print(f"energy: {start:.9f}, kept: {bool(abs(energy(position, velocity) / start - 1) < 1e-4)}")
