// The points q come as three columns, so that a vector holds one coordinate of WIDTH points.
__kernel void columns(int m, __global const REAL *restrict q, __global REAL *restrict out)
{
    FOR_EACH(j, m)
        for (int axis = 0; axis < 3; axis++)
            out[axis * m + j] = q[3 * j + axis];
}

__kernel void nearest(int n, int m, __global const REAL *restrict p, __global const REAL *restrict q,
                      __global INTEGER *restrict out)
{
    INTEGER numbers[WIDTH];
    for (int lane = 0; lane < WIDTH; lane++)
        numbers[lane] = lane;
    const INTEGERV first = LOAD(0, numbers);
    FOR_EACH(i, n) {
        const REAL px = p[3 * i], py = p[3 * i + 1], pz = p[3 * i + 2];
        REALV least = INFINITY;
        INTEGERV where = 0;
        int j = 0;
        for (; j + WIDTH <= m; j += WIDTH) {
            const REALV dx = px - LOAD(0, q + j), dy = py - LOAD(0, q + m + j), dz = pz - LOAD(0, q + 2 * m + j);
            const REALV distance = dx * dx + dy * dy + dz * dz;
            const INTEGERV nearer = distance < least;
            least = select(least, distance, nearer);
            where = select(where, first + (INTEGER)j, nearer);
        }
        REAL distances[WIDTH];
        INTEGER places[WIDTH];
        STORE(least, 0, distances);
        STORE(where, 0, places);
        REAL best = distances[0];
        INTEGER place = places[0];
        for (int lane = 1; lane < WIDTH; lane++)
            if (distances[lane] < best || (distances[lane] == best && places[lane] < place)) {
                best = distances[lane];
                place = places[lane];
            }
        for (; j < m; j++) {
            const REAL dx = px - q[j], dy = py - q[m + j], dz = pz - q[2 * m + j];
            const REAL distance = dx * dx + dy * dy + dz * dz;
            if (distance < best) {
                best = distance;
                place = j;
            }
        }
        out[i] = place;
    }
}
