/* Inverse circular functions for runtimes whose builtins are slow in vectors; the op tables'
 * FAULTY_BUILTINS say where.  T is a float or double type, I the integer type with the same lanes, S
 * one lane's type.  Coefficients are minimax (Remez).
 *
 * Worst errors seen in floats and doubles (2 million values of every size), in ulp: arcsin 2.3 and 2.1,
 * arccos 1.1 and 1.1, arctan 2.1 and 2.2, arctan2 2.1 and 2.2.
 */

/* pi in two parts. */
#define PI_PART_float 0x1.921fb6p+1f
#define PI_REST_float -0x1.777a5cp-24f
#define PI_PART_double 0x1.921fb54442d18p+1
#define PI_REST_double 0x1.1a62633145c07p-53

/* (atan(t) / t - 1) / t^2 of z = t^2 for |t| <= tan(pi / 8): errors 2^-30 and 2^-58. */
#define ATAN_SERIES_float(T, z)                                                                    \
    fma(z, fma(z, fma(z, fma(z, (T)(-0x1.f14f8ap-5f), (T)(0x1.b1f06ep-4f)),                        \
        (T)(-0x1.23b828p-3f)), (T)(0x1.9991e6p-3f)), (T)(-0x1.55554ap-2f))
#define ATAN_SERIES_double(T, z)                                                                   \
    fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z,                          \
        (T)(-0x1.2596947510b1ap-6), (T)(0x1.37ea407e63a71p-5)), (T)(-0x1.9cdaff4d377acp-5)),       \
        (T)(0x1.df1127701d4bfp-5)), (T)(-0x1.10ebd95375f2dp-4)), (T)(0x1.3b111c06628f2p-4)),       \
        (T)(-0x1.745cf905f3fbcp-4)), (T)(0x1.c71c70e775a86p-4)), (T)(-0x1.24924922b0b14p-3)),      \
        (T)(0x1.99999999958dap-3)), (T)(-0x1.555555555553dp-2))
#define TAN_OF_EIGHTH 0x1.a8279ap-2f /* of pi */

/* The angle of (x, y) with neither negative is that of a point turned back by 0, 1 or 2 eighths of a
 * turn, which is less than a sixteenth off the x axis. */
#define TURN_BACK(T, I, x, y)                                                                      \
    const I low = y < x * (T)(TAN_OF_EIGHTH), high = x < y * (T)(TAN_OF_EIGHTH);                   \
    const T above = low ? y : (high ? -x : y - x);                                                 \
    const T below = low ? x : (high ? y : y + x);                                                  \
    const T eighths = low ? (T)(0) : (high ? (T)(0.5f) : (T)(0.25f));

