"""Kalman filters: where many targets are, and how fast, from measurements of their places.

Each filter has a place and a velocity, and their covariance. All targets are
filtered at once, one step of time after the other.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

TITLE = "{0[0].shape[1]} Kalman filters, {0[0].shape[0]} steps"
TIME_STEP, JERK, NOISE = 0.1, 0.5, 1.0


def prepare(quick=False):
    """Measured and true places, by step and target."""
    steps, targets = (20, 16) if quick else (120, 40_000)
    rng = np.random.default_rng(5)
    velocity = rng.normal(2, 1, targets) + np.cumsum(
        JERK * np.sqrt(TIME_STEP) * rng.normal(size=(steps, targets)), axis=0
    )
    place = np.cumsum(velocity * TIME_STEP, axis=0)
    return place + NOISE * rng.normal(size=(steps, targets)), place


def main(measured, true):
    """Estimates and their standard deviations, and the root of the mean squared errors."""
    place, velocity = measured[0], np.zeros(measured.shape[1])
    p00, p01, p11 = NOISE**2, 0.0, 10.0
    q = JERK**2
    places, deviations = [], []
    for seen in measured:
        place = place + TIME_STEP * velocity
        p00, p01, p11 = (
            p00 + 2 * TIME_STEP * p01 + TIME_STEP**2 * p11 + q * TIME_STEP**3 / 3,
            p01 + TIME_STEP * p11 + q * TIME_STEP**2 / 2,
            p11 + q * TIME_STEP,
        )
        spread = p00 + NOISE**2
        k0, k1 = p00 / spread, p01 / spread
        surprise = seen - place
        place, velocity = place + k0 * surprise, velocity + k1 * surprise
        p00, p01, p11 = (1 - k0) * p00, (1 - k0) * p01, p11 - k1 * p01
        places.append(place)
        deviations.append(np.sqrt(p00))
    estimates = np.stack(places)
    return {
        "estimates": estimates[:, :8],
        "deviations": np.array(deviations),
        "true": true[:, :8],
        "measured": measured[:, :8],
        "error": np.sqrt(((estimates - true) ** 2).mean()),
        "error_measured": np.sqrt(((measured - true) ** 2).mean()),
    }


def draw(results, folder):
    """Write the picture of one target into a folder; its path."""
    shown = {name: np.asarray(results[name]) for name in ("true", "measured", "estimates")}
    spread = np.asarray(results["deviations"])
    time = TIME_STEP * np.arange(len(spread))
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(time, shown["measured"][:, 0], ".", color="gray", label="measured")
    axes.plot(time, shown["true"][:, 0], color="black", label="true")
    estimate = shown["estimates"][:, 0]
    axes.plot(time, estimate, color="tab:orange", label="filtered")
    axes.fill_between(time, estimate - 2 * spread, estimate + 2 * spread, alpha=0.3)
    axes.set(xlabel="time", ylabel="place")
    axes.legend()
    path = Path(folder) / "kalman.png"
    figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close(figure)
    return path


if __name__ == "__main__":
    found = main(*prepare("--quick" in sys.argv))
    print(f"error {found['error']:.3f}, of the measurements {found['error_measured']:.3f}")
    print("wrote", draw(found, "."))
