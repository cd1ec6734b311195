__kernel void jacobi2d(int n, __global const REAL *restrict in, __global REAL *restrict out)
{
    FOR_EACH(row, n)
    {
        __global const REAL *m = in + (long)row * n, *u = m - n, *d = m + n;
        __global REAL *o = out + (long)row * n;
        int j = 0;
        if (row == 0 || row == n - 1) {
            for (; j < n; j++)
                o[j] = m[j];
        } else {
            o[0] = m[0];
            for (j = 1; j + WIDTH < n; j += WIDTH)
                STORE((REAL)0.2
                          * (LOAD(0, m + j) + LOAD(0, u + j) + LOAD(0, d + j) + LOAD(0, m + j - 1) + LOAD(0, m + j + 1)),
                      0, o + j);
            for (; j < n - 1; j++)
                o[j] = (REAL)0.2 * (m[j] + u[j] + d[j] + m[j - 1] + m[j + 1]);
            o[n - 1] = m[n - 1];
        }
    }
}
