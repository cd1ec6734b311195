/* Builtins that a runtime has wrong for some vectors, made right from the parts it has right; the op
 * tables' FAULTY_BUILTINS say where these stand in for the builtin itself.  T is the operands' type,
 * I the signed integer type with the same lanes.
 */

#define ANY_LANE_FAULTY(I, mask) any((mask) ? (I)(-1) : (I)(0))

/* PoCL 3.1, sin, cos and tan of vectors of float: one lane past 2^23, an infinity too, makes it
 * reduce every lane as if it were that large, which is wrong for the small ones (of either kind alone
 * it is right).  So the two kinds are given to it apart, if there are two. */
#define DEFINE_BY_MAGNITUDE(function, T, I)                                                        \
static inline T function##_by_magnitude_##T(T angle)                                               \
{                                                                                                  \
    const I large = !(fabs(angle) < (T)(0x1p22f));                                                 \
    if (!ANY_LANE_FAULTY(I, large))                                                                \
        return function(angle);                                                                    \
    const T of_large = function(large ? angle : (T)(0x1p23f));                                     \
    return large ? of_large : function(large ? (T)(0) : angle);                                    \
}

/* PoCL 3.1, pow of vectors of double: wrong for a subnormal base, which is taken apart into a normal
 * one and a power of two. */
#define DEFINE_POW_OF_SUBNORMAL(T, I)                                                              \
static inline T pow_of_subnormal_##T(T base, T exponent)                                           \
{                                                                                                  \
    const I subnormal = fabs(base) < (T)(0x1p-1022) && base != (T)(0);                             \
    const T power = pow(subnormal ? base * (T)(0x1p54) : base, exponent);                          \
    if (!ANY_LANE_FAULTY(I, subnormal))                                                            \
        return power;                                                                              \
    return subnormal ? power * pow((T)(0x1p-54), exponent) : power;                                \
}
