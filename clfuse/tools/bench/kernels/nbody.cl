// One row of the all-pairs table at a time, its columns in vectors, nothing stored but the three sums.
__kernel void nbody(int n, __global const REAL *restrict x, __global const REAL *restrict y,
                    __global const REAL *restrict z, __global const REAL *restrict mass, __global REAL *restrict ax,
                    __global REAL *restrict ay, __global REAL *restrict az)
{
    FOR_EACH(i, n) {
        const REAL xi = x[i], yi = y[i], zi = z[i];
        REALV sx = 0, sy = 0, sz = 0;
        int j = 0;
        for (; j + WIDTH <= n; j += WIDTH) {
            const REALV dx = LOAD(0, x + j) - xi, dy = LOAD(0, y + j) - yi, dz = LOAD(0, z + j) - zi;
            const REALV squared = dx * dx + dy * dy + dz * dz + (REAL)0.01;
            const REALV weight = LOAD(0, mass + j) / (squared * sqrt(squared));
            sx += dx * weight;
            sy += dy * weight;
            sz += dz * weight;
        }
        REAL fx = sum_of_lanes(sx), fy = sum_of_lanes(sy), fz = sum_of_lanes(sz);
        for (; j < n; j++) {
            const REAL dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
            const REAL squared = dx * dx + dy * dy + dz * dz + (REAL)0.01;
            const REAL weight = mass[j] / (squared * sqrt(squared));
            fx += dx * weight;
            fy += dy * weight;
            fz += dz * weight;
        }
        ax[i] = fx;
        ay[i] = fy;
        az[i] = fz;
    }
}
