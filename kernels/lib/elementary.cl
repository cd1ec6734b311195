/* Functions of floats for runtimes whose builtins are wrong or slow in vectors; the op tables'
 * FAULTY_BUILTINS say where.  T is a float or double type, I the integer type with the same lanes, N
 * the int type with as many, S one lane's type.  Coefficients are minimax (Remez) for the intervals
 * named; every error below is relative to the result.
 */

/* ---- cbrt ---- */

/* Between these scales, which are powers of 8, neither the number nor its reciprocal is subnormal. */
#define CBRT_UP_float 0x1p30f
#define CBRT_UP_double 0x1p300
#define CBRT_DOWN_float 0x1p-30f
#define CBRT_DOWN_double 0x1p-300
#define CBRT_UNDO_UP_float 0x1p-10f
#define CBRT_UNDO_UP_double 0x1p-100
#define CBRT_UNDO_DOWN_float 0x1p10f
#define CBRT_UNDO_DOWN_double 0x1p100

/* A third of the bits of x, taken from a constant, is 1 / cbrt(x) within 3.6%, as bits are nearly
 * logarithms.  The guess is cut to so few bits that guess^2 and guess^3 are exact. */
#define CBRT_GUESS_float(T, I, N, x)                                                               \
    as_##T(convert_##I(fma(convert_##T(as_##I(x)), (T)(-0x1.555556p-2f), (T)(0x1.5287dcp+30f)))    \
        & (I)(~0xffff))
#define CBRT_ROUGH_double(T, I, N, x)                                                              \
    as_##T(convert_##I(convert_##N(fma(convert_##T(convert_##N(as_##I(x) >> (I)(32))),             \
        (T)(-0x1.5555555555555p-2), (T)(0x1.54fba27p+30)))) << (I)(32))
#define CBRT_GUESS_double(T, I, N, x) cbrt_guess_##T(x)

/* ((1 - e)^(-2/3) - 1) / e: error 2^-28 for |e| <= 0.12 in floats, 2^-56 for |e| <= 2^-10 in doubles;
 * and ((1 - e)^(-1/3) - 1) / e to 2^-17 for the first. */
#define CBRT_SERIES_float(T, e)                                                                    \
    fma(e, fma(e, fma(e, fma(e, fma(e, (T)(0x1.a4a132p-2f), (T)(0x1.ba8d06p-2f)),                  \
        (T)(0x1.cf6b62p-2f)), (T)(0x1.f99ba8p-2f)), (T)(0x1.1c71d2p-1f)), (T)(0x1.55555ap-1f))
#define CBRT_SERIES_double(T, e)                                                                   \
    fma(e, fma(e, fma(e, (T)(0x1.cf8a1e7641a9bp-2), (T)(0x1.f9adea6f1a8d4p-2)),                    \
        (T)(0x1.1c71c71c718aep-1)), (T)(0x1.555555555536ep-1))
#define CBRT_STEP(T, e)                                                                            \
    fma(e, fma(e, (T)(0x1.673ee5dbcef04p-3), (T)(0x1.caaa4ae935032p-3)), (T)(0x1.55527be51032fp-2))

