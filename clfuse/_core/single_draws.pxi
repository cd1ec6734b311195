"""Draws of one number or a few, as programs make them in loops: a part of `compiled.pyx`.

They are those of `functions.random`, which makes all others: the same positions of the generator,
and the same numbers.
"""

cdef extern from "math.h":
    const double INFINITY

cdef enum:
    UNSCALED  # no arguments but those that `plain` takes
    FROM_TO  # from a first to a second number
    AROUND  # around a first number, as much as the second one
    AS_LARGE  # the numbers times the only one


def advance(generator, word count):
    """The position of a generator's next draw; the one after it is `count` later. Nobody else has
    Python's lock meanwhile."""
    cdef word position = generator._position
    generator._position = position + count
    return position


def retreat(generator, word count, word position):
    """Undo `advance`, unless others came after it."""
    if <word>generator._position == position + count:
        generator._position = position


cdef object one_number(object bits, int kind):
    cdef word position = bits._position
    cdef word key = bits._key
    cdef word drawn = philox_bits_cf_whole(0, <long long>key, <long long>position)
    cdef double made = 0
    bits._position = position + 1
    clfuse_made_of(kind, &drawn, &made, 1)
    return made


cdef bint is_double(object value, double *found) except -1:
    """Whether it is one of Python's numbers that a double can hold, and which."""
    if type(value) is float:
        found[0] = <double>value
        return True
    if type(value) is not int:
        return False
    try:
        found[0] = <double>value
    except OverflowError:
        return False
    return True


cdef class Drawing:
    """How a function of random numbers is called.

    Attributes
    ----------
    kind : int, of the numbers, as in `MADE_OF_BITS`
    scaling : int, what two arguments mean
    log : NumPy's logarithm, minus which of them is drawn; None: they are
    takes_extents : bint, its arguments are the shape
    small, weight : double, as of `few`
    """

    cdef int kind, scaling
    cdef object log
    cdef bint takes_extents
    cdef double small, weight
    cdef tuple names

    def __init__(self, str name, int kind, double small, double weight, log):
        self.kind, self.small, self.weight, self.log = kind, small, weight, log
        self.takes_extents = name == "rand" or name == "randn"
        self.scaling, self.names = UNSCALED, ("size",)
        if name == "uniform":
            self.scaling, self.names = FROM_TO, ("low", "high", "size")
        elif name == "normal":
            self.scaling, self.names = AROUND, ("loc", "scale", "size")
        elif name == "exponential":
            self.scaling, self.names = AS_LARGE, ("scale", "size")

    cdef object draw(self, object holder, tuple args, Py_ssize_t first, dict named):
        """What it gives for these arguments, from the place `first` on, and by name; None where it
        is for somebody else."""
        cdef Py_ssize_t count = len(args) - first, place, used = 0
        cdef double start = 0, other = 1
        cdef bint is_scaled = False, is_named = bool(named)
        size = None
        if tracers is None or tracers[0] or holder._numpy is not None:
            return None
        if self.takes_extents:
            if is_named:
                return None
            if count:
                size = args[first:]
        elif count > len(self.names):
            return None
        else:
            for place in range(len(self.names)):
                name = self.names[place]
                if place < count:
                    if is_named and name in named:
                        return None
                    value = args[first + place]
                elif is_named and name in named:
                    used += 1
                    value = named[name]
                else:
                    continue
                if place == len(self.names) - 1:
                    size = value
                elif not is_double(
                    value, &other if place or self.scaling == AS_LARGE else &start
                ):
                    return None
                else:
                    is_scaled = True
            if is_named and used != len(named):
                return None
        if is_scaled and self.scaling == FROM_TO:
            other -= start
            if not 0 < other < INFINITY:
                return None
        elif is_scaled and not 0 < other < INFINITY:
            return None
        bits = holder._source
        if size is not None:
            return few(bits, self.kind, size, self.small, self.weight, start, other, self.log)
        drawn = one_number(bits, self.kind)
        if self.log is not None:
            drawn = 0.0 - <double>self.log(drawn)
        return start + other * <double>drawn if is_scaled else drawn


def drawing(plain, str name, int kind, double small, double weight, log, list holders, config):
    """A function `name` of numbers of that kind, before `plain`: one number is drawn here, and a
    few. It draws from the first of `holders`, unless `config` says that its stream is NumPy's; a
    method, without `holders`, from whose it is."""
    cdef Drawing how = Drawing(name, kind, small, weight, log)

    def method(*args, **kwargs):
        if args:
            answer = how.draw(args[0], args, 1, kwargs)
            if answer is not None:
                return answer
        return plain(*args, **kwargs)

    def function(*args, **kwargs):
        if not config.exact_random:
            answer = how.draw(holders[0], args, 0, kwargs)
            if answer is not None:
                return answer
        return plain(*args, **kwargs)

    return method if holders is None else function
