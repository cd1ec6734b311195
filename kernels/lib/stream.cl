/* Stores that go past the caches, where the compiler has them (Clang's builtin: PoCL, Intel's runtime).
 *
 * T is the type of the vector; its address must be a multiple of its size.
 */
#define STREAM(T, value, place) (*(__global T *)(place) = (value))
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#undef STREAM
#define STREAM(T, value, place) __builtin_nontemporal_store((value), (__global T *)(place))
#endif
#endif
#define IS_ALIGNED(T, place) (((size_t)(place) & (sizeof(T) - 1)) == 0)
/* Elements of type E from `place` to the next multiple of a vector's size. */
#define UNALIGNED(E, T, place) ((-(size_t)(place) & (sizeof(T) - 1)) / sizeof(E))
