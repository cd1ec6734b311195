"""Numbers of `rejection.pxi` with parameters for all of a draw: a part of `compiled.pyx`, after it.

Most elements take the first proposal, which is made of a block of them by vectors. The others are
drawn one by one, as everywhere. What depends on a small whole number alone comes from a table.
Steps are those of the kernels in the same order, so the bits are theirs.
"""

cdef extern from *:
    """
    /* Elements in `index`, or from `first` on, of a draw. */
    typedef struct { const cf_whole *index; cf_whole first, key, position; } cf_counter;

    static inline cf_whole clfuse_element(const cf_counter *counter, Py_ssize_t place) {
        return counter->index ? counter->index[place] : counter->first + place;
    }

    /* Random bits of an attempt, both words of each of at most CF_PART elements from `start` on. */
    static void clfuse_words_of(
        const cf_counter *counter, cf_whole attempt, Py_ssize_t start, cf_word *first,
        cf_word *second, Py_ssize_t count
    ) {
        clfuse_words_of_part(
            counter->index ? counter->index + start : NULL, counter->first + start,
            WITH_ATTEMPT(cf_whole, counter->key, attempt), counter->position, first, second, count
        );
    }

    #define CLFUSE_OPEN(word) ((CLFUSE_SMALL_WORD((word) >> 12) + 0.5) * 0x1p-52)

    /* One number, from its first attempt on. */
    CLFUSE_CLONES
    static double clfuse_one_drawn(
        int kind, cf_whole index, cf_whole key, cf_whole position, const double *given
    ) {
        switch (kind) {
        case CF_GAMMA64: return gamma_draw_double(index, key, position, given[0]);
        case CF_POISSON64: return poisson_draw_double(index, key, position, given[0]);
        case CF_BINOMIAL64: return binomial_draw_double(index, key, position, given[0], given[1]);
        case CF_HYPERGEOMETRIC64:
            return hypergeometric_draw_double(index, key, position, given[0], given[1], given[2]);
        case CF_ZIPF64: return zipf_draw_double(index, key, position, given[0]);
        case CF_VON_MISES64: return von_mises_draw_double(index, key, position, given[0]);
        default: return gamma_draw_float(index, key, position, (float)given[0]);
        }
    }

    /* ---- first proposals: numbers, and of which elements they are accepted ---- */

    CLFUSE_BY_VECTORS
    static void clfuse_gamma_proposals(
        const double *normal, const cf_word *second, double shape, double *out, cf_word *good,
        Py_ssize_t count
    ) {
        const double d = GAMMA_D(double, double, shape < 1.0 ? shape + 1.0 : shape);
        const double c = GAMMA_C(double, d);
        Py_ssize_t place;
        for (place = 0; place < count; place++) {
            const double x = normal[place], u = CLFUSE_OPEN(second[place]);
            const double y = c * x, v = 1.0 + y, square = x * x;
            good[place] = (cf_word)(v > 0.0) & (cf_word)(u < GAMMA_SQUEEZE(double, square));
            out[place] = d * v * v * v;
        }
    }

    CLFUSE_CLONES
    static void clfuse_gamma_lowered(
        const cf_word *bits, double shape, double *out, Py_ssize_t count
    ) {
        Py_ssize_t place;
        for (place = 0; place < count; place++) {
            const double u = positive_of_bits_double(bits[place]);
            out[place] *= vector_exp_double(vector_log_double(u) / shape);
        }
    }

    CLFUSE_BY_VECTORS
    static void clfuse_hat_proposals(
        const cf_word *first, const cf_word *second, double a, double b, double quick, double mean,
        double shift, double *out, cf_word *good, Py_ssize_t count
    ) {
        Py_ssize_t place;
        for (place = 0; place < count; place++) {
            const double u = CLFUSE_OPEN(first[place]) - 0.5, v = CLFUSE_OPEN(second[place]);
            const double near = HAT_NEAR(double, u);
            out[place] = HAT_PROPOSAL(double, u, near, a, b, mean, shift);
            good[place] = (cf_word)(near >= 0.07) & (cf_word)(v <= quick);
        }
    }

    /* ---- few events: sums of their chances, as ADD_UP_CHANCES makes them ---- */

    enum { CF_MOST_SUMS = 256, CF_STARTS = 256 };
    typedef struct {
        double sums[CF_MOST_SUMS];
        int last;                   /* the largest number; -1: there are too many */
        int starts[CF_STARTS];      /* of the number for a u with these first bits, a lower bound */
    } cf_sums;

    #define CLFUSE_SUMS(chance, step)                                                              \
        {                                                                                          \
            double weight = chance, sum = weight, k;                                               \
            table->sums[0] = sum;                                                                  \
            table->last = -1;                                                                      \
            for (k = 1; k < CF_MOST_SUMS; k++) {                                                   \
                weight *= step;                                                                    \
                if (!(weight > 0.0)) { table->last = (int)k - 1; break; }                          \
                sum += weight;                                                                     \
                table->sums[(int)k] = sum;                                                         \
                if (!(weight > NO_CHANCE || k < mean)) { table->last = (int)k; break; }            \
            }                                                                                      \
        }

    CLFUSE_CLONES
    static void clfuse_sums_of(int kind, const double *given, cf_sums *table) {
        int start, number = 0;
        if (kind == CF_POISSON64) {
            const double mean = given[0];
            CLFUSE_SUMS(vector_exp_double(-mean), POISSON_STEP(double, k))
        } else if (kind == CF_BINOMIAL64) {
            const double count = given[0], p = given[1], odds = p / (1.0 - p), mean = count * p;
            CLFUSE_SUMS(
                vector_exp_double(count * vector_log1p_double(-p)), BINOMIAL_STEP(double, k)
            )
        } else {
            const double rare = given[0], other = given[1], count = given[2];
            HYPERGEOMETRIC_PARTS(double)
            (void)centre;
            CLFUSE_SUMS(HYPERGEOMETRIC_NONE(double), HYPERGEOMETRIC_STEP(double, k))
        }
        for (start = 0; start < CF_STARTS; start++) {
            const double least = start * (1.0 / CF_STARTS);
            while (number < table->last && table->sums[number] < least) number++;
            table->starts[start] = number;
        }
    }

    static void clfuse_by_sums(
        const cf_sums *table, const cf_word *bits, double *out, Py_ssize_t count
    ) {
        Py_ssize_t place;
        for (place = 0; place < count; place++) {
            const double u = CLFUSE_OPEN(bits[place]);
            int number = table->starts[bits[place] >> 56];
            while (number < table->last && u > table->sums[number]) number++;
            out[place] = number;
        }
    }

    /* ---- chances from tables ---- */

    enum { CF_MOST_CHANCES = 1024, CF_LEAST_TABLED = 64 };

    /* Words of an attempt; those of the first are there. */
    #define CLFUSE_WORDS(attempt)                                                                  \
        if (attempt > 1) {                                                                         \
            const cf_whole key = WITH_ATTEMPT(cf_whole, counter->key, attempt);                    \
            const cf_whole index = clfuse_element(counter, start + place);                         \
            one = philox_bits_cf_whole(index, key, counter->position);                             \
            two = philox_more_bits_cf_whole(index, key, counter->position);                        \
        }

    /* What is the same for all numbers of a transformed rejection, and chances of the numbers from
     * `low` on, `known` of them. */
    typedef struct {
        double mean, a, b, quick, scale, shift, most, low, chances[CF_MOST_CHANCES];
        int known, by_near;
    } cf_hat;

    #define CLFUSE_KNOWN_CHANCES(CHANCE)                                                           \
        for (number = 0; number < hat->known; number++) {                                          \
            const double k = hat->low + number;                                                    \
            hat->chances[number] = CHANCE(double, k);                                              \
        }                                                                                          \
        hat->a = a, hat->b = b, hat->quick = quick, hat->scale = scale;

    CLFUSE_CLONES
    static void clfuse_hat_of(int kind, const double *given, cf_hat *hat, Py_ssize_t total) {
        const double mean = hat->mean;
        const double deviation =
            kind == CF_POISSON64 ? sqrt(mean) : sqrt(mean * (1.0 - given[1]));
        const double low = floor(mean - 8.0 * deviation), high = floor(mean + 8.0 * deviation);
        int number;
        hat->most = kind == CF_POISSON64 ? HUGE_VAL : given[0];
        hat->low = low > 0.0 ? low : 0.0;
        hat->known = 0;
        if (high - hat->low < (total < CF_MOST_CHANCES ? total : CF_MOST_CHANCES))
            hat->known = (int)((high < hat->most ? high : hat->most) - hat->low) + 1;
        hat->by_near = kind == CF_POISSON64;
        if (kind == CF_POISSON64) {
            POISSON_HAT(double, mean)
            const double scale = POISSON_SCALE(double), of_mean = POISSON_OF_MEAN(double);
            hat->shift = POISSON_SHIFT;
            CLFUSE_KNOWN_CHANCES(POISSON_CHANCE)
        } else {
            const double count = given[0], p = given[1], q = 1.0 - p, odds = p / q;
            BINOMIAL_HAT(double, p, deviation)
            BINOMIAL_PARTS(double)
            hat->shift = BINOMIAL_SHIFT;
            CLFUSE_KNOWN_CHANCES(BINOMIAL_CHANCE)
        }
    }

    /* Numbers of elements whose first proposals are not good at once, where chances are known. */
    CLFUSE_CLONES
    static void clfuse_hat_rest(
        int kind, const cf_hat *hat, const cf_counter *counter, const double *given,
        Py_ssize_t start, const cf_word *first, const cf_word *second, const cf_word *good,
        double *out, Py_ssize_t part
    ) {
        const double mean = hat->mean, a = hat->a, b = hat->b, scale = hat->scale;
        Py_ssize_t place;
        int attempt;
        for (place = 0; place < part; place++) {
            cf_word one = first[place], two = second[place];
            if (good[place]) continue;
            for (attempt = 1; attempt < MOST_ATTEMPTS; attempt++) {
                CLFUSE_WORDS(attempt)
                {
                    const double u = CLFUSE_OPEN(one) - 0.5, v = CLFUSE_OPEN(two);
                    const double near = HAT_NEAR(double, u);
                    const double k = HAT_PROPOSAL(double, u, near, a, b, mean, hat->shift);
                    const double at = k - hat->low;
                    if (near >= 0.07 && v <= hat->quick) { out[place] = k; break; }
                    if (!(k >= 0.0 && k <= hat->most)) continue;
                    if (hat->by_near && !(near >= 0.013 || v <= near)) continue;
                    if (!(at >= 0.0 && at < hat->known)) {
                        out[place] = clfuse_one_drawn(
                            kind, clfuse_element(counter, start + place), counter->key,
                            counter->position, given
                        );
                        break;
                    }
                    if (
                        vector_log_double(HAT_HEIGHT(v, near, a, b, scale))
                        <= hat->chances[(int)at]
                    ) { out[place] = k; break; }
                }
            }
        }
    }

    CLFUSE_CLONES
    static void clfuse_hypergeometric(
        const cf_counter *counter, const double *given, double *out, Py_ssize_t total
    ) {
        const double rare = given[0], other = given[1], count = given[2];
        HYPERGEOMETRIC_PARTS(double)
        HYPERGEOMETRIC_RATIO(double)
        const double lowest = floor(centre - 16.0 * deviation), low = lowest > 0.0 ? lowest : 0.0;
        double chances[CF_MOST_CHANCES];
        cf_word first[CF_PART], second[CF_PART];
        const int most_known = total < CF_MOST_CHANCES ? (int)total : CF_MOST_CHANCES;
        const int known = end - low <= most_known ? (int)(end - low) : 0;
        Py_ssize_t start, place, part;
        int attempt, number;
        for (number = 0; number < known; number++) {
            const double k = low + number;
            chances[number] = HYPERGEOMETRIC_CHANCE(double, k);
        }
        for (start = 0; start < total; start += part) {
            part = total - start < CF_PART ? total - start : CF_PART;
            clfuse_words_of(counter, 1, start, first, second, part);
            for (place = 0; place < part; place++) {
                cf_word one = first[place], two = second[place];
                double made = mean;
                for (attempt = 1; attempt < MOST_ATTEMPTS; attempt++) {
                    CLFUSE_WORDS(attempt)
                    {
                        const double u = CLFUSE_OPEN(one), v = CLFUSE_OPEN(two);
                        const double x = centre + scale * (v - 0.5) / u;
                        if (x >= 0.0 && x < end) {
                            const double k = floor(x), at = k - low;
                            const double chance = at >= 0.0 && at < known
                                ? chances[(int)at] : HYPERGEOMETRIC_CHANCE(double, k);
                            if (2.0 * vector_log_double(u) <= chance) { made = k; break; }
                        }
                    }
                }
                out[start + place] = made;
            }
        }
    }

    CLFUSE_CLONES
    static void clfuse_zipf(
        const cf_counter *counter, const double *given, double *out, Py_ssize_t total
    ) {
        const double a = given[0];
        ZIPF_PARTS(double)
        double heights[CF_LEAST_TABLED], bounds[CF_LEAST_TABLED];
        cf_word first[CF_PART], second[CF_PART];
        Py_ssize_t start, place, part;
        int attempt, number;
        for (number = 1; number < CF_LEAST_TABLED; number++) {
            const double step = power * vector_log1p_double(1.0 / number);
            heights[number] = vector_expm1_double(step) / of_2;
            bounds[number] = vector_exp_double(step - log_2);
        }
        for (start = 0; start < total; start += part) {
            part = total - start < CF_PART ? total - start : CF_PART;
            clfuse_words_of(counter, 1, start, first, second, part);
            for (place = 0; place < part; place++) {
                cf_word one = first[place], two = second[place];
                double made = 1.0;
                for (attempt = 1; attempt < MOST_ATTEMPTS; attempt++) {
                    CLFUSE_WORDS(attempt)
                    {
                        const double u = CLFUSE_OPEN(one), v = CLFUSE_OPEN(two);
                        const double x = ZIPF_PROPOSAL(double, u);
                        if (x >= 1.0 && x < 0x1p63) {
                            double height, bound;
                            if (x < CF_LEAST_TABLED) {
                                height = v * x * heights[(int)x];
                                bound = bounds[(int)x];
                            } else {
                                const double step = power * vector_log1p_double(1.0 / x);
                                height = v * x * (vector_expm1_double(step) / of_2);
                                bound = vector_exp_double(step - log_2);
                            }
                            if (height <= bound) { made = x; break; }
                        }
                    }
                }
                out[start + place] = made;
            }
        }
    }

    /* ---- all of a draw ---- */

    static double clfuse_mean_of(int kind, const double *given) {
        if (kind == CF_POISSON64) return given[0];
        if (kind == CF_BINOMIAL64) return given[0] * given[1];
        {
            const double rare = given[0], other = given[1], count = given[2];
            HYPERGEOMETRIC_PARTS(double)
            (void)centre; (void)lacking;
            return mean;
        }
    }

    static void clfuse_by_proposals(
        int kind, const cf_counter *counter, const double *given, double mean, double *out,
        Py_ssize_t count
    ) {
        cf_word first[CF_PART], second[CF_PART], good[CF_PART];
        double normal[CF_PART];
        cf_hat hat;
        Py_ssize_t start, place, part;
        hat.known = 0;
        hat.mean = mean;
        if (kind != CF_GAMMA64) clfuse_hat_of(kind, given, &hat, count);
        for (start = 0; start < count; start += part) {
            double *const made = out + start;
            part = count - start < CF_PART ? count - start : CF_PART;
            clfuse_words_of(counter, 1, start, first, second, part);
            if (kind == CF_GAMMA64) {
                clfuse_normals(first, normal, part);
                clfuse_gamma_proposals(normal, second, given[0], made, good, part);
                if (given[0] < 1.0) {
                    clfuse_words_of(counter, 0, start, first, NULL, part);
                    clfuse_gamma_lowered(first, given[0], made, part);
                }
            } else {
                clfuse_hat_proposals(
                    first, second, hat.a, hat.b, hat.quick, mean, hat.shift, made, good, part
                );
            }
            if (hat.known)
                clfuse_hat_rest(
                    kind, &hat, counter, given, start, first, second, good, made, part
                );
            else
            for (place = 0; place < part; place++)
                if (!good[place])
                    made[place] = clfuse_one_drawn(
                        kind, clfuse_element(counter, start + place), counter->key,
                        counter->position, given
                    );
        }
    }

    /* The numbers of the elements of `counter`, with the same parameters for all. */
    static void clfuse_drawn_alike(
        int kind, const cf_counter *counter, const double *given, double *out, Py_ssize_t count
    ) {
        Py_ssize_t place, start, part;
        if (count > 8) {
            const int counts = kind == CF_POISSON64 || kind == CF_BINOMIAL64
                || kind == CF_HYPERGEOMETRIC64;
            const double mean = counts ? clfuse_mean_of(kind, given) : 0.0;
            if (counts && mean < FEW_EVENTS) {
                cf_sums table;
                cf_word bits[CF_PART];
                clfuse_sums_of(kind, given, &table);
                if (table.last >= 0) {
                    for (start = 0; start < count; start += part) {
                        part = count - start < CF_PART ? count - start : CF_PART;
                        clfuse_words_of(counter, 0, start, bits, NULL, part);
                        clfuse_by_sums(&table, bits, out + start, part);
                    }
                    return;
                }
            } else if (kind == CF_HYPERGEOMETRIC64 && mean >= FEW_EVENTS) {
                clfuse_hypergeometric(counter, given, out, count);
                return;
            } else if (kind == CF_GAMMA64 ? given[0] > 0.0 : counts && mean >= FEW_EVENTS) {
                clfuse_by_proposals(kind, counter, given, mean, out, count);
                return;
            } else if (kind == CF_ZIPF64 && count > CF_LEAST_TABLED) {
                clfuse_zipf(counter, given, out, count);
                return;
            }
        }
        for (place = 0; place < count; place++)
            out[place] = clfuse_one_drawn(
                kind, clfuse_element(counter, place), counter->key, counter->position, given
            );
    }
    """
    ctypedef struct counter_of_draw "cf_counter":
        const long long *index
        long long first, key, position
    double clfuse_one_drawn(int, long long, long long, long long, const double *) nogil
    void clfuse_drawn_alike(
        int, const counter_of_draw *, const double *, double *, Py_ssize_t
    ) nogil

