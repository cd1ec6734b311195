/* Logarithms and inverse hyperbolic functions for runtimes whose builtins are slow in vectors; the op
 * tables' FAULTY_BUILTINS say where.  T is a float or double type, I the integer type with the same
 * lanes, N the int type with as many, S one lane's type.  Coefficients are minimax (Remez).
 *
 * Worst errors seen in floats and doubles (2 million values of every size), in ulp: log 0.9 and 0.9,
 * log2 1.0 and 1.1, log10 1.0 and 1.0, log1p 1.5 and 1.6, arcsinh 2.7 and 2.6, arccosh 2.8 and 2.7,
 * arctanh 1.7 and 1.9.
 */

#define LOG_NBITS_float 23
#define LOG_NBITS_double 52
#define LOG_BIAS_float 127
#define LOG_BIAS_double 1023
#define LOG_LEAST_float 0x1p-126f
#define LOG_LEAST_double 0x1p-1022
/* What makes a subnormal number normal. */
#define LOG_RAISE_float 32
#define LOG_RAISE_double 64
#define LOG_RAISED_float 0x1p32f
#define LOG_RAISED_double 0x1p64
#define SQRT_HALF_BITS_float 0x3f3504f3
#define SQRT_HALF_BITS_double 0x3fe6a09e667f3bcdL

/* ---- log of a mantissa ---- */

/* log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)): a series in floats (error 2^-27 of f); in doubles
 * 2 atanh of s = f / (2 + f), of which (atanh(s) / s - 1) / s^2 is a series (2^-59). */
#define LOG_SERIES(T, f)                                                                           \
    fma(f, fma(f, fma(f, fma(f, fma(f, fma(f, fma(f, fma(f,                                        \
        (T)(-0x1.39972p-4f), (T)(0x1.0936b2p-3f)), (T)(-0x1.0f49f2p-3f)), (T)(0x1.2245a2p-3f)),    \
        (T)(-0x1.5421fap-3f)), (T)(0x1.99a694p-3f)), (T)(-0x1.000444p-2f)), (T)(0x1.55554ap-2f)),  \
        (T)(-0x1.fffff8p-2f))
#define NARROW_ATANH_SERIES(T, z)                                                                  \
    fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, (T)(0x1.2f04683f8d80bp-4),                           \
        (T)(0x1.39a1d972f77d7p-4)), (T)(0x1.74663d6fd65e4p-4)), (T)(0x1.c71c52124dfe5p-4)),        \
        (T)(0x1.24924941e326p-3)), (T)(0x1.999999997ff06p-3)), (T)(0x1.5555555555592p-2))
#define LOG_WITHOUT_FIRST_float(T) const T rest = f * f * LOG_SERIES(T, f);
#define LOG_WITHOUT_FIRST_double(T)                                                                \
    const T s = f / (f + (T)(2)), z = s * s;                                                       \
    const T rest = s * fma(z + z, NARROW_ATANH_SERIES(T, z), -f);

/* 1 / ln(base) and ln(2) / ln(base) in two parts each. */
#define OF_LOG_float 1, 0, 0x1.62e43p-1f, -0x1.05c61p-29f
#define OF_LOG2_float 0x1.715476p+0f, 0x1.4ae0cp-26f, 1, 0
#define OF_LOG10_float 0x1.bcb7b2p-2f, -0x1.5b235ep-27f, 0x1.344136p-2f, -0x1.ec10cp-27f
#define OF_LOG_double 1, 0, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56
#define OF_LOG2_double 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1, 0
#define OF_LOG10_double                                                                            \
    0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59

/* Of a base, as told by the four numbers. */
#define IN_BASE(T, numbers) IN_BASE_OF(T, numbers)
#define IN_BASE_OF(T, factor, factor_rest, power, power_rest)                                      \
    fma(k, (T)(power), fma(f, (T)(factor),                                                         \
        fma(k, (T)(power_rest), fma(f, (T)(factor_rest), rest * (T)(factor)))))

#define LOG_WITH_SPECIAL_VALUES(T, value, argument, plain)                                         \
    const T below_infinity = value < (T)(INFINITY) ? plain : value;                                \
    return argument > (T)(0) ? below_infinity                                                      \
                             : (argument == (T)(0) ? (T)(-INFINITY) : (T)(NAN));

