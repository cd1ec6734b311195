"""A double pendulum, its equations in a module beside this one: both import numpy, and both must
get the same one.
"""

import equations
import numpy as np

state = np.array([np.pi / 2, 0.0, np.pi / 3, 0.0])
states = equations.integrate(state, step=0.01, steps=150)
energy = equations.energy(states)

print("one library:", np.sin is equations.np.sin)
print("states:", states.shape, states.dtype)
print("end:", np.round(states[-1], 5))
print("energy kept:", bool(np.ptp(energy) < 1e-4), f"{float(energy[0]):.6f}")
