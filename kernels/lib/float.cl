/* NumPy's division rules for floats, vectors and scalars alike; the op table's `define` texts expand
 * these.  T is the operands' type, I the signed integer type with the same lanes.  A comparison is 1
 * at width 1 and -1 in the lanes of a vector.
 */

/* NumPy's npy_divmod: a floor division that snaps to the nearest integer, as a - mod is only nearly a
 * multiple of b, and a remainder with the divisor's sign, also when it is zero. */
#define DEFINE_FLOOR_DIVIDE_FLOAT(T, I, U)                                                         \
static inline T floor_divide_##T(T dividend, T divisor)                                            \
{                                                                                                  \
    const T rest = fmod(dividend, divisor);                                                        \
    const T nearly = (dividend - rest) / divisor;                                                  \
    const T quotient =                                                                             \
        rest != (T)(0) && (divisor < (T)(0)) != (rest < (T)(0)) ? nearly - (T)(1) : nearly;        \
    const T below = floor(quotient);                                                               \
    const T snapped = quotient - below > (T)(0.5f) ? below + (T)(1) : below;                       \
    const T ratio = dividend / divisor;                                                            \
    return divisor == (T)(0) ? ratio                                                               \
                             : (quotient == (T)(0) ? copysign((T)(0), ratio) : snapped);           \
}

#define DEFINE_REMAINDER_FLOAT(T, I, U)                                                            \
static inline T remainder_##T(T dividend, T divisor)                                               \
{                                                                                                  \
    const T rest = fmod(dividend, divisor);                                                        \
    const T moved = (divisor < (T)(0)) != (rest < (T)(0)) ? rest + divisor : rest;                 \
    return divisor != (T)(0) && rest == (T)(0) ? copysign((T)(0), divisor) : moved;                \
}

#define DEFINE_FMOD_FLOAT(T, I, U)                                                                 \
static inline T fmod_##T(T dividend, T divisor)                                                    \
{                                                                                                  \
    return fmod(dividend, divisor);                                                                \
}

#define DEFINE_CLIP(T)                                                                             \
static inline T clip_##T(T value, T least, T greatest)                                             \
{                                                                                                  \
    const T raised = value != value || value > least ? value : least;                              \
    return raised != raised || raised < greatest ? raised : greatest;                              \
}

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