cdef enum:
    MOST_PARAMETERS = 3


cdef int take_parameters(object given, double *parameters) except -1:
    """The parameters of a draw, a tuple of floats, for C."""
    cdef Py_ssize_t place = 0
    for value in <tuple>given:
        if place == MOST_PARAMETERS:
            raise ValueError("too many parameters")
        parameters[place] = value
        place += 1
    return 0


cdef int fill_alike(
    int kind, double *memory, Py_ssize_t count, word key, word position, tuple given
) except -1:
    cdef counter_of_draw counter = [NULL, 0, <long long>key, <long long>position]
    cdef double parameters[MOST_PARAMETERS]
    if kind == CF_GAMMA32:
        raise ValueError("of float64 only")
    take_parameters(given, parameters)
    if count:
        clfuse_drawn_alike(kind, &counter, parameters, memory, count)
    return 0


def draw_alike(int kind, object out, Py_ssize_t count, word key, word position, tuple given):
    """Fill `out` with the `count` numbers of the draw at `position`, of float64, that are drawn
    until one is accepted; the parameters are floats."""
    fill_alike(kind, <double *>memory_of(out, count * 8), count, key, position, given)


def few_drawn(
    generator, int kind, object size, double small, double weight, tuple given, double start,
    double scale, bint whole
):
    """A small draw as `draw_alike` makes it, scaled, from `start` on, as an array of ours, of int64
    where it is `whole`; None where something else has to make it."""
    cdef Py_ssize_t place, count = <Py_ssize_t>min(count_of(size), 1e15)
    cdef double *memory
    device = device_of_few(count, small, weight)
    if device is None:
        return None
    key, position, _ = generator.take()
    made_here = np_empty(size, INT64) if whole else np_empty(size)
    memory = <double *>memory_of(made_here, count * 8)
    fill_alike(kind, memory, count, key, position, given)
    if scale != 1.0 or start != 0.0:
        for place in range(count):
            memory[place] = memory[place] * scale + start
    if whole:
        for place in range(count):
            (<long long *>memory)[place] = <long long>memory[place]
    return made(made_here, None, device)


