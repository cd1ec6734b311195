"""Conway's game of life on a torus: integer arrays, rolls, a glider that comes back to where it
was.
"""

import numpy as np

board = np.zeros((12, 16), dtype=np.uint8)
glider = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=np.uint8)
board[1:4, 1:4] = glider
board[9, 12:15] |= 1
start = board.copy()


def step(cells):
    around = sum(
        np.roll(cells, (i, j), axis=(0, 1))
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    )
    return ((around == 3) | ((around == 2) & (cells == 1))).astype(np.uint8)


for generation in range(1, 21):
    board = step(board)
    if generation % 5 == 0:
        print(f"generation {generation}: {int(board.sum())} cells, dtype {board.dtype}")

for row in board:
    print("".join(".#"[cell] for cell in row))
print("moved by (5, 5):", bool(np.array_equal(board[5:10, 5:10], start[0:5, 0:5])))
