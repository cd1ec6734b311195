"""Small draws of several numbers together: each element has parameters of its own, or depends on
the one before."""


cdef enum:
    MOST_OUTCOMES = 128


def draw_each(int kind, object out, Py_ssize_t count, word key, word position, tuple given):
    """Fill `out` with the `count` numbers of the draw at `position`, of float64, that are drawn
    until one is accepted; each parameter is a float, or an array of float64 of so many elements, in
    C order."""
    cdef double parameters[MOST_PARAMETERS]
    cdef double *arrays[MOST_PARAMETERS]
    cdef double *memory = <double *>memory_of(out, count * 8)
    cdef Py_ssize_t place, axis = 0, known = len(given)
    if kind == CF_GAMMA32 or known > MOST_PARAMETERS:
        raise ValueError("of float64, with few parameters")
    for value in given:
        arrays[axis] = NULL
        if type(value) is NUMPY:
            arrays[axis] = <double *>memory_of(value, count * 8)
        else:
            parameters[axis] = value
        axis += 1
    for place in range(count):
        for axis in range(known):
            if arrays[axis]:
                parameters[axis] = arrays[axis][place]
        memory[place] = clfuse_one_drawn(kind, place, <long long>key, <long long>position, parameters)


def few_outcomes(generator, long long trials, object chances):
    """How often each of a few outcomes comes in so many trials, as an array of ours; None where
    something else has to draw it, or to say what is wrong. The chances are float64 in C order."""
    cdef Py_ssize_t count = <Py_ssize_t>array_size(<PyObject *>chances), room = 1, groups, group, at
    cdef double *given
    cdef double sums[2 * MOST_OUTCOMES]
    cdef long long numbers[2 * MOST_OUTCOMES]
    cdef double parameters[2]
    cdef double total = 0, first, share
    cdef long long drawn
    cdef word key, position
    if not 0 < count <= MOST_OUTCOMES:
        return None
    given = <double *>memory_of(chances, count * 8)
    while room < count:
        room *= 2
    # A tree: the chances are its leaves, from `room` on; 1 is its root.
    for at in range(room):
        sums[room + at] = given[at] if at < count else 0.0
        if not 0.0 <= sums[room + at] <= 1.0:
            return None
        if at < count - 1:
            total += given[at]
    if total > 1.0:
        return None
    sums[room + count - 1] = 1.0 - total
    for at in range(room - 1, 0, -1):
        sums[at] = sums[2 * at] + sums[2 * at + 1]
    device = device_of_few(count, MOST_OUTCOMES, 1.0)
    if device is None or not device.fp64:
        return None
    numbers[1] = trials
    groups = 1
    while groups < room:
        key, position = generator._key, advance(generator, 1)
        for group in range(groups):
            at = groups + group
            first = sums[2 * at]
            share = min(first / (first + sums[2 * at + 1]), 1.0) if first > 0 else 0.0
            parameters[0] = <double>numbers[at]
            parameters[1] = 1.0 - share if share > 0.5 else share
            drawn = <long long>clfuse_one_drawn(
                CF_BINOMIAL64, group, <long long>key, <long long>position, parameters
            )
            numbers[2 * at] = numbers[at] - drawn if share > 0.5 else drawn
            numbers[2 * at + 1] = numbers[at] - numbers[2 * at]
        groups *= 2
    made_here = np_empty(count, INT64)
    for at in range(count):
        (<long long *>memory_of(made_here, count * 8))[at] = numbers[room + at]
    return made(made_here, None, device)
