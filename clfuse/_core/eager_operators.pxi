"""Operators of arrays on the host, in the slots of their class: a part of `compiled.pyx`.

Python keeps functions of C for the operators of a class. Of a class that was written in Python
these look up the method of the name, ``__add__`` say, and call it; `put_into_slots` puts functions
of here into their places, which do what NumPy can do at once and call the method in every other
case. Who calls the method by its name gets the same.
"""

cdef enum:
    ADD
    SUBTRACT
    MULTIPLY
    DIVIDE
    FLOOR_DIVIDE
    REMAINDER
    AND
    OR
    XOR
    LEFT_SHIFT
    RIGHT_SHIFT
    POWER
    PRODUCT_OF_MATRICES
    OPERATORS

NAMES_OF_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift",
    "pow", "matmul",
)
"""Without underscores, as they are numbered here."""

cdef binaryfunc operators[OPERATORS]  # NumPy's
cdef list ufuncs  # of the operators
cdef double weights[OPERATORS]
cdef list loops_of  # and of their ufuncs
cdef list loops_of_comparisons
cdef double weight_of_comparison
cdef list forward, backward, changing  # the methods
cdef richcmpfunc usual_comparison  # the functions that Python had put there
cdef PyNumberMethods usual_numbers
cdef PyMappingMethods usual_indices
cdef double weight_of_negative, weight_of_absolute


cdef object in_turn(int number, object left, object right):
    """As Python's own function for a slot: the method of the left operand, or else of the right."""
    if type(left) is ARRAY:
        answer = forward[number](left, right)
        if answer is not NotImplemented or type(right) is ARRAY:
            return answer
    if type(right) is ARRAY:
        return backward[number](right, left)
    return NotImplemented


cdef inline object combined(int number, object left, object right):
    answer = DEFER
    if type(left) is ARRAY:
        if is_ours(left):
            answer = at_once(
                operators[number], None, weights[number], loops_of[number], True, left, right, False,
                number, spare_among(left, right)
            )
    elif is_ours(right):
        answer = at_once(
            operators[number], None, weights[number], loops_of[number], True, right, left, True,
            number, spare_among(right, left)
        )
    return in_turn(number, left, right) if answer is DEFER else answer


cdef object slot_add(object left, object right):
    return combined(ADD, left, right)


cdef object slot_subtract(object left, object right):
    return combined(SUBTRACT, left, right)


cdef object slot_multiply(object left, object right):
    return combined(MULTIPLY, left, right)


cdef object slot_divide(object left, object right):
    return combined(DIVIDE, left, right)


cdef object slot_floor_divide(object left, object right):
    return combined(FLOOR_DIVIDE, left, right)


cdef object slot_remainder(object left, object right):
    return combined(REMAINDER, left, right)


cdef object slot_and(object left, object right):
    return combined(AND, left, right)


cdef object slot_or(object left, object right):
    return combined(OR, left, right)


cdef object slot_xor(object left, object right):
    return combined(XOR, left, right)


cdef object slot_left_shift(object left, object right):
    return combined(LEFT_SHIFT, left, right)


cdef object slot_right_shift(object left, object right):
    return combined(RIGHT_SHIFT, left, right)


cdef object slot_product(object left, object right):
    answer = product_at_once(left, right)
    return in_turn(PRODUCT_OF_MATRICES, left, right) if answer is DEFER else answer


cdef object to_the_power(object left, object right):
    return numpys.nb_power(left, right, None)


cdef object slot_power(object left, object right, object modulo):
    cdef double weight
    answer = DEFER
    if modulo is None:
        weight = 1 if type(right) is int and right == 2 else weights[POWER]
        if type(left) is ARRAY:
            if is_ours(left):
                if type(right) is int and right == 2:
                    answer = at_once_alone(
                        NULL, numpy_square, weight, loops_of_square, left,
                        clfuse_is_lone(<PyObject *>left),
                    )
                else:
                    answer = at_once(
                        to_the_power, None, weight, None, False, left, right, False, POWER,
                        NOTHING_SPARE,
                    )
        elif is_ours(right):
            answer = at_once(
                to_the_power, None, weight, None, False, right, left, True, POWER, NOTHING_SPARE
            )
        if answer is DEFER:
            answer = in_turn(POWER, left, right)
        return answer
    return forward[POWER](left, right, modulo) if type(left) is ARRAY else NotImplemented


cdef object slot_negative(object array):
    answer = DEFER
    if is_ours(array):
        answer = at_once_alone(
            numpys.nb_negative, numpy_negative, weight_of_negative, loops_of_negative, array,
            clfuse_is_lone(<PyObject *>array),
        )
    return usual_numbers.nb_negative(array) if answer is DEFER else answer


cdef object slot_absolute(object array):
    answer = DEFER
    if is_ours(array):
        answer = at_once_alone(
            numpys.nb_absolute, numpy_absolute, weight_of_absolute, loops_of_absolute, array,
            clfuse_is_lone(<PyObject *>array),
        )
    return usual_numbers.nb_absolute(array) if answer is DEFER else answer


