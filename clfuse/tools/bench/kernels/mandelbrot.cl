__kernel void mandelbrot(int count, __global const REAL *restrict x, __global const REAL *restrict y,
                         __global REAL *restrict out)
{
    FOR_EACH(i, count) {
        const REALV cr = LOAD(i, x), ci = LOAD(i, y);
        REALV zr = 0, zi = 0, steps = 0;
        for (int step = 0; step < 20; step++) {
            const REALV a = zr * zr, b = zi * zi;
            const INTEGERV inside = a + b < (REAL)4;
            zi = select(zi, (REAL)2 * zr * zi + ci, inside);
            zr = select(zr, a - b + cr, inside);
            steps = select(steps, steps + (REAL)1, inside);
        }
        STORE(steps, i, out);
    }
}
