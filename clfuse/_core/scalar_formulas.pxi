"""Formulas of one number of each draw, computed step by step in doubles: what `functions.random` has
traced of its formulas of arrays."""

from libc.math cimport (
    atan, copysign, exp, expm1, fabs, floor, fmod, log, log1p, pow, sqrt, tan,
)

cdef enum:
    DO_ADD, DO_SUBTRACT, DO_MULTIPLY, DO_DIVIDE, DO_POWER, DO_FMOD, DO_COPYSIGN, DO_MAXIMUM
    DO_MINIMUM
    DO_LESS, DO_LESS_EQUAL, DO_GREATER, DO_GREATER_EQUAL, DO_EQUAL
    DO_ABSOLUTE, DO_ARCTAN, DO_CEIL, DO_EXP, DO_EXPM1, DO_FLOOR, DO_LOG, DO_LOG1P, DO_SQRT
    DO_TAN, DO_TRUNC
    DO_WHERE
    DO_OF_BITS  # of a kind (`MADE_OF_BITS`), of a draw
    DO_ACCEPTED  # of a kind (`DRAWN`), of a draw, with up to three parameters

SCALAR_STEPS = {
    "add": DO_ADD, "subtract": DO_SUBTRACT, "multiply": DO_MULTIPLY, "divide": DO_DIVIDE,
    "power": DO_POWER, "fmod": DO_FMOD, "copysign": DO_COPYSIGN, "maximum": DO_MAXIMUM,
    "minimum": DO_MINIMUM, "less": DO_LESS, "less_equal": DO_LESS_EQUAL, "greater": DO_GREATER,
    "greater_equal": DO_GREATER_EQUAL, "equal": DO_EQUAL, "absolute": DO_ABSOLUTE,
    "arctan": DO_ARCTAN, "ceil": DO_CEIL, "exp": DO_EXP, "expm1": DO_EXPM1, "floor": DO_FLOOR,
    "log": DO_LOG, "log1p": DO_LOG1P, "sqrt": DO_SQRT, "tan": DO_TAN, "trunc": DO_TRUNC,
    "where": DO_WHERE, "of bits": DO_OF_BITS, "accepted": DO_ACCEPTED,
}

cdef enum:
    MOST_STEPS = 64
    MOST_REGISTERS = 128
    STEP_FIELDS = 5

cdef struct scalar_step:
    int code
    int at[STEP_FIELDS]


@cython.cdivision(True)
cdef double one_step(scalar_step *step, const double *numbers, word key, word position) noexcept:
    cdef int code = step.code
    cdef double parameters[MOST_PARAMETERS]
    cdef double a, b, drawn
    cdef word bits
    if code == DO_OF_BITS:
        bits = philox_bits_cf_whole(0, <long long>key, <long long>(position + step.at[1]))
        drawn = 0
        clfuse_made_of(step.at[0], &bits, &drawn, 1)
        return drawn
    if code == DO_ACCEPTED:
        for place in range(MOST_PARAMETERS):
            parameters[place] = numbers[step.at[2 + place]]
        return clfuse_one_drawn(
            step.at[0], 0, <long long>key, <long long>(position + step.at[1]), parameters
        )
    a, b = numbers[step.at[0]], numbers[step.at[1]]
    if code == DO_WHERE:
        return b if a else numbers[step.at[2]]
    if code == DO_ADD:
        return a + b
    if code == DO_SUBTRACT:
        return a - b
    if code == DO_MULTIPLY:
        return a * b
    if code == DO_DIVIDE:
        return a / b
    if code == DO_POWER:
        return pow(a, b)
    if code == DO_FMOD:
        return fmod(a, b)
    if code == DO_COPYSIGN:
        return copysign(a, b)
    if code == DO_MAXIMUM:
        return a if a >= b or a != a else b
    if code == DO_MINIMUM:
        return a if a <= b or a != a else b
    if code == DO_LESS:
        return a < b
    if code == DO_LESS_EQUAL:
        return a <= b
    if code == DO_GREATER:
        return a > b
    if code == DO_GREATER_EQUAL:
        return a >= b
    if code == DO_EQUAL:
        return a == b
    if code == DO_ABSOLUTE:
        return fabs(a)
    if code == DO_ARCTAN:
        return atan(a)
    if code == DO_CEIL:
        return ceil(a)
    if code == DO_EXP:
        return exp(a)
    if code == DO_EXPM1:
        return expm1(a)
    if code == DO_FLOOR:
        return floor(a)
    if code == DO_LOG:
        return log(a)
    if code == DO_LOG1P:
        return log1p(a)
    if code == DO_SQRT:
        return sqrt(a)
    if code == DO_TAN:
        return tan(a)
    return floor(a) if a >= 0 else ceil(a)


cdef class ScalarFormula:
    """A formula of the numbers of a few draws and of parameters.

    Attributes
    ----------
    count : int, of steps
    known : int, of numbers that stand before what the steps make: parameters, then constants
    draws : word, how many it is of
    whole : bint, whether its number is a whole one
    """

    cdef scalar_step steps[MOST_STEPS]
    cdef double constants[MOST_REGISTERS]
    cdef int count, known, parameters
    cdef readonly word draws
    cdef bint whole

    def __init__(self, int parameters, list constants, list steps, word draws, bint whole):
        cdef int place = parameters, axis
        self.parameters, self.known = parameters, parameters + <int>len(constants)
        self.count, self.draws, self.whole = <int>len(steps), draws, whole
        if not 0 < self.count <= MOST_STEPS or self.known + self.count > MOST_REGISTERS:
            raise ValueError("a formula of too many steps")
        for value in constants:
            self.constants[place] = value
            place += 1
        for place in range(self.count):
            code, at = steps[place]
            self.steps[place].code = code
            for axis in range(STEP_FIELDS):
                self.steps[place].at[axis] = at[axis] if axis < len(at) else 0

    cdef double computed(self, word key, word position, const double *parameters) noexcept:
        cdef double numbers[MOST_REGISTERS]
        cdef int place
        memcpy(numbers, self.constants, self.known * sizeof(double))
        for place in range(self.parameters):
            numbers[place] = parameters[place]
        for place in range(self.count):
            numbers[self.known + place] = one_step(&self.steps[place], numbers, key, position)
        return numbers[self.known + self.count - 1]

    cdef object drawn(self, object bits, const double *parameters, double start, double scale):
        """The next number of a generator, scaled, from `start` on."""
        cdef word position = bits._position
        cdef double number
        bits._position = position + self.draws
        number = self.computed(bits._key, position, parameters)
        return self.as_python(number) if self.whole else start + scale * number

    cdef object as_python(self, double number):
        if not self.whole:
            return number
        return <long long>number if number < 9223372036854775807.0 else 9223372036854775807

    def number(self, word key, word position, tuple given):
        """The number of the draws from a position on, with parameters of Python's."""
        cdef double parameters[MOST_PARAMETERS]
        take_parameters(given, parameters)
        return self.as_python(self.computed(key, position, parameters))
