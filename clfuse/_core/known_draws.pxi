"""Draws of one number whose parameters are known from an earlier call: what programs make in loops.
The functions are those of `functions.random`; the positions and the numbers are theirs.
"""

cdef enum:
    MADE_AHEAD = 64  # numbers that are made at once
    MOST_FAILURES = 3  # after so many times that few of them were of use, one is made


cdef class DrawsAhead:
    """Numbers of a kind that are made before they are asked for, at positions that a loop is
    thought to come to: a draw is a function of its position alone.

    Attributes
    ----------
    first, step : word, position of the first number, and from one to the next
    numbers : list
    last, distance : word, where the latest of the kind was drawn, and how far after the one before
    served, failures : int, how many numbers were of use, and how often in a row fewer than two
    """

    cdef word first, step, last, distance
    cdef list numbers
    cdef int served, failures
    cdef bint is_new

    def __init__(self):
        self.numbers, self.is_new, self.step = [], True, 1

    cdef object taken(self, word position):
        """The number of that position; None where there is none."""
        cdef word far = position - self.first
        cdef word place = far if self.step == 1 else far // self.step
        if place >= <word>len(self.numbers) or place * self.step != far:
            return None
        self.distance, self.last = position - self.last, position
        self.served += 1
        return self.numbers[place]

    def take(self, word position):
        """The number of that position; None where it is to be made."""
        return self.taken(position)

    def positions_wanted(self, word position):
        """How many numbers to make from a position on, and how far they are from each other: one
        where it may be the only one, or nothing repeats."""
        cdef word distance = position - self.last
        cdef bint repeats = distance == self.distance
        cdef bint follows = not self.is_new and 0 < distance < 2 * MADE_AHEAD
        if len(self.numbers) > 1:
            self.failures = self.failures + 1 if self.served < 2 else 0
        elif repeats:
            self.failures = 0
        self.is_new, self.last, self.served = False, position, 0
        if not follows:
            self.distance = 0
            return 1, 1
        step = distance if repeats or not self.distance else 1
        self.distance = distance
        return (1 if self.failures >= MOST_FAILURES else MADE_AHEAD), step

    def put(self, word position, word step, list numbers):
        """Keep what was made."""
        self.first, self.step, self.numbers = position, step, numbers


cdef class KnownDraw:
    """A draw of one number by a function whose parameters are known to be good.

    Attributes
    ----------
    kind : int, of what the compiled part draws, as in `DRAWN`; -1: of a formula
    parameters : of that
    given : tuple of these; the formula and its parameters, as `Philox4x32.ahead` has them
    draws : word, of how many draws the formula is
    start, scale : double, where numbers begin, and how much they are scaled
    whole, is_wide : bint, that they are whole, and that a device without float64 has none of them
    types : int, a bit for each parameter that is whole
    """

    cdef int kind, types
    cdef double parameters[MOST_PARAMETERS]
    cdef object given
    cdef word draws
    cdef double start, scale
    cdef bint whole, is_wide

    def __init__(
        self, int kind, given, word draws, double start, double scale, bint whole, bint is_wide
    ):
        self.kind, self.draws, self.start, self.scale = kind, draws, start, scale
        self.whole, self.is_wide = whole, is_wide
        self.given = given
        if kind >= 0:
            take_parameters(given, self.parameters)

    cdef object draw(self, object bits, object size, double small, double weight):
        """The next number of a generator, or a small draw of a size; None where somebody else has
        to make it."""
        cdef word position
        cdef DrawsAhead kept
        cdef double number
        if size is not None:
            if self.kind < 0:
                return None
            return few_drawn(
                bits, self.kind, size, small, weight, self.given, self.start, self.scale, self.whole
            )
        if self.is_wide and current_device() is None:
            return None
        position = bits._position
        if self.kind < 0:
            found = (<dict>bits.ahead).get(self.given)
            if found is None:
                return None
            kept = <DrawsAhead>found
            made = kept.taken(position)
            if made is None:
                return None
            bits._position = position + self.draws
            if self.scale == 1.0 and self.start == 0.0:
                return made
            return self.start + self.scale * <double>made
        bits._position = position + 1
        number = clfuse_one_drawn(
            self.kind, 0, <long long><word>bits._key, <long long>position, self.parameters
        )
        number = number * self.scale + self.start
        return int(number) if self.whole else number


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
    missed : the latest arguments for which there was none
    """

    cdef object look_up, missed
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
            answer = self.look_up(key[:len(key) - len(named)], named, key == self.missed)
            self.missed = key
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
