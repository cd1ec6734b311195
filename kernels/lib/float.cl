/* NumPy's rules for floats where no builtin has them, for vectors and scalars alike; the op table's
 * `define` texts expand these.
 *
 * T is the operands' type, I the signed integer type with the same lanes, S one lane's type.  A
 * comparison is 1 at width 1 and -1 in the lanes of a vector, so it is only ever a condition.
 */

/* A power of two that brings any quotient of two finite floats into range when applied twice. */
#define FAR_float 0x1p100f
#define FAR_double 0x1p1000
#define NEAR_float 0x1p-100f
#define NEAR_double 0x1p-1000
/* From here on every float is an integer. */
#define INTEGERS_ONLY_float 0x1p23f
#define INTEGERS_ONLY_double 0x1p52

/* ---- division ---- */

/* fmod, exact for every quotient: the builtin of PoCL 3.1 is wrong or never returns in vectors of
 * double with a subnormal divisor.  The quotient rounded to nearest leaves a rest that is a float
 * (fma shows it without rounding), maybe negative; each round takes 24 or 53 bits off the dividend.
 *
 * floor_divide and remainder are NumPy's npy_divmod.  The rest takes the divisor's sign, also when
 * it is zero; the quotient is snapped to the nearest integer, as (a - rest) / b is only nearly one.
 */
