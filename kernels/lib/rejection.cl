/* Numbers that are drawn until one is accepted. The op table's `define` texts expand the macros at the
 * end; philox.cl, normal.cl, logarithm.cl, exponential.cl and elementary.cl stand before.
 *
 *     attempt 0, 1, 2, ...  ->  128 bits of (element, key ^ attempt << 32, position)  ->  a proposal
 *
 * So an element takes as many random bits as it happens to need, and nobody else's change. The lanes
 * of a vector try together until each has its number. Every step is an operation that all devices
 * round alike (fma, +, -, *, /, sqrt) or one of our own functions, so all draw the same bits.
 *
 * T is a double type (of a gamma number also a float type) of scalar type S, I the integer type with
 * its lanes; L and U are the long and ulong types with as many lanes.
 */

#define MASK(I, condition) ((condition) ? (I)(-1) : (I)(0))

/* Each accepts at least every fourth proposal: nobody gets so far, but parameters that are NaN. */
#define MOST_ATTEMPTS 256

#define WITH_ATTEMPT(L, key, attempt) ((key) ^ ((L)(attempt) << (L)(32)))

/* Declares two words of 64 random bits. */
#define DRAW_WORDS(L, U, attempt)                                                                  \
    const L attempt_key = WITH_ATTEMPT(L, key, attempt);                                           \
    const U first = philox_bits_##L(index, attempt_key, position);                                 \
    const U second = philox_more_bits_##L(index, attempt_key, position);

/* Keeps numbers that are accepted; these lanes are done. */
#define ACCEPT(number)                                                                             \
    made = accepted ? number : made;                                                               \
    open &= ~accepted;

/* ---- gamma: G. Marsaglia, W. W. Tsang, A simple method for generating gamma variables (2000) ---- */

#define ONE_THIRD_float 0x1.555556p-2f
#define ONE_THIRD_double 0x1.5555555555555p-2

/* d v^3 with v = 1 + c x of a normal x. In log(v^3) - v^3 + 1, which is small for large shapes, the
 * parts that would cancel are left out. Shapes below 1 are those above, times u^(1/shape). */