#define DEFINE_VECTOR_ARCTAN(T, I, N, S)                                                           \
static inline T vector_arctan_##T(T value)                                                         \
{                                                                                                  \
    const T magnitude = fabs(value), one = (T)(1);                                                 \
    TURN_BACK(T, I, one, magnitude)                                                                \
    const T t = above / below, z = t * t;                                                          \
    const T rest = fma(eighths, (T)(PI_REST_##S), fma(t * z, ATAN_SERIES_##S(T, z), t));           \
    return copysign(fma(eighths, (T)(PI_PART_##S), rest), value);                                  \
}

/* From here on the sum of two floats may be infinite. */
#define HUGE_SIDE_float 0x1p126f
#define HUGE_SIDE_double 0x1p1022
/* Below this, and so that, no share of one is subnormal. */
#define TINY_SIDE_float 0x1p-64f
#define TINY_SIDE_double 0x1p-512
#define TINY_SCALE_float 0x1p64f
#define TINY_SCALE_double 0x1p512

/* Equal sides are told apart, for the sake of two zeros and of two infinities. */
#define DEFINE_VECTOR_ARCTAN2(T, I, N, S)                                                          \
static inline T vector_arctan2_##T(T ordinate, T abscissa)                                         \
{                                                                                                  \
    const T height = fabs(ordinate), length = fabs(abscissa);                                      \
    const T longer = height > length ? height : length;                                            \
    const T grow = longer < (T)(TINY_SIDE_##S) ? (T)(TINY_SCALE_##S) : (T)(1);                     \
    const T scale = longer > (T)(HUGE_SIDE_##S) ? (T)(0.25f) : grow;                               \
    const T y = height * scale, x = length * scale;                                                \
    TURN_BACK(T, I, x, y)                                                                          \
    const I equal = x == y;                                                                        \
    const T t = (equal ? (T)(0) : above) / (equal ? (T)(1) : below), z = t * t;                    \
    const T steep = equal && x == (T)(0) ? (T)(0) : eighths;                                       \
    const I left = as_##I(abscissa) < (I)(0);                                                      \
    const T turn = left ? (T)(1) - steep : steep, side = left ? -t : t;                            \
    const T rest = fma(turn, (T)(PI_REST_##S), fma(side * z, ATAN_SERIES_##S(T, z), side));        \
    return copysign(fma(turn, (T)(PI_PART_##S), rest), ordinate);                                  \
}

/* (asin(w) / w - 1) / w^2 of z = w^2 <= 1/4: errors 2^-28 and 2^-59. */
#define ASIN_SERIES_float(T, z)                                                                    \
    fma(z, fma(z, fma(z, fma(z, (T)(0x1.59cd2cp-5f), (T)(0x1.8bb4fcp-6f)), (T)(0x1.748a2ap-5f)),   \
        (T)(0x1.33016ap-4f)), (T)(0x1.5555cap-3f))
#define ASIN_SERIES_double(T, z)                                                                   \
    fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z,            \
        (T)(0x1.0bb0acbbbc6e5p-5), (T)(-0x1.595579f0c7f47p-6)), (T)(0x1.6493692b6407p-6)),         \
        (T)(0x1.e2bbf9c326edfp-9)), (T)(0x1.6174235e7555cp-7)), (T)(0x1.757b70b42c898p-7)),        \
        (T)(0x1.ca20cf52f9126p-7)), (T)(0x1.1c49e2ac59bc1p-6)), (T)(0x1.6e8bdfa76174cp-6)),        \
        (T)(0x1.f1c71a8db95f6p-6)), (T)(0x1.6db6db72262aap-5)), (T)(0x1.333333332df7bp-4)),        \
        (T)(0x1.5555555555578p-3))

/* Past 1/2, asin(x) is pi / 2 less twice that of sqrt((1 - x) / 2). */
#define SINE_PARTS(T, I, S, value)                                                                 \
    const T magnitude = fabs(value);                                                               \
    const I wide = magnitude > (T)(0.5f);                                                          \
    const T half_rest = fma(magnitude, (T)(-0.5f), (T)(0.5f));                                     \
    const T z = wide ? half_rest : magnitude * magnitude;                                          \
    const T w = wide ? sqrt(half_rest) : magnitude;                                                \
    const T angle = fma(w * z, ASIN_SERIES_##S(T, z), w);

#define DEFINE_VECTOR_ARCSIN(T, I, N, S)                                                           \
static inline T vector_arcsin_##T(T value)                                                         \
{                                                                                                  \
    SINE_PARTS(T, I, S, value)                                                                     \
    const T of_wide = fma(angle, (T)(-2), (T)(PI_REST_##S) * (T)(0.5f)) +                          \
        (T)(PI_PART_##S) * (T)(0.5f);                                                              \
    return copysign(wide ? of_wide : angle, value);                                                \
}

/* Wide: 2 angle or pi - 2 angle; else pi / 2 less the signed angle. */
#define DEFINE_VECTOR_ARCCOS(T, I, N, S)                                                           \
static inline T vector_arccos_##T(T value)                                                         \
{                                                                                                  \
    SINE_PARTS(T, I, S, value)                                                                     \
    const I negative = value < (T)(0);                                                             \
    const T part = wide ? angle + angle : copysign(angle, value);                                  \
    const T start = wide ? (negative ? (T)(1) : (T)(0)) : (T)(0.5f);                               \
    const T signed_part = wide && !negative ? part : -part;                                        \
    return fma(start, (T)(PI_PART_##S), fma(start, (T)(PI_REST_##S), signed_part));                \
}
