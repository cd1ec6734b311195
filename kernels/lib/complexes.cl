/* Several complex numbers in one vector, as they lie in memory: real, imaginary, real, imaginary ...
 *
 * T is that vector (double8), V the vector of one part of each (double4), I the integers with V's lanes
 * (long4), R the real type, W how many numbers there are.  v.even are the real parts, v.odd the imaginary
 * ones.  What is computed is what complex.cl computes, one number at a time; there are the reasons.
 */

#define REALS_2(v) (v).s0022
#define REALS_4(v) (v).s00224466
#define REALS_8(v) (v).s0022446688aaccee
#define IMAGINARIES_2(v) (v).s1133
#define IMAGINARIES_4(v) (v).s11335577
#define IMAGINARIES_8(v) (v).s1133557799bbddff
#define SWAPPED_2(v) (v).s1032
#define SWAPPED_4(v) (v).s10325476
#define SWAPPED_8(v) (v).s1032547698badcfe
#define SIGNS_2(T, even, odd) ((T)(even, odd, even, odd))
#define SIGNS_4(T, even, odd) ((T)(even, odd, even, odd, even, odd, even, odd))
#define SIGNS_8(T, even, odd)                                                                      \
    ((T)(even, odd, even, odd, even, odd, even, odd, even, odd, even, odd, even, odd, even, odd))

#define DEFINE_INTERLEAVED(T, V)                                                                   \
static inline T interleaved_##T(V real, V imaginary)                                               \
{                                                                                                  \
    T z;                                                                                           \
    z.even = real;                                                                                 \
    z.odd = imaginary;                                                                             \
    return z;                                                                                      \
}

#define DEFINE_COMPLEXES_MULTIPLY(T, W)                                                            \
static inline T complexes_multiply_##T(T a, T b)                                                   \
{                                                                                                  \
    return fma(REALS_##W(a), b, IMAGINARIES_##W(a) * SWAPPED_##W(b) * SIGNS_##W(T, -1, 1));        \
}

/* A quotient by zero is a / |0|, and that is a * INFINITY: NaN of zeros, infinities of others. */
#define DEFINE_COMPLEXES_DIVIDE(T, V, I, R)                                                        \
static inline T complexes_divide_##T(T a, T b)                                                     \
{                                                                                                  \
    const V c = a.even, d = a.odd, e = b.even, f = b.odd;                                          \
    const I real_is_larger = fabs(e) >= fabs(f);                                                   \
    const V larger = real_is_larger ? e : f, smaller = real_is_larger ? f : e;                     \
    const V first = real_is_larger ? c : d, second = real_is_larger ? d : c;                       \
    const V ratio = smaller / larger, scale = (V)(1) / (larger + smaller * ratio);                 \
    const V product = first * ratio;                                                               \
    const V real = (first + second * ratio) * scale;                                               \
    const V imaginary = (real_is_larger ? second - product : product - second) * scale;            \
    const I by_zero = real_is_larger & (larger == (V)(0));                                         \
    return interleaved_##T(by_zero ? c * (V)(INFINITY) : real,                                     \
                           by_zero ? d * (V)(INFINITY) : imaginary);                               \
}

#define DEFINE_COMPLEXES_RECIPROCAL(T, V, I, R)                                                    \
static inline T complexes_reciprocal_##T(T z)                                                      \
{                                                                                                  \
    const V x = z.even, y = z.odd;                                                                 \
    const I real_is_larger = fabs(y) <= fabs(x);                                                   \
    const V larger = real_is_larger ? x : y, smaller = real_is_larger ? y : x;                     \
    const V ratio = smaller / larger, denominator = larger + smaller * ratio;                      \
    const V one = (V)(1) / denominator, other = ratio / denominator;                               \
    return interleaved_##T(real_is_larger ? one : other, real_is_larger ? -other : -one);          \
}

