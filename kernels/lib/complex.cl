/* Complex numbers as NumPy has them: (real, imaginary) in a float2 or double2, one at a time; the op
 * table's `define` texts expand these macros for R, float or double.
 *
 * + - and negation are the vector operators; * is the plain formula with one fma a part, / is Smith's (as NumPy's loops;
 * no recovery of infinities as in C99 Annex G).  The other functions have the special values of
 * Annex G, which NumPy's have from the C library.  They are accurate in the plane, and the real part
 * of a logarithm also near |z| = 1.
 */

#define COMPLEX(R, real, imaginary) ((R##2)(real, imaginary))

/* ---- order: by the real part, then the imaginary; an unordered pair is less than nothing ---- */

#define DEFINE_COMPLEX_COMPARISONS(R)                                                              \
static inline int complex_equal_##R(R##2 a, R##2 b)                                                \
{                                                                                                  \
    return a.x == b.x && a.y == b.y;                                                               \
}                                                                                                  \
static inline int complex_not_equal_##R(R##2 a, R##2 b)                                            \
{                                                                                                  \
    return a.x != b.x || a.y != b.y;                                                               \
}                                                                                                  \
static inline int complex_greater_##R(R##2 a, R##2 b)                                              \
{                                                                                                  \
    return (a.x > b.x && a.y == a.y && b.y == b.y) || (a.x == b.x && a.y > b.y);                   \
}                                                                                                  \
static inline int complex_greater_equal_##R(R##2 a, R##2 b)                                        \
{                                                                                                  \
    return (a.x > b.x && a.y == a.y && b.y == b.y) || (a.x == b.x && a.y >= b.y);                  \
}                                                                                                  \
static inline int complex_less_##R(R##2 a, R##2 b)                                                 \
{                                                                                                  \
    return complex_greater_##R(b, a);                                                              \
}                                                                                                  \
static inline int complex_less_equal_##R(R##2 a, R##2 b)                                           \
{                                                                                                  \
    return complex_greater_equal_##R(b, a);                                                        \
}

/* maximum and minimum keep a number with a NaN part, the first of two; fmax and fmin drop it. */
#define DEFINE_COMPLEX_CHOICES(R)                                                                  \
static inline int complex_has_nan_##R(R##2 z)                                                      \
{                                                                                                  \
    return z.x != z.x || z.y != z.y;                                                               \
}                                                                                                  \
static inline int complex_at_least_##R(R##2 a, R##2 b)                                             \
{                                                                                                  \
    return (a.x > b.x && a.y == a.y && b.y == b.y) || (a.x == b.x && a.y >= b.y);                  \
}                                                                                                  \
static inline R##2 complex_maximum_##R(R##2 a, R##2 b)                                             \
{                                                                                                  \
    return complex_has_nan_##R(a) || complex_at_least_##R(a, b) ? a : b;                           \
}                                                                                                  \
static inline R##2 complex_minimum_##R(R##2 a, R##2 b)                                             \
{                                                                                                  \
    return complex_has_nan_##R(a) || complex_at_least_##R(b, a) ? a : b;                           \
}                                                                                                  \
static inline R##2 complex_fmax_##R(R##2 a, R##2 b)                                                \
{                                                                                                  \
    return complex_has_nan_##R(b) || complex_at_least_##R(a, b) ? a : b;                           \
}                                                                                                  \
static inline R##2 complex_fmin_##R(R##2 a, R##2 b)                                                \
{                                                                                                  \
    return complex_has_nan_##R(b) || complex_at_least_##R(b, a) ? a : b;                           \
}

/* Another order than maximum's: an imaginary NaN counts only where the real parts are equal. */
#define DEFINE_COMPLEX_CLIP(R)                                                                     \
static inline int complex_clip_less_##R(R##2 a, R##2 b)                                            \
{                                                                                                  \
    return a.x == b.x ? a.y < b.y : a.x < b.x;                                                     \
}                                                                                                  \
static inline R##2 complex_clip_##R(R##2 z, R##2 least, R##2 greatest)                             \
{                                                                                                  \
    const R##2 raised = isnan(z.x) || isnan(z.y) || complex_clip_less_##R(least, z) ? z : least;   \
    return isnan(raised.x) || isnan(raised.y) || complex_clip_less_##R(raised, greatest)           \
        ? raised : greatest;                                                                       \
}

/* ---- arithmetic ---- */

/* One product of each part is fused, as in NumPy's vector loops on every CPU that has fma. */
#define DEFINE_COMPLEX_MULTIPLY(R)                                                                 \
static inline R##2 complex_multiply_##R(R##2 a, R##2 b)                                            \
{                                                                                                  \
    return COMPLEX(R, fma(a.x, b.x, -(a.y * b.y)), fma(a.x, b.y, a.y * b.x));                      \
}

