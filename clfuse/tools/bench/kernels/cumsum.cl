// Two passes over the input: the sum of each chunk, then every chunk from where the ones before it end.
__kernel void partial(int count, __global const REAL *restrict x, __global REAL *restrict sums)
{
    const int start = chunk_start(count, (int)get_global_id(0)), end = chunk_start(count, (int)get_global_id(0) + 1);
    REALV s0 = 0, s1 = 0;
    int i = start;
    for (; i + 2 * WIDTH <= end; i += 2 * WIDTH) {
        s0 += LOAD(0, x + i) * (REAL)2;
        s1 += LOAD(0, x + i + WIDTH) * (REAL)2;
    }
    REAL sum = sum_of_lanes(s0 + s1);
    for (; i < end; i++)
        sum += x[i] * (REAL)2;
    sums[get_global_id(0)] = sum;
}

__kernel void scan(int count, __global const REAL *restrict x, __global const REAL *restrict sums,
                   __global REAL *restrict out)
{
    REAL sum = 0;
    for (int item = 0; item < (int)get_global_id(0); item++)
        sum += sums[item];
    FOR_EACH(i, count) {
        sum += x[i] * (REAL)2;
        out[i] = sum;
    }
}