#define DEFINE_LOG_IN_BASE(name, BASE, T, I, N, S)                                                 \
static inline T vector_##name##_##T(T value)                                                       \
{                                                                                                  \
    const I subnormal = value < (T)(LOG_LEAST_##S);                                                \
    const I bits = as_##I(subnormal ? value * (T)(LOG_RAISED_##S) : value);                        \
    const I power = (bits - (I)(SQRT_HALF_BITS_##S)) >> (I)(LOG_NBITS_##S);                        \
    const T f = as_##T(bits - (power << (I)(LOG_NBITS_##S))) - (T)(1);                             \
    const T k = convert_##T(convert_##N(power)) - (subnormal ? (T)(LOG_RAISE_##S) : (T)(0));       \
    LOG_WITHOUT_FIRST_##S(T)                                                                       \
    const T plain = IN_BASE(T, OF_##BASE##_##S);                                                   \
    LOG_WITH_SPECIAL_VALUES(T, value, value, plain)                                                \
}
#define DEFINE_VECTOR_LOG(T, I, N, S) DEFINE_LOG_IN_BASE(log, LOG, T, I, N, S)
#define DEFINE_VECTOR_LOG2(T, I, N, S) DEFINE_LOG_IN_BASE(log2, LOG2, T, I, N, S)
#define DEFINE_VECTOR_LOG10(T, I, N, S) DEFINE_LOG_IN_BASE(log10, LOG10, T, I, N, S)

/* Below these x is the nearest float to log1p(x). */
#define LOG1P_SMALL_float 0x1p-25f
#define LOG1P_SMALL_double 0x1p-54

/* f = (1 + x) / 2^k - 1 is a sum of x / 2^k and of 1 / 2^k - 1, in which 1 + x is not rounded.  The
 * power of two is given 4 times, since 2^-128 would be subnormal. */
#define DEFINE_VECTOR_LOG1P(T, I, N, S)                                                            \
static inline T vector_log1p_##T(T value)                                                          \
{                                                                                                  \
    const T argument = value + (T)(1);                                                             \
    const I power = (as_##I(argument) - (I)(SQRT_HALF_BITS_##S)) >> (I)(LOG_NBITS_##S);            \
    const T scale = as_##T(((I)(LOG_BIAS_##S + 2) - power) << (I)(LOG_NBITS_##S));                 \
    const T f = fma(scale, value * (T)(0.25f), fma(scale, (T)(0.25f), (T)(-1)));                   \
    const T k = convert_##T(convert_##N(power));                                                   \
    LOG_WITHOUT_FIRST_##S(T)                                                                       \
    const T usual = IN_BASE(T, OF_LOG_##S);                                                        \
    const T plain = fabs(value) < (T)(LOG1P_SMALL_##S) ? value : usual;                            \
    LOG_WITH_SPECIAL_VALUES(T, value, argument, plain)                                             \
}

/* ---- inverse hyperbolic functions ---- */

/* Each is log(u), or half of it, of a u = (p + q) / (p - q), which is 2 atanh(q / p); and log(u) is
 * k ln 2 + log(u / 2^k), of which p and q are sums of the first.  So there is one division. */

/* (atanh(s) / s - 1) / s^2 of z = s^2 for |s| <= tanh(1/4): errors 2^-32 and 2^-57. */
#define ATANH_SERIES_float(T, z)                                                                   \
    fma(z, fma(z, fma(z, (T)(0x1.025ab4p-3f), (T)(0x1.22ea58p-3f)), (T)(0x1.99a276p-3f)),          \
        (T)(0x1.55554ep-2f))
#define ATANH_SERIES_double(T, z)                                                                  \
    fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, (T)(0x1.343c6602ee924p-4),                    \
        (T)(0x1.092bc64ae0fc4p-4)), (T)(0x1.3b90378bb4067p-4)), (T)(0x1.7458ae8b7dc36p-4)),        \
        (T)(0x1.c71c88f64ae0ep-4)), (T)(0x1.24924902ef117p-3)), (T)(0x1.99999999c8bbbp-3)),        \
        (T)(0x1.55555555554a1p-2))

