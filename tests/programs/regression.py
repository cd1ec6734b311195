"""Linear regression by gradient descent in float32, against the normal equations in float64."""

import numpy as np

rng = np.random.default_rng(11)
features = rng.standard_normal((400, 5))
weights = np.array([1.5, -2.0, 0.5, 0.0, 3.0])
target = features @ weights + 0.75 + 0.01 * rng.standard_normal(400)

columns = np.hstack([features, np.ones((400, 1))])
exact = np.linalg.solve(columns.T @ columns, columns.T @ target)

x, y = columns.astype(np.float32), target.astype(np.float32)
w = np.zeros(6, dtype=np.float32)
losses = []
for _ in range(300):
    residual = x @ w - y
    losses.append(float((residual**2).mean()))
    w -= np.float32(0.1) * (x.T @ residual) / np.float32(len(y))

print("exact:", np.round(exact, 6))
print("descent:", np.round(w, 3), w.dtype)
print(f"loss: {losses[0]:.3f} {losses[10]:.4f} {losses[-1]:.5f}")
print("falling:", bool((np.diff(losses) <= 1e-3).all()))
