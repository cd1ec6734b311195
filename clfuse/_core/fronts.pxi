"""What stands before a function or a method of clfuse's own: a part of `compiled.pyx`.

Python calls a `Front` with its arguments as they lie ("vectorcall"): neither a tuple nor a
dictionary is made of them, also not for NumPy's function or for the plain one.
"""

cdef enum:
    MOST_ARGUMENTS = 16  # that are copied; no function of the tables has half as many

cdef extern from *:
    """
    static void clfuse_take_vectorcalls(PyTypeObject *kind, Py_ssize_t offset, int is_method) {
        kind->tp_vectorcall_offset = offset;
        kind->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        if (is_method)
            kind->tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
        PyType_Modified(kind);
    }
    """
    void clfuse_take_vectorcalls(PyTypeObject *, Py_ssize_t, bint)


cdef class Front:
    """A function that answers before `plain`, which is asked where that defers. What it needs for
    that is in the other attributes, each of which some kinds use."""

    cdef vectorcallfunc slot
    cdef object plain
    cdef object apply, method  # what is called instead of it
    cdef object first  # the name of an argument
    cdef int operands, most, cost
    cdef double weight
    cdef bint as_is, is_loop, numbers
    cdef frozenset names  # that are refused
    cdef frozenset scalars
    cdef dict known
    cdef dict __dict__
    cdef object __weakref__

    def __call__(self, *args, **named):
        return PyVectorcall_Call(self, args, named)

    def __get__(self, owner, kind):
        return self if owner is None else PyMethod_New(self, owner)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<function {getattr(self, '__qualname__', 'of clfuse')}>"


cdef Front front(object plain, vectorcallfunc slot):
    made_front = Front.__new__(Front)
    (<Front>made_front).plain = plain
    (<Front>made_front).slot = slot
    return made_front


cdef Py_ssize_t offset_of_slot(Front made_front) noexcept:
    return <char *>&made_front.slot - <char *><PyObject *>made_front


cdef Py_ssize_t slot_offset = offset_of_slot(front(None, NULL))
clfuse_take_vectorcalls(<PyTypeObject *>Front, slot_offset, True)


cdef inline object asked_plain(Front self, PyObject **args, size_t given, PyObject *names):
    return PyObject_Vectorcall(self.plain, args, given, names)


cdef inline PyObject **items_of(tuple held) noexcept:
    """Where the items of a tuple lie."""
    return (<PyTupleObject *><PyObject *>held).ob_item


cdef object with_names(list found, dict named):
    """The arguments of a call, those by name last."""
    return (*found, *named.values()) if named else tuple(found)
