"""Odd but reasonable kernels, as users of other kernel languages write them, give what they give in
plain Python.

Each body runs as array operations where it can, and as a launch of generated OpenCL C always.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np
import pytest

import clfuse as cf
from tests.support.agreement import SIMULATED
from tests.support.kernel_bodies import compare, kernel_of

pytestmark = pytest.mark.clfuse_only
LENGTH = 11
HEAD = "i, a, n, x, f, k, u, b, c, h, m, out"


class Color(enum.IntEnum):
    RED = 1
    GREEN = 2
    BLUE = 3


class Constants:
    GRAVITY = 9.81
    COUNT = 4


@cf.device_function
def sign(v):
    if v > 0:
        return 1
    if v < 0:
        return -1
    return 0


@cf.device_function
def find(values, v, start=0):
    for j in range(start, len(values)):
        if values[j] == v:
            return j
    return -1


@cf.device_function
def add(one, other):
    return one + other


@cf.device_function
def line(v, a=2.0, b=1.0):
    return a * v + b


@cf.device_function
def ordered(one, other):
    if one < other:
        return one, other
    return other, one


@cf.device_function
def collatz(n):
    steps = 0
    while n != 1 and steps < 200:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


SCOPE = {
    "cf": cf, "np": np, "math": math, "Color": Color, "Constants": Constants, "sign": sign,
    "find": find, "line": line, "ordered": ordered, "collatz": collatz, "add": add,
    "YES": True, "NO": False,
}

BODIES = """
for p in range(4):
    for q in range(3):
        if m[i, q] > p:
            break
    else:
        out[0, i] = p
out[1, i] = p * 10 + q
---
s = 0
for q in range(6):
    if m[i, q] == 4:
        break
    s += 1
else:
    s = -1
out[0, i] = s
t = 0
while t < 100:
    t += 1
    if t % 2:
        continue
    if t > 20:
        break
    out[1, i] = t
else:
    out[2, i] = 9
---
t = 7.0
t += x[i]
t -= 1
t *= 2
t /= 3
t //= 0.5
t %= 5
t **= 2
out[0, i] = t
s = k[i]
s += 3
s -= 1
s *= 2
s //= 3
s %= 5
s |= 8
s &= 13
s ^= 6
s <<= 2
s >>= 1
out[1, i] = s
---
p, q, r = i, i + 1, i + 2
p, q, r = q, r, p
p, q = q, p
out[0, i] = p * 100 + q * 10 + r
p = q = i * 2
out[1, i] = out[2, i] = p + q
---
out[0, i] = 0 <= sign(x[i]) < line(x[i], a=3) <= 10
out[1, i] = line(x[i]) + line(x[i], b=4.0) + line(b=1, v=2)
lo, hi = ordered(x[i], 3)
hi, lo = ordered(lo, hi)
out[2, i] = hi - lo
out[0, i], out[3, i] = ordered(i, 3)
---
out[0, i] = x[-1] + m[i, -2] + m[-1, -1]
out[1, i] = x[abs(i - 5)] + x[min(i + 3, 10)] + x[(i * 3) % 11]
out[2, i] = m[i, n] + m[n, i % 6] + x[k[i] % 11]
out[3, i] = x[-1 - 1] + x[-(2**2)] + x[~0] + x[-Color.BLUE] + x[-1 + 2] + x[Constants.COUNT - 5]
---
out[0, i] = abs(k[i]) + min(u[i], 7) + max(k[i], n)
out[1, i] = max(x[i], f[i], i) + min(1, 2.5) + max(b[i], 0) + abs(-3) + abs(3 + 4j)
out[2, i] = math.trunc(-2.7) + int(-2.7) + round(2.5) + round(-0.5) + pow(2, 5) + pow(x[i], 2)
out[3, i] = round(f[i]) + round(k[i]) + round(i) if abs(f[i]) < 1e6 else 0
---
q, r = divmod(k[i], 7)
out[0, i] = q
out[1, i] = r
s, t = divmod(i - 5, -3)
out[2, i] = s * 10 + t
y, z = divmod(x[i], 0.75)
out[3, i] = y + z
---
out[0, i] = Constants.GRAVITY * Constants.COUNT + Color.RED + Color.BLUE.value
out[1, i] = 3 if k[i] == Color.RED else Color.GREEN
out[2, i] = np.pi + math.e + math.tau + np.e
out[3, i] = 1e400 if i > 3 else 0x10 + 0b11 - 1_000
---
out[0, i] = np.float32(x[i]) * np.float32(0.1) + np.int8(3)
out[1, i] = (np.uint32(1) << 31) + np.uint64(2**63) - (1 << 40)
out[2, i] = int(x[i] > 0) + int(True) + (x[i] > 0)
---
out[0, i] = k[i] // -3
out[1, i] = k[i] % -3
out[2, i] = -7 // 2 * (i - 4) % -3
out[3, i] = (i - 5) // 2 + (i - 5) % 4 + i // -n + -i % n
---
out[0, i] = (i << 3) >> 1
out[1, i] = (k[i] << 1) + (k[i] >> 3)
out[2, i] = u[i] << 1
out[3, i] = (k[i] & 0xFF | 1 << 3 ^ 5) + ~i + ~k[i]
---
out[0, i] = float(i + 1) ** -2
out[1, i] = (i + 1.0) ** -1
out[2, i] = f[i] ** 3
out[3, i] = 2.0**i + i**0.5 + n**2 + a**n + k[i] ** 2 + i**2
---
out[0, i] = k[i] + u[i]
out[1, i] = u[i] + b[i]
out[2, i] = u[i] * f[i]
out[3, i] = h[i] + u[i]
---
out[0, i] = u[i] - 1
out[1, i] = u[i] * u[i]
out[2, i] = -u[i]
out[3, i] = u[i] - k[i]
---
out[0, i] = abs(c[i])
out[1, i] = (c[i] * c[i]).real + (c[i] ** 2).real
out[2, i] = c[i].imag + (1j * i).imag
c[i] += 2
c[i] *= f[i]
---
out[0, i] = h[i] * 2 + h[i]
out[1, i] = h[i] / 3
out[2, i] = h[i] * f[i]
h[i] = h[i] * 1.1
u[i] = u[i] + 200
b[i] = not b[i]
c[i] = complex(i, 1)
k[i] = 3.7
---
for q in range(10, 0, -3):
    out[q % 4, i] = q
