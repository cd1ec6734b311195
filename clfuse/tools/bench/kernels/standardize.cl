// 64 columns: a row is BLOCKS vectors, and each work-item keeps sums of all columns in registers.
#define COLUMNS 64
#define BLOCKS (COLUMNS / WIDTH)

__kernel void partial(int rows, __global const REAL *restrict a, __global REAL *restrict sums)
{
    REALV s[BLOCKS], q[BLOCKS], shift[BLOCKS];
    for (int block = 0; block < BLOCKS; block++) {
        s[block] = q[block] = 0;
        shift[block] = LOAD(block, a);
    }
    FOR_EACH(row, rows)
        for (int block = 0; block < BLOCKS; block++) {
            const REALV v = LOAD(row * BLOCKS + block, a) - shift[block];
            s[block] += v;
            q[block] += v * v;
        }
    for (int block = 0; block < BLOCKS; block++) {
        STORE(s[block], (2 * (int)get_global_id(0)) * BLOCKS + block, sums);
        STORE(q[block], (2 * (int)get_global_id(0) + 1) * BLOCKS + block, sums);
    }
}

__kernel void moments(int rows, int items, __global const REAL *restrict a, __global const REAL *restrict sums,
                      __global REAL *restrict out)
{
    for (int column = 0; column < COLUMNS; column++) {
        double sum = 0, squares = 0;
        for (int item = 0; item < items; item++) {
            sum += sums[2 * item * COLUMNS + column];
            squares += sums[(2 * item + 1) * COLUMNS + column];
        }
        out[column] = (REAL)(a[column] + sum / rows);
        out[COLUMNS + column] = (REAL)(1 / sqrt((squares - sum * sum / rows) / rows));
    }
}

__kernel void apply(int rows, __global const REAL *restrict a, __global const REAL *restrict moments,
                    __global REAL *restrict out)
{
    REALV mean[BLOCKS], scale[BLOCKS];
    for (int block = 0; block < BLOCKS; block++) {
        mean[block] = LOAD(block, moments);
        scale[block] = LOAD(BLOCKS + block, moments);
    }
    FOR_EACH(row, rows)
        for (int block = 0; block < BLOCKS; block++)
            STORE((LOAD(row * BLOCKS + block, a) - mean[block]) * scale[block], row * BLOCKS + block, out);
}