#define GAMMA_D(T, S, raised) ((raised) - (T)(ONE_THIRD_##S))
#define GAMMA_C(T, d) ((T)(1) / sqrt((T)(9) * (d)))
#define GAMMA_SQUEEZE(T, square) ((T)(1) - (T)(0.0331f) * (square) * (square))
#define DEFINE_GAMMA_DRAW(T, S, I, L, U)                                                           \
static inline T gamma_draw_##T(L index, L key, L position, T shape)                                \
{                                                                                                  \
    const I below_1 = MASK(I, shape < (T)(1));                                                     \
    const T d = GAMMA_D(T, S, below_1 ? shape + (T)(1) : shape), c = GAMMA_C(T, d);                \
    T made = shape;                                                                                \
    I open = MASK(I, shape == shape);                                                              \
    for (int attempt = 1; attempt < MOST_ATTEMPTS && ANY_LANE(I, open); attempt++) {               \
        DRAW_WORDS(L, U, attempt)                                                                  \
        const T x = normal_of_bits_##T(first), u = open_of_bits_##T(second);                       \
        const T y = c * x, v = (T)(1) + y, square = x * x;                                         \
        const I possible = MASK(I, v > (T)(0)) & open;                                             \
        I accepted = MASK(I, u < GAMMA_SQUEEZE(T, square));                                        \
        if (ANY_LANE(I, possible & ~accepted)) {                                                   \
            const T rest = (T)(3) * (vector_log1p_##T(y) - y) - y * y * ((T)(3) + y);              \
            accepted |= MASK(I, vector_log_##T(u) < fma((T)(0.5f), square, d * rest));             \
        }                                                                                          \
        accepted &= possible;                                                                      \
        ACCEPT(d * v * v * v)                                                                      \
    }                                                                                              \
    if (ANY_LANE(I, below_1)) {                                                                    \
        const T u = positive_of_bits_##T(philox_bits_##L(index, key, position));                   \
        const T lowered = made * vector_exp_##T(vector_log_##T(u) / shape);                        \
        made = below_1 ? (shape > (T)(0) ? lowered : shape) : made;                                \
    }                                                                                              \
    return made;                                                                                   \
}

/* ---- numbers of events ---- */

/* log(z!) less Stirling's (z - 1/2) log(z) - z + log(2 pi) / 2 of z = k + 1 >= 1: errors 2e-10. */
#define STIRLING_REST(T, z)                                                                        \
    ((T)(1) / (z) * STIRLING_SERIES(T, (T)(1) / ((z) * (z))))
#define STIRLING_SERIES(T, w)                                                                      \
    fma(w, fma(w, fma(w, fma(w, fma(w, fma(w, fma(w, fma(w, (T)(0x1.3465142776f5ap-15),            \
        (T)(-0x1.85ae7cae2b830p-13)), (T)(0x1.b509ac3cc17cbp-12)), (T)(-0x1.297bd8f955cfep-11)),   \
        (T)(0x1.2bc680de0f04cp-11)), (T)(-0x1.23ef3dfab3a1cp-11)), (T)(0x1.9e74fafcd9fa3p-11)),    \
        (T)(-0x1.6c13250953aebp-9)), (T)(0x1.5555552880047p-4))
#define HALF_LOG_2_PI 0x1.d67f1c864beb5p-1

/* From so many events in the mean on they are drawn by rejection, below by adding up chances. */
#define FEW_EVENTS 10
/* Chances below this one are of no number of 53 bits. */
#define NO_CHANCE 0x1p-60

/* The number of events up to which their chances sum up to a uniform u: `chance` is that of none, and
 * the macro says by `step` what that of k is times that of k - 1. Sets lanes of `made`. */
#define ADD_UP_CHANCES(T, L, chance, mean, step)                                                   \
    {                                                                                              \
        const T u = open_of_bits_##T(philox_bits_##L(index, key, position));                       \
        T weight = chance, sum = weight;                                                           \
        L more = MASK(L, u > sum) & few;                                                           \
        made = few ? (T)(0) : made;                                                                \
        for (double k = 1; ANY_LANE(L, more); k++) {                                               \
            weight *= step;                                                                        \
            more &= MASK(L, weight > (T)(0));                                                      \
            sum += weight;                                                                         \
            made = more ? (T)(k) : made;                                                           \
            const L chances = MASK(L, weight > (T)(NO_CHANCE)) | MASK(L, (T)(k) < mean);           \
            more &= MASK(L, u > sum) & chances;                                                    \
        }                                                                                          \
    }

/* Transformed rejection: a proposal for u in (-1/2, 1/2), and whether it is accepted at once. */
#define HAT_NEAR(T, u) ((T)(0.5) - fabs(u))
#define HAT_PROPOSAL(T, u, near, a, b, mean, shift)                                                \
    VECTOR_floor(((T)(2) * a / near + b) * u + mean + (T)(shift))
#define HAT_QUICK(T, L, near, v, quick) (MASK(L, near >= (T)(0.07)) & MASK(L, v <= quick))
#define POISSON_HAT(T, mean)                                                                       \
    const T b = fma((T)(2.53), sqrt(mean), (T)(0.931)), a = fma((T)(0.02483), b, (T)(-0.059));     \
    const T quick = (T)(0.9277) - (T)(3.6224) / (b - (T)(2));
#define POISSON_SHIFT 0.43
#define POISSON_SCALE(T) ((T)(1.1239) + (T)(1.1328) / (b - (T)(3.4)))
#define POISSON_OF_MEAN(T) fma((T)(-0.5), vector_log_##T(mean), (T)(-HALF_LOG_2_PI))
#define POISSON_CHANCE(T, k)                                                                       \
    (of_mean - STIRLING_REST(T, (k) + (T)(1))                                                      \
        - fma(k + (T)(0.5), vector_log1p_##T((k + (T)(1) - mean) / mean), -(k + (T)(1) - mean)))
#define HAT_HEIGHT(v, near, a, b, scale) ((v) * scale / (a / (near * near) + b))
#define POISSON_STEP(T, k) (mean / (T)(k))
#define BINOMIAL_HAT(T, p, deviation)                                                              \
    const T b = fma((T)(2.53), deviation, (T)(1.15));                                              \
    const T a = fma((T)(0.01), p, fma((T)(0.0248), b, (T)(-0.0873)));                              \
    const T quick = (T)(0.92) - (T)(4.2) / b;
#define BINOMIAL_SHIFT 0.5
#define BINOMIAL_PARTS(T)                                                                          \
    const T scale = ((T)(2.83) + (T)(5.1) / b) * deviation;                                        \
    const T mode = VECTOR_floor(mean + p), next = mode + (T)(1), others = count - mode + (T)(1);   \
    const T of_mode = STIRLING_REST(T, next) + STIRLING_REST(T, others);                           \
    const T steps = vector_log_##T(others * odds / next);
#define BINOMIAL_CHANCE(T, k)                                                                      \
    (of_mode - STIRLING_REST(T, k + (T)(1)) - STIRLING_REST(T, count - k + (T)(1))                 \
        + (k - mode) * steps - (k + (T)(0.5)) * vector_log1p_##T((k - mode) / next)                \
        - (count - k + (T)(0.5)) * vector_log1p_##T(-(k - mode) / others))
#define BINOMIAL_STEP(T, k) (odds * ((count - (T)(k) + (T)(1)) / (T)(k)))

/* W. Hoermann, The transformed rejection method for generating Poisson random variables (1993). The
 * logarithm of k's chance is written with log1p((k + 1 - mean) / mean), so that nothing cancels. */
#define DEFINE_POISSON_DRAW(T, L, U)                                                               \
static inline T poisson_draw_##T(L index, L key, L position, T mean)                               \
{                                                                                                  \
    const L few = MASK(L, mean < (T)(FEW_EVENTS));                                                 \
    T made = mean;                                                                                 \
    L open = MASK(L, mean >= (T)(FEW_EVENTS));                                                     \
    if (ANY_LANE(L, open)) {                                                                       \
        POISSON_HAT(T, mean)                                                                       \
        const T scale = POISSON_SCALE(T), of_mean = POISSON_OF_MEAN(T);                            \
        for (int attempt = 1; attempt < MOST_ATTEMPTS && ANY_LANE(L, open); attempt++) {           \
            DRAW_WORDS(L, U, attempt)                                                              \
            const T u = open_of_bits_##T(first) - (T)(0.5), v = open_of_bits_##T(second);          \
            const T near = HAT_NEAR(T, u);                                                         \
            const T k = HAT_PROPOSAL(T, u, near, a, b, mean, POISSON_SHIFT);                       \
            L accepted = HAT_QUICK(T, L, near, v, quick);                                          \
            const L possible = MASK(L, k >= (T)(0))                                                \
                & (MASK(L, near >= (T)(0.013)) | MASK(L, v <= near));                              \
            if (ANY_LANE(L, open & possible & ~accepted)) {                                        \
                const T chance = POISSON_CHANCE(T, k);                                             \
                const T height = HAT_HEIGHT(v, near, a, b, scale);                                 \
                accepted |= possible & MASK(L, vector_log_##T(height) <= chance);                  \
            }                                                                                      \
            accepted &= open;                                                                      \
            ACCEPT(k)                                                                              \
        }                                                                                          \
    }                                                                                              \
    if (ANY_LANE(L, few))                                                                          \
        ADD_UP_CHANCES(T, L, vector_exp_##T(few ? -mean : (T)(0)), mean, POISSON_STEP(T, k))       \
    return made;                                                                                   \
}

/* W. Hoermann, The generation of binomial random variates (1993), algorithm BTRS. Chances are over
 * that of the most frequent number, written with log1p as above. The less frequent outcome is counted;
 * the caller takes the other one from all. */
#define DEFINE_BINOMIAL_DRAW(T, L, U)                                                              \
static inline T binomial_draw_##T(L index, L key, L position, T count, T p)                        \
{                                                                                                  \
    const T q = (T)(1) - p, odds = p / q, mean = count * p;                                        \
    const L few = MASK(L, mean < (T)(FEW_EVENTS));                                                 \
    T made = mean;                                                                                 \
    L open = MASK(L, mean >= (T)(FEW_EVENTS));                                                     \
    if (ANY_LANE(L, open)) {                                                                       \
        const T deviation = sqrt(mean * q);                                                        \
        BINOMIAL_HAT(T, p, deviation)                                                              \
        BINOMIAL_PARTS(T)                                                                          \
        for (int attempt = 1; attempt < MOST_ATTEMPTS && ANY_LANE(L, open); attempt++) {           \
            DRAW_WORDS(L, U, attempt)                                                              \
            const T u = open_of_bits_##T(first) - (T)(0.5), v = open_of_bits_##T(second);          \
            const T near = HAT_NEAR(T, u);                                                         \
            const T k = HAT_PROPOSAL(T, u, near, a, b, mean, BINOMIAL_SHIFT);                      \
            L accepted = HAT_QUICK(T, L, near, v, quick);                                          \
            const L possible = MASK(L, k >= (T)(0)) & MASK(L, k <= count);                         \
            if (ANY_LANE(L, open & possible & ~accepted)) {                                        \
                const T chance = BINOMIAL_CHANCE(T, k);                                            \
                const T height = HAT_HEIGHT(v, near, a, b, scale);                                 \
                accepted |= possible & MASK(L, vector_log_##T(height) <= chance);                  \
            }                                                                                      \
            accepted &= open;                                                                      \
            ACCEPT(k)                                                                              \
        }                                                                                          \
    }                                                                                              \
    if (ANY_LANE(L, few)) {                                                                        \
        const T none = vector_exp_##T(few ? count * vector_log1p_##T(-p) : (T)(0));                \
        ADD_UP_CHANCES(T, L, none, mean, BINOMIAL_STEP(T, k))                                      \
    }                                                                                              \
    return made;                                                                                   \
}

/* log(k!), up to a constant. */
#define LOG_FACTORIAL(T, k)                                                                        \
    fma((k) + (T)(0.5), vector_log_##T((k) + (T)(1)), STIRLING_REST(T, (k) + (T)(1)) - (k))

/* E. Stadlober, The ratio of uniforms approach for generating discrete random variates (1990), as in
 * NumPy's generator: of `count` elements those of the rarer kind. `rare` <= `other`, and `count` is at
 * most half of both. 2 sqrt(2 / e) and 3 - 2 sqrt(3 / e). */
#define HYPERGEOMETRIC_NONE(T)                                                                     \
    vector_exp_##T(LOG_FACTORIAL(T, other) - LOG_FACTORIAL(T, lacking) - LOG_FACTORIAL(T, all)     \
        + LOG_FACTORIAL(T, all - count))
#define HYPERGEOMETRIC_STEP(T, k)                                                                  \
    ((rare - (T)(k) + (T)(1)) / (T)(k) * ((count - (T)(k) + (T)(1)) / (lacking + (T)(k))))
#define RATIO_SCALE 1.7155277699214135
#define RATIO_START 0.8989161620588988
#define HYPERGEOMETRIC_PARTS(T)                                                                    \
    const T all = rare + other, none = all < (T)(2) ? (T)(2) : all;                                \
    const T p = rare / none, mean = count * p, centre = mean + (T)(0.5);                           \
    const T lacking = other - count;
#define HYPERGEOMETRIC_RATIO(T)                                                                    \
    const T variance = (all - count) * mean * (other / none) / (none - (T)(1));                    \
    const T deviation = sqrt(variance + (T)(0.5));                                                 \
    const T scale = fma((T)(RATIO_SCALE), deviation, (T)(RATIO_START));                            \
    const T mode = VECTOR_floor((count + (T)(1)) * (rare + (T)(1)) / (all + (T)(2)));              \
    const T of_mode = LOG_FACTORIAL(T, mode) + LOG_FACTORIAL(T, rare - mode)                       \
        + LOG_FACTORIAL(T, count - mode) + LOG_FACTORIAL(T, lacking + mode);                       \
    const T far = VECTOR_floor(centre + (T)(16) * deviation);                                      \
    const T most = (count < rare ? count : rare) + (T)(1), end = far < most ? far : most;
#define HYPERGEOMETRIC_CHANCE(T, k)                                                                \
    (of_mode - LOG_FACTORIAL(T, k) - LOG_FACTORIAL(T, rare - k) - LOG_FACTORIAL(T, count - k)      \
        - LOG_FACTORIAL(T, lacking + k))
#define DEFINE_HYPERGEOMETRIC_DRAW(T, L, U)                                                        \
static inline T hypergeometric_draw_##T(L index, L key, L position, T rare, T other, T count)      \
{                                                                                                  \
    HYPERGEOMETRIC_PARTS(T)                                                                        \
    const L few = MASK(L, mean < (T)(FEW_EVENTS));                                                 \
    T made = mean;                                                                                 \
    L open = MASK(L, mean >= (T)(FEW_EVENTS));                                                     \
    if (ANY_LANE(L, open)) {                                                                       \
        HYPERGEOMETRIC_RATIO(T)                                                                    \
        for (int attempt = 1; attempt < MOST_ATTEMPTS && ANY_LANE(L, open); attempt++) {           \
            DRAW_WORDS(L, U, attempt)                                                              \
            const T u = open_of_bits_##T(first), v = open_of_bits_##T(second);                     \
            const T x = centre + scale * (v - (T)(0.5)) / u;                                       \
            const L possible = open & MASK(L, x >= (T)(0)) & MASK(L, x < end);                     \
            if (!ANY_LANE(L, possible))                                                            \
                continue;                                                                          \
            const T k = VECTOR_floor(possible ? x : (T)(0));                                       \
            const T chance = HYPERGEOMETRIC_CHANCE(T, k);                                          \
            const L accepted = possible & MASK(L, (T)(2) * vector_log_##T(u) <= chance);           \
            ACCEPT(k)                                                                              \
        }                                                                                          \
    }                                                                                              \
    if (ANY_LANE(L, few)) {                                                                        \
        const T first_chance = HYPERGEOMETRIC_NONE(T);                                             \
        ADD_UP_CHANCES(T, L, few ? first_chance : (T)(1), mean, HYPERGEOMETRIC_STEP(T, k))         \
    }                                                                                              \
    return made;                                                                                   \
}

/* ---- zeta: L. Devroye, Non-uniform random variate generation (1986), X.6.1 ---- */

/* log(2^63): numbers are below it. */
#define LOG_OF_MOST 43.66827237527655
#define ZIPF_PARTS(T)                                                                              \
    const T less = a - (T)(1), power = less > (T)(1000) ? (T)(1000) : less;                        \
    const T least = vector_exp_##T((T)(-LOG_OF_MOST) * power);                                     \
    const T log_2 = (T)(LN2_HIGH_double) * power, of_2 = vector_expm1_##T(log_2);
#define ZIPF_PROPOSAL(T, u)                                                                        \
    VECTOR_floor(vector_exp_##T(-vector_log_##T(fma(u, least, (T)(1) - u)) / power))
#define DEFINE_ZIPF_DRAW(T, L, U)                                                                  \
static inline T zipf_draw_##T(L index, L key, L position, T a)                                     \
{                                                                                                  \
    ZIPF_PARTS(T)                                                                                  \
    T made = (T)(1);                                                                               \
    L open = (L)(-1);                                                                              \
    for (int attempt = 1; attempt < MOST_ATTEMPTS && ANY_LANE(L, open); attempt++) {               \
        DRAW_WORDS(L, U, attempt)                                                                  \
        const T u = open_of_bits_##T(first), v = open_of_bits_##T(second);                         \
        const T x = ZIPF_PROPOSAL(T, u);                                                           \
        const T step = power * vector_log1p_##T((T)(1) / x);                                       \
        const T height = v * x * (vector_expm1_##T(step) / of_2);                                  \
        const L accepted = open & MASK(L, x >= (T)(1)) & MASK(L, x < (T)(0x1p63))                  \
            & MASK(L, height <= vector_exp_##T(step - log_2));                                     \
        ACCEPT(x)                                                                                  \
    }                                                                                              \
    return made;                                                                                   \
}

/* ---- von Mises: D. J. Best, N. I. Fisher, Efficient simulation of the von Mises distribution (1979) */

/* The tangent of half of the angle. With the proposal's u in (-1, 1) it is that of pi / 2 u, scaled:
 * so nothing cancels where the angles are small. Beyond MOST_CONCENTRATED they are 0. */
#define MOST_CONCENTRATED 1e150
#define HALF_PI 0x1.921fb54442d18p+0
#define DEFINE_VON_MISES_DRAW(T, L, U)                                                             \
static inline T von_mises_draw_##T(L index, L key, L position, T kappa)                            \
{                                                                                                  \
    const T k = kappa > (T)(MOST_CONCENTRATED) ? (T)(MOST_CONCENTRATED) : kappa;                   \
    const T r = (T)(1) + sqrt(fma((T)(4) * k, k, (T)(1))), root = sqrt(r + r), sum = r + root;     \
    const T rho = (T)(2) * k / sum, short_of_1 = (r - (T)(2) * k + root) / sum;                    \
    const T scale = short_of_1 / ((T)(1) + rho), square = rho * rho;                               \
    const T between = short_of_1 * ((T)(1) + rho);                                                 \
    const T factor = sum * (T)(0.25) * between * between;                                          \
    T made = kappa;                                                                                \
    L open = MASK(L, kappa == kappa);                                                              \
    for (int attempt = 1; attempt < MOST_ATTEMPTS && ANY_LANE(L, open); attempt++) {               \
        DRAW_WORDS(L, U, attempt)                                                                  \
        const T half_angle = (T)(HALF_PI) * ((T)(2) * open_of_bits_##T(first) - (T)(1));           \
        const T v = open_of_bits_##T(second);                                                      \
        const T sine = near_sin_##T(half_angle), cosine = near_cos_##T(half_angle);                \
        const T above = (T)(1) + square + (T)(2) * rho * (cosine * cosine - sine * sine);          \
        const T y = factor / above;                                                                \
        L accepted = MASK(L, y * ((T)(2) - y) >= v);                                               \
        if (ANY_LANE(L, open & ~accepted))                                                         \
            accepted |= MASK(L, vector_log_##T(y / v) + (T)(1) >= y);                              \
        accepted &= open;                                                                          \
        ACCEPT(scale * sine / cosine)                                                              \
    }                                                                                              \
    return made;                                                                                   \
}
