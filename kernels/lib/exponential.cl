/* exp, expm1, sinh, cosh and tanh for runtimes whose builtins are slow in vectors; the op tables'
 * FAULTY_BUILTINS say where.  T is a float or double type, I the integer type with the same lanes,
 * N the int type with as many, S one lane's type.  Coefficients are minimax (Remez).
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2, and all five come from 2^n, 2^-n, sinh(r) and cosh(r) - 1:
 * sums of terms of one sign or of very different size, so that nothing cancels.
 *
 * Worst errors seen in floats and doubles (2 million values of every size), in ulp: exp 1.0 and 1.0,
 * expm1 1.7 and 2.0, sinh 1.5 and 1.8, cosh 2.0 and 1.4, tanh 2.6 and 2.6.
 */

/* Added to a small float, it leaves the nearest integer in the low bits. */
#define ROUNDER_float 0x1.8p23f
#define ROUNDER_double 0x1.8p52
#define LOG2_E_float 0x1.715476p+0f
#define LOG2_E_double 0x1.71547652b82fep+0
#define LN2_HIGH_float 0x1.62e43p-1f
#define LN2_LOW_float -0x1.05c61p-29f
#define LN2_HIGH_double 0x1.62e42fefa39efp-1
#define LN2_LOW_double 0x1.abc9e3b39803fp-56
#define FRACTION_NBITS_float 23
#define FRACTION_NBITS_double 52
#define EXPONENT_BIAS_float 127
#define EXPONENT_BIAS_double 1023

/* (sinh(r) / r - 1) / r^2 and (cosh(r) - 1) / r^2 of z = r^2: errors 2^-26 and 2^-33 of the whole in
 * float, 2^-61 and 2^-70 in double. */
#define SINH_SERIES_float(T, z) fma(z, (T)(0x1.12291ap-7f), (T)(0x1.5554aep-3f))
#define COSH_SERIES_float(T, z)                                                                    \
    fma(z, fma(z, (T)(0x1.6d4f28p-10f), (T)(0x1.5554e6p-5f)), (T)(0x1p-1f))
#define SINH_SERIES_double(T, z)                                                                   \
    fma(z, fma(z, fma(z, fma(z, (T)(0x1.af5f55e0a8f22p-26), (T)(0x1.71ddf7dc4588dp-19)),           \
        (T)(0x1.a01a01b01ca2p-13)), (T)(0x1.111111110f62ap-7)), (T)(0x1.5555555555559p-3))
#define COSH_SERIES_double(T, z)                                                                   \
    fma(z, fma(z, fma(z, fma(z, fma(z, (T)(0x1.1f8bee7565693p-29), (T)(0x1.27e4cc0939307p-22)),    \
        (T)(0x1.a01a01ad80fe6p-16)), (T)(0x1.6c16c16c14ffap-10)), (T)(0x1.5555555555558p-5)),      \
        (T)(0x1p-1))

