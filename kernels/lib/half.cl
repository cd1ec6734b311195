/* Half precision without the fp16 extension: half values held in floats.
 *
 * T is float, float2 ... float16, I and U the int and uint types with the same lanes.  Every operation on halves is
 * computed in float and rounded once by round_to_half, as NumPy does.  Right only without fast-math,
 * which would cancel (x + m) - m: kernels with this file are never relaxed (clfuse/codegen/relaxed.py).
 */

/* Adding a power of two whose unit in the last place is that of the half makes the float addition
 * round to nearest, ties to even.  Below 2^-14 halves are subnormal and the unit stays 2^-24.  The
 * magnitude is capped at 2^17, which is infinite in any case, for the power of two to stay finite. */
#define DEFINE_ROUND_TO_HALF(T, I, U)                                                              \
static inline T round_to_half_##T(T value)                                                         \
{                                                                                                  \
    const T whole = fabs(value);                                                                   \
    const T magnitude = whole > (T)(0x1p17f) ? (T)(0x1p17f) : whole;                               \
    const I exponent = max(as_##I(magnitude) & (I)(0x7f800000), (I)((127 - 14) << 23));            \
    const T power = as_##T(exponent + (I)(13 << 23));                                              \
    const T rounded = (magnitude + power) - power;                                                 \
    return copysign(rounded > (T)(65504.0f) ? (T)(INFINITY) : rounded, value);                     \
}

/* The gap between a half and the next one away from zero. */
#define HALF_STEP(T, I, magnitude)                                                                 \
    as_##T(max((as_##I(magnitude) & (I)(0x7f800000)) - (I)(10 << 23), (I)((127 - 24) << 23)))

/* The same towards zero: from a power of two down the gaps are half as wide. */
#define HALF_STEP_DOWN(T, I, magnitude)                                                            \
    as_##T(max((as_##I(magnitude) - (I)(1) & (I)(0x7f800000)) - (I)(10 << 23),                     \
               (I)((127 - 24) << 23)))

/* NumPy's spacing of a half is the gap towards +infinity, unlike that of the other floats. */
#define DEFINE_HALF_SPACING(T, I)                                                                  \
static inline T half_spacing_##T(T value)                                                          \
{                                                                                                  \
    const T magnitude = fabs(value);                                                               \
    const T gap = value < (T)(0) ? HALF_STEP_DOWN(T, I, magnitude) : HALF_STEP(T, I, magnitude);   \
    const T finite = value == (T)(65504.0f) ? (T)(INFINITY) : gap;                                 \
    return magnitude < (T)(INFINITY) ? finite : (T)(NAN);                                          \
}

/* Infinity is the half after 65504. */
#define DEFINE_HALF_NEXTAFTER(T, I)                                                                \
static inline T half_nextafter_##T(T from, T to)                                                   \
{                                                                                                  \
    const T magnitude = fabs(from) == (T)(INFINITY) ? (T)(65536.0f) : fabs(from);                  \
    const I towards_zero = from > (T)(0) ? to < from : to > from;                                  \
    const T moved = copysign(                                                                      \
        towards_zero ? magnitude - HALF_STEP_DOWN(T, I, magnitude)                                 \
                     : magnitude + HALF_STEP(T, I, magnitude), from);                              \
    const T capped = fabs(moved) > (T)(65504.0f) ? copysign((T)(INFINITY), from) : moved;          \
    const T next = from == (T)(0) ? copysign((T)(0x1p-24f), to) : capped;                          \
    return from != from || to != to ? from + to : (from == to ? from : next);                      \
}
