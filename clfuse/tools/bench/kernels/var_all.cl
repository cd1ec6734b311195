// One pass: sums of the distances from the first value and of their squares; shifting keeps the difference of the two exact enough.
__kernel void partial(int count, __global const REAL *restrict x, __global REAL *restrict sums)
{
    const int start = chunk_start(count, (int)get_global_id(0)), end = chunk_start(count, (int)get_global_id(0) + 1);
    const REAL shift = x[0];
    REALV s0 = 0, s1 = 0, q0 = 0, q1 = 0;
    int i = start;
    for (; i + 2 <= end; i += 2) {
        const REALV a = LOAD(i, x) - shift, b = LOAD(i + 1, x) - shift;
        s0 += a;
        q0 += a * a;
        s1 += b;
        q1 += b * b;
    }
    for (; i < end; i++) {
        const REALV a = LOAD(i, x) - shift;
        s0 += a;
        q0 += a * a;
    }
    sums[2 * get_global_id(0)] = sum_of_lanes(s0 + s1);
    sums[2 * get_global_id(0) + 1] = sum_of_lanes(q0 + q1);
}

__kernel void variance(int count, int n, __global const REAL *restrict sums, __global REAL *restrict out)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++) {
        sum += sums[2 * i];
        squares += sums[2 * i + 1];
    }
    *out = (REAL)((squares - sum * sum / n) / n);
}
