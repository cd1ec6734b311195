// The bandwidth that the others are held against: one read and one write of every byte.
__kernel void copy(int count, __global const REAL *restrict in, __global REAL *restrict out)
{
    FOR_EACH(i, count)
        STORE(LOAD(i, in), i, out);
}
