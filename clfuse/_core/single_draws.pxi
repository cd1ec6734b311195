"""Draws of one number at a time, as programs make them in loops: a part of `compiled.pyx`.

They are those of `functions.random`, which makes all others: the same positions of the generator,
and the same numbers.
"""

cdef extern from "math.h":
    const double INFINITY

cdef enum:
    UNSCALED  # no arguments but those that `plain` takes
    FROM_TO  # from a first to a second number
    AROUND  # around a first number, as much as the second one


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


cdef object single(object holder, int kind, int scaling, tuple args, Py_ssize_t first):
    """What a draw with these arguments, from the place `first` on, gives; None where it is for
    somebody else."""
    cdef Py_ssize_t count = len(args) - first
    cdef double start = 0, other = 1
    if tracers is None or tracers[0] or count > (0 if scaling == UNSCALED else 2):
        return None
    if holder._numpy is not None:
        return None
    bits = holder._source
    if not count:
        return one_number(bits, kind)
    if not is_double(args[first], &start) or (count > 1 and not is_double(args[first + 1], &other)):
        return None
    if scaling == FROM_TO:
        other -= start
        if not 0 < other < INFINITY:
            return None
    elif not other > 0:
        return None
    return start + other * <double>one_number(bits, kind)


def drawing(plain, str name, int kind, list holders, config):
    """A function `name` of numbers of that kind, before `plain`: one number is drawn here. It draws
    from the first of `holders`, unless `config` says that its stream is NumPy's; a method, without
    `holders`, from whose it is."""
    cdef int scaling = UNSCALED
    if name == "uniform":
        scaling = FROM_TO
    elif name == "normal":
        scaling = AROUND

    def method(*args, **kwargs):
        if not kwargs and args:
            answer = single(args[0], kind, scaling, args, 1)
            if answer is not None:
                return answer
        return plain(*args, **kwargs)

    def function(*args, **kwargs):
        if not kwargs and not config.exact_random:
            answer = single(holders[0], kind, scaling, args, 0)
            if answer is not None:
                return answer
        return plain(*args, **kwargs)

    return method if holders is None else function