/* u / 2^k is in [exp(1/2) / 2, exp(1/2)): below 1/2 the result is not made of two parts. */
#define HALF_SQRT_E_BITS_float 0x3f53094c
#define HALF_SQRT_E_BITS_double 0x3fea61298e1e069cL
/* From here on sqrt(x^2 + 1) and sqrt(x^2 - 1) are x, and twice x may be infinite. */
#define LARGE_ROOT_float 0x1p14f
#define LARGE_ROOT_double 0x1p28
#define LN2_PART_float 0x1.62e43p-1f
#define LN2_REST_float -0x1.05c61p-29f
#define LN2_PART_double 0x1.62e42fefa39efp-1
#define LN2_REST_double 0x1.abc9e3b39803fp-56

/* log(x + root) of x and of a root that is sqrt(x^2 + 1) or sqrt(x^2 - 1), with p and q as above. */
#define LOG_OF_SUM(T, I, N, S, x, root, p, q)                                                      \
    const I large = x > (T)(LARGE_ROOT_##S);                                                       \
    const T u = large ? x : x + root;                                                              \
    const I power = (as_##I(u) - (I)(HALF_SQRT_E_BITS_##S)) >> (I)(LOG_NBITS_##S);                 \
    const T mantissa = as_##T(as_##I(u) - (power << (I)(LOG_NBITS_##S)));                          \
    const I near = power <= (I)(0);                                                                \
    const T above = near ? q : mantissa - (T)(1), below = near ? p : mantissa + (T)(1);            \
    const T s = (above + above) / below, z = s * s * (T)(0.25f);                                   \
    const T k = convert_##T(convert_##N(power)) + (large ? (T)(1) : (T)(0));                       \
    const T usual = fma(k, (T)(LN2_PART_##S),                                                      \
        fma(k, (T)(LN2_REST_##S), fma(s * z, ATANH_SERIES_##S(T, z), s)));                         \
    const T log_of_sum = x < (T)(INFINITY) ? usual : x;

#define DEFINE_VECTOR_ARCSINH(T, I, N, S)                                                          \
static inline T vector_arcsinh_##T(T value)                                                        \
{                                                                                                  \
    const T x = fabs(value), root = sqrt(fma(x, x, (T)(1))), p = root + (T)(1);                    \
    LOG_OF_SUM(T, I, N, S, x, root, p, x)                                                          \
    return copysign(log_of_sum, value);                                                            \
}

#define DEFINE_VECTOR_ARCCOSH(T, I, N, S)                                                          \
static inline T vector_arccosh_##T(T x)                                                            \
{                                                                                                  \
    const T p = x + (T)(1), root = sqrt((x - (T)(1)) * p);                                         \
    LOG_OF_SUM(T, I, N, S, x, root, p, root)                                                       \
    return x < (T)(1) ? (T)(NAN) : log_of_sum;                                                     \
}

/* The difference of the bits of two floats is nearly that of their logarithms, by 0.09 of a power of
 * two at most; 2/5 keeps the quotient, over 2^k, between 0.7 and 1.62. */
#define TWO_FIFTHS_float 0x333333
#define TWO_FIFTHS_double 0x6666666666666L
/* p and q are not rounded where they are made of the power of two; there it is not too small yet. */
#define ROUNDED_FROM 12
#define DEFINE_VECTOR_ARCTANH(T, I, N, S)                                                          \
static inline T vector_arctanh_##T(T value)                                                        \
{                                                                                                  \
    const T x = fabs(value), p = (T)(1) + x, q = (T)(1) - x;                                       \
    const I power = (as_##I(p) - as_##I(q) + (I)(TWO_FIFTHS_##S)) >> (I)(LOG_NBITS_##S);           \
    const T scale = as_##T(((I)(LOG_BIAS_##S) - power) << (I)(LOG_NBITS_##S));                     \
    const T sum = scale + (T)(1), difference = scale - (T)(1);                                     \
    const I far = power >= (I)(ROUNDED_FROM);                                                      \
    const T above = far ? fma(scale, p, -q) : fma(sum, x, difference);                             \
    const T below = far ? fma(scale, p, q) : fma(difference, x, sum);                              \
    const T s = above / below, z = s * s;                                                          \
    const T k = convert_##T(convert_##N(power)) * (T)(0.5f);                                       \
    const T usual = fma(k, (T)(LN2_PART_##S),                                                      \
        fma(k, (T)(LN2_REST_##S), fma(s * z, ATANH_SERIES_##S(T, z), s)));                         \
    const T plain = x == (T)(1) ? (T)(INFINITY) : usual;                                           \
    return x > (T)(1) ? (T)(NAN) : copysign(plain, value);                                         \
}
