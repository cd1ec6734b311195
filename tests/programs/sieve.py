"""Primes below 10,000: strided assignment, boolean selection, differences, counting, integer
division.
"""

import numpy as np

limit = 10_000
prime = np.ones(limit, dtype=bool)
prime[:2] = False
prime[4::2] = False
for n in range(3, int(limit**0.5) + 1, 2):
    if prime[n]:
        prime[n * n :: 2 * n] = False

primes = np.flatnonzero(prime)
gaps = np.diff(primes)
print("count:", len(primes), "last:", primes[-3:])
print("largest gap:", gaps.max(), "after", primes[gaps.argmax()])
print("twins:", np.count_nonzero(gaps == 2))
print("by last digit:", np.bincount(primes % 10, minlength=10))
print("per thousand:", np.bincount(primes // 1000))
print(
    "sum:",
    primes.sum(),
    "sum of squares mod 2**32:",
    (primes.astype(np.uint32) ** 2).sum(dtype=np.uint32),
)
