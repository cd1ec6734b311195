"""The Ising model by Metropolis' method on a chequerboard: random numbers, masked updates, integer
arithmetic.
"""

import numpy as np

size, sweeps, temperature = 24, 60, 1.8
rng = np.random.default_rng(5)
spins = rng.choice(np.array([-1, 1], dtype=np.int8), size=(size, size))
rows, columns = np.indices(spins.shape)
colours = [(rows + columns) % 2 == parity for parity in (0, 1)]

magnetisation = []
for _ in range(sweeps):
    for colour in colours:
        around = (
            np.roll(spins, 1, 0)
            + np.roll(spins, -1, 0)
            + np.roll(spins, 1, 1)
            + np.roll(spins, -1, 1)
        )
        cost = 2.0 * spins * around
        flip = colour & (rng.random(spins.shape) < np.exp(-cost / temperature))
        spins[flip] *= -1
    magnetisation.append(float(spins.mean()))

energy = -(spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1))).sum(dtype=int) / spins.size
print("spins:", spins.dtype, np.unique(spins).tolist())
print("magnetisation:", [round(m, 6) for m in magnetisation[::10]])
print(f"energy per spin: {energy:.6f}")