cdef object numpy_negative, numpy_absolute, numpy_square
cdef UfuncLoops loops_of_negative, loops_of_absolute, loops_of_square


cdef binaryfunc comparison(int which) noexcept:
    """NumPy's, as Python numbers them."""
    if which == 0:
        return is_less
    if which == 1:
        return is_less_or_equal
    if which == 2:
        return is_equal
    if which == 3:
        return is_not_equal
    return is_greater if which == 4 else is_greater_or_equal


cdef object slot_compare(object left, object right, int which):
    answer = DEFER
    if is_ours(left):
        answer = at_once(
            comparison(which), None, weight_of_comparison, loops_of_comparisons[which], True, left,
            right, False, 0, NOTHING_SPARE
        )
    return usual_comparison(left, right, which) if answer is DEFER else answer


cdef object is_less(object left, object right):
    return numpys_comparison(left, right, 0)


cdef object is_less_or_equal(object left, object right):
    return numpys_comparison(left, right, 1)


cdef object is_equal(object left, object right):
    return numpys_comparison(left, right, 2)


cdef object is_not_equal(object left, object right):
    return numpys_comparison(left, right, 3)


cdef object is_greater(object left, object right):
    return numpys_comparison(left, right, 4)


cdef object is_greater_or_equal(object left, object right):
    return numpys_comparison(left, right, 5)


# -- in place --------------------------------------------------------------------------------------

cdef object changed(
    binaryfunc operator, object function, double weight, UfuncLoops own_loops, object self, object other
):
    """``self += other`` in place, or `DEFER`; `own_loops` are those of its ufunc, or None."""
    cdef double additions
    kind = type(other)
    if not is_ours(self) or not is_on_host(self) or not is_writeable(self):
        return DEFER
    if kind is list or kind is tuple:
        other = listed(other)
        if other is DEFER:
            return DEFER
    elif kind is ARRAY:
        if not is_ours(other) or not is_on_host(other):
            return DEFER
    elif not (kind is float or kind is int or kind in scalars):
        other = number_on_host(other)
        if other is DEFER:
            return DEFER
    additions = size_of(self) * weight
    use = IN_PARTS if additions <= few_additions else use_here(self)
    if not is_for_now(use, additions):
        return DEFER
    array = written(self)
    if array is None:
        return DEFER
    right = here(other) if kind is ARRAY else other
    if own_loops is not None and additions <= MOST_LOOPED:
        if is_changed_by_loop(own_loops, <PyObject *>array, right):
            return self
    if mode[0] is not LOUD or is_users_line():
        asked(operator, function, array, right)
        return self
    before = array.copy()
    value = attempted(operator, function, array, right, None, None)
    if type(value) is FloatingPointError:
        array[...] = before
        with warning_of(name_in(value)):
            asked(operator, function, array, right)
    return self


cdef double size_of(object handle) except -1:
    """The number of its elements."""
    cdef PyObject *array = peek(handle, h_host)
    cdef double size = 1
    if array == NULL:
        array = peek(handle, h_seen)
    if array != NULL:
        return array_size(array)
    for extent in <tuple>get(handle, h_shape):
        size *= <double>extent
    return size


def in_place(plain, apply, double weight):
    """``self += other``, where the array lies on the host, before `plain`."""

    def method(self, other):
        with turn_to_write:
            answer = changed(NULL, apply, weight, None, self, other)
        return plain(self, other) if answer is DEFER else answer

    return method


cdef object changed_by(int number, binaryfunc operator, object self, object other):
    if clfuse_has_company():
        with turn_to_write:
            answer = changed(operator, None, weights[number], loops_of[number], self, other)
    else:
        answer = changed(operator, None, weights[number], loops_of[number], self, other)
    return changing[number](self, other) if answer is DEFER else answer


cdef object slot_add_in_place(object self, object other):
    return changed_by(ADD, numpys.nb_inplace_add, self, other)


cdef object slot_subtract_in_place(object self, object other):
    return changed_by(SUBTRACT, numpys.nb_inplace_subtract, self, other)


cdef object slot_multiply_in_place(object self, object other):
    return changed_by(MULTIPLY, numpys.nb_inplace_multiply, self, other)


cdef object slot_divide_in_place(object self, object other):
    return changed_by(DIVIDE, numpys.nb_inplace_true_divide, self, other)


cdef object slot_floor_divide_in_place(object self, object other):
    return changed_by(FLOOR_DIVIDE, numpys.nb_inplace_floor_divide, self, other)


cdef object slot_remainder_in_place(object self, object other):
    return changed_by(REMAINDER, numpys.nb_inplace_remainder, self, other)


cdef object slot_and_in_place(object self, object other):
    return changed_by(AND, numpys.nb_inplace_and, self, other)


cdef object slot_or_in_place(object self, object other):
    return changed_by(OR, numpys.nb_inplace_or, self, other)


cdef object slot_xor_in_place(object self, object other):
    return changed_by(XOR, numpys.nb_inplace_xor, self, other)


