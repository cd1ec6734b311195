"""Memory of operands that nobody will see again, for the results of operators: a part of
`compiled.pyx`.

In ``x * y + z`` the sum goes to the memory of the product, as in NumPy, which does the same with
arrays of its own. Else each step of an expression would go through a cache with one array more.

An operand is such a temporary if only the interpreter's stack refers to it. What refers to it once
may be a variable in C, too, of whoever calls an operator from there (a loop over objects, compiled
code). So the callers are looked at, up to the interpreter.
"""

cdef extern from *:
    """
    #if defined(__GLIBC__) && !defined(Py_GIL_DISABLED)
    #include <dlfcn.h>
    #include <execinfo.h>
    #include <string.h>

    enum { CALLERS_REACH = 16, CALLERS_KEPT = 64, CALLERS_BETWEEN = 3 };
    enum { CODE_ELSEWHERE, CODE_OURS, CODE_PYTHONS, CODE_INTERPRETER };

    static struct { void *address; int code; } clfuse_callers[CALLERS_KEPT];
    static unsigned clfuse_callers_count;

    /* Whose code a call returns to. To find it out takes long, so it is kept. */
    static int clfuse_code_at(void *address)
    {
        static void *ours, *pythons;
        const unsigned known =
            clfuse_callers_count < CALLERS_KEPT ? clfuse_callers_count : CALLERS_KEPT;
        unsigned place;
        int code = CODE_ELSEWHERE;
        Dl_info info;
        for (place = 0; place < known; place++)
            if (clfuse_callers[place].address == address) return clfuse_callers[place].code;
        if (!ours) {
            if (dladdr((void *)&clfuse_callers_count, &info)) ours = info.dli_fbase;
            if (dladdr((void *)&PyNumber_Add, &info)) pythons = info.dli_fbase;
        }
        if (dladdr((char *)address - 1, &info)) {
            if (info.dli_fbase == ours)
                code = CODE_OURS;
            else if (info.dli_fbase == pythons)
                code = info.dli_sname && !strcmp(info.dli_sname, "_PyEval_EvalFrameDefault")
                    ? CODE_INTERPRETER : CODE_PYTHONS;
        }
        place = clfuse_callers_count++ % CALLERS_KEPT;
        clfuse_callers[place].address = address;
        clfuse_callers[place].code = code;
        return code;
    }

    /* Whether an instruction of a Python program has called, through nothing but Python's functions
       for operators. */
    static int clfuse_is_of_program(void)
    {
        void *addresses[CALLERS_REACH];
        const int count = backtrace(addresses, CALLERS_REACH);
        int place, between = 0;
        for (place = 0; place < count; place++)
            switch (clfuse_code_at(addresses[place])) {
            case CODE_OURS:
                if (between) return 0;
                break;
            case CODE_PYTHONS:
                if (++between > CALLERS_BETWEEN) return 0;
                break;
            case CODE_INTERPRETER:
                return 1;
            default:
                return 0;
            }
        return 0;
    }

    #if PY_VERSION_HEX >= 0x030E0000
    #define clfuse_is_lone(object) PyUnstable_Object_IsUniqueReferencedTemporary(object)
    #else
    #define clfuse_is_lone(object) (Py_REFCNT(object) == 1)
    #endif
    #else
    #define clfuse_is_of_program() 0
    #define clfuse_is_lone(object) 0
    #endif
    """
    int clfuse_is_of_program() noexcept
    int clfuse_is_lone(PyObject *) noexcept

cdef double least_reused = 1 << 18  # bytes: smaller ones stay in a cache, and looking takes a us

cdef enum Spare:
    """Which operands of an operator may be temporaries, as their references say."""
    NOTHING_SPARE = 0
    OURS_SPARE = 1
    OTHER_SPARE = 2

cdef tuple OUT = ("out",)


def reuse_from(double nbytes):
    """Reuse the memory of temporaries of so many bytes and more; returns what it was before."""
    global least_reused
    before, least_reused = least_reused, nbytes
    return before