/* Smith's method: scaled by the larger part of the divisor.  Division by zero is by its modulus. */
#define DEFINE_COMPLEX_DIVIDE(R)                                                                   \
static inline R##2 complex_divide_##R(R##2 a, R##2 b)                                              \
{                                                                                                  \
    if (fabs(b.x) >= fabs(b.y)) {                                                                  \
        if (b.x == 0 && b.y == 0)                                                                  \
            return COMPLEX(R, a.x / fabs(b.x), a.y / fabs(b.x));                                   \
        const R ratio = b.y / b.x;                                                                 \
        const R scale = (R)1 / (b.x + b.y * ratio);                                                \
        return COMPLEX(R, (a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);               \
    }                                                                                              \
    const R ratio = b.x / b.y;                                                                     \
    const R scale = (R)1 / (b.y + b.x * ratio);                                                    \
    return COMPLEX(R, (a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);                   \
}

#define DEFINE_COMPLEX_RECIPROCAL(R)                                                               \
static inline R##2 complex_reciprocal_##R(R##2 z)                                                  \
{                                                                                                  \
    if (fabs(z.y) <= fabs(z.x)) {                                                                  \
        const R ratio = z.y / z.x;                                                                 \
        const R denominator = z.x + z.y * ratio;                                                   \
        return COMPLEX(R, (R)1 / denominator, -ratio / denominator);                               \
    }                                                                                              \
    const R ratio = z.x / z.y;                                                                     \
    const R denominator = z.x * ratio + z.y;                                                       \
    return COMPLEX(R, ratio / denominator, -(R)1 / denominator);                                   \
}

/* z / |z| as in NumPy 2; of an infinity with one infinite part, that part's direction. */
#define DEFINE_COMPLEX_SIGN(R)                                                                     \
static inline R##2 complex_sign_##R(R##2 z)                                                        \
{                                                                                                  \
    const R modulus = hypot(z.x, z.y);                                                             \
    if (modulus == (R)INFINITY) {                                                                  \
        if (isinf(z.x) && isinf(z.y))                                                              \
            return COMPLEX(R, (R)NAN, (R)NAN);                                                     \
        return isinf(z.x) ? COMPLEX(R, copysign((R)1, z.x), (R)0)                                  \
                          : COMPLEX(R, (R)0, copysign((R)1, z.y));                                 \
    }                                                                                              \
    if (modulus == 0)                                                                              \
        return COMPLEX(R, (R)0, (R)0);                                                             \
    return COMPLEX(R, z.x / modulus, z.y / modulus);                                               \
}

/* ---- constants of each precision ---- */

#define LN2_float 0x1.62e43p-1f
#define LN2_double 0x1.62e42fefa39efp-1
#define LOG2E_float 0x1.715476p+0f
#define LOG2E_double 0x1.71547652b82fep+0
#define LOG10E_float 0x1.bcb7b2p-2f
#define LOG10E_double 0x1.bcb7b1526e50ep-2
#define HALF_PI_float 0x1.921fb6p+0f
#define HALF_PI_double 0x1.921fb54442d18p+0
/* The part of pi / 2 and of ln 2 that the constants above leave out. */
#define HALF_PI_REST_float -0x1.777a5cp-25f
#define HALF_PI_REST_double 0x1.1a62633145c07p-54
#define LN2_REST_float -0x1.05c61p-29f
#define LN2_REST_double 0x1.abc9e3b39803fp-56

/* Half the precision, the precision: 1 + EPSILON is the next float. */
#define EPSILON_float 0x1p-23f
#define EPSILON_double 0x1p-52
#define TINY_ANGLE_float 0x1p-13f
#define TINY_ANGLE_double 0x1p-28
/* Squares of floats from 1/WIDE to WIDE neither overflow nor lose bits; SCALE brings the others in. */
#define WIDE_float 0x1p60f
#define WIDE_double 0x1p500
#define SCALE_EXPONENT_float 80
#define SCALE_EXPONENT_double 600
#define SCALE_UP_float 0x1p80f
#define SCALE_UP_double 0x1p600
#define SCALE_DOWN_float 0x1p-80f
#define SCALE_DOWN_double 0x1p-600
#define SQRT_SCALE_UP_float 0x1p40f
#define SQRT_SCALE_UP_double 0x1p300
#define SQRT_SCALE_DOWN_float 0x1p-40f
#define SQRT_SCALE_DOWN_double 0x1p-300
/* Up to here the square of an angle's rounding error is no error of its cosine. */
#define EXACT_ANGLE_float 0x1p10f
#define EXACT_ANGLE_double 0x1p24
/* A power of two well inside the range. */
#define GREAT_EXPONENT_float 120.0f
#define GREAT_EXPONENT_double 1000.0
/* exp(EXP_STEP) is finite, and twice a finite exp's argument is less than three of them. */
#define EXP_STEP_float 80.0f
#define EXP_STEP_double 700.0
#define EXP_OF_STEP_float 0x1.55779cp+115f
#define EXP_OF_STEP_double 0x1.d945df4f8ec8ep+1009
/* Past this tanh is 1, and sinh and cosh are half an exp. */
#define TANH_IS_ONE_float 12.0f
#define TANH_IS_ONE_double 22.0

/* ---- square root ---- */

#define DEFINE_COMPLEX_SQRT(R)                                                                     \
static inline R##2 complex_sqrt_##R(R##2 z)                                                        \
{                                                                                                  \
    if (isinf(z.y))                                                                                \
        return COMPLEX(R, (R)INFINITY, z.y);                                                       \
    if (isnan(z.x) || (isnan(z.y) && !isinf(z.x)))                                                 \
        return COMPLEX(R, (R)NAN, (R)NAN);                                                         \
    if (isinf(z.x)) {                                                                              \
        const R rest = isnan(z.y) ? z.y : (R)0;                                                    \
        return z.x > 0 ? COMPLEX(R, z.x, copysign(rest, z.y))                                      \
                       : COMPLEX(R, rest, copysign((R)INFINITY, z.y));                             \
    }                                                                                              \
    if (z.x == 0 && z.y == 0)                                                                      \
        return COMPLEX(R, (R)0, z.y);                                                              \
    const R larger = fmax(fabs(z.x), fabs(z.y));                                                   \
    R before = (R)1, after = (R)1;                                                                 \
    if (larger > (R)WIDE_##R) {                                                                    \
        before = (R)SCALE_DOWN_##R;                                                                \
        after = (R)SQRT_SCALE_UP_##R;                                                              \
    } else if (larger < (R)1 / (R)WIDE_##R) {                                                      \
        before = (R)SCALE_UP_##R;                                                                  \
        after = (R)SQRT_SCALE_DOWN_##R;                                                            \
    }                                                                                              \
    const R real = fabs(z.x) * before, imaginary = z.y * before;                                   \
    const R root = sqrt((real + hypot(real, imaginary)) * (R)0.5f);                                \
    const R other = fabs(imaginary) / (root + root);                                               \
    return z.x >= 0 ? COMPLEX(R, root * after, copysign(other * after, z.y))                       \
                    : COMPLEX(R, other * after, copysign(root * after, z.y));                      \
}

/* ---- logarithms ---- */

/* log |z|, and with `shift` 1 log |1 + z|.  Near |z| = 1 the square of the modulus less 1 is summed
 * with its rounding errors, for log1p. */
#define DEFINE_COMPLEX_LOG(R)                                                                      \
static inline R complex_log_modulus_##R(R real, R imaginary)                                       \
{                                                                                                  \
    if (isinf(real) || isinf(imaginary))                                                           \
        return (R)INFINITY;                                                                        \
    const R larger = fmax(fabs(real), fabs(imaginary));                                            \
    const R smaller = isnan(real) || isnan(imaginary) ? (R)NAN                                     \
                                                      : fmin(fabs(real), fabs(imaginary));         \
    if (larger > (R)0.5f && larger < (R)2) {                                                       \
        const R square = larger * larger;                                                          \
        const R other = smaller * smaller;                                                         \
        const R rest = fma(larger, larger, -square) + fma(smaller, smaller, -other);               \
        const R first = square - (R)1;                                                             \
        const R first_back = first - square;                                                       \
        const R first_lost = (square - (first - first_back)) + (-(R)1 - first_back);               \
        const R sum = first + other;                                                               \
        const R sum_back = sum - first;                                                            \
        const R sum_lost = (first - (sum - sum_back)) + (other - sum_back);                        \
        return log1p(sum + (first_lost + sum_lost + rest)) * (R)0.5f;                              \
    }                                                                                              \
    R scale = (R)1, exponent = (R)0;                                                               \
    if (larger > (R)WIDE_##R) {                                                                    \
        scale = (R)SCALE_DOWN_##R;                                                                 \
        exponent = (R)SCALE_EXPONENT_##R;                                                          \
    } else if (larger < (R)1 / (R)WIDE_##R) {                                                      \
        scale = (R)SCALE_UP_##R;                                                                   \
        exponent = -(R)SCALE_EXPONENT_##R;                                                         \
    }                                                                                              \
    const R a = larger * scale, b = smaller * scale;                                               \
    return log(a * a + b * b) * (R)0.5f + exponent * (R)LN2_##R;                                   \
}                                                                                                  \
static inline R##2 complex_log_##R(R##2 z)                                                         \
{                                                                                                  \
    return COMPLEX(R, complex_log_modulus_##R(z.x, z.y), atan2(z.y, z.x));                         \
}                                                                                                  \
static inline R##2 complex_log2_##R(R##2 z)                                                        \
{                                                                                                  \
    return complex_log_##R(z) * (R)LOG2E_##R;                                                      \
}                                                                                                  \
static inline R##2 complex_log10_##R(R##2 z)                                                       \
{                                                                                                  \
    return complex_log_##R(z) * (R)LOG10E_##R;                                                     \
}                                                                                                  \
static inline R##2 complex_log1p_##R(R##2 z)                                                       \
{                                                                                                  \
    const R angle = atan2(z.y, z.x + (R)1);                                                        \
    if (fabs(z.x) < (R)0.5f && fabs(z.y) < (R)0.5f) {                                              \
        /* |1 + z|^2 - 1 = x (x + 2) + y^2, which cancels only where x is about -y^2 / 2. */       \
        const R first = z.x * (z.x + (R)2), other = z.y * z.y;                                     \
        const R lost = fma(z.x, z.x + (R)2, -first) + fma(z.y, z.y, -other)                        \
            + z.x * (z.x - ((z.x + (R)2) - (R)2));                                                 \
        return COMPLEX(R, log1p((first + other) + lost) * (R)0.5f, angle);                         \
    }                                                                                              \
    return COMPLEX(R, complex_log_modulus_##R(z.x + (R)1, z.y), angle);                            \
}

/* ---- exponentials ---- */

/* direction * exp(exponent), also where exp alone would overflow. */
#define DEFINE_COMPLEX_EXP(R)                                                                      \
static inline R##2 complex_scale_by_exp_##R(R##2 direction, R exponent)                            \
{                                                                                                  \
    for (int round = 0; round < 2; round++)                                                        \
        if (exponent > (R)EXP_STEP_##R) {                                                          \
            direction *= (R)EXP_OF_STEP_##R;                                                       \
            exponent -= (R)EXP_STEP_##R;                                                           \
        }                                                                                          \
    return direction * exp(exponent);                                                              \
}                                                                                                  \
static inline R##2 complex_exp_at_angle_##R(R exponent, R angle, R cosine, R sine)                 \
{                                                                                                  \
    if (angle == 0)                                                                                \
        return COMPLEX(R, exp(exponent), angle);                                                   \
    if (isinf(exponent) && !(fabs(angle) < (R)INFINITY))                                           \
        return exponent < 0 ? COMPLEX(R, (R)0, copysign((R)0, angle))                              \
                            : COMPLEX(R, exponent, (R)NAN);                                        \
    return complex_scale_by_exp_##R(COMPLEX(R, cosine, sine), exponent);                           \
}                                                                                                  \
static inline R##2 complex_exp_##R(R##2 z)                                                         \
{                                                                                                  \
    return complex_exp_at_angle_##R(z.x, z.y, cos(z.y), sin(z.y));                                 \
}                                                                                                  \
/* 2^x (cos, sin)(y ln 2), with the angle as a sum of two floats while it is not too large for that. */\
static inline R##2 complex_exp2_##R(R##2 z)                                                        \
{                                                                                                  \
    const R angle = z.y * (R)LN2_##R;                                                              \
    const R lost = fabs(angle) < (R)EXACT_ANGLE_##R                                                \
        ? fma(z.y, (R)LN2_##R, -angle) + z.y * (R)LN2_REST_##R : (R)0;                             \
    const R cosine = cos(angle), sine = sin(angle);                                                \
    if (angle == 0)                                                                                \
        return COMPLEX(R, exp2(z.x), angle);                                                       \
    if (!(fabs(angle) < (R)INFINITY))                                                              \
        return complex_exp_at_angle_##R(z.x, angle, cosine, sine);                                 \
    const R##2 direction = COMPLEX(R, fma(-lost, sine, cosine), fma(lost, cosine, sine));          \
    const R whole = clamp(trunc(z.x * (R)0.5f), -(R)GREAT_EXPONENT_##R, (R)GREAT_EXPONENT_##R);    \
    return isinf(z.x) ? direction * exp2(z.x) : direction * exp2(whole) * exp2(z.x - whole);       \
}                                                                                                  \
/* NumPy's formulas, which have not Annex G's values at infinity.  The second cancels near z = 0, the\
 * first doubles the sine's error where the angle is not small. */                                 \
static inline R##2 complex_expm1_##R(R##2 z)                                                       \
{                                                                                                  \
    const R half_sine = sin(z.y * (R)0.5f), cosine = cos(z.y);                                     \
    const R##2 scaled = complex_scale_by_exp_##R(COMPLEX(R, cosine, sin(z.y)), z.x);               \
    const R real = fabs(z.x) < (R)1 && cosine > (R)0.5f                                            \
        ? expm1(z.x) * cosine - (R)2 * half_sine * half_sine : scaled.x - (R)1;                    \
    return COMPLEX(R, real, scaled.y);                                                             \
}

/* ---- hyperbolic and circular functions ---- */

#define DEFINE_COMPLEX_SINH_COSH(R)                                                                \
static inline R##2 complex_half_exp_##R(R##2 z)                                                    \
{                                                                                                  \
    return complex_scale_by_exp_##R(COMPLEX(R, cos(z.y), sin(z.y)) * (R)0.5f, fabs(z.x));          \
}                                                                                                  \
static inline R##2 complex_sinh_##R(R##2 z)                                                        \
{                                                                                                  \
    if (z.y == 0)                                                                                  \
        return COMPLEX(R, sinh(z.x), z.y);                                                         \
    if (!(fabs(z.y) < (R)INFINITY))                                                                \
        return COMPLEX(R, isinf(z.x) ? (R)INFINITY : (z.x == 0 ? z.x : (R)NAN), (R)NAN);           \
    if (fabs(z.x) > (R)TANH_IS_ONE_##R) {                                                          \
        const R##2 half_exp = complex_half_exp_##R(z);                                             \
        return COMPLEX(R, z.x < 0 ? -half_exp.x : half_exp.x, half_exp.y);                         \
    }                                                                                              \
    return COMPLEX(R, sinh(z.x) * cos(z.y), cosh(z.x) * sin(z.y));                                 \
}                                                                                                  \
static inline R##2 complex_cosh_##R(R##2 z)                                                        \
{                                                                                                  \
    if (z.y == 0)                                                                                  \
        return COMPLEX(R, cosh(z.x), isnan(z.x) ? z.y : copysign((R)1, z.x) * z.y);                \
    if (!(fabs(z.y) < (R)INFINITY))                                                                \
        return isinf(z.x) ? COMPLEX(R, (R)INFINITY, (R)NAN)                                        \
                          : COMPLEX(R, (R)NAN, z.x == 0 ? (R)0 : (R)NAN);                          \
    if (fabs(z.x) > (R)TANH_IS_ONE_##R) {                                                          \
        const R##2 half_exp = complex_half_exp_##R(z);                                             \
        return COMPLEX(R, half_exp.x, z.x < 0 ? -half_exp.y : half_exp.y);                         \
    }                                                                                              \
    return COMPLEX(R, cosh(z.x) * cos(z.y), sinh(z.x) * sin(z.y));                                 \
}                                                                                                  \
static inline R##2 complex_sin_##R(R##2 z)                                                         \
{                                                                                                  \
    return complex_sinh_##R(z.yx).yx;                                                              \
}                                                                                                  \
static inline R##2 complex_cos_##R(R##2 z)                                                         \
{                                                                                                  \
    return complex_cosh_##R(COMPLEX(R, -z.y, z.x));                                                \
}

/* Kahan's formula (Branch Cuts for Complex Elementary Functions, 1987). */
#define DEFINE_COMPLEX_TANH(R)                                                                     \
static inline R##2 complex_tanh_##R(R##2 z)                                                        \
{                                                                                                  \
    if (z.y == 0)                                                                                  \
        return COMPLEX(R, tanh(z.x), z.y);                                                         \
    if (!(fabs(z.y) < (R)INFINITY))                                                                \
        return isinf(z.x) ? COMPLEX(R, copysign((R)1, z.x), copysign((R)0, z.y))                   \
                          : COMPLEX(R, z.x == 0 ? z.x : (R)NAN, (R)NAN);                           \
    if (fabs(z.x) > (R)TANH_IS_ONE_##R) {                                                          \
        const R decay = exp(-fabs(z.x));                                                           \
        return COMPLEX(R, copysign((R)1, z.x), (R)4 * sin(z.y) * cos(z.y) * decay * decay);        \
    }                                                                                              \
    const R tangent = tan(z.y), sine = sinh(z.x);                                                  \
    const R secant2 = (R)1 + tangent * tangent, cosine = sqrt((R)1 + sine * sine);                 \
    const R denominator = (R)1 + secant2 * sine * sine;                                            \
    return COMPLEX(R, secant2 * cosine * sine / denominator, tangent / denominator);               \
}                                                                                                  \
static inline R##2 complex_tan_##R(R##2 z)                                                         \
{                                                                                                  \
    return complex_tanh_##R(z.yx).yx;                                                              \
}

/* ---- their inverses: T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, Implementing the complex arcsine
 * and arccosine functions using exception handling, ACM TOMS 23 (1997) 299-335 ---- */

/* For x, y >= 0, with r and s the distances of (x, y) from (0, -1) and (0, 1) and a their mean:
 * (log(a + sqrt(a^2 - 1)), sqrt(a^2 - y^2) and y to one scale, 0).  a - 1 and a - y are computed
 * without cancellation; next to the cut and to the branch point the limits of the formulas stand in. */
#define DEFINE_COMPLEX_INVERSES(R)                                                                 \
static inline R complex_half_gap_##R(R leg, R other, R hypotenuse)                                 \
{                                                                                                  \
    if (other < 0)                                                                                 \
        return (hypotenuse - other) * (R)0.5f;                                                     \
    return other == 0 ? leg * (R)0.5f : leg * (leg / (hypotenuse + other)) * (R)0.5f;              \
}                                                                                                  \
static inline R##4 complex_inverse_parts_##R(R x, R y)                                             \
{                                                                                                  \
    const R r = hypot(x, y + (R)1), s = hypot(x, y - (R)1);                                        \
    const R a = fmax((r + s) * (R)0.5f, (R)1);                                                     \
    const int regular = x >= (R)EPSILON_##R * fabs(y - (R)1);                                      \
    const R product = fabs((R)1 - y) * ((R)1 + y);                                                 \
    R logarithm, root, scaled = y;                                                                 \
    if (a >= (R)10) {                                                                              \
        logarithm = log(a + sqrt(a * a - (R)1));                                                   \
    } else if (y == 1 && x < (R)EPSILON_##R * (R)EPSILON_##R / (R)128) {                           \
        logarithm = sqrt(x);                                                                       \
    } else if (regular) {                                                                          \
        const R less_1 = complex_half_gap_##R(x, (R)1 + y, r)                                      \
            + complex_half_gap_##R(x, (R)1 - y, s);                                                \
        logarithm = log1p(less_1 + sqrt(less_1 * (a + (R)1)));                                     \
    } else {                                                                                       \
        logarithm = y < 1 ? x / sqrt(product) : log1p((y - (R)1) + sqrt(product));                 \
    }                                                                                              \
    if (y == 1 && x < (R)EPSILON_##R / (R)128) {                                                   \
        root = sqrt(x) * sqrt((a + y) * (R)0.5f);                                                  \
    } else if (regular) {                                                                          \
        const R less_y = complex_half_gap_##R(x, y + (R)1, r)                                      \
            + complex_half_gap_##R(x, y - (R)1, s);                                                \
        root = sqrt(less_y * (a + y));                                                             \
    } else if (y > 1) {                                                                            \
        const R scale = (R)4 / (R)EPSILON_##R / (R)EPSILON_##R;                                    \
        root = x * scale * y / sqrt(product);                                                      \
        scaled = y * scale;                                                                        \
    } else {                                                                                       \
        root = sqrt(product);                                                                      \
    }                                                                                              \
    return (R##4)(logarithm, root, scaled, (R)0);                                                  \
}                                                                                                  \
static inline R##2 complex_arcsinh_##R(R##2 z)                                                     \
{                                                                                                  \
    const R x = fabs(z.x), y = fabs(z.y);                                                          \
    if (isnan(x) || isnan(y)) {                                                                    \
        if (isinf(x))                                                                              \
            return z;                                                                              \
        if (isinf(y))                                                                              \
            return COMPLEX(R, y, z.x);                                                             \
        return COMPLEX(R, (R)NAN, y == 0 ? z.y : (R)NAN);                                          \
    }                                                                                              \
    if (x > (R)1 / (R)EPSILON_##R || y > (R)1 / (R)EPSILON_##R)                                    \
        return COMPLEX(R, copysign(complex_log_modulus_##R(x, y) + (R)LN2_##R, z.x),               \
                       copysign(atan2(y, x), z.y));                                                \
    if (x < (R)TINY_ANGLE_##R && y < (R)TINY_ANGLE_##R)                                            \
        return z;                                                                                  \
    const R##4 parts = complex_inverse_parts_##R(x, y);                                            \
    return COMPLEX(R, copysign(parts.x, z.x), copysign(atan2(parts.z, parts.y), z.y));             \
}                                                                                                  \
static inline R##2 complex_arcsin_##R(R##2 z)                                                      \
{                                                                                                  \
    return complex_arcsinh_##R(z.yx).yx;                                                           \
}                                                                                                  \
static inline R##2 complex_arccos_##R(R##2 z)                                                      \
{                                                                                                  \
    const R x = fabs(z.x), y = fabs(z.y);                                                          \
    if (isnan(x) || isnan(y)) {                                                                    \
        if (isinf(x))                                                                              \
            return COMPLEX(R, (R)NAN, -(R)INFINITY);                                               \
        if (isinf(y))                                                                              \
            return COMPLEX(R, (R)NAN, -z.y);                                                       \
        return COMPLEX(R, x == 0 ? (R)HALF_PI_##R : (R)NAN, (R)NAN);                               \
    }                                                                                              \
    R real, imaginary;                                                                             \
    if (x > (R)1 / (R)EPSILON_##R || y > (R)1 / (R)EPSILON_##R) {                                  \
        real = atan2(y, z.x);                                                                      \
        imaginary = complex_log_modulus_##R(x, y) + (R)LN2_##R;                                    \
    } else if (x == 1 && y == 0) {                                                                 \
        real = z.x > 0 ? (R)0 : (R)2 * (R)HALF_PI_##R;                                             \
        imaginary = (R)0;                                                                          \
    } else if (x < (R)TINY_ANGLE_##R && y < (R)TINY_ANGLE_##R) {                                   \
        real = (R)HALF_PI_##R - (z.x - (R)HALF_PI_REST_##R);                                       \
        imaginary = y;                                                                             \
    } else {                                                                                       \
        const R##4 parts = complex_inverse_parts_##R(y, x);                                        \
        real = atan2(parts.y, copysign(parts.z, z.x));                                             \
        imaginary = parts.x;                                                                       \
    }                                                                                              \
    return COMPLEX(R, real, copysign(imaginary, -z.y));                                            \
}                                                                                                  \
static inline R##2 complex_arccosh_##R(R##2 z)                                                     \
{                                                                                                  \
    const R##2 w = complex_arccos_##R(z);                                                          \
    if (isnan(w.x))                                                                                \
        return isnan(w.y) ? w : COMPLEX(R, fabs(w.y), w.x);                                        \
    if (isnan(w.y))                                                                                \
        return w.yx;                                                                               \
    return COMPLEX(R, fabs(w.y), copysign(w.x, z.y));                                              \
}

/* (log1p(4x / ((x - 1)^2 + y^2)) / 4, atan2(2y, 1 - x^2 - y^2) / 2), for x, y >= 0. */
#define DEFINE_COMPLEX_ARCTANH(R)                                                                  \
static inline R complex_reciprocal_real_##R(R x, R y)                                              \
{                                                                                                  \
    if (isinf(x) || isinf(y))                                                                      \
        return (R)0;                                                                               \
    return x >= y ? (R)1 / (x + y * (y / x)) : (x / y) / (y + x * (x / y));                        \
}                                                                                                  \
static inline R##2 complex_arctanh_##R(R##2 z)                                                     \
{                                                                                                  \
    const R x = fabs(z.x), y = fabs(z.y);                                                          \
    if (y == 0 && x <= 1)                                                                          \
        return COMPLEX(R, atanh(z.x), z.y);                                                        \
    if (x == 0)                                                                                    \
        return COMPLEX(R, z.x, atan(z.y));                                                         \
    if (isnan(x) || isnan(y)) {                                                                    \
        if (isinf(x))                                                                              \
            return COMPLEX(R, copysign((R)0, z.x), (R)NAN);                                        \
        return isinf(y) ? COMPLEX(R, copysign((R)0, z.x), copysign((R)HALF_PI_##R, z.y))           \
                        : COMPLEX(R, (R)NAN, (R)NAN);                                              \
    }                                                                                              \
    R real, angle = (R)HALF_PI_##R;                                                                \
    if (x > (R)1 / (R)EPSILON_##R || y > (R)1 / (R)EPSILON_##R) {                                  \
        real = complex_reciprocal_real_##R(x, y);                                                  \
    } else if (x < (R)TINY_ANGLE_##R && y < (R)TINY_ANGLE_##R) {                                   \
        return z;                                                                                  \
    } else {                                                                                       \
        const R below_1 = x - (R)1, product = ((R)1 - x) * ((R)1 + x);                             \
        real = x == 1 && y < (R)EPSILON_##R                                                        \
            ? ((R)LN2_##R - log(y)) * (R)0.5f                                                      \
            : log1p((R)4 * x / (below_1 * below_1 + y * y)) * (R)0.25f;                            \
        angle = x == 1 ? atan2((R)2, -y) * (R)0.5f                                                 \
                       : atan2((R)2 * y, y < (R)EPSILON_##R ? product : product - y * y)           \
                             * (R)0.5f;                                                            \
    }                                                                                              \
    return COMPLEX(R, copysign(real, z.x), copysign(angle, z.y));                                  \
}                                                                                                  \
static inline R##2 complex_arctan_##R(R##2 z)                                                      \
{                                                                                                  \
    return complex_arctanh_##R(z.yx).yx;                                                           \
}

/* ---- powers ---- */

/* As NumPy: small whole exponents by squaring, the others by exp(b log a) with Annex G's product.
 * There an error of the logarithm counts |b| times: the result is as far off as NumPy's own. */
#define DEFINE_COMPLEX_POWER(R)                                                                    \
static inline R##2 complex_product_##R(R##2 a, R##2 b)                                             \
{                                                                                                  \
    return COMPLEX(R, a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                               \
}                                                                                                  \
static inline R##2 complex_boxed_##R(R##2 z)                                                       \
{                                                                                                  \
    return COMPLEX(R, copysign(isinf(z.x) ? (R)1 : (R)0, z.x),                                     \
                   copysign(isinf(z.y) ? (R)1 : (R)0, z.y));                                       \
}                                                                                                  \
static inline R##2 complex_without_nan_##R(R##2 z)                                                 \
{                                                                                                  \
    return COMPLEX(R, isnan(z.x) ? copysign((R)0, z.x) : z.x, isnan(z.y) ? copysign((R)0, z.y) : z.y);\
}                                                                                                  \
/* An infinity times anything but zero is an infinity (C99, G.5.1). */                             \
static inline R##2 complex_infinite_product_##R(R##2 a, R##2 b)                                    \
{                                                                                                  \
    const R##2 product = complex_product_##R(a, b);                                                \
    if (!isnan(product.x) || !isnan(product.y))                                                    \
        return product;                                                                            \
    const int a_infinite = isinf(a.x) || isinf(a.y), b_infinite = isinf(b.x) || isinf(b.y);        \
    const int overflowed = isinf(a.x * b.x) || isinf(a.y * b.y) || isinf(a.x * b.y)                \
        || isinf(a.y * b.x);                                                                       \
    if (!a_infinite && !b_infinite && !overflowed)                                                 \
        return product;                                                                            \
    const R##2 left = a_infinite ? complex_boxed_##R(a) : complex_without_nan_##R(a);              \
    const R##2 right = b_infinite ? complex_boxed_##R(b) : complex_without_nan_##R(b);             \
    return complex_product_##R(left, right) * (R)INFINITY;                                         \
}                                                                                                  \
static inline R##2 complex_whole_power_##R(R##2 base, int exponent)                                \
{                                                                                                  \
    R##2 result = COMPLEX(R, (R)1, (R)0), square = base;                                           \
    const int magnitude = abs(exponent);                                                           \
    for (int bit = 1; bit <= magnitude; bit <<= 1) {                                               \
        if (magnitude & bit)                                                                       \
            result = complex_product_##R(result, square);                                          \
        square = complex_product_##R(square, square);                                              \
    }                                                                                              \
    return exponent < 0 ? complex_divide_##R(COMPLEX(R, (R)1, (R)0), result) : result;             \
}                                                                                                  \
static inline R##2 complex_power_##R(R##2 base, R##2 exponent)                                     \
{                                                                                                  \
    if (exponent.x == 0 && exponent.y == 0)                                                        \
        return COMPLEX(R, (R)1, (R)0);                                                             \
    if (base.x == 0 && base.y == 0)                                                                \
        return exponent.x > 0 ? COMPLEX(R, (R)0, (R)0) : COMPLEX(R, (R)NAN, (R)NAN);               \
    if (exponent.y == 0 && fabs(exponent.x) < (R)100 && trunc(exponent.x) == exponent.x) {         \
        if (exponent.x == 1)                                                                       \
            return base;                                                                           \
        if (exponent.x == 2)                                                                       \
            return complex_product_##R(base, base);                                                \
        if (exponent.x == 3)                                                                       \
            return complex_product_##R(base, complex_product_##R(base, base));                     \
        return complex_whole_power_##R(base, (int)exponent.x);                                     \
    }                                                                                              \
    return complex_exp_##R(complex_infinite_product_##R(exponent, complex_log_##R(base)));         \
}
