/* The inverse of the normal distribution: M. Giles, Approximating the erfinv function (GPU Computing
 * Gems, Jade Edition, 2012), whose coefficients these are.  The op table's `define` texts expand the
 * macros at the end.
 *
 * erfinv(x) is x times a polynomial, of w = -log(1 - x^2) in the middle and of sqrt(w) in the tails.
 * The tails are rare, 0.1 % of the numbers in double and 0.3 % in float: a vector seldom has one.
 * Steps are fma and the logarithm is ours, so that every device computes the same bits.
 * x is taken from 53 bits and never 0 or 1, 1 - |x| is exact (float: rounded once), so that the
 * largest number is 8.2 in both precisions.
 */

/* w < 6.25, t = w - 3.125; even and odd powers apart, as one chain of 22 steps is slower. */
#define NORMAL_MIDDLE_double(F, p, t)                                                              \
    {                                                                                              \
        const F square = t * t;                                                                    \
        F odd = (F)(-1.685059138182016589e-19);                                                    \
        p = (F)(-3.6444120640178196996e-21);                                                       \
        p = fma(p, square, (F)(1.2858480715256400167e-18));                                        \
        odd = fma(odd, square, (F)(1.115787767802518096e-17));                                     \
        p = fma(p, square, (F)(-1.333171662854620906e-16));                                        \
        odd = fma(odd, square, (F)(2.0972767875968561637e-17));                                    \
        p = fma(p, square, (F)(6.6376381343583238325e-15));                                        \
        odd = fma(odd, square, (F)(-4.0545662729752068639e-14));                                   \
        p = fma(p, square, (F)(-8.1519341976054721522e-14));                                       \
        odd = fma(odd, square, (F)(2.6335093153082322977e-12));                                    \
        p = fma(p, square, (F)(-1.2975133253453532498e-11));                                       \
        odd = fma(odd, square, (F)(-5.4154120542946279317e-11));                                   \
        p = fma(p, square, (F)(1.051212273321532285e-09));                                         \
        odd = fma(odd, square, (F)(-4.1126339803469836976e-09));                                   \
        p = fma(p, square, (F)(-2.9070369957882005086e-08));                                       \
        odd = fma(odd, square, (F)(4.2347877827932403518e-07));                                    \
        p = fma(p, square, (F)(-1.3654692000834678645e-06));                                       \
        odd = fma(odd, square, (F)(-1.3882523362786468719e-05));                                   \
        p = fma(p, square, (F)(0.0001867342080340571352));                                         \
        odd = fma(odd, square, (F)(-0.00074070253416626697512));                                   \
        p = fma(p, square, (F)(-0.0060336708714301490533));                                        \
        odd = fma(odd, square, (F)(0.24015818242558961693));                                       \
        p = fma(p, square, (F)(1.6536545626831027356));                                            \
        p = fma(odd, t, p);                                                                        \
    }

/* w < 5, t = w - 2.5 */
#define NORMAL_MIDDLE_float(F, p, t)                                                               \
    p = (F)(2.81022636e-08f);                                                                      \
    p = fma(p, t, (F)(3.43273939e-07f));                                                           \
    p = fma(p, t, (F)(-3.5233877e-06f));                                                           \
    p = fma(p, t, (F)(-4.39150654e-06f));                                                          \
    p = fma(p, t, (F)(0.00021858087f));                                                            \
    p = fma(p, t, (F)(-0.00125372503f));                                                           \
    p = fma(p, t, (F)(-0.00417768164f));                                                           \
    p = fma(p, t, (F)(0.246640727f));                                                              \
    p = fma(p, t, (F)(1.50140941f));