cdef inline int spare_among(object ours, object other) noexcept:
    return (OURS_SPARE if clfuse_is_lone(<PyObject *>ours) else NOTHING_SPARE) | (
        OTHER_SPARE if type(other) is ARRAY and clfuse_is_lone(<PyObject *>other) else NOTHING_SPARE
    )


cdef inline double nbytes_in(PyObject *array) noexcept:
    return array_size(array) * PyArray_ITEMSIZE(<PyArrayObject *>array)


cdef bint is_reusable(object handle, PyObject *array) except -1:
    """Whether an array of ours alone has this memory, of NumPy's array `array`, which has one name
    here; all in C order."""
    cdef PyObject *cell = peek(handle, h_cell)
    cdef int needed = IN_C_ORDER | WRITEABLE
    if nbytes_in(array) < least_reused:
        return False
    if PyArray_FLAGS(<PyArrayObject *>array) & needed != needed:
        return False
    if peek(handle, h_host) == array:
        return Py_REFCNT(array) == 2 and array_base(array) == NULL
    return (
        cell != NULL
        and Py_REFCNT(cell) == 1
        and peek(handle, h_owner) == NULL
        and peek(handle, h_view) == <PyObject *>None
        and look(buffer_on_host(handle), b_array) == array
        and is_owned(<object>cell, 1)
    )


cdef bint keeps_dtype(int number, PyObject *dtype):
    """Whether an operator of two arrays of a dtype, or of one with a number, gives the same one."""
    kind = (<object>dtype).kind
    if kind == "f":
        return number <= REMAINDER
    if kind == "c":
        return number <= DIVIDE
    if kind == "b":
        return AND <= number <= XOR
    return number != DIVIDE and number <= RIGHT_SHIFT


cdef inline bint fits_into(PyObject *other, PyObject *array) noexcept:
    """Whether an operation with another array of its dtype has this one's shape, and lies as it."""
    return (
        array_descr(other) == array_descr(array)
        and array_rank(other) <= array_rank(array)
        and PyArray_FLAGS(<PyArrayObject *>other) & IN_C_ORDER
        and stretched_size(other, array) == array_size(array)
    )


cdef object reused(int number, int spare, object ours, object other, object one, object two, bint is_second):
    """The operand that has the result of ``operator(one, two)`` now, or of these in the other order
    where the first `is_second`; `DEFER` where none may have it.

    `one` and `two` are what NumPy sees of `ours` and `other`; `two` may be an array of no axes."""
    cdef PyObject *operands[3]
    found = None
    if nbytes_in(<PyObject *>one) < least_reused and nbytes_in(<PyObject *>two) < least_reused:
        return DEFER
    if not keeps_dtype(number, array_descr(<PyObject *>one)):
        return DEFER
    if spare & OURS_SPARE and is_reusable(ours, <PyObject *>one):
        if fits_into(<PyObject *>two, <PyObject *>one):
            found = ours
    if found is None and spare & OTHER_SPARE and is_reusable(other, <PyObject *>two):
        if fits_into(<PyObject *>one, <PyObject *>two):
            found = other
    if found is None or not (mode[0] is not LOUD or is_users_line()) or not clfuse_is_of_program():
        return DEFER
    operands[0] = <PyObject *>(two if is_second else one)
    operands[1] = <PyObject *>(one if is_second else two)
    operands[2] = <PyObject *>(one if found is ours else two)
    PyObject_Vectorcall(ufuncs[number], operands, 2, <PyObject *>OUT)
    return found


cdef bint is_reused_alone(object ours, object one, object function):
    """Whether the result of a function of one operand, of its dtype, is in the operand's memory now."""
    cdef PyObject *operands[2]
    if not is_reusable(ours, <PyObject *>one) or (<object>array_descr(<PyObject *>one)).kind not in "fi":
        return False
    if not (mode[0] is not LOUD or is_users_line()) or not clfuse_is_of_program():
        return False
    operands[0] = operands[1] = <PyObject *>one
    PyObject_Vectorcall(function, operands, 1, <PyObject *>OUT)
    return True
