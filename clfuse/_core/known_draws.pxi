"""Draws of one number whose parameters are known from an earlier call: what programs make in loops.
The functions are those of `functions.random`; the positions and the numbers are theirs.
"""

cdef class KnownDraw:
    """A draw of one number by a function whose parameters are known to be good.

    Attributes
    ----------
    kind : int, of what is drawn until it is accepted, as in `DRAWN`
    formula : ScalarFormula, or None; without one it is of that kind
    given : tuple of float, the parameters
    start, scale : double, where numbers begin, and how much they are scaled
    whole, is_wide : bint, that they are whole, and that a device without float64 has none of them
    types : int, a bit for each argument that is a whole number
    """

    cdef int kind, types
    cdef double parameters[MOST_PARAMETERS]
    cdef ScalarFormula formula
    cdef object given
    cdef double start, scale
    cdef bint whole, is_wide

    def __init__(
        self, int kind, ScalarFormula formula, tuple given, double start, double scale, bint whole,
        bint is_wide,
    ):
        self.kind, self.formula, self.given = kind, formula, given
        self.start, self.scale, self.whole, self.is_wide = start, scale, whole, is_wide
        take_parameters(given, self.parameters)

    cdef object draw(self, object bits, object size, double small, double weight):
        """The next number of a generator, or a small draw of a size; None where somebody else has
        to make it."""
        cdef word position
        cdef double number
        if size is not None:
            if self.formula is not None:
                return None
            return few_drawn(
                bits, self.kind, size, small, weight, self.given, self.start, self.scale, self.whole
            )
        if self.is_wide and current_device() is None:
            return None
        if self.formula is not None:
            return self.formula.drawn(bits, self.parameters, self.start, self.scale)
        position = bits._position
        bits._position = position + 1
        number = clfuse_one_drawn(
            self.kind, 0, <long long><word>bits._key, <long long>position, self.parameters
        )
        number = number * self.scale + self.start
        return <long long>number if self.whole else number


cdef enum:
    MOST_KNOWN_DRAWS = 256


cdef class KnownDraws:
    """The draws of one number that a function has made.

    Attributes
    ----------
    look_up : callable, finds the `KnownDraw` of arguments, or None
    count : int, of its parameters
    small, weight : double, as of `few_drawn`
    known : dict, arguments -> that
    """

    cdef object look_up
    cdef dict known
    cdef Py_ssize_t count
    cdef double small, weight

    def __init__(self, look_up, Py_ssize_t count, double small, double weight):
        self.look_up, self.known, self.count = look_up, {}, count
        self.small, self.weight = small, weight

    cdef object draw(self, object holder, tuple args, Py_ssize_t first, dict named):
        """One number, or a few; None where `plain` has to draw."""
        cdef int types = 0, bit = 1
        cdef Py_ssize_t positional
        cdef KnownDraw found
        if tracers is None or tracers[0] or holder._numpy is not None:
            return None
        key = args[first:] if first else args
        size = None
        if named:
            if "size" in named:
                named = dict(named)
                size = named.pop("size")
            key += tuple(named.items())
        elif len(key) > self.count:
            size = key[self.count]
            key = key[:self.count] if len(key) == self.count + 1 else key
        positional = len(key) - len(named)
        for value in key:
            if positional <= 0:
                value = (<tuple>value)[1]
            positional -= 1
            if type(value) is int:
                types |= bit
            elif type(value) is not float or (not <double>value and signbit(<double>value)):
                return None
            bit <<= 1
        answer = self.known.get(key)
        if answer is None:
            if bit > 1 << 8:
                return None
            answer = self.look_up(key[:len(key) - len(named)], named)
            if answer is None:
                return None
            if len(self.known) >= MOST_KNOWN_DRAWS:
                self.known.clear()
            (<KnownDraw>answer).types = types
            self.known[key] = answer
        found = <KnownDraw>answer
        if found.types != types:
            return None
        return found.draw(holder._source, size, self.small, self.weight)


def drawing_known(
    plain, look_up, Py_ssize_t count, double small, double weight, list holders, config
):
    """A function of random numbers, of so many parameters, before `plain`: one number, or a few,
    with the same parameters as before are drawn here. `holders` and `config` are as for
    `drawing`."""
    cdef KnownDraws known = KnownDraws(look_up, count, small, weight)

    def method(*args, **kwargs):
        if args:
            answer = known.draw(args[0], args, 1, kwargs)
            if answer is not None:
                return answer
        return plain(*args, **kwargs)

    def function(*args, **kwargs):
        if not config.exact_random:
            answer = known.draw(holders[0], args, 0, kwargs)
            if answer is not None:
                return answer
        return plain(*args, **kwargs)

    return method if holders is None else function