def number_drawn(int kind, word key, word position, tuple given):
    """The first number of that draw, as one of Python's."""
    cdef double parameters[MOST_PARAMETERS]
    take_parameters(given, parameters)
    return clfuse_one_drawn(kind, 0, <long long>key, <long long>position, parameters)


def drawn(int kind, object operands, object out):
    """Numbers that are drawn until one is accepted, into `out`. The operands are the elements'
    numbers in the stream, key and position (int64), and the parameters (of the dtype of `out`):
    arrays in C order, of as many elements as `out`, or of one."""
    cdef Py_ssize_t count = <Py_ssize_t>array_size(<PyObject *>out)
    cdef Py_ssize_t size = 4 if kind == CF_GAMMA32 else 8, place = 0, length
    cdef given_operand given[MOST_GIVEN]
    cdef counter_of_draw counter
    cdef double parameters[MOST_PARAMETERS]
    cdef bint alike = kind != CF_GAMMA32
    cdef void *made_there
    if not count:
        return
    counter.index = NULL
    for operand_array in operands[:MOST_GIVEN]:
        length = <Py_ssize_t>array_size(<PyObject *>operand_array)
        if length != 1 and length != count:
            raise ValueError("an operand is of another size")
        given[place].step = length == count
        given[place].memory = memory_of(operand_array, 8 if place < 3 else size)
        if (length == 1) == (place == 0):
            alike = False
        elif place >= 3 and alike:
            parameters[place - 3] = (<const double *>given[place].memory)[0]
        place += 1
    made_there = memory_of(out, count * size)
    if alike:
        counter.index = <const long long *>given[0].memory
        counter.first = 0
        counter.key = (<const long long *>given[1].memory)[0]
        counter.position = (<const long long *>given[2].memory)[0]
        clfuse_drawn_alike(kind, &counter, parameters, <double *>made_there, count)
    else:
        clfuse_drawn(kind, given, made_there, count)
