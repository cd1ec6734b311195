// The plane is a torus: only the first and the last cells of a row need to look around its edge.
int next(int around, int cell)
{
    return around == 3 || (cell == 1 && around == 2);
}

__kernel void life(int n, __global const INTEGER *restrict in, __global INTEGER *restrict out)
{
    FOR_EACH(row, n)
    {
        __global const INTEGER *m = in + (long)row * n;
        __global const INTEGER *u = in + (long)(row ? row - 1 : n - 1) * n, *d = in + (long)(row + 1 < n ? row + 1 : 0) * n;
        __global INTEGER *o = out + (long)row * n;
        int j = 1;
        for (; j + WIDTH < n; j += WIDTH) {
            const INTEGERV cell = LOAD(0, m + j);
            const INTEGERV around = LOAD(0, u + j - 1) + LOAD(0, u + j) + LOAD(0, u + j + 1) + LOAD(0, m + j - 1)
                + LOAD(0, m + j + 1) + LOAD(0, d + j - 1) + LOAD(0, d + j) + LOAD(0, d + j + 1);
            STORE(((around == 3) | ((cell == 1) & (around == 2))) & 1, 0, o + j);
        }
        for (; j <= n; j++) {
            const int c = j == n ? 0 : j, l = c ? c - 1 : n - 1, r = c + 1 < n ? c + 1 : 0;
            o[c] = next(u[l] + u[c] + u[r] + m[l] + m[r] + d[l] + d[c] + d[r], m[c]);
        }
    }
}
