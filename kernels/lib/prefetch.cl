/* Asks the caches for the line of an address that a loop will come to; never faults, whatever lies there.
 * A line that is wanted ONCE pushes no others out of the caches.
 *
 * Where a CPU's compiler has Clang's builtin (PoCL, Intel's runtime); PoCL's own prefetch() does nothing. The
 * address goes through a number because address spaces are one there, and it says which space it is in:
 * without one it would be in the generic one from OpenCL C 2.0 on, which the builtin does not take.
 */
#define PREFETCH(place) ((void)0)
#define PREFETCH_ONCE(place) ((void)0)
#ifdef __has_builtin
#if __has_builtin(__builtin_prefetch)
#undef PREFETCH
#define PREFETCH(place) __builtin_prefetch((__private const void *)(size_t)(place), 0, 3)
#undef PREFETCH_ONCE
#define PREFETCH_ONCE(place) __builtin_prefetch((__private const void *)(size_t)(place), 0, 0)
#endif
#endif
