"""Arrays of ours made and forgotten: a part of `compiled.pyx`.

Programs that loop over rows make and forget one at every step. Python's way (`PyType_GenericAlloc`,
`subtype_dealloc`) looks at every class that the class derives from; here it is known which slots
there are, and some of the objects are kept for the next who asks.
"""

cdef extern from *:
    """
    #define CLFUSE_MOST_SPARE 64  /* more than a statement makes; 8 KiB */
    #define CLFUSE_MOST_SLOTS 16

    static PyTypeObject *clfuse_arrays;
    static destructor clfuse_usual_end;
    static PyObject *clfuse_spare[CLFUSE_MOST_SPARE];
    static int clfuse_spare_count;
    static Py_ssize_t clfuse_slots[CLFUSE_MOST_SLOTS];
    static int clfuse_slot_count;

    static PyObject *clfuse_new_array(PyTypeObject *kind) {
        if (clfuse_spare_count) {  /* they hold their class all the time */
            PyObject *made = clfuse_spare[--clfuse_spare_count];
            _Py_NewReference(made);
            PyObject_GC_Track(made);
            return made;
        }
        return PyType_GenericAlloc(kind, 0);
    }

    static void clfuse_end_array(PyObject *self) {
        PyTypeObject *kind = Py_TYPE(self);
        int number;
        if (kind != clfuse_arrays) {
            clfuse_usual_end(self);
            return;
        }
        PyObject_GC_UnTrack(self);
        if (*(PyObject **)((char *)self + kind->tp_weaklistoffset) != NULL)
            PyObject_ClearWeakRefs(self);
        for (number = 0; number < clfuse_slot_count; number++) {
            PyObject **slot = (PyObject **)((char *)self + clfuse_slots[number]);
            Py_CLEAR(*slot);
        }
        if (clfuse_spare_count < CLFUSE_MOST_SPARE) {
            clfuse_spare[clfuse_spare_count++] = self;
        } else {
            PyObject_GC_Del(self);
            Py_DECREF(kind);
        }
    }

    /* Whether instances consist of these slots and weak references alone, and have no finalizer. */
    static int clfuse_take_over(PyTypeObject *kind, Py_ssize_t *slots, int count) {
        Py_ssize_t nbytes = sizeof(PyObject) + (count + 1) * sizeof(PyObject *);
        if (kind->tp_basicsize != nbytes || kind->tp_itemsize || kind->tp_dictoffset ||
            kind->tp_weaklistoffset <= 0 || kind->tp_finalize || kind->tp_del ||
            count > CLFUSE_MOST_SLOTS)
            return 0;
        if (kind->tp_dealloc == clfuse_end_array)
            return 1;
        memcpy(clfuse_slots, slots, count * sizeof(Py_ssize_t));
        clfuse_slot_count = count;
        clfuse_arrays = kind;
        clfuse_usual_end = kind->tp_dealloc;
        kind->tp_dealloc = clfuse_end_array;
        return 1;
    }
    """
    object clfuse_new_array(PyTypeObject *)
    int clfuse_take_over(PyTypeObject *, Py_ssize_t *, int)


def keep_spare():
    """Take over how arrays of ours are made and forgotten; whether that could be done."""
    cdef Py_ssize_t slots[9]
    slots[0], slots[1], slots[2], slots[3] = h_cell, h_shape, h_dtype, h_view
    slots[4], slots[5], slots[6], slots[7], slots[8] = h_host, h_device, h_use, h_owner, h_seen
    return bool(clfuse_take_over(<PyTypeObject *>ARRAY, slots, 9))
