"""Who sees what: views of views, arrays in objects, in-place operators, exchanged rows, buffers
that are used again, memory that others write to.
"""

import copy

import numpy as np


class Grid:
    def __init__(self, size):
        self.data = np.zeros((size, size))
        self.interior = self.data[1:-1, 1:-1]
        self.edges = [self.data[0], self.data[-1], self.data[:, 0], self.data[:, -1]]

    def __iadd__(self, other):
        self.data += other
        return self

    def smooth(self):
        above, below = self.data[:-2, 1:-1], self.data[2:, 1:-1]
        left, right = self.data[1:-1, :-2], self.data[1:-1, 2:]
        self.interior[...] = 0.25 * (above + below + left + right)


grid = Grid(6)
for number, edge in enumerate(grid.edges):
    edge[:] = number + 1
for _ in range(5):
    grid.smooth()
grid.data.ravel()[::7] = 9
grid += 1
print(grid.data, grid.interior.base is grid.data)
other = copy.deepcopy(grid)
other += 1
print(other.data.sum() - grid.data.sum())


def normalise(vector):
    vector -= vector.mean()
    vector /= vector.std()
    return vector


matrix = np.arange(12.0).reshape(3, 4)
normalise(matrix[1])
normalise(matrix[:, 2])
normalise(matrix[::2, 1:])
print(matrix)

a = np.arange(10)
a[2:] -= a[:-2]
a[::2], a[1::2] = a[1::2].copy(), a[::2].copy()
a[a.argsort()[:3]] *= -1
b = a
b += 1
b = b + 1
print(a, b, a is b)
seen, chosen, masked = a.reshape(2, 5), a[[0, 1]], a[a > 2]
seen[1, 1], chosen[0], masked[:] = 52, 53, 54
a.view(np.uint64)[4] = 55
a[None, :, None][0, 3, 0] = 56
print(a)
np.add(a[:-1], a[1:], out=a[1:])
a[...] = a[::-1]
a[:5] = a[5:][::-1]
print(a)

rows = np.arange(12).reshape(4, 3)
rows[[0, 2]] = rows[[2, 0]]
rows[0], rows[1] = rows[1], rows[0].copy()
rows.T[...] += np.arange(3)[:, None]
for row in rows:
    row *= 2
rows[:, [0, 1]] = rows[:, [1, 0]]
print(rows)

scratch, kept = np.empty(4), []
for turn in range(3):
    np.multiply(np.arange(4), turn, out=scratch)
    kept.append(scratch if turn else scratch.copy())
print(kept, kept[1] is kept[2])

memory = bytearray(32)
shared = np.frombuffer(memory)
square = np.ndarray((2, 2), float, memory)
shared[1:] = np.arange(3.0) + 1
square[0] *= 2
print(shared, np.array_equal(np.frombuffer(bytes(memory)), shared))

constant = np.arange(3)
constant.flags.writeable = False
for attempt in ("constant[0] = 1", "constant += 1", "constant.sort()", "constant.view()[0] = 6"):
    try:
        exec(attempt)
    except ValueError as error:
        print(attempt, "->", error)