/* w < 16, t = sqrt(w) - 3.25 */
#define NORMAL_TAIL_double(F, p, t)                                                                \
    p = (F)(2.2137376921775787049e-09);                                                            \
    p = fma(p, t, (F)(9.0756561938885390979e-08));                                                 \
    p = fma(p, t, (F)(-2.7517406297064545428e-07));                                                \
    p = fma(p, t, (F)(1.8239629214389227755e-08));                                                 \
    p = fma(p, t, (F)(1.5027403968909827627e-06));                                                 \
    p = fma(p, t, (F)(-4.013867526981545969e-06));                                                 \
    p = fma(p, t, (F)(2.9234449089955446044e-06));                                                 \
    p = fma(p, t, (F)(1.2475304481671778723e-05));                                                 \
    p = fma(p, t, (F)(-4.7318229009055733981e-05));                                                \
    p = fma(p, t, (F)(6.8284851459573175448e-05));                                                 \
    p = fma(p, t, (F)(2.4031110387097893999e-05));                                                 \
    p = fma(p, t, (F)(-0.0003550375203628474796));                                                 \
    p = fma(p, t, (F)(0.00095328937973738049703));                                                 \
    p = fma(p, t, (F)(-0.0016882755560235047313));                                                 \
    p = fma(p, t, (F)(0.0024914420961078508066));                                                  \
    p = fma(p, t, (F)(-0.0037512085075692412107));                                                 \
    p = fma(p, t, (F)(0.005370914553590063617));                                                   \
    p = fma(p, t, (F)(1.0052589676941592334));                                                     \
    p = fma(p, t, (F)(3.0838856104922207635));

/* w < 16, t = sqrt(w) - 3 */
#define NORMAL_TAIL_float(F, p, t)                                                                 \
    p = (F)(-0.000200214257f);                                                                     \
    p = fma(p, t, (F)(0.000100950558f));                                                           \
    p = fma(p, t, (F)(0.00134934322f));                                                            \
    p = fma(p, t, (F)(-0.00367342844f));                                                           \
    p = fma(p, t, (F)(0.00573950773f));                                                            \
    p = fma(p, t, (F)(-0.0076224613f));                                                            \
    p = fma(p, t, (F)(0.00943887047f));                                                            \
    p = fma(p, t, (F)(1.00167406f));                                                               \
    p = fma(p, t, (F)(2.83297682f));

/* w < 36.1, t = sqrt(w) - 5 */
#define NORMAL_FAR_double(F, p, t)                                                                 \
    p = (F)(-2.7109920616438573243e-11);                                                           \
    p = fma(p, t, (F)(-2.5556418169965252055e-10));                                                \
    p = fma(p, t, (F)(1.5076572693500548083e-09));                                                 \
    p = fma(p, t, (F)(-3.7894654401267369937e-09));                                                \
    p = fma(p, t, (F)(7.6157012080783393804e-09));                                                 \
    p = fma(p, t, (F)(-1.4960026627149240478e-08));                                                \
    p = fma(p, t, (F)(2.9147953450901080826e-08));                                                 \
    p = fma(p, t, (F)(-6.7711997758452339498e-08));                                                \
    p = fma(p, t, (F)(2.2900482228026654717e-07));                                                 \
    p = fma(p, t, (F)(-9.9298272942317002539e-07));                                                \
    p = fma(p, t, (F)(4.5260625972231537039e-06));                                                 \
    p = fma(p, t, (F)(-1.9681778105531670567e-05));                                                \
    p = fma(p, t, (F)(7.5995277030017761139e-05));                                                 \
    p = fma(p, t, (F)(-0.00021503011930044477347));                                                \
    p = fma(p, t, (F)(-0.00013871931833623122026));                                                \
    p = fma(p, t, (F)(1.0103004648645343977));                                                     \
    p = fma(p, t, (F)(4.8499064014085844221));

/* The same in float. */
#define NORMAL_FAR_float(F, p, t)                                                                  \
    p = (F)(-2.71099206e-11f);                                                                     \
    p = fma(p, t, (F)(-2.55564182e-10f));                                                          \
    p = fma(p, t, (F)(1.50765727e-09f));                                                           \
    p = fma(p, t, (F)(-3.78946544e-09f));                                                          \
    p = fma(p, t, (F)(7.61570121e-09f));                                                           \
    p = fma(p, t, (F)(-1.49600266e-08f));                                                          \
    p = fma(p, t, (F)(2.91479535e-08f));                                                           \
    p = fma(p, t, (F)(-6.77119978e-08f));                                                          \
    p = fma(p, t, (F)(2.29004822e-07f));                                                           \
    p = fma(p, t, (F)(-9.92982729e-07f));                                                          \
    p = fma(p, t, (F)(4.5260626e-06f));                                                            \
    p = fma(p, t, (F)(-1.96817781e-05f));                                                          \
    p = fma(p, t, (F)(7.5995277e-05f));                                                            \
    p = fma(p, t, (F)(-0.000215030119f));                                                          \
    p = fma(p, t, (F)(-0.000138719318f));                                                          \
    p = fma(p, t, (F)(1.01030046f));                                                               \
    p = fma(p, t, (F)(4.8499064f));

