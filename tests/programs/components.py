"""Principal components of correlated data, and how the covariance comes out in three ways: linear
algebra and printing.
"""

import numpy as np
import numpy.linalg as la
from numpy import asarray, einsum
from numpy.random import default_rng

rng = default_rng(8)
mixing = asarray([[2.0, 0.3, 0.0], [0.0, 1.0, 0.5], [0.2, 0.0, 0.1]])
data = rng.normal(size=(500, 3)) @ mixing
centred = data - data.mean(axis=0)

covariance = centred.T @ centred / (len(data) - 1)
print(np.round(covariance, 6))
print("as np.cov:", bool(np.allclose(covariance, np.cov(data, rowvar=False))))
print("as einsum:", bool(np.allclose(covariance, einsum("ki,kj->ij", centred, centred) / 499)))

values, vectors = la.eigh(covariance)
print("variances:", np.round(values[::-1], 6))
print("orthogonal:", bool(np.allclose(vectors.T @ vectors, np.eye(3))))
print("first axis:", np.round(np.abs(vectors[:, -1]), 6))
scores = centred @ vectors[:, ::-1]
print("explained:", np.array2string(scores.var(axis=0, ddof=1) / values.sum(), precision=4))
print("condition number:", f"{la.cond(covariance):.4f}")
