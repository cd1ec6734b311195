__kernel void sincos_squared(int count, __global const REAL *restrict x, __global REAL *restrict out)
{
    FOR_EACH(i, count) {
        const REALV angle = LOAD(i, x);
        const REALV s = sin(angle), c = cos(angle);
        STORE(s * s + c * c, i, out);
    }
}
