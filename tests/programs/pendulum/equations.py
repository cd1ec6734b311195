"""Motion of a double pendulum with rods of 1 m and masses of 1 kg, by Runge and Kutta's method of
fourth order.
"""

import numpy as np

G = 9.81


def derivative(state):
    a, v, b, w = state
    difference = a - b
    divisor = 2.0 - np.cos(difference) ** 2
    dv = (
        -np.sin(difference) * (w**2 + v**2 * np.cos(difference))
        - G * (2.0 * np.sin(a) - np.sin(b) * np.cos(difference))
    ) / divisor
    dw = (
        np.sin(difference) * (2.0 * v**2 + w**2 * np.cos(difference))
        + 2.0 * G * (np.sin(a) * np.cos(difference) - np.sin(b))
    ) / divisor
    return np.stack([v, dv, w, dw])


def integrate(state, step, steps):
    states = np.empty((steps + 1, 4))
    states[0] = state
    for i in range(steps):
        s = states[i]
        k1 = derivative(s)
        k2 = derivative(s + 0.5 * step * k1)
        k3 = derivative(s + 0.5 * step * k2)
        k4 = derivative(s + step * k3)
        states[i + 1] = s + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return states


def energy(states):
    a, v, b, w = states.T
    kinetic = v**2 + 0.5 * w**2 + v * w * np.cos(a - b)
    return kinetic - G * (2.0 * np.cos(a) + np.cos(b))