/* log(x) of 2^-53 <= x <= 1, as in FreeBSD's msun: x = 2^k (1 + f), and with s = f / (2 + f) log(1 + f)
 * is f - s (f - R(s^2)).  An error of 1e-16 of 1 does no harm here, so sums are not compensated; it takes
 * 0.8 to 1.0 of the time of the builtins (PoCL 3.1, Intel). */
#define LOG_SERIES_double(F, r, z)                                                                 \
    r = (F)(1.479819860511658591e-01);                                                             \
    r = fma(r, z, (F)(1.531383769920937332e-01));                                                  \
    r = fma(r, z, (F)(1.818357216161805012e-01));                                                  \
    r = fma(r, z, (F)(2.222219843214978396e-01));                                                  \
    r = fma(r, z, (F)(2.857142874366239149e-01));                                                  \
    r = fma(r, z, (F)(3.999999999940941908e-01));                                                  \
    r = fma(r, z, (F)(6.666666666666735130e-01));

#define LOG_SERIES_float(F, r, z)                                                                  \
    r = (F)(0.24279078841f);                                                                       \
    r = fma(r, z, (F)(0.28498786688f));                                                            \
    r = fma(r, z, (F)(0.40000972152f));                                                            \
    r = fma(r, z, (F)(0.66666662693f));

#define MANTISSA_BITS_double 52
#define MANTISSA_BITS_float 23
/* The bits of sqrt(1/2): 1 + f lies between it and its double. */
#define LEAST_MANTISSA_double 0x3fe6a09e667f3bcd
#define LEAST_MANTISSA_float 0x3f3504f3
#define LN_2_double M_LN2
#define LN_2_float M_LN2_F

#define MIDDLE_ORIGIN_double 3.125
#define MIDDLE_ORIGIN_float 2.5f
#define MIDDLE_END_double 6.25
#define MIDDLE_END_float 5.0f
#define TAIL_ORIGIN_double 3.25
#define TAIL_ORIGIN_float 3.0f
#define SQRT_2_double M_SQRT2
#define SQRT_2_float M_SQRT2_F

/* F is a float or double type of scalar type S, I the signed integers with its lanes, L and U the
 * long and ulong types of its width. */
#define DEFINE_NORMAL_OF_BITS(F, S, I, L, U)                                                       \
static inline F normal_of_bits_##F(U bits)                                                         \
{                                                                                                  \
    const L whole = as_##L(bits) >> (L)(11);                                                       \
    const L size = whole ^ (whole >> (L)(63));                                                     \
    const F x = (convert_##F(whole) + (F)(0.5f)) * (F)(0x1p-52f);                                  \
    const F rest = (convert_##F((L)(0xfffffffffffff) - size) + (F)(0.5f)) * (F)(0x1p-52f);         \
    const F square_rest = rest * ((F)(2) - rest);                                                  \
    const I bits_of = as_##I(square_rest);                                                         \
    const I k = (bits_of - (I)(LEAST_MANTISSA_##S)) >> (I)(MANTISSA_BITS_##S);                     \
    const F f = as_##F(bits_of - (k << (I)(MANTISSA_BITS_##S))) - (F)(1);                          \
    const F s = f / (f + (F)(2)), z = s * s;                                                       \
    F series;                                                                                      \
    LOG_SERIES_##S(F, series, z)                                                                   \
    const F w = fma(convert_##F(-k), (F)(LN_2_##S), s * (f - series * z) - f);                     \
    F p, t = w - (F)(MIDDLE_ORIGIN_##S);                                                           \
    NORMAL_MIDDLE_##S(F, p, t)                                                                     \
    if (ANY_LANE(I, w >= (F)(MIDDLE_END_##S))) {                                           \
        const F middle = p, root = sqrt(w);                                                        \
        t = root - (F)(TAIL_ORIGIN_##S);                                                           \
        NORMAL_TAIL_##S(F, p, t)                                                                   \
        if (ANY_LANE(I, w >= (F)(16))) {                                                   \
            const F tail = p;                                                                      \
            t = root - (F)(5);                                                                     \
            NORMAL_FAR_##S(F, p, t)                                                                \
            p = w >= (F)(16) ? p : tail;                                                           \
        }                                                                                          \
        p = w >= (F)(MIDDLE_END_##S) ? p : middle;                                                 \
    }                                                                                              \
    return (F)(SQRT_2_##S) * x * p;                                                                \
}