/* Worst error seen: 1.2 ulp in floats, 1.0 in doubles (2 million values of every size). */
#define DEFINE_VECTOR_CBRT(T, I, N, S) DEFINE_CBRT_GUESS_##S(T, I, N)                              \
static inline T vector_cbrt_##T(T value)                                                           \
{                                                                                                  \
    const T magnitude = fabs(value);                                                               \
    const I small = magnitude < (T)(1);                                                            \
    const T x = magnitude * (small ? (T)(CBRT_UP_##S) : (T)(CBRT_DOWN_##S));                       \
    const T guess = CBRT_GUESS_##S(T, I, N, x), square = guess * guess, root = x * square;         \
    const T e = fma(-x, square * guess, (T)(1));                                                   \
    const T scaled = fma(root * e, CBRT_SERIES_##S(T, e), root);                                   \
    const T back = scaled * (small ? (T)(CBRT_UNDO_UP_##S) : (T)(CBRT_UNDO_DOWN_##S));             \
    return magnitude < (T)(INFINITY) && magnitude > (T)(0) ? copysign(back, value) : value;        \
}
#define DEFINE_CBRT_GUESS_float(T, I, N)
#define DEFINE_CBRT_GUESS_double(T, I, N)                                                          \
static inline T cbrt_guess_##T(T x)                                                                \
{                                                                                                  \
    const T rough = CBRT_ROUGH_double(T, I, N, x);                                                 \
    const T e = fma(-x * rough, rough * rough, (T)(1));                                            \
    return as_##T(as_##I(fma(rough * e, CBRT_STEP(T, e), rough)) & ~(I)(0xfffffffffL));            \
}

/* ---- rounding: one instruction where clang is asked for it itself ---- */

#define DEFINE_VECTOR_ROUNDING(T)                                                                  \
static inline T vector_ceil_##T(T value) { return VECTOR_ceil(value); }                            \
static inline T vector_floor_##T(T value) { return VECTOR_floor(value); }                          \
static inline T vector_rint_##T(T value) { return VECTOR_rint(value); }                            \
static inline T vector_trunc_##T(T value) { return VECTOR_trunc(value); }

/* ---- hypot ---- */

/* Squares of magnitudes between 1 / HYPOT_WIDE and HYPOT_WIDE neither overflow nor lose bits, and the
 * scale brings every other magnitude between them. */
#define HYPOT_WIDE_float 0x1p60f
#define HYPOT_WIDE_double 0x1p500
#define HYPOT_SMALL_float 0x1p-60f
#define HYPOT_SMALL_double 0x1p-500
#define HYPOT_UP_float 0x1p100f
#define HYPOT_UP_double 0x1p600
#define HYPOT_DOWN_float 0x1p-100f
#define HYPOT_DOWN_double 0x1p-600

#define DEFINE_VECTOR_HYPOT(T, S)                                                                  \
static inline T vector_hypot_##T(T first, T second)                                                \
{                                                                                                  \
    const T a = fabs(first), b = fabs(second), larger = a > b ? a : b;                             \
    const T up = larger < (T)(HYPOT_SMALL_##S) ? (T)(HYPOT_UP_##S) : (T)(1);                       \
    const T scale = larger > (T)(HYPOT_WIDE_##S) ? (T)(HYPOT_DOWN_##S) : up;                       \
    const T down = larger < (T)(HYPOT_SMALL_##S) ? (T)(HYPOT_DOWN_##S) : (T)(1);                   \
    const T back = larger > (T)(HYPOT_WIDE_##S) ? (T)(HYPOT_UP_##S) : down;                        \
    const T x = a * scale, y = b * scale;                                                          \
    const T length = sqrt(fma(x, x, y * y)) * back;                                                \
    return a == (T)(INFINITY) || b == (T)(INFINITY) ? (T)(INFINITY) : length;                      \
}

/* ---- sin and cos ---- */

/* pi / 2 in three parts (Cody and Waite): turns * part is exact to fma, and the parts hold three
 * mantissas, so that the rest is right to its last place up to the angle given as limit. */
#define TWO_OVER_PI_float 0x1.45f306p-1f
#define TWO_OVER_PI_double 0x1.45f306dc9c883p-1
#define QUARTER_1_float 0x1.921fb6p+0f
#define QUARTER_2_float -0x1.777a5cp-25f
#define QUARTER_3_float -0x1.ee59dap-50f
#define QUARTER_1_double 0x1.921fb54442d18p+0
#define QUARTER_2_double 0x1.1a62633145c07p-54
#define QUARTER_3_double -0x1.f1976b7ed8fbcp-110
#define NEAR_ANGLE_float 0x1p15f
#define NEAR_ANGLE_double 0x1p26
/* Where no lane may stay when its neighbours are large. */
#define LARGE_ANGLE_float 0x1p23f
#define LARGE_ANGLE_double 0x1p30

/* (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2 / 2) / r^4 of s = r^2 for |r| <= pi / 4; errors 2^-28
 * and 2^-33 in float, 2^-58 and 2^-63 in double. */
#define SINE_SERIES_float(T, s)                                                                    \
    fma(s, fma(s, (T)(-0x1.994b46p-13f), (T)(0x1.110756p-7f)), (T)(-0x1.555546p-3f))
#define COSINE_SERIES_float(T, s)                                                                  \
    fma(s, fma(s, (T)(0x1.99e876p-16f), (T)(-0x1.6c0c28p-10f)), (T)(0x1.55554ap-5f))
#define SINE_SERIES_double(T, s)                                                                   \
    fma(s, fma(s, fma(s, fma(s, fma(s, (T)(0x1.5d9155223072ap-33), (T)(-0x1.ae5e60a1f40f5p-26)),   \
        (T)(0x1.71de3570ca7c3p-19)), (T)(-0x1.a01a019c09e28p-13)), (T)(0x1.111111110f83fp-7)),     \
        (T)(-0x1.5555555555549p-3))
#define COSINE_SERIES_double(T, s)                                                                 \
    fma(s, fma(s, fma(s, fma(s, fma(s, (T)(-0x1.8fa29316f0b1fp-37), (T)(0x1.1ee9d3e10b54bp-29)),   \
        (T)(-0x1.27e4f7e545723p-22)), (T)(0x1.a01a019c7ce4cp-16)), (T)(-0x1.6c16c16c14f47p-10)),   \
        (T)(0x1.555555555554bp-5))

/* Adding this leaves a whole number, whose lowest bits are those of the sum. */
#define TO_WHOLE_float 0x1.8p23f
#define TO_WHOLE_double 0x1.8p52

/* cos is sin a quarter later, and even. */
#define FIRST_QUARTER_sin 0
#define FIRST_QUARTER_cos 1
#define AT_QUARTER_sin(odd, sine, cosine) ((odd) ? (cosine) : (sine))
#define AT_QUARTER_cos(odd, sine, cosine) ((odd) ? (sine) : (cosine))
#define SIGN_OF_sin(I, S, angle) (as_##I(angle) & SIGN_BIT(I, S))
#define SIGN_OF_cos(I, S, angle) ((I)(0))
#define SIGN_BIT(I, S) ((I)(1) << (I)(8 * sizeof(S) - 1))

/* Lanes with large angles, infinities and NaN are left to the builtin, which must not see small ones
 * beside them (PoCL 3.1: one lane past 2^23 makes it reduce the whole vector for such).
 *
 * What is right for near angles is computed before anybody asks: sin and cos of one angle then have
 * all but their last steps in common, and the compiler sees it (PoCL: two thirds of the time). */
#define DEFINE_CIRCULAR(function, T, I, N, S)                                                      \
static inline T near_##function##_##T(T angle)                                                     \
{                                                                                                  \
    const T magnitude = fabs(angle);                                                               \
    const T shifted = fma(magnitude, (T)(TWO_OVER_PI_##S), (T)(TO_WHOLE_##S));                     \
    const T turns = shifted - (T)(TO_WHOLE_##S);                                                   \
    const T rest = fma(-turns, (T)(QUARTER_3_##S), fma(-turns, (T)(QUARTER_2_##S),                 \
        fma(-turns, (T)(QUARTER_1_##S), magnitude)));                                              \
    const T square = rest * rest;                                                                  \
    const T sine = fma(rest * square, SINE_SERIES_##S(T, square), rest);                           \
    const T cosine = fma(square * square, COSINE_SERIES_##S(T, square),                            \
        fma(square, (T)(-0.5f), (T)(1)));                                                          \
    const I quarter = as_##I(shifted), odd = (quarter & (I)(1)) != (I)(0);                         \
    const T value = AT_QUARTER_##function(odd, sine, cosine);                                      \
    const I turned = (quarter + (I)(FIRST_QUARTER_##function)) << (I)(8 * sizeof(S) - 2);            \
    const I sign = (turned ^ SIGN_OF_##function(I, S, angle)) & SIGN_BIT(I, S);                      \
    return as_##T(as_##I(value) ^ sign);                                                           \
}                                                                                                  \
static inline T ranged_##function##_##T(T angle)                                                   \
{                                                                                                  \
    const I large = !(fabs(angle) < (T)(NEAR_ANGLE_##S));                                          \
    const T of_near = near_##function##_##T(angle);                                                \
    if (!ANY_LANE(I, large))                                                                       \
        return of_near;                                                                            \
    const T of_large = function(large ? angle : (T)(LARGE_ANGLE_##S));                             \
    return large ? of_large : of_near;                                                             \
}

/* The same of tan: the sine over the cosine, or less the cosine over the sine; with what the rest
 * lacks (exact where it is near the first difference), as errors add up: 3.2 ulp instead of 3.75. */
#define DEFINE_VECTOR_TAN(T, I, N, S)                                                              \
static inline T near_tan_##T(T angle)                                                              \
{                                                                                                  \
    const T magnitude = fabs(angle);                                                               \
    const T turns = VECTOR_rint(magnitude * (T)(TWO_OVER_PI_##S));                                 \
    const T first = fma(-turns, (T)(QUARTER_1_##S), magnitude);                                    \
    const T rest = fma(-turns, (T)(QUARTER_3_##S), fma(-turns, (T)(QUARTER_2_##S), first));        \
    const T lacking =                                                                              \
        fma(-turns, (T)(QUARTER_3_##S), fma(-turns, (T)(QUARTER_2_##S), first - rest));            \
    const T low = fabs(rest) > (T)(0.0625f) ? lacking : (T)(0);                                    \
    const T square = rest * rest;                                                                  \
    const T sine = fma(rest * square, SINE_SERIES_##S(T, square), low) + rest;                     \
    const T cosine = fma(square * square, COSINE_SERIES_##S(T, square), -rest * low)               \
        + fma(square, (T)(-0.5f), (T)(1));                                                         \
    const I odd = (convert_##I(convert_##N(turns)) & (I)(1)) != (I)(0);                            \
    const T value = (odd ? -cosine : sine) / (odd ? sine : cosine);                                \
    return as_##T(as_##I(value) ^ SIGN_OF_sin(I, S, angle));                                       \
}                                                                                                  \
static inline T vector_tan_##T(T angle)                                                            \
{                                                                                                  \
    const I large = !(fabs(angle) < (T)(NEAR_ANGLE_##S));                                          \
    if (!ANY_LANE(I, large))                                                                       \
        return near_tan_##T(angle);                                                                \
    const T of_large = tan(large ? angle : (T)(LARGE_ANGLE_##S));                                  \
    return large ? of_large : near_tan_##T(large ? (T)(0) : angle);                                \
}

/* ---- pow ---- */

/* log2 of a mantissa in [sqrt(1/2), sqrt(2)) is 2 / ln 2 times atanh of s = (m - 1) / (m + 1), and
 * atanh(s) / s is 1 + z / 3 + z^2 q(z) or 1 + z l(z) of z = s^2 <= 0.0295: errors 2^-73 and 2^-45. */
#define BITS_OF_SQRT_HALF 0x3fe6a09e667f3bcdL
#define ATANH_SERIES_LONG(T, z)                                                                    \
    fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, fma(z, (T)(0x1.eb11f0e712662p-5),                    \
        (T)(0x1.de33572849704p-5)), (T)(0x1.1120b647682d8p-4)), (T)(0x1.3b1362b18fee5p-4)),        \
        (T)(0x1.745d18326462ep-4)), (T)(0x1.c71c71c580414p-4)), (T)(0x1.2492492493036p-3)),        \
        (T)(0x1.9999999999996p-3))
#define ATANH_SERIES_SHORT(T, z)                                                                   \
    fma(z, fma(z, fma(z, fma(z, (T)(0x1.91159fe4fa329p-4), (T)(0x1.c62b133e883dep-4)),             \
        (T)(0x1.249411f36d467p-3)), (T)(0x1.999996a93a50dp-3)), (T)(0x1.555555561e4b5p-2))
/* (2^r - 1) / r for |r| <= 1/2: errors 2^-58 and 2^-34. */
#define EXP2_SERIES_LONG(T, r)                                                                     \
    fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, fma(r,                          \
        (T)(0x1.e79b5c2089ff7p-32), (T)(0x1.e61b7019c655ap-28)), (T)(0x1.b5267d433ac6fp-24)),      \
        (T)(0x1.62bfc78ba63fep-20)), (T)(0x1.ffcbfba93ee2cp-17)), (T)(0x1.4309130edf51fp-13)),     \
        (T)(0x1.5d87fe78cd7e6p-10)), (T)(0x1.3b2ab6fba00fcp-7)), (T)(0x1.c6b08d7049fe7p-5)),       \
        (T)(0x1.ebfbdff82c5a4p-3)), (T)(0x1.62e42fefa39efp-1))
#define EXP2_SERIES_SHORT(T, r)                                                                    \
    fma(r, fma(r, fma(r, fma(r, fma(r, fma(r, (T)(0x1.fde561c89f405p-17),                          \
        (T)(0x1.445ca4f8e3613p-13)), (T)(0x1.5d8a86dd240f0p-10)), (T)(0x1.3b29f377fa2d4p-7)),      \
        (T)(0x1.c6b08abf49a29p-5)), (T)(0x1.ebfbe077ab450p-3)), (T)(0x1.62e42ff0e2306p-1))
#define POWER_OF_TWO_IN(T, I, exponent) as_##T(((exponent) + (I)(1023)) << (I)(52))

/* Past this exponent of two nothing finite is left, also of the subnormal numbers. */
#define EXP2_LIMIT 1100

/* The values of C99 (F.9.4.4) around the plain one, of |base|.  The sign is taken by hand: copysign in
 * two lanes took all bits of a base that was the number of the element (LLVM 15, AVX-512). */
#define POW_WITH_SPECIAL_VALUES(T, I, base, exponent, plain)                                       \
    const T half_exponent = exponent * (T)(0.5f);                                                  \
    const I whole_exponent = VECTOR_trunc(exponent) == exponent;                                   \
    const I odd_exponent = whole_exponent && VECTOR_trunc(half_exponent) != half_exponent;         \
    const T of_one = fabs(base) == (T)(1) && exponent == exponent ? (T)(1) : plain;                \
    const I sign = odd_exponent ? as_##I(base) & as_##I((T)(-0.0f)) : (I)(0);                      \
    const T with_sign = as_##T(as_##I(of_one) | sign);                                             \
    const I outside = base < (T)(0) && base > (T)(-INFINITY) && !whole_exponent;                   \
    return exponent == (T)(0) || base == (T)(1) ? (T)(1) : (outside ? (T)(NAN) : with_sign);

/* The builtin of finite numbers alone, for compilers that take pow of NaN or infinity, where they know
 * that it is one, for something else.  What it would be asked for otherwise is 1: nothing is known wrongly
 * of pow(1, 1).  Whole exponents up to 15 are products, each with what its rounding lost: 9 to the third is
 * 729 then, as everywhere (NVIDIA's is 1 ulp off), and the worst error .501 ulp.  Halves between them
 * are such products times a root, negative ones reciprocals: 2.5 ulp at most.  The builtin, which takes a
 * few times as many instructions, is left what is near the ends of the range, where there is nothing left
 * to add what was lost to. */
#define DEFINE_FINITE_POW(T, I)                                                                    \
static inline T short_pow_##T(T base, T exponent)                                                  \
{                                                                                                  \
    T result = (T)(1), rest = (T)(0), square = base, square_rest = (T)(0);                         \
    T left = VECTOR_trunc(exponent);                                                               \
    const I rooted = left != exponent;                                                             \
    for (int bit = 0; bit < 4 && ANY_LANE(I, left != (T)(0)); bit++) {                             \
        if (bit) {                                                                                 \
            const T next = square * square;                                                        \
            const T next_lost = fma(square, square, -next) + (T)(2) * square * square_rest;        \
            square = next + next_lost;                                                             \
            square_rest = next_lost - (square - next);                                             \
        }                                                                                          \
        const T half_left = VECTOR_trunc(left * (T)(0.5f));                                        \
        const I taken = half_left * (T)(2) != left;                                                \
        const T product = result * square;                                                         \
        const T lost = fma(result, square, -product) + (result * square_rest + rest * square);     \
        const T sum = product + lost;                                                              \
        rest = taken ? lost - (sum - product) : rest;                                              \
        result = taken ? sum : result;                                                             \
        left = half_left;                                                                          \
    }                                                                                              \
    if (!ANY_LANE(I, rooted))                                                                      \
        return result + rest;                                                                      \
    const T root = sqrt(rooted ? base : (T)(1));                                                   \
    return result * root + rest * root;                                                            \
}                                                                                                  \
static inline T finite_pow_##T(T base, T exponent)                                                 \
{                                                                                                  \
    const T magnitude = fabs(base), steps = fabs(exponent), twice = steps * (T)(2);                \
    const I finite = magnitude < (T)(INFINITY) && steps < (T)(INFINITY);                           \
    const I is_short = finite && steps < (T)(16) && VECTOR_trunc(twice) == twice;                  \
    const I downwards = exponent < (T)(0);                                                         \
    T known = (T)(1);                                                                              \
    I found = (I)(0);                                                                              \
    if (ANY_LANE(I, is_short)) {                                                                   \
        const T product = short_pow_##T(is_short ? base : (T)(1), is_short ? steps : (T)(0));      \
        const T end = downwards ? (T)(0x1p100f) : (T)(INFINITY);                                   \
        found = is_short && fabs(product) < end && fabs(product) > (T)(0x1p-100f);                 \
        known = downwards ? (T)(1) / product : product;                                            \
    }                                                                                              \
    if (ANY_LANE(I, !found)) {                                                                     \
        const I asked = finite && !found;                                                          \
        const T other = pow(asked ? base : (T)(1), asked ? exponent : (T)(1));                     \
        known = found ? known : other;                                                             \
    }                                                                                              \
    const T half_exponent = exponent * (T)(0.5f);                                                  \
    const I odd = VECTOR_trunc(exponent) == exponent                                               \
        && VECTOR_trunc(half_exponent) != half_exponent;                                           \
    const I grows = (magnitude > (T)(1)) == (exponent > (T)(0));                                   \
    const T limit = magnitude == (T)(1) ? (T)(1) : (grows ? (T)(INFINITY) : (T)(0));               \
    const T with_sign = odd && base < (T)(0) ? -limit : limit;                                     \
    const I is_nan = base != base || exponent != exponent;                                         \
    const T beyond = is_nan ? base + exponent : with_sign;                                         \
    return exponent == (T)(0) || base == (T)(1) ? (T)(1) : (finite ? known : beyond);              \
}

/* The builtin of magnitudes alone, for runtimes that leave their vectors where a lane is negative. */
#define DEFINE_SIGNED_POW(T, I)                                                                    \
static inline T signed_pow_##T(T base, T exponent)                                                 \
{                                                                                                  \
    const T plain = pow(fabs(base), exponent);                                                     \
    POW_WITH_SPECIAL_VALUES(T, I, base, exponent, plain)                                           \
}

/* In sums of two doubles where one is not enough: the error of the logarithm counts as often as the
 * exponent is large. */
#define DEFINE_POW_DOUBLE(T, I, N)                                                                 \
static inline T vector_pow_##T(T base, T exponent)                                                 \
{                                                                                                  \
    const T magnitude = fabs(base);                                                                \
    const I subnormal = magnitude < (T)(0x1p-1022);                                                \
    const I bits = as_##I(subnormal ? magnitude * (T)(0x1p54) : magnitude);                        \
    const I power = (bits - (I)(BITS_OF_SQRT_HALF)) >> (I)(52);                                    \
    const T mantissa = as_##T(bits - (power << (I)(52)));                                          \
    const T whole = convert_##T(convert_##N(power)) - (subnormal ? (T)(54) : (T)(0));              \
    const T above = mantissa - (T)(1), sum = mantissa + (T)(1);                                    \
    const T sum_rest = mantissa - (sum - (T)(1)), reciprocal = (T)(1) / sum;                       \
    const T s = above * reciprocal;                                                                \
    const T s_rest = (fma(-s, sum, above) - s * sum_rest) * reciprocal;                            \
    const T z = s * s, z_rest = fma(s, s, -z) + (T)(2) * s * s_rest;                               \
    const T third = z * (T)(0x1.5555555555555p-2);                                                 \
    const T third_rest = fma(z, (T)(0x1.5555555555555p-2), -third)                                 \
        + fma(z, (T)(0x1.5555555555555p-56), z_rest * (T)(0x1.5555555555555p-2));                  \
    const T w = (T)(1) + third;                                                                    \
    const T w_rest = (third - (w - (T)(1))) + fma(z * z, ATANH_SERIES_LONG(T, z), third_rest);     \
    const T p = s * w, p_rest = fma(s, w, -p) + fma(s, w_rest, s_rest * w);                        \
    const T l = p * (T)(0x1.71547652b82fep+1);                                                     \
    const T l_rest = fma(p, (T)(0x1.71547652b82fep+1), -l)                                         \
        + fma(p, (T)(0x1.777d0ffda0d24p-55), p_rest * (T)(0x1.71547652b82fep+1));                  \
    const T rough_log = whole + l, rough_rest = (l - (rough_log - whole)) + l_rest;                \
    const T finite_log = rough_log + rough_rest;                                                   \
    const T log_rest = rough_rest - (finite_log - rough_log);                                      \
    const I ordinary = magnitude > (T)(0) && magnitude < (T)(INFINITY);                            \
    const T log = ordinary ? finite_log : (magnitude == (T)(0) ? (T)(-INFINITY) : magnitude);      \
    const T product = exponent * log;                                                              \
    const I in_range = fabs(product) < (T)(EXP2_LIMIT);                                            \
    const T product_rest = fma(exponent, log, -product) + exponent * log_rest;                     \
    const T e = in_range ? product : (T)(0);                                                       \
    const T n = VECTOR_rint(e), r = (e - n) + (in_range ? product_rest : (T)(0));                  \
    const I first = convert_##I(convert_##N(n)) >> (I)(1);                                         \
    const I second = convert_##I(convert_##N(n)) - first;                                          \
    const T scaled = fma(r, EXP2_SERIES_LONG(T, r), (T)(1))                                        \
        * POWER_OF_TWO_IN(T, I, first) * POWER_OF_TWO_IN(T, I, second);                            \
    const T beyond = product > (T)(0) ? (T)(INFINITY) : (T)(0);                                    \
    const T plain = in_range ? scaled : (product != product ? product : beyond);                   \
    POW_WITH_SPECIAL_VALUES(T, I, base, exponent, plain)                                           \
}

#ifdef cl_khr_fp64
/* For floats in doubles: D and L are the double and long types with as many lanes as T.  Where there
 * are no doubles the builtin has to do. */
#define DEFINE_POW_FLOAT(T, I, D, L)                                                               \
static inline T vector_pow_##T(T base, T exponent)                                                 \
{                                                                                                  \
    const T magnitude = fabs(base);                                                                \
    const L bits = as_##L(convert_##D(magnitude));                                                 \
    const L power = (bits - (L)(BITS_OF_SQRT_HALF)) >> (L)(52);                                    \
    const D mantissa = as_##D(bits - (power << (L)(52)));                                          \
    const D s = (mantissa - (D)(1)) / (mantissa + (D)(1)), z = s * s;                              \
    const D l = fma(s * z, ATANH_SERIES_SHORT(D, z), s);                                           \
    const D log = fma(l, (D)(0x1.71547652b82fep+1), convert_##D(convert_##I(power)));              \
    const D product = convert_##D(exponent) * log;                                                 \
    const D e = clamp(product, (D)(-200), (D)(200));                                               \
    const D n = VECTOR_rint(e), r = e - n;                                                         \
    const T scaled = convert_##T(fma(r, EXP2_SERIES_SHORT(D, r), (D)(1))                           \
        * POWER_OF_TWO_IN(D, L, convert_##L(convert_##I(n))));                                     \
    const I ordinary = magnitude > (T)(0) && magnitude < (T)(INFINITY);                            \
    const I finite = ordinary && fabs(exponent) < (T)(INFINITY);                                   \
    const T direction = (magnitude - (T)(1)) * exponent;                                           \
    const T limit = direction > (T)(0) ? (T)(INFINITY) : (T)(0);                                   \
    const T plain = finite ? scaled : (direction != direction ? direction : limit);                \
    POW_WITH_SPECIAL_VALUES(T, I, base, exponent, plain)                                           \
}
#else
#define DEFINE_POW_FLOAT(T, I, D, L)                                                               \
static inline T vector_pow_##T(T base, T exponent)                                                 \
{                                                                                                  \
    return pow(base, exponent);                                                                    \
}
#endif
