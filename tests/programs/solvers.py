"""Linear algebra by hand: conjugate gradients, Householder, elimination with pivots, successive
over-relaxation, a tridiagonal system and multigrid, each beside numpy.linalg.
"""

import numpy as np
import numpy.linalg as la

rng = np.random.RandomState(4)
size = 40
basis, _ = la.qr(rng.randn(size, size))
matrix = basis @ np.diag(np.linspace(1, 50, size)) @ basis.T
right = rng.randn(size)


def conjugate_gradients(a, b, tolerance=1e-10):
    x, residual = np.zeros_like(b), b.copy()
    direction, square = residual.copy(), residual @ residual
    for step in range(1, 500):
        image = a @ direction
        length = square / (direction @ image)
        x = x + length * direction
        residual = residual - length * image
        before, square = square, residual @ residual
        if np.sqrt(square) < tolerance:
            break
        direction = residual + square / before * direction
    return x, step


solution, steps = conjugate_gradients(matrix, right)
print("conjugate gradients:", steps, np.allclose(matrix @ solution, right))


def householder(a):
    r, q = a.copy(), np.eye(len(a))
    for k in range(min(a.shape[0] - 1, a.shape[1])):
        u = r[k:, k].copy()
        u[0] += np.copysign(la.norm(u), u[0])
        u /= la.norm(u)
        r[k:] -= 2 * np.outer(u, u @ r[k:])
        q[:, k:] -= 2 * np.outer(q[:, k:] @ u, u)
    return q, r


tall = rng.rand(8, 5)
q, r = householder(tall)
print("householder:", np.allclose(q @ r, tall), np.allclose(np.tril(r, -1), 0))
print("diagonal:", np.abs(np.diag(r)).round(6))


def eliminate(a):
    a, order = a.astype(float), np.arange(len(a))
    for k in range(len(a) - 1):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            order[[k, pivot]] = order[[pivot, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    return order, np.tril(a, -1) + np.eye(len(a)), np.triu(a)


whole = rng.randint(-9, 9, (6, 6))
order, lower, upper = eliminate(whole)
print("pivots:", order, np.allclose(whole[order], lower @ upper))
print("determinant:", f"{abs(np.prod(np.diag(upper))):.6f} {abs(la.det(whole)):.6f}")

band = np.diag(4 * np.ones(20)) - np.diag(np.ones(19), 1) - np.diag(np.ones(19), -1)
force = np.arange(20.0)
relaxed = np.zeros(20)
for _ in range(30):
    for i in range(20):
        relaxed[i] += 1.1 * (force[i] - band[i] @ relaxed) / band[i, i]
print("relaxed:", la.norm(band @ relaxed - force) < 1e-8)

over, under = np.zeros(19), np.zeros(20)
over[0], under[0] = -1 / 4, force[0] / 4
for i in range(1, 20):
    pivot = 4 + over[i - 1]
    if i < 19:
        over[i] = -1 / pivot
    under[i] = (force[i] + under[i - 1]) / pivot
for i in range(18, -1, -1):
    under[i] -= over[i] * under[i + 1]
print("tridiagonal:", np.allclose(under, la.solve(band, force)), np.allclose(under, relaxed))


def smooth(u, f, h, sweeps):
    for _ in range(sweeps):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        u[1:-1, 1:-1] += 0.8 * ((around + h * h * f[1:-1, 1:-1]) / 4 - u[1:-1, 1:-1])


def cycle(u, f, h):
    if len(u) <= 3:
        u[1, 1] = (f[1, 1] * h * h + u[0, 1] + u[2, 1] + u[1, 0] + u[1, 2]) / 4
        return u
    smooth(u, f, h, 2)
    rest = np.zeros_like(u)
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    rest[1:-1, 1:-1] = f[1:-1, 1:-1] - (4 * u[1:-1, 1:-1] - around) / h**2
    coarse = rest[::2, ::2].copy()
    correction = cycle(np.zeros_like(coarse), coarse, 2 * h)
    fine = np.zeros_like(u)
    fine[::2, ::2] = correction
    fine[1::2, ::2] = (correction[1:] + correction[:-1]) / 2
    fine[:, 1::2] = (fine[:, :-1:2] + fine[:, 2::2]) / 2
    u += fine
    smooth(u, f, h, 2)
    return u


field = np.zeros((17, 17))
for _ in range(5):
    field = cycle(field, np.ones((17, 17)), 1 / 16)
print("multigrid:", f"{field.max():.7f} {field[4, 4]:.7f}")