#define DEFINE_DIVISION(T, I, S)                                                                   \
static inline T fmod_##T(T dividend, T divisor)                                                    \
{                                                                                                  \
    const I finite = fabs(dividend) < (T)(INFINITY);                                               \
    const I divides = finite && fabs(divisor) < (T)(INFINITY) && divisor != (T)(0);                \
    const T step = divides ? fabs(divisor) : (T)(1);                                               \
    T rest = divides ? fabs(dividend) : (T)(0);                                                    \
    while (ANY_LANE(I, fabs(rest) >= step)) {                                                   \
        T multiple = fabs(rest) * (T)(NEAR_##S) > step ? step * (T)(FAR_##S) : step;               \
        multiple = fabs(rest) * (T)(NEAR_##S) > multiple ? multiple * (T)(FAR_##S) : multiple;     \
        const T ratio = rest / multiple;                                                           \
        const T quotient = fabs(ratio) < (T)(INTEGERS_ONLY_##S) ? VECTOR_trunc(ratio) : ratio;     \
        rest = fma(-quotient, multiple, rest);                                                     \
    }                                                                                              \
    rest = rest < (T)(0) ? rest + step : rest;                                                     \
    const T whole = finite && fabs(divisor) == (T)(INFINITY) ? dividend : (T)(NAN);                \
    return divides ? copysign(rest, dividend) : whole;                                             \
}                                                                                                  \
static inline T remainder_##T(T dividend, T divisor)                                               \
{                                                                                                  \
    const T rest = fmod_##T(dividend, divisor);                                                    \
    const T moved = (divisor < (T)(0)) != (rest < (T)(0)) ? rest + divisor : rest;                 \
    return rest == (T)(0) ? copysign((T)(0), divisor) : moved;                                     \
}                                                                                                  \
static inline T floor_divide_##T(T dividend, T divisor)                                            \
{                                                                                                  \
    const T rest = fmod_##T(dividend, divisor);                                                    \
    const T nearly = (dividend - rest) / divisor;                                                  \
    const T quotient =                                                                             \
        rest != (T)(0) && (divisor < (T)(0)) != (rest < (T)(0)) ? nearly - (T)(1) : nearly;        \
    const T below = VECTOR_floor(quotient);                                                        \
    const T snapped = quotient - below > (T)(0.5f) ? below + (T)(1) : below;                       \
    const T ratio = dividend / divisor;                                                            \
    return divisor == (T)(0) ? ratio                                                               \
                             : (quotient == (T)(0) ? copysign((T)(0), ratio) : snapped);           \
}

/* ---- choice ---- */

#define DEFINE_CLIP(T)                                                                             \
static inline T clip_##T(T value, T least, T greatest)                                             \
{                                                                                                  \
    const T raised = value != value || value > least ? value : least;                              \
    return raised != raised || raised < greatest ? raised : greatest;                              \
}

/* ---- the representation ---- */

#define EXPONENT_BITS_float 0x7f800000
#define EXPONENT_BITS_double 0x7ff0000000000000
#define MANTISSA_NBITS_float 23
#define MANTISSA_NBITS_double 52
#define EXPONENT_OF_HALF_float 126
#define EXPONENT_OF_HALF_double 1022
#define LEAST_NORMAL_float 0x1p-126f
#define LEAST_NORMAL_double 0x1p-1022

/* The gap to the next float away from zero, with the sign of the value; NaN for an infinity. */
#define DEFINE_SPACING(T, I)                                                                       \
static inline T spacing_##T(T value)                                                               \
{                                                                                                  \
    const T magnitude = fabs(value);                                                               \
    const T gap = as_##T(as_##I(magnitude) + (I)(1)) - magnitude;                                  \
    const T signed_gap = value < (T)(0) ? -gap : gap;                                              \
    return magnitude < (T)(INFINITY) ? signed_gap : (T)(NAN);                                      \
}

#define DEFINE_NEXTAFTER(T, I)                                                                     \
static inline T nextafter_##T(T from, T to)                                                        \
{                                                                                                  \
    const I bits = as_##I(from);                                                                   \
    const I towards_zero = from > (T)(0) ? to < from : to > from;                                  \
    const T moved = as_##T(towards_zero ? bits - (I)(1) : bits + (I)(1));                          \
    const T from_zero = copysign(as_##T((I)(1)), to);                                              \
    const T next = from == (T)(0) ? from_zero : moved;                                             \
    return from != from || to != to ? from + to : (from == to ? to : next);                        \
}

/* The ends of the exponents of normal floats, and the greatest exponent that ldexp need look at. */
#define GREATEST_EXPONENT_float 127
#define GREATEST_EXPONENT_double 1023
#define LEAST_EXPONENT_float (-126)
#define LEAST_EXPONENT_double (-1022)
#define ENOUGH_EXPONENT_float 300
#define ENOUGH_EXPONENT_double 2200

/* The builtin of PoCL 3.1 rounds subnormal results twice in vectors of float.  A step down leaves a
 * mantissa's worth of exponent to the last step: where it rounds, the last step makes zero of it. */
#define DEFINE_LDEXP(T, I, S)                                                                      \
static inline T ldexp_##T(T value, I exponent)                                                     \
{                                                                                                  \
    const I up = (I)(GREATEST_EXPONENT_##S);                                                       \
    const I down = (I)(LEAST_EXPONENT_##S + MANTISSA_NBITS_##S + 1);                               \
    I left = clamp(exponent, (I)(-ENOUGH_EXPONENT_##S), (I)(ENOUGH_EXPONENT_##S));                 \
    T result = value;                                                                              \
    for (int round = 0; round < 2; round++) {                                                      \
        const I step = left > up ? up : (left < (I)(LEAST_EXPONENT_##S) ? down : (I)(0));          \
        result *= POWER_OF_TWO(T, I, S, step);                                                     \
        left -= step;                                                                              \
    }                                                                                              \
    return result * POWER_OF_TWO(T, I, S, left);                                                   \
}
#define POWER_OF_TWO(T, I, S, exponent)                                                            \
    as_##T(((exponent) + (I)(GREATEST_EXPONENT_##S)) << (I)(MANTISSA_NBITS_##S))

/* A fraction in [0.5, 1) and a power of two; zeros, infinities and NaN are their own fraction. */
#define DEFINE_FREXP(T, I, S)                                                                      \
static inline I frexp_shift_##T(T value)                                                           \
{                                                                                                  \
    return fabs(value) < (T)(LEAST_NORMAL_##S) ? (I)(MANTISSA_NBITS_##S) : (I)(0);                 \
}                                                                                                  \
static inline I frexp_bits_##T(T value)                                                            \
{                                                                                                  \
    const T normal = fabs(value) < (T)(LEAST_NORMAL_##S)                                           \
        ? value * (T)(INTEGERS_ONLY_##S) : value;                                                  \
    return as_##I(normal);                                                                         \
}                                                                                                  \
static inline I frexp_exponent_##T(T value)                                                        \
{                                                                                                  \
    const I biased = (frexp_bits_##T(value) & (I)(EXPONENT_BITS_##S)) >> (I)(MANTISSA_NBITS_##S);  \
    const I exponent = biased - (I)(EXPONENT_OF_HALF_##S) - frexp_shift_##T(value);                \
    return value != (T)(0) && fabs(value) < (T)(INFINITY) ? exponent : (I)(0);                     \
}                                                                                                  \
static inline T frexp_mantissa_##T(T value)                                                        \
{                                                                                                  \
    const I fraction = (frexp_bits_##T(value) & ~(I)(EXPONENT_BITS_##S))                           \
        | ((I)(EXPONENT_OF_HALF_##S) << (I)(MANTISSA_NBITS_##S));                                  \
    return value != (T)(0) && fabs(value) < (T)(INFINITY) ? as_##T(fraction) : value;              \
}

/* ---- sums of exponentials ---- */

/* log(exp(a) + exp(b)) without overflow.  Equal operands are a case of their own: inf - inf is NaN. */
#define DEFINE_LOGADDEXP(T, ln2)                                                                   \
static inline T logaddexp_##T(T first, T second)                                                   \
{                                                                                                  \
    const T gap = first - second;                                                                  \
    const T greater = gap > (T)(0) ? first : second;                                               \
    const T sum = greater + log1p(exp(-fabs(gap)));                                                \
    return first == second ? first + (T)(ln2) : (gap != gap ? gap : sum);                          \
}

#define DEFINE_LOGADDEXP2(T, log2e)                                                                \
static inline T logaddexp2_##T(T first, T second)                                                  \
{                                                                                                  \
    const T gap = first - second;                                                                  \
    const T greater = gap > (T)(0) ? first : second;                                               \
    const T sum = greater + (T)(log2e) * log1p(exp2(-fabs(gap)));                                  \
    return first == second ? first + (T)(1) : (gap != gap ? gap : sum);                            \
}
