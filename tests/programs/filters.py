"""Filters on a synthetic picture of bytes: Sobel edges, a median, thresholds, a histogram,
saturating arithmetic.
"""

import numpy as np

rows, columns = np.indices((48, 64))
picture = ((rows * 5 + columns * 3) % 256).astype(np.uint8)
picture[12:36, 20:44] = 255
picture[18:30, 26:38] //= 3
picture[::7, ::11] = 0


def windows(image):
    padded = np.pad(image, 1, mode="edge")
    height, width = image.shape
    return np.stack([padded[i : i + height, j : j + width] for i in range(3) for j in range(3)])


around = windows(picture.astype(np.int32))
dx = around[2] + 2 * around[5] + around[8] - around[0] - 2 * around[3] - around[6]
dy = around[6] + 2 * around[7] + around[8] - around[0] - 2 * around[1] - around[2]
edges = np.minimum(np.abs(dx) + np.abs(dy), 255).astype(np.uint8)
median = np.median(around, axis=0).astype(np.uint8)
brighter = np.clip(picture.astype(np.int16) + 60, 0, 255).astype(np.uint8)

print("edges:", edges.dtype, int(edges.sum(dtype=np.int64)), edges[24, 16:28])
print("median:", int(median.sum(dtype=np.int64)), median[24, 16:28])
print("brighter:", int(brighter.max()), int(brighter.min()), f"{brighter.mean():.6f}")
print("wrapped:", (picture + np.uint8(60))[24, 16:28])
print("histogram:", np.histogram(picture, bins=8, range=(0, 256))[0].tolist())
print("mask:", int((edges > 100).sum()), picture[edges > 250][:6].tolist())
