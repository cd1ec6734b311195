"""NumPy's scalars that meet arrays of ours: a part of `compiled.pyx`.

``scalar * array`` is the scalar's operator's. That of NumPy's goes through its ufuncs to
``__array_ufunc__`` of the array, which takes 0.5 us, whatever comes then. Here the commonest classes
of scalars get operators that leave an array of ours, and that alone, to the array's own operator,
by the way that Python has for it: they answer `NotImplemented`. All else is NumPy's as before.
"""

cdef extern from *:
    """
    #define CLFUSE_YIELDING_CLASSES 5

    #define CLFUSE_MOST_LAZY_SCALARS 32

    static PyTypeObject *clfuse_yielded_to;
    static PyTypeObject *clfuse_lazy_scalars[CLFUSE_MOST_LAZY_SCALARS];
    static int clfuse_lazy_scalars_known;

    /* A class whose operators know what to do with scalars of NumPy's. */
    static inline int clfuse_is_yielded_to(PyTypeObject *kind) {
        int number;
        if (kind == clfuse_yielded_to)
            return 1;
        if (!(kind->tp_flags & Py_TPFLAGS_HEAPTYPE))
            return 0;  /* a scalar of NumPy's, a number of Python's */
        for (number = 0; number < clfuse_lazy_scalars_known; number++)
            if (kind == clfuse_lazy_scalars[number])
                return 1;
        return 0;
    }

    static void clfuse_yield_to_number(PyTypeObject *kind) {
        if (clfuse_lazy_scalars_known < CLFUSE_MOST_LAZY_SCALARS)
            clfuse_lazy_scalars[clfuse_lazy_scalars_known++] = kind;
    }

    /* The same function of another class has another table. */
    static struct clfuse_usual {
        PyTypeObject *kind;
        binaryfunc nb_add, nb_subtract, nb_multiply, nb_true_divide, nb_floor_divide, nb_remainder;
        richcmpfunc compare;
    } clfuse_usuals[CLFUSE_YIELDING_CLASSES];

    #define CLFUSE_YIELDING_OPERATOR(number, slot) \\
    static PyObject *clfuse_##slot##_##number(PyObject *left, PyObject *right) { \\
        if (clfuse_is_yielded_to(Py_TYPE(right))) \\
            Py_RETURN_NOTIMPLEMENTED; \\
        return clfuse_usuals[number].slot(left, right); \\
    }

    #define CLFUSE_YIELDING_CLASS(number) \\
    CLFUSE_YIELDING_OPERATOR(number, nb_add) \\
    CLFUSE_YIELDING_OPERATOR(number, nb_subtract) \\
    CLFUSE_YIELDING_OPERATOR(number, nb_multiply) \\
    CLFUSE_YIELDING_OPERATOR(number, nb_true_divide) \\
    CLFUSE_YIELDING_OPERATOR(number, nb_floor_divide) \\
    CLFUSE_YIELDING_OPERATOR(number, nb_remainder) \\
    static PyObject *clfuse_compare_##number(PyObject *left, PyObject *right, int which) { \\
        if (clfuse_is_yielded_to(Py_TYPE(right))) \\
            Py_RETURN_NOTIMPLEMENTED; \\
        return clfuse_usuals[number].compare(left, right, which); \\
    }

    CLFUSE_YIELDING_CLASS(0)
    CLFUSE_YIELDING_CLASS(1)
    CLFUSE_YIELDING_CLASS(2)
    CLFUSE_YIELDING_CLASS(3)
    CLFUSE_YIELDING_CLASS(4)

    #define CLFUSE_TABLE(number) { \\
        NULL, clfuse_nb_add_##number, clfuse_nb_subtract_##number, clfuse_nb_multiply_##number, \\
        clfuse_nb_true_divide_##number, clfuse_nb_floor_divide_##number, \\
        clfuse_nb_remainder_##number, clfuse_compare_##number}

    static const struct clfuse_usual clfuse_yielding[CLFUSE_YIELDING_CLASSES] = {
        CLFUSE_TABLE(0), CLFUSE_TABLE(1), CLFUSE_TABLE(2), CLFUSE_TABLE(3), CLFUSE_TABLE(4)};

    #define CLFUSE_TAKE(slot) \\
        if (kind->tp_as_number->slot != NULL) { \\
            usual->slot = kind->tp_as_number->slot; \\
            kind->tp_as_number->slot = ours->slot; \\
        }

    /* Let scalars of a class yield to arrays of ours; once in a process. */
    static void clfuse_let_yield(int number, PyTypeObject *kind, PyTypeObject *arrays) {
        struct clfuse_usual *usual = &clfuse_usuals[number];
        const struct clfuse_usual *ours = &clfuse_yielding[number];
        clfuse_yielded_to = arrays;
        if (usual->kind != NULL || kind->tp_as_number == NULL || kind->tp_richcompare == NULL)
            return;
        usual->kind = kind;
        CLFUSE_TAKE(nb_add)
        CLFUSE_TAKE(nb_subtract)
        CLFUSE_TAKE(nb_multiply)
        CLFUSE_TAKE(nb_true_divide)
        CLFUSE_TAKE(nb_floor_divide)
        CLFUSE_TAKE(nb_remainder)
        usual->compare = kind->tp_richcompare;
        kind->tp_richcompare = ours->compare;
        PyType_Modified(kind);
    }
    """
    enum:
        CLFUSE_YIELDING_CLASSES
    void clfuse_let_yield(int, PyTypeObject *, PyTypeObject *)
    void clfuse_yield_to_number(PyTypeObject *)


def let_yield(classes):
    """Let scalars of these classes of NumPy's leave arrays of ours to the arrays' operators."""
    cdef int number
    if len(classes) > CLFUSE_YIELDING_CLASSES:
        raise ValueError(f"{len(classes)} classes; there is room for {CLFUSE_YIELDING_CLASSES}")
    for number, kind in enumerate(classes):
        clfuse_let_yield(number, <PyTypeObject *>kind, <PyTypeObject *>ARRAY)