/* Declares r and z, and n both as the low bits of `rounded` and moved to the exponent's place. */
#define SPLIT_EXPONENT(T, I, S, x)                                                                 \
    const T rounded = fma(x, (T)(LOG2_E_##S), (T)(ROUNDER_##S));                                   \
    const T n = rounded - (T)(ROUNDER_##S);                                                        \
    const T r = fma(-n, (T)(LN2_LOW_##S), fma(-n, (T)(LN2_HIGH_##S), x)), z = r * r;               \
    const I power = as_##I(rounded) << (I)(FRACTION_NBITS_##S);
/* The bits of a power of two. */
#define BITS_OF_POWER(I, S, exponent)                                                              \
    ((I)(EXPONENT_BIAS_##S + (exponent)) << (I)(FRACTION_NBITS_##S))

/* From here on the results are infinite (and the powers of two that they are made of are not). */
#define EXP_END_float 89
#define EXP_END_double 710
#define EXPM1_END_float 89
#define EXPM1_END_double 710
#define SINH_END_float 89.5f
#define SINH_END_double 710.5
/* To here they are 0 and -1; from here on tanh is 1. */
#define EXP_START_float -104
#define EXP_START_double -746
#define EXPM1_START_float -20
#define EXPM1_START_double -40
#define TANH_END_float 10
#define TANH_END_double 20
/* Below these x is the nearest float to expm1(x) and to sinh(x). */
#define EXPM1_SMALL_float 0x1p-25f
#define EXPM1_SMALL_double 0x1p-54
#define SINH_SMALL_float 0x1p-12f
#define SINH_SMALL_double 0x1p-26

/* In two steps, of which the first is exact where the result is subnormal. */
#define DEFINE_VECTOR_EXP(T, I, N, S)                                                              \
static inline T vector_exp_##T(T value)                                                            \
{                                                                                                  \
    const T below = value > (T)(EXP_END_##S) ? (T)(EXP_END_##S) : value;                           \
    const T x = below < (T)(EXP_START_##S) ? (T)(EXP_START_##S) : below;                           \
    SPLIT_EXPONENT(T, I, S, x)                                                                     \
    const I whole = as_##I(rounded) - as_##I((T)(ROUNDER_##S)), half_power = whole >> (I)(1);      \
    const T first = as_##T((half_power + (I)(EXPONENT_BIAS_##S)) << (I)(FRACTION_NBITS_##S));      \
    const T second =                                                                               \
        as_##T((whole - half_power + (I)(EXPONENT_BIAS_##S)) << (I)(FRACTION_NBITS_##S));          \
    const T above_1 = fma(z, fma(r, SINH_SERIES_##S(T, z), COSH_SERIES_##S(T, z)), r);             \
    return ((T)(1) + above_1) * first * second;                                                    \
}

#define DEFINE_VECTOR_EXPM1(T, I, N, S)                                                            \
static inline T vector_expm1_##T(T value)                                                          \
{                                                                                                  \
    const T below = value > (T)(EXPM1_END_##S) ? (T)(EXPM1_END_##S) : value;                       \
    const T x = below < (T)(EXPM1_START_##S) ? (T)(EXPM1_START_##S) : below;                       \
    SPLIT_EXPONENT(T, I, S, x)                                                                     \
    const T above_1 = fma(z, fma(r, SINH_SERIES_##S(T, z), COSH_SERIES_##S(T, z)), r);             \
    const T half_scale = as_##T(power + BITS_OF_POWER(I, S, -1));                                  \
    const T half_result = fma(half_scale, above_1, half_scale - (T)(0.5f));                        \
    return fabs(value) < (T)(EXPM1_SMALL_##S) ? value : half_result + half_result;                 \
}

/* Declares sum and difference of 2^n and 2^-n, times 2^shift, and sinh(r) and cosh(r) - 1. */
#define HYPERBOLIC_PARTS(T, I, S, x, shift)                                                        \
    SPLIT_EXPONENT(T, I, S, x)                                                                     \
    const I down = BITS_OF_POWER(I, S, shift) - power;                                             \
    const T up_scale = as_##T(power + BITS_OF_POWER(I, S, shift));                                 \
    const T down_scale = as_##T(down > (I)(0) ? down : (I)(0));                                    \
    const T sum = up_scale + down_scale, difference = up_scale - down_scale;                       \
    const T odd = fma(r * z, SINH_SERIES_##S(T, z), r), even = z * COSH_SERIES_##S(T, z);

#define DEFINE_VECTOR_SINH(T, I, N, S)                                                             \
static inline T vector_sinh_##T(T value)                                                           \
{                                                                                                  \
    const T magnitude = fabs(value);                                                               \
    const T x = magnitude > (T)(SINH_END_##S) ? (T)(SINH_END_##S) : magnitude;                     \
    HYPERBOLIC_PARTS(T, I, S, x, -2)                                                               \
    const T half_result = difference + fma(sum, odd, difference * even);                           \
    return magnitude < (T)(SINH_SMALL_##S) ? value : copysign(half_result + half_result, value);   \
}

#define DEFINE_VECTOR_COSH(T, I, N, S)                                                             \
static inline T vector_cosh_##T(T value)                                                           \
{                                                                                                  \
    const T magnitude = fabs(value);                                                               \
    const T x = magnitude > (T)(SINH_END_##S) ? (T)(SINH_END_##S) : magnitude;                     \
    HYPERBOLIC_PARTS(T, I, S, x, -2)                                                               \
    const T half_result = sum + fma(difference, odd, sum * even);                                  \
    return half_result + half_result;                                                              \
}

/* Of larger values, the sinh is the cosh less 2 exp(-x), so that the error of the cosh, in both, does
 * not count. */
#define DEFINE_VECTOR_TANH(T, I, N, S)                                                             \
static inline T vector_tanh_##T(T value)                                                           \
{                                                                                                  \
    const T magnitude = fabs(value);                                                               \
    const T x = magnitude > (T)(TANH_END_##S) ? (T)(TANH_END_##S) : magnitude;                     \
    HYPERBOLIC_PARTS(T, I, S, x, 0)                                                                \
    const T cosh_2 = sum + fma(difference, odd, sum * even);                                       \
    const T lacking = (down_scale + down_scale) * ((even - odd) + (T)(1));                         \
    const T small_sinh = difference + fma(sum, odd, difference * even);                            \
    const T sinh_2 = n < (T)(2) ? small_sinh : cosh_2 - lacking;                                   \
    return copysign(sinh_2 / cosh_2, value);                                                       \
}