for q in range(5, 5):
    out[0, i] = q
for q in range(5, -5):
    out[1, i] = q
for q in range(0, 10, n):
    out[2, i] += q
for q in range(n, -n, -1):
    out[3, i] += q * q
---
for q in range(len(x) - 1, i, -1):
    out[0, i] += m[q, 2]
for q in range(u[i]):
    out[1, i] += q
---
t = 0
while True:
    t += 1
    if t * t > i:
        break
out[0, i] = t
while True:
    s = 1
    if x[i] > 0:
        break
    s = 2
    break
out[1, i] = s
---
if i > 5:
    return
out[0, i] = 1
if x[i] > 0:
    return
out[1, i] = 2
---
out[0, i] = find(u, 7) + find(k, 5, start=3)
out[1, i] = x[find(u, 7)]
out[2, i] = collatz(i + 1)
---
t = cf.local_array((2, 3), np.float64)
for p in range(2):
    for q in range(3):
        t[p, q] = p * 3 + q + i
out[0, i] = t[1, 2] + t[-1, -1]
---
for p in range(3):
    t = cf.local_array(4)
    t[p] += 1
    out[p, i] = t[0] + 2 * t[1] + 4 * t[2]
---
if x.shape[0] > m.shape[1]:
    out[0, i] = len(m) * m.size + m.ndim
else:
    out[0, i] = 3
rows, columns = m.shape
out[1, i] = m[i % rows, (i + 1) % columns]
---
if i == len(x) - 1 or i == 0:
    out[0, i] = -1
elif x[i - 1] < x[i + 1]:
    out[0, i] = 1
out[1, i] = x[i - 1] if i else 3
out[2, i] = not (i < 3 or i > 7) and not b[i]
out[3, i] = not (b[i] and i > 3) or not (i > 5 and not b[i])
---
if YES:
    t = 1
if NO:
    s = 3
else:
    s = 2
out[0, i] = t + s
---
a = a * 2
n -= 1
out[0, i] = a + n
n = k[i]
out[1, i] = n
---
i += 1
out[0, i - 1] = i
for i in range(3):
    out[1, i] = i
---
total = 0.0
for q in range(k[i] % 50):
    flag = x[q % 11] > 0
    if flag:
        flag = False
        total += 1
    else:
        total += 10
out[1, i] = total
v = f[i]
flag = v > 0
s = 0
while s < 20:
    s += 1
    if flag:
        flag = v > s
        v = v * 0.5
    else:
        flag = v > 1
        v = v + 1
    if v > 9:
        break
out[2, i] = s
---
total: float = 0
for q in range(6):
    total += m[i, q]
out[0, i] = total
---
out[0, i] = b[i] + b[i]
out[1, i] = b[i] & (i > 3)
out[2, i] = (x[i] > 0) ^ b[i]
out[3, i] = ~b[i]
t = x[i] > 0
t = t and f[i] > 0
t |= b[i]
out[3, i] += t
---
out[0, i] = (i > 3) * 5 + (x[i] > 1) * 2
out[1, i] = -(i > 3)
out[2, i] = 1 if i > 2 else 2 if i > 1 else 3
out[3, i] = 10 if b[i] and x[i] > 1 or f[i] < 0 else 20
---
out[0, i] = math.floor(f[i]) + math.ceil(f[i]) if abs(f[i]) < 1e6 else 0
out[1, i] = np.sqrt(np.abs(x[i])) + np.maximum(x[i], 1) + np.sign(f[i])
out[2, i] = np.mod(x[i], 3) + np.fabs(f[i]) + np.floor_divide(k[i], 3)
out[3, i] = math.isnan(x[i]) + math.isinf(x[i]) + math.fmod(x[i], 2) + math.copysign(1, x[i])
---
out[0, i] = x[i] == x[i]
out[1, i] = x[i] != x[i]
out[2, i] = not x[i]
out[3, i] = x[i] or 3
---
s = 0.0
for q in range(6):
    if m[i, q] < 0:
        continue
    if q == 4:
        break
    s += m[i, q]
