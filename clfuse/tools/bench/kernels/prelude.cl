// What every hand-written kernel of the benchmark starts with. clfuse/tools/bench/limit.py defines before it:
//   WIDTH           lanes of a vector
//   REAL, INTEGER   the program's floating-point type and the integer type of the same size
//   GPU_SCHEDULE    1 for grid-stride loops, 0 for one contiguous chunk per work-item
#pragma OPENCL FP_CONTRACT OFF

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define REALV JOIN(REAL, WIDTH)
#define INTEGERV JOIN(INTEGER, WIDTH)
#define LOAD(i, p) JOIN(vload, WIDTH)(i, p)
#define STORE(v, i, p) JOIN(vstore, WIDTH)(v, i, p)

#if GPU_SCHEDULE
#define FOR_EACH(i, count) \
    for (int i = (int)get_global_id(0); i < (count); i += (int)get_global_size(0))
#else
int chunk_start(int count, int chunk)
{
    const int items = (int)get_global_size(0);
    return min(chunk * ((count + items - 1) / items), count);
}
#define FOR_EACH(i, count) \
    for (int i = chunk_start(count, (int)get_global_id(0)), i##_end = chunk_start(count, (int)get_global_id(0) + 1); \
         i < i##_end; i++)
#endif

REAL sum_of_lanes(REALV v)
{
    REAL lanes[WIDTH];
    STORE(v, 0, lanes);
    REAL sum = 0;
    for (int lane = 0; lane < WIDTH; lane++)
        sum += lanes[lane];
    return sum;
}
