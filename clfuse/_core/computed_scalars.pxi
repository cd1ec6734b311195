"""Arithmetic with lazy scalars that were computed: a part of `compiled.pyx`.

A lazy scalar whose value is there is a number from then on: with other numbers NumPy calculates at
once, and answers with a scalar of its own. What waits to be computed is recorded as ever, and so is
all that meets an array.
"""

cdef list forward_of_scalars, backward_of_scalars  # the methods, as operators are numbered
cdef PyNumberMethods usual_arithmetic  # the functions that Python had put there
cdef richcmpfunc usual_comparison_of_scalars

cdef extern from "Python.h":
    object PyNumber_Add(object, object)
    object PyNumber_Subtract(object, object)
    object PyNumber_Multiply(object, object)
    object PyNumber_TrueDivide(object, object)
    object PyNumber_FloorDivide(object, object)
    object PyNumber_Remainder(object, object)
    object PyNumber_Power(object, object, object)
    object PyNumber_Negative(object)
    object PyNumber_Absolute(object)
    object PyObject_RichCompare(object, object, int)


cdef inline object known_number(object value):
    """A number of Python's or NumPy's: `value`, or what it is as a lazy scalar that was computed;
    else `DEFER`."""
    kind = type(value)
    if kind in lazy_scalars:
        return computed_number(value)
    return value if kind in scalars else DEFER


cdef inline bint are_left_to_numpy() except -1:
    """Whether numbers are calculated at the call: NumPy may warn as it likes, nobody asked for
    kernels alone, and scalars need not be of our namespace."""
    return most_additions >= 1 and not standard[0] and is_left_to_numpy()


cdef object recorded_in_turn(int number, object left, object right):
    """As Python's own function for a slot: the method of the left operand, or else of the right."""
    if type(left) in lazy_scalars:
        answer = forward_of_scalars[number](left, right)
        if answer is not NotImplemented or type(right) is type(left):
            return answer
    if type(right) in lazy_scalars:
        return backward_of_scalars[number](right, left)
    return NotImplemented


cdef object before_array(
    binaryfunc operator, object function, double weight, UfuncLoops own_loops, bint of_one_dtype, object left,
    object right, bint is_second=True
):
    """``operator(left, right)`` of a lazy scalar that was computed and an array that lies on the
    host, or `DEFER`; in the other order where the array is not `is_second`."""
    if not is_ours(right) or not is_on_host(right):
        return DEFER
    one = computed_number(left)
    if one is DEFER:
        return DEFER
    return at_once(
        operator, function, weight, own_loops, of_one_dtype, right, one, is_second, 0, NOTHING_SPARE
    )


cdef object of_numbers(binaryfunc operator, int number, object left, object right):
    """``operator(left, right)``, one of them a lazy scalar."""
    if type(right) is ARRAY:
        answer = before_array(
            operators[number], None, weights[number], loops_of[number], True, left, right
        )
        if answer is not DEFER:
            return answer
    if are_left_to_numpy():
        one = known_number(left)
        if one is not DEFER:
            two = known_number(right)
            if two is not DEFER:
                return operator(one, two)
    return recorded_in_turn(number, left, right)


cdef object number_add(object left, object right):
    return of_numbers(PyNumber_Add, ADD, left, right)


cdef object number_subtract(object left, object right):
    return of_numbers(PyNumber_Subtract, SUBTRACT, left, right)


cdef object number_multiply(object left, object right):
    return of_numbers(PyNumber_Multiply, MULTIPLY, left, right)


cdef object number_divide(object left, object right):
    return of_numbers(PyNumber_TrueDivide, DIVIDE, left, right)


cdef object number_floor_divide(object left, object right):
    return of_numbers(PyNumber_FloorDivide, FLOOR_DIVIDE, left, right)


cdef object number_remainder(object left, object right):
    return of_numbers(PyNumber_Remainder, REMAINDER, left, right)


