"""A sudoku, a maze, magic squares, change and anagrams: sets, selections and searches on small
arrays of whole numbers and letters.
"""

import numpy as np

rows = "530070000 600195000 098000060 800060003 400803001 700020006 060000280 000419005 000080079"
grid = np.array([[int(digit) for digit in row] for row in rows.split()])


def candidates(grid, row, column):
    box = grid[row // 3 * 3 : row // 3 * 3 + 3, column // 3 * 3 : column // 3 * 3 + 3]
    seen = np.concatenate([grid[row], grid[:, column], box.ravel()])
    return np.setdiff1d(np.arange(1, 10), seen)


def solve(grid):
    empty = np.argwhere(grid == 0)
    if len(empty) == 0:
        return True
    choices = [(tuple(place), candidates(grid, *place)) for place in empty]
    (row, column), found = min(choices, key=lambda choice: len(choice[1]))
    for digit in found:
        grid[row, column] = digit
        if solve(grid):
            return True
    grid[row, column] = 0
    return False


print("solved:", solve(grid), bool((grid.sum(axis=0) == 45).all()))
print(grid)

walls = ["#########", "#S  #   #", "# # # # #", "# #   #E#", "#########"]
maze = np.array([list(row) for row in walls])
distance = np.where(maze == "S", 0, -1)
step = 0
while distance[maze == "E"][0] < 0:
    front = distance == step
    near = np.zeros_like(front)
    near[1:] |= front[:-1]
    near[:-1] |= front[1:]
    near[:, 1:] |= front[:, :-1]
    near[:, :-1] |= front[:, 1:]
    step += 1
    distance[near & (maze != "#") & (distance < 0)] = step
print("maze:", step)
print(distance)

i, j = np.ogrid[:5, :5]
magic = 5 * ((i + j + 3) % 5) + (i + 2 * j + 2) % 5 + 1
print("magic:", magic.sum(axis=0), magic.sum(axis=1), np.trace(magic))

ways = np.zeros(101, int)
ways[0] = 1
for coin in (1, 5, 10, 25, 50):
    for amount in range(coin, 101):
        ways[amount] += ways[amount - coin]
print("change:", ways[[10, 25, 50, 100]])

prime = np.ones(2000, bool)
prime[:2] = False
for number in range(2, 45):
    if prime[number]:
        prime[number * number :: number] = False
primes = np.flatnonzero(prime)
print("primes:", len(primes), primes[-3:], np.diff(primes).max())

start = np.arange(1, 30)
lengths, current = np.zeros_like(start), start.copy()
while (current > 1).any():
    going = current > 1
    lengths += going
    halved = np.where(current % 2 == 0, current // 2, 3 * current + 1)
    current = np.where(going, halved, current)
print("collatz:", lengths, start[lengths.argmax()])

words = np.array(["listen", "silent", "enlist", "google", "elbow", "below"])
keys = np.array(["".join(sorted(word)) for word in words])
_, kind = np.unique(keys, return_inverse=True)
print("anagrams:", [words[kind == number].tolist() for number in range(kind.max() + 1)])

power = np.linalg.matrix_power(np.array([[1, 1], [1, 0]], dtype=object), 100)
print("fibonacci:", power[0, 1], type(power[0, 1]).__name__)
