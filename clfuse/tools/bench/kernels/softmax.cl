// A row is read three times, but only once from memory: it stays in the first cache.
__kernel void softmax(int rows, int columns, __global const REAL *restrict a, __global REAL *restrict out)
{
    FOR_EACH(row, rows)
    {
        __global const REAL *x = a + (long)row * columns;
        __global REAL *y = out + (long)row * columns;
        REALV most = -INFINITY;
        int j = 0;
        for (; j + WIDTH <= columns; j += WIDTH)
            most = fmax(most, LOAD(0, x + j));
        REAL lanes[WIDTH];
        STORE(most, 0, lanes);
        REAL largest = lanes[0];
        for (int lane = 1; lane < WIDTH; lane++)
            largest = fmax(largest, lanes[lane]);
        for (; j < columns; j++)
            largest = fmax(largest, x[j]);

        REALV sums = 0;
        for (j = 0; j + WIDTH <= columns; j += WIDTH) {
            const REALV e = exp(LOAD(0, x + j) - largest);
            STORE(e, 0, y + j);
            sums += e;
        }
        REAL sum = sum_of_lanes(sums);
        for (; j < columns; j++)
            sum += y[j] = exp(x[j] - largest);

        const REAL scale = (REAL)1 / sum;
        for (j = 0; j + WIDTH <= columns; j += WIDTH)
            STORE(LOAD(0, y + j) * scale, 0, y + j);
        for (; j < columns; j++)
            y[j] *= scale;
    }
}
