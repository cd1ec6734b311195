/* Atomic operations on integers of 64 bits by those on 32 bits, which every device has.
 *
 * The halves are added one after the other.  Each sum of the low halves carries at the work-item that
 * makes it overflow, so the high half has all carries when all work-items have added theirs: nobody
 * reads the number before.
 */

#ifdef __ENDIAN_LITTLE__
#define LOW_HALF 0
#else
#define LOW_HALF 1
#endif

static inline void add_by_halves(volatile __global uint *halves, ulong value)
{
    const uint low = (uint)value;
    const uint before = atomic_add(halves + LOW_HALF, low);
    const uint high = (uint)(value >> 32) + (before + low < before);
    if (high != 0)
        atomic_add(halves + 1 - LOW_HALF, high);
}