cdef object number_power(object left, object right, object modulo):
    if modulo is None and type(right) is ARRAY:
        answer = before_array(to_the_power, None, weights[POWER], None, False, left, right)
        if answer is not DEFER:
            return answer
    if modulo is None and are_left_to_numpy():
        one = known_number(left)
        if one is not DEFER:
            two = known_number(right)
            if two is not DEFER:
                return PyNumber_Power(one, two, None)
    if modulo is None:
        return recorded_in_turn(POWER, left, right)
    return forward_of_scalars[POWER](left, right, modulo) if (
        type(left) in lazy_scalars
    ) else NotImplemented


cdef object number_negative(object scalar):
    value = computed_number(scalar) if are_left_to_numpy() else DEFER
    return usual_arithmetic.nb_negative(scalar) if value is DEFER else PyNumber_Negative(value)


cdef object number_absolute(object scalar):
    value = computed_number(scalar) if are_left_to_numpy() else DEFER
    return usual_arithmetic.nb_absolute(scalar) if value is DEFER else PyNumber_Absolute(value)


cdef object number_compare(object left, object right, int which):
    cdef int which_of_array
    if type(right) is ARRAY:
        # NumPy's function wants the array first: < 0 for > 4, <= 1 for >= 5, == 2, != 3.
        which_of_array = which if 2 <= which <= 3 else (which + 4) % 8
        answer = before_array(
            comparison(which_of_array), None, weight_of_comparison,
            loops_of_comparisons[which_of_array], True, left, right, False
        )
        if answer is not DEFER:
            return answer
    if are_left_to_numpy():
        one = known_number(left)
        if one is not DEFER:
            two = known_number(right)
            if two is not DEFER:
                return PyObject_RichCompare(one, two, which)
    return usual_comparison_of_scalars(left, right, which)


cdef object of_known_numbers(object function, object one, object two):
    """``function(one, two)``, or of `one` alone, of numbers that are there; else `DEFER`."""
    if not are_left_to_numpy():
        return DEFER
    one = known_number(one)
    if one is DEFER:
        return DEFER
    if two is None:
        return function(one)
    two = known_number(two)
    return DEFER if two is DEFER else function(one, two)


def of_scalar(plain, function, double weight):
    """``function(self, other)``, or of `self` alone, a lazy scalar, before `plain`."""

    def method(self, *others):
        answer = DEFER
        other = others[0] if others else None
        if type(other) is ARRAY:
            answer = before_array(NULL, function, weight, None, False, self, other)
        elif not others or other is not None:
            answer = of_known_numbers(function, self, other)
        return plain(self, *others) if answer is DEFER else answer

    return method


def put_into_slots_of_numbers(base, classes):
    """Let the classes of lazy scalars, derived from `base`, have the functions above: the last
    thing that is done to them."""
    global usual_arithmetic, usual_comparison_of_scalars, forward_of_scalars, backward_of_scalars
    cdef PyNumberMethods *numbers
    cdef Class *kind
    forward_of_scalars = [getattr(base, f"__{name}__", None) for name in NAMES_OF_OPERATORS]
    backward_of_scalars = [getattr(base, f"__r{name}__", None) for name in NAMES_OF_OPERATORS]
    for each in classes:
        kind = <Class *><PyObject *>each
        numbers = kind.tp_as_number
        usual_arithmetic = numbers[0]  # Python's own, the same of all of them
        usual_comparison_of_scalars = kind.tp_richcompare
        numbers.nb_add, numbers.nb_subtract = number_add, number_subtract
        numbers.nb_multiply, numbers.nb_true_divide = number_multiply, number_divide
        numbers.nb_floor_divide, numbers.nb_remainder = number_floor_divide, number_remainder
        numbers.nb_power = number_power
        numbers.nb_negative, numbers.nb_absolute = number_negative, number_absolute
        kind.tp_richcompare = number_compare
        PyType_Modified(<PyTypeObject *>each)
        clfuse_yield_to_number(<PyTypeObject *>each)