# -- indices ---------------------------------------------------------------------------------------

cdef object slot_subscript(object self, object index):
    answer = part_of(self, index)
    return usual_indices.mp_subscript(self, index) if answer is DEFER else answer


cdef int slot_set(object self, object index, PyObject *value) except -1:
    cdef bint is_done = False
    if value != NULL:
        if clfuse_has_company():
            with turn_to_write:
                is_done = is_set(self, index, <object>value)
        else:
            is_done = is_set(self, index, <object>value)
        if is_done:
            return 0
    return usual_indices.mp_ass_subscript(self, index, value)


cdef Py_ssize_t slot_length(object self) except -1:
    cdef PyObject *shape = peek(self, h_shape)
    if shape == NULL or not <tuple>shape:
        return usual_indices.mp_length(self)
    return (<tuple>shape)[0]


def put_into_slots(names):
    """Let the class of arrays have the functions above for its operators: the last thing that is
    done to it."""
    global forward, backward, changing, weight_of_comparison, usual_numbers
    global usual_comparison, usual_indices, weight_of_negative, weight_of_absolute
    global numpy_negative, numpy_absolute, numpy_square, ufuncs, loops_of, loops_of_comparisons
    global loops_of_negative, loops_of_absolute, loops_of_square
    cdef Class *kind = <Class *><PyObject *>ARRAY
    cdef PyNumberMethods *numbers = kind.tp_as_number
    cdef int number
    forward = [getattr(ARRAY, f"__{name}__") for name in NAMES_OF_OPERATORS]
    backward = [getattr(ARRAY, f"__r{name}__") for name in NAMES_OF_OPERATORS]
    changing = [getattr(ARRAY, f"__i{name}__") for name in NAMES_OF_OPERATORS]
    for number, name in enumerate(NAMES_OF_OPERATORS):
        weights[number] = names["weights"][name]
    weight_of_comparison = names["weights"]["lt"]
    weight_of_negative, weight_of_absolute = names["weights"]["neg"], names["weights"]["abs"]
    numpy_negative, numpy_absolute = names["negative"], names["absolute"]
    numpy_square = names["square"]
    ufuncs = [names["ufuncs"][name] for name in NAMES_OF_OPERATORS]
    loops_of = [UfuncLoops(ufunc) for ufunc in ufuncs]
    loops_of_comparisons = [UfuncLoops(ufunc) for ufunc in names["comparisons"]]
    loops_of_negative, loops_of_absolute = UfuncLoops(numpy_negative), UfuncLoops(numpy_absolute)
    loops_of_square = UfuncLoops(numpy_square)
    operators[ADD], operators[SUBTRACT] = numpys.nb_add, numpys.nb_subtract
    operators[MULTIPLY], operators[DIVIDE] = numpys.nb_multiply, numpys.nb_true_divide
    operators[FLOOR_DIVIDE], operators[REMAINDER] = numpys.nb_floor_divide, numpys.nb_remainder
    operators[AND], operators[OR], operators[XOR] = numpys.nb_and, numpys.nb_or, numpys.nb_xor
    operators[LEFT_SHIFT], operators[RIGHT_SHIFT] = numpys.nb_lshift, numpys.nb_rshift
    usual_comparison, usual_numbers = kind.tp_richcompare, numbers[0]
    usual_indices = kind.tp_as_mapping[0]
    numbers.nb_add, numbers.nb_subtract = slot_add, slot_subtract
    numbers.nb_multiply, numbers.nb_true_divide = slot_multiply, slot_divide
    numbers.nb_floor_divide, numbers.nb_remainder = slot_floor_divide, slot_remainder
    numbers.nb_and, numbers.nb_or, numbers.nb_xor = slot_and, slot_or, slot_xor
    numbers.nb_lshift, numbers.nb_rshift = slot_left_shift, slot_right_shift
    numbers.nb_power, numbers.nb_matrix_multiply = slot_power, slot_product
    numbers.nb_negative, numbers.nb_absolute = slot_negative, slot_absolute
    numbers.nb_inplace_add, numbers.nb_inplace_subtract = slot_add_in_place, slot_subtract_in_place
    numbers.nb_inplace_multiply = slot_multiply_in_place
    numbers.nb_inplace_true_divide = slot_divide_in_place
    numbers.nb_inplace_floor_divide = slot_floor_divide_in_place
    numbers.nb_inplace_remainder = slot_remainder_in_place
    numbers.nb_inplace_and, numbers.nb_inplace_or = slot_and_in_place, slot_or_in_place
    numbers.nb_inplace_xor = slot_xor_in_place
    kind.tp_as_mapping.mp_subscript = slot_subscript
    kind.tp_as_mapping.mp_ass_subscript = slot_set
    kind.tp_as_mapping.mp_length = slot_length
    kind.tp_as_sequence.sq_length = slot_length
    kind.tp_richcompare = slot_compare
    PyType_Modified(<PyTypeObject *>ARRAY)