out[0, i] = s
---
best = -1
top = -math.inf
for q in range(m.shape[1]):
    if m[i, q] > top:
        top = m[i, q]
        best = q
out[0, i] = best
out[1, i] = top
---
w = 0
for p in range(3):
    for q in range(p, 6, 2):
        w += p * q
        if w > 7:
            break
    w += 1
out[0, i] = w
---
q = 0
t = 0.0
while q < 6 and m[i, q] >= 0:
    t += m[i, q]
    q += 1
out[0, i] = t
---
out[i % 4, i] = i
---
for q in range(n):
    t = q
    if t > 1:
        break
else:
    t = 5
out[0, i] = t
---
cf.atomic.add(m, (0, 0), 1)
cf.atomic.max(k, i // 2, i)
old = cf.atomic.add(out, (1, i), 5)
out[0, i] = old
---
out[0, i] = 1 if k[i] == 7 or (u[i] and x[i] > 1) else 2
if b[i] and f[i] or not u[i] and not c[i]:
    out[1, i] = 3
out[2, i] = not (u[i] and k[i] > 2)
q = 0
while q < 5 and h[i] and not q == n:
    q += 1
out[3, i] = q
---
out[0, i] = (9223372036854775807 - i) + (-9223372036854775808 + i)
out[1, i] = k[i] < 2**63
k[i] = (k[i] ^ -(2**63)) & (1 << 63) - 1
if (2**63 - 1) // 2**62 == 1:
    out[2, i] = 3
else:
    out[2, i] = missing
---
out[0, i] = math.hypot(x[i], f[i], 2.0) + math.hypot(1, 2, i)
out[1, i] = math.gcd(k[i], 14, i) + math.lcm(u[i], 2, 3) + math.gcd(12, 18, i)
out[2, i] = math.log(u[i] + 2.0, 2) + math.log(i + 1, 10) + math.log(8, 2)
q, r = np.divmod(k[i], 7)
out[3, i] = q + r
---
out[0, i] = x[~i + len(x)]
out[1, i] = 1.0 * min(u[i], 300) + 1.0 * max(u[i], 300) + 1.0 * min(u[i], -1) + max(u[i], 200)
out[2, i] = 1.0 * max(u[i], i * 100 - 500) + 1.0 * min(u[i], 1000 * n) + 1.0 * max(u[i], k[i])
out[3, i] = 1.0 * max(h[i], n * 1000) + 1.0 * min(f[i], i)
---
'''No comment, but text.'''
pass
out[0, i] = -(x[i] ** 2) + +f[i] - -3
"""


def arguments() -> list[Any]:
    """What `HEAD` takes behind the index."""
    random = np.random.default_rng(3)
    x = [0.0, -0.0, 1.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 1e-310, 7.25, -0.5]
    f = [0.5, -0.0, 2.5, -7.25, 1e30, 3.0, -3.0, 0.1, 9.0, -9.0, 1.0]
    k = [0, 1, -1, 7, -7, 100, -100, 2**62, -(2**63), 5, -8]
    u = [0, 1, 255, 128, 7, 3, 200, 9, 64, 2, 100]
    b = [1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1]
    c = [1 + 2j, 0, -1j, 3, 0.5 - 0.5j, 2j, 1, -1, 4 + 3j, 0, 1j]
    h = [0.1, -2.5, 3.0, 1000.0, 0.0, -0.5, 7.0, 2.0, 1.0, 65504.0, -1.0]
    typed = [np.array(v, t) for v, t in (
        (x, float), (f, np.float32), (k, np.int64), (u, np.uint8), (b, bool), (c, complex),
        (h, np.float16),
    )]
    m = random.integers(-4, 5, (LENGTH, 6)).astype(float)
    return [2.5, 3, *typed, m, np.full((4, LENGTH), 5.0)]


CASES = [body.strip() for body in BODIES.split("\n---\n")]


@pytest.mark.parametrize("body", CASES, ids=[body.splitlines()[0] for body in CASES])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_odd_kernel_gives_what_it_gives_in_python(body: str, route: str) -> None:
    if SIMULATED and "atomic" in body:
        pytest.skip("the simulator has no 64-bit atomics")
    compare(kernel_of(body, HEAD, SCOPE), LENGTH, arguments())
