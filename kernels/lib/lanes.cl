/* ANY_LANE(I, mask): whether any lane of a comparison is true; I is the signed integer type with its
 * lanes.  A comparison is 1 at width 1 and -1 in the lanes of a vector.
 *
 * PoCL's any() asks lane after lane, 50 instructions for 16 of them, where clang makes 3 of its own
 * builtin.  Compiled to SPIR, that is an intrinsic which the driver may not know (Oclgrind, rusticl).
 */
#define ANY_LANE(I, mask) any_lane((mask) ? (I)(-1) : (I)(0))

#define OVERLOADED_ANY static inline int __attribute__((overloadable)) any_lane
#if defined(__has_builtin) && !defined(__SPIR__)
#if __has_builtin(__builtin_reduce_or)
#define LANES_OR(mask) (__builtin_reduce_or(mask) != 0)
#endif
#endif
#ifndef LANES_OR
#define LANES_OR(mask) any(mask)
#endif
#define DEFINE_ANY_LANE(S)                                                                         \
OVERLOADED_ANY(S mask) { return mask != 0; }                                                       \
OVERLOADED_ANY(S##2 mask) { return LANES_OR(mask); }                                               \
OVERLOADED_ANY(S##4 mask) { return LANES_OR(mask); }                                               \
OVERLOADED_ANY(S##8 mask) { return LANES_OR(mask); }                                               \
OVERLOADED_ANY(S##16 mask) { return LANES_OR(mask); }
DEFINE_ANY_LANE(char)
DEFINE_ANY_LANE(short)
DEFINE_ANY_LANE(int)
DEFINE_ANY_LANE(long)

/* Rounding, one instruction where clang is asked for it itself: PoCL 3.1 calls a function for each of
 * these, 3 to 16 ns a vector instead of 0.3, and what its compiler knows to be NaN becomes anything.
 * In SPIR they are intrinsics, as above; clang 15 has no code for roundeven on GPUs. */
#if defined(__has_builtin) && !defined(__SPIR__) && !defined(__NVPTX__) && !defined(__AMDGPU__)
#if __has_builtin(__builtin_elementwise_floor) && __has_builtin(__builtin_elementwise_roundeven)
#define VECTOR_ceil(x) __builtin_elementwise_ceil(x)
#define VECTOR_floor(x) __builtin_elementwise_floor(x)
#define VECTOR_rint(x) __builtin_elementwise_roundeven(x)
#define VECTOR_trunc(x) __builtin_elementwise_trunc(x)
#endif
#endif
#ifndef VECTOR_rint
#define VECTOR_ceil(x) ceil(x)
#define VECTOR_floor(x) floor(x)
#define VECTOR_rint(x) rint(x)
#define VECTOR_trunc(x) trunc(x)
#endif
