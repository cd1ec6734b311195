__kernel void poly_chain(int count, __global const REAL *restrict x, __global REAL *restrict out)
{
    FOR_EACH(i, count) {
        const REALV v = LOAD(i, x);
        REALV y = v;
        for (int step = 0; step < 10; step++)
            y = y * v + (REAL)0.5;
        STORE(y, i, out);
    }
}