/* Where every lane is ordinary; otherwise number by number. */
#define DEFINE_COMPLEXES_EXP(T, V, I, R)                                                           \
static inline T complexes_exp_##T(T z)                                                             \
{                                                                                                  \
    const V x = z.even, y = z.odd;                                                                 \
    const I rare = !(fabs(x) < (V)(EXP_STEP_##R)) | !(fabs(y) < (V)(NEAR_ANGLE_##R));              \
    if (ANY_LANE(I, rare))                                                                         \
        return each_complex_exp_##T(z);                                                            \
    const V size = exp(x);                                                                         \
    return interleaved_##T(near_cos_##V(y) * size, near_sin_##V(y) * size);                        \
}

#define DEFINE_COMPLEXES_SQRT(T, V, I, R)                                                          \
static inline T complexes_sqrt_##T(T z)                                                            \
{                                                                                                  \
    const V x = z.even, y = z.odd, real = fabs(x), imaginary = fabs(y);                            \
    const V larger = real > imaginary ? real : imaginary;                                          \
    const I rare = !(real <= (V)(WIDE_##R)) | !(imaginary <= (V)(WIDE_##R))                        \
        | (larger < (V)(1) / (V)(WIDE_##R));                                                       \
    if (ANY_LANE(I, rare))                                                                         \
        return each_complex_sqrt_##T(z);                                                           \
    const V modulus = sqrt(fma(real, real, imaginary * imaginary));                                \
    const V root = sqrt((real + modulus) * (V)(0.5f)), other = imaginary / (root + root);          \
    const I right = x >= (V)(0);                                                                   \
    return interleaved_##T(right ? root : other, copysign(right ? other : root, y));               \
}

/* A function of the exponentials of x and the circular functions of y, which are parts of z. */
#define DEFINE_COMPLEXES_CIRCULAR(name, T, V, I, R, part, angle, real, imaginary)                  \
static inline T complexes_##name##_##T(T z)                                                        \
{                                                                                                  \
    const V x = part, y = angle;                                                                   \
    const I rare = !(fabs(x) < (V)(TANH_IS_ONE_##R)) | !(fabs(y) < (V)(NEAR_ANGLE_##R));           \
    if (ANY_LANE(I, rare))                                                                         \
        return each_complex_##name##_##T(z);                                                       \
    const V cosine = near_cos_##V(y), sine = near_sin_##V(y);                                      \
    return interleaved_##T(real, imaginary);                                                       \
}
#define DEFINE_COMPLEXES_TANGENT(name, T, V, I, R, part, angle, real, imaginary)                   \
static inline T complexes_##name##_##T(T z)                                                        \
{                                                                                                  \
    const V x = part, y = angle;                                                                   \
    const I rare = !(fabs(x) < (V)(TANH_IS_ONE_##R)) | !(fabs(y) < (V)(NEAR_ANGLE_##R));           \
    if (ANY_LANE(I, rare))                                                                         \
        return each_complex_##name##_##T(z);                                                       \
    const V tangent = tan(y), sine = sinh(x);                                                      \
    const V secant2 = (V)(1) + tangent * tangent, cosine = sqrt((V)(1) + sine * sine);             \
    const V denominator = (V)(1) + secant2 * sine * sine;                                          \
    const V along = secant2 * cosine * sine / denominator, across = tangent / denominator;         \
    return interleaved_##T(real, imaginary);                                                       \
}

/* Near |z| = 1 as complex.cl, where the steps are explained; elsewhere plain. */
#define DEFINE_COMPLEXES_LOG(name, T, V, I, R, factor)                                             \
static inline T complexes_##name##_##T(T z)                                                        \
{                                                                                                  \
    const V x = fabs(z.even), y = fabs(z.odd);                                                     \
    const V larger = x > y ? x : y, smaller = x > y ? y : x;                                       \
    const I rare = !(x <= (V)(WIDE_##R)) | !(y <= (V)(WIDE_##R))                                   \
        | (larger < (V)(1) / (V)(WIDE_##R));                                                       \
    if (ANY_LANE(I, rare))                                                                         \
        return each_complex_##name##_##T(z);                                                       \
    const V square = larger * larger, other = smaller * smaller;                                   \
    const I near = (larger > (V)(0.5f)) & (larger < (V)(2));                                       \
    V modulus = log(square + other);                                                               \
    if (ANY_LANE(I, near)) {                                                                       \
        const V rest = fma(larger, larger, -square) + fma(smaller, smaller, -other);               \
        const V first = square - (V)(1), first_back = first - square;                              \
        const V first_lost = (square - (first - first_back)) + ((V)(-1) - first_back);             \
        const V sum = first + other, sum_back = sum - first;                                       \
        const V sum_lost = (first - (sum - sum_back)) + (other - sum_back);                        \
        modulus = near ? log1p(near ? sum + (first_lost + sum_lost + rest) : (V)(0)) : modulus;    \
    }                                                                                              \
    return interleaved_##T(modulus * (V)(0.5f) * (V)(factor), atan2(z.odd, z.even) * (V)(factor)); \
}
