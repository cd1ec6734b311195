__kernel void small_steps(int count, __global const REAL *restrict x, __global const REAL *restrict y,
                          __global REAL *restrict out)
{
    FOR_EACH(i, count) {
        REALV v = LOAD(i, x);
        const REALV w = LOAD(i, y);
        for (int step = 0; step < 20; step++)
            v = exp(-(v - w) * (v - w)) + (REAL)0.1 * v;
        STORE(v, i, out);
    }
}
