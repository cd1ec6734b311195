__kernel void triad(int count, __global const REAL *restrict b, __global const REAL *restrict c,
                    __global REAL *restrict out)
{
    FOR_EACH(i, count)
        STORE(LOAD(i, b) + (REAL)3 * LOAD(i, c), i, out);
}
