"""The Mandelbrot set in complex arithmetic, drawn with letters: complex ufuncs, masked updates,
broadcasting.
"""

import numpy as np

y, x = np.ogrid[-1.2:1.2:25j, -2.0:0.6:66j]
c = x + 1j * y
z = np.zeros_like(c)
count = np.zeros(c.shape, dtype=int)
for _ in range(40):
    inside = np.abs(z) <= 2.0
    z = np.where(inside, z * z + c, z)
    count += inside

print(c.dtype, c.shape, count.dtype)
letters = np.array(list(" .:-=+*#%@"))
for row in letters[np.minimum(count // 4, 9)]:
    print("".join(row.tolist()))
print("inside:", int((count == 40).sum()), "steps:", int(count.sum()))
