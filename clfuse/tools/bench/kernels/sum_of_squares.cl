// Four accumulators hide the latency of the additions; a second launch adds what the work-items have left.
__kernel void partial(int count, __global const REAL *restrict x, __global REAL *restrict sums)
{
    const int start = chunk_start(count, (int)get_global_id(0)), end = chunk_start(count, (int)get_global_id(0) + 1);
    REALV s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int i = start;
    for (; i + 4 <= end; i += 4) {
        const REALV a = LOAD(i, x) - (REAL)0.5, b = LOAD(i + 1, x) - (REAL)0.5;
        const REALV c = LOAD(i + 2, x) - (REAL)0.5, d = LOAD(i + 3, x) - (REAL)0.5;
        s0 += a * a;
        s1 += b * b;
        s2 += c * c;
        s3 += d * d;
    }
    for (; i < end; i++) {
        const REALV a = LOAD(i, x) - (REAL)0.5;
        s0 += a * a;
    }
    sums[get_global_id(0)] = sum_of_lanes((s0 + s1) + (s2 + s3));
}

__kernel void total(int count, __global const REAL *restrict sums, __global REAL *restrict out)
{
    REAL sum = 0;
    for (int i = 0; i < count; i++)
        sum += sums[i];
    *out = sum;
}
