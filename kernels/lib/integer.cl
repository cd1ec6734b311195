/* NumPy's integer rules for vectors and scalars alike: the op table's `define` texts expand these.
 *
 * T is the operands' type, I and U the signed and unsigned integer types with the same lanes (one of
 * them is T).  A comparison is 1 at width 1 and -1 in the lanes of a vector, hence no arithmetic
 * with them.  A vector division is made of scalar ones on CPUs, and they trap on a divisor of 0 and
 * on the least integer over -1, in any lane: the divisor is replaced before, the result after.
 * quotients.cl has divisions for vectors on CPUs.
 */

#define NEGATE_WRAPPING(T, U, value) as_##T((U)(-as_##U(value)))

/* ---- division: towards minus infinity, by zero 0 ---- */

#define DEFINE_FLOOR_DIVIDE_SIGNED(name, T, U)                                                     \
static inline T name(T dividend, T divisor)                                                        \
{                                                                                                  \
    const T safe = divisor == (T)(0) || divisor == (T)(-1) ? (T)(1) : divisor;                     \
    const T quotient = dividend / safe;                                                            \
    const T rest = dividend - quotient * safe;                                                     \
    const T floored = rest != (T)(0) && (T)(rest ^ safe) < (T)(0) ? (T)(quotient - (T)(1))         \
                                                                  : quotient;                      \
    const T result = divisor == (T)(-1) ? NEGATE_WRAPPING(T, U, dividend) : floored;               \
    return divisor == (T)(0) ? (T)(0) : result;                                                    \
}

#define DEFINE_FLOOR_DIVIDE_UNSIGNED(name, T, U)                                                   \
static inline T name(T dividend, T divisor)                                                        \
{                                                                                                  \
    const T safe = divisor == (T)(0) ? (T)(1) : divisor;                                           \
    return divisor == (T)(0) ? (T)(0) : (T)(dividend / safe);                                      \
}

#define DEFINE_REMAINDER_SIGNED(name, T, U)                                                        \
static inline T name(T dividend, T divisor)                                                        \
{                                                                                                  \
    const T safe = divisor == (T)(0) || divisor == (T)(-1) ? (T)(1) : divisor;                     \
    const T rest = dividend % safe;                                                                \
    return rest != (T)(0) && (T)(rest ^ safe) < (T)(0) ? (T)(rest + safe) : rest;                  \
}

#define DEFINE_REMAINDER_UNSIGNED(name, T, U)                                                      \
static inline T name(T dividend, T divisor)                                                        \
{                                                                                                  \
    return dividend % (divisor == (T)(0) ? (T)(1) : divisor);                                      \
}

/* fmod of integers keeps the dividend's sign, as C's %. */
#define DEFINE_FMOD_SIGNED(name, T, U)                                                             \
static inline T name(T dividend, T divisor)                                                        \
{                                                                                                  \
    return dividend % (divisor == (T)(0) || divisor == (T)(-1) ? (T)(1) : divisor);                \
}

#define DEFINE_FMOD_UNSIGNED(name, T, U)                                                           \
static inline T name(T dividend, T divisor)                                                        \
{                                                                                                  \
    return dividend % (divisor == (T)(0) ? (T)(1) : divisor);                                      \
}

/* ---- complement ---- */

/* Intel's compiler (2026.2, for AVX-512) takes ~min(x, y) and max(~x, y) of numbers for what they are
 * less a sign, or for no instruction at all; of vectors it is right. Here it sees nothing to join. */
#define DEFINE_KEPT_INVERT(T, S)                                                                   \
static inline T kept_invert_##T(T value)                                                           \
{                                                                                                  \
    if (sizeof(T) > sizeof(S))                                                                     \
        return (T)(~value);                                                                        \
    volatile T kept = value;                                                                       \
    kept = (T)(~kept);                                                                             \
    return kept;                                                                                   \
}

/* ---- power: by squaring, modulo 2 to the width ---- */

/* Not for shorts: two ushorts multiply as ints at width 1 and overflow; they are widened before. */
#define DEFINE_POWER(T, I, U)                                                                      \
static inline T power_##T(T base, T exponent)                                                      \
{                                                                                                  \
    U square = as_##U(base);                                                                       \
    U left = as_##U(exponent);                                                                     \
    U result = (U)(1);                                                                             \
    while (ANY_LANE(I, left != (U)(0))) {                                                          \
        result = (left & (U)(1)) != (U)(0) ? (U)(result * square) : result;                        \
        square = square * square;                                                                  \
        left = left >> (U)(1);                                                                     \
    }                                                                                              \
    return as_##T(result);                                                                         \
}

/* ---- greatest common divisor: Stein's binary algorithm, without division ---- */

/* By clz, as OpenCL C 1.2 has no ctz.  For 0 it is -1: a shift of 0 by any count stays 0. */
#define TRAILING_ZEROS(U, S, value)                                                                \
    ((U)((U)(8 * sizeof(S) - 1) - clz((U)((value) & (U)(-(value))))))

#define UNSIGNED_GCD_BODY(I, U, S, result, a, b)                                                   \
    const U twos = TRAILING_ZEROS(U, S, (U)(a | b));                                               \
    U odd = a >> TRAILING_ZEROS(U, S, a);                                                          \
    U other = a == (U)(0) ? (U)(0) : b;                                                            \
    while (ANY_LANE(I, other != (U)(0))) {                                                         \
        other = other >> TRAILING_ZEROS(U, S, other);                                              \
        const U less = min(odd, other);                                                            \
        const U rest = max(odd, other) - less;                                                     \
        odd = other == (U)(0) ? odd : less;                                                        \
        other = other == (U)(0) ? other : rest;                                                    \
    }                                                                                              \
    const U result = a == (U)(0) ? b : (b == (U)(0) ? a : (U)(odd << twos));

#define DEFINE_GCD(T, I, U, S)                                                                     \
static inline T gcd_##T(T first, T second)                                                         \
{                                                                                                  \
    const U a = abs(first), b = abs(second);                                                       \
    UNSIGNED_GCD_BODY(I, U, S, divisor, a, b)                                                      \
    return as_##T(divisor);                                                                        \
}

/* The product wraps, as NumPy's. */
#define DEFINE_LCM(T, I, U, S)                                                                     \
static inline T lcm_##T(T first, T second)                                                         \
{                                                                                                  \
    const U a = abs(first), b = abs(second);                                                       \
    UNSIGNED_GCD_BODY(I, U, S, divisor, a, b)                                                      \
    return as_##T((U)(a / (divisor == (U)(0) ? (U)(1) : divisor) * b));                            \
}
