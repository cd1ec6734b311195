"""The logistic map for many growth rates at once: Lyapunov exponents, and the period that each rate
settles into.
"""

import numpy as np

rate = np.linspace(2.8, 3.56, 77)
x = np.full_like(rate, 0.4)
exponent = np.zeros_like(rate)
for step in range(600):
    x *= rate * (1.0 - x)
    if step >= 300:
        exponent += np.log(np.abs(rate * (1.0 - 2.0 * x)) + 1e-300)
exponent /= 300

orbit = np.empty((16, rate.size))
orbit[0] = x
for step in range(1, 16):
    orbit[step] = rate * orbit[step - 1] * (1.0 - orbit[step - 1])
repeats = np.abs(orbit[1:] - orbit[0]) < 1e-6
period = np.where(repeats.any(axis=0), repeats.argmax(axis=0) + 1, 0)

print("rates:", rate[::8])
print("exponents negative:", bool((exponent[::8] < 0.02).all()))
print("periods:", [int(p) for p in period[[0, 10, 30, 60, 68, 72]]])
print("fixed points:", np.round(orbit[0, :8], 9))
