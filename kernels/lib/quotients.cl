/* Division of integers in vectors on CPUs, by way of floats: no such processor has an instruction for
 * vectors of integers, and one lane after the other takes 5 to 20 times as long.
 *
 * F is the float type with the same lanes: float for 8 and 16 bits, double for 32 and 64. For a
 * dividend a and a divisor b > 0 below 2 to the 22 (of float; of double to the 51), (a + 1/2) / b is at
 * least 1 / 2b away from every integer, and (a + 1/2) times the rounded 1 / b less than a quarter of that
 * from (a + 1/2) / b. So its floor is NumPy's quotient. For b < 0 the half has b's sign. What depends on
 * the divisor alone leaves the loop where that is the same for all lanes.
 */

#define NOT_ZERO(T, divisor) ((divisor) == (T)(0) ? (T)(1) : (divisor))
#define FLOORED(F, a, b) VECTOR_floor(((a) + copysign((F)(0.5), (b))) * ((F)(1) / (b)))

/* ---- 8 to 32 bits: P is the 32-bit integer type by which floats become T ---- */

#define DEFINE_FLOOR_DIVIDE_BY_FLOATS(T, U, F, P)                                                  \
static inline T floor_divide_##T(T dividend, T divisor)                                            \
{                                                                                                  \
    const T safe = NOT_ZERO(T, divisor == (T)(-1) ? (T)(1) : divisor);                             \
    const F quotient = FLOORED(F, convert_##F(dividend), convert_##F(safe));                       \
    const T whole = convert_##T(convert_##P(quotient));                                            \
    const T result = divisor == (T)(-1) ? as_##T((U)(-as_##U(dividend))) : whole;                  \
    return divisor == (T)(0) ? (T)(0) : result;                                                    \
}

#define DEFINE_UNSIGNED_FLOOR_DIVIDE_BY_FLOATS(T, U, F, P)                                         \
static inline T floor_divide_##T(T dividend, T divisor)                                            \
{                                                                                                  \
    const T safe = NOT_ZERO(T, divisor);                                                           \
    const F quotient = FLOORED(F, convert_##F(dividend), convert_##F(safe));                       \
    return divisor == (T)(0) ? (T)(0) : convert_##T(convert_##P(quotient));                        \
}

/* Products of quotient and divisor are exact, as is the rest. */
#define DEFINE_REMAINDER_BY_FLOATS(T, U, F, P)                                                     \
static inline T remainder_##T(T dividend, T divisor)                                               \
{                                                                                                  \
    const F a = convert_##F(dividend);                                                             \
    const F b = convert_##F(NOT_ZERO(T, divisor));                                                 \
    const F rest = a - FLOORED(F, a, b) * b;                                                       \
    return divisor == (T)(0) ? (T)(0) : convert_##T(convert_##P(rest));                            \
}

/* fmod keeps the dividend's sign. */
#define DEFINE_FMOD_BY_FLOATS(T, U, F, P)                                                          \
static inline T fmod_##T(T dividend, T divisor)                                                    \
{                                                                                                  \
    const F a = convert_##F(dividend);                                                             \
    const F b = fabs(convert_##F(NOT_ZERO(T, divisor)));                                           \
    const F rest = fabs(a) - FLOORED(F, fabs(a), b) * b;                                           \
    return divisor == (T)(0) ? (T)(0) : convert_##T(convert_##P(copysign(rest, a)));               \
}

/* ---- 64 bits: where all lanes are below 2 to the 50; else lane by lane, by the function `far` ---- */

#define IS_FAR(U, value) (((as_##U(value) + (U)(1UL << 50)) >> (U)(51)) != (U)(0))
#define IS_UNSIGNED_FAR(U, value) (((value) >> (U)(50)) != (U)(0))

/* Added to a double, a number below 2 to the 51 is in its last bits. */
#define MAGIC 0x1.8p52
#define FROM_NEAR(F, U, value) (as_##F(as_##U(value) + (U)(as_ulong(MAGIC))) - (F)(MAGIC))
#define TO_NEAR(T, U, F, value) as_##T(as_##U((value) + (F)(MAGIC)) - (U)(as_ulong(MAGIC)))

#define DEFINE_LONG(name, far, T, I, U, F, TEST, RESULT)                                           \
static inline T name(T dividend, T divisor)                                                        \
{                                                                                                  \
    const T safe = NOT_ZERO(T, divisor);                                                           \
    if (ANY_LANE(I, TEST(U, dividend) | TEST(U, safe)))                                            \
        return far(dividend, divisor);                                                             \
    const F a = FROM_NEAR(F, U, dividend), b = FROM_NEAR(F, U, safe);                              \
    return divisor == (T)(0) ? (T)(0) : TO_NEAR(T, U, F, RESULT);                                  \
}

#define FMOD_OF_NEAR(F, a, b) copysign(fabs(a) - FLOORED(F, fabs(a), fabs(b)) * fabs(b), a)

#define DEFINE_LONG_FLOOR_DIVIDE(name, far, T, I, U, F, TEST)                                      \
    DEFINE_LONG(name, far, T, I, U, F, TEST, FLOORED(F, a, b))
#define DEFINE_LONG_REMAINDER(name, far, T, I, U, F, TEST)                                         \
    DEFINE_LONG(name, far, T, I, U, F, TEST, a - FLOORED(F, a, b) * b)
#define DEFINE_LONG_FMOD(name, far, T, I, U, F, TEST)                                              \
    DEFINE_LONG(name, far, T, I, U, F, TEST, FMOD_OF_NEAR(F, a, b))
