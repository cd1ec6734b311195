"""Our class of arrays as an argument of NumPy's own: a part of `compiled.pyx`.

``x.view(np.ndarray)`` of an array that is NumPy's (of text, a masked one, a package's) gets our class,
which says nothing to NumPy: it would take it for a dtype, that of objects. Here the method gets
NumPy's class for ours. It stays the object that it was; one comparison an argument is added.
"""

cdef extern from *:
    """
    #define CLFUSE_MOST_VIEW_ARGUMENTS 4

    static PyObject *clfuse_our_class, *clfuse_numpys_class;
    typedef PyObject *(*clfuse_method)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
    static clfuse_method clfuse_numpys_view;

    static PyObject *clfuse_view(
        PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names
    ) {
        Py_ssize_t all = count + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
        PyObject *given[CLFUSE_MOST_VIEW_ARGUMENTS];
        int is_ours = 0;
        if (all > CLFUSE_MOST_VIEW_ARGUMENTS)
            return clfuse_numpys_view(self, args, count, names);
        for (Py_ssize_t number = 0; number < all; number++) {
            given[number] = args[number];
            if (args[number] == clfuse_our_class) {
                given[number] = clfuse_numpys_class;
                is_ours = 1;
            }
        }
        return clfuse_numpys_view(self, is_ours ? given : args, count, names);
    }

    /* 0: done, or NumPy's method is called in a way not known here and stays as it is; -1: error. */
    static int clfuse_let_view(PyObject *numpys, PyObject *ours) {
        PyObject *method = PyObject_GetAttrString(numpys, "view");
        if (method == NULL)
            return -1;
        if (Py_IS_TYPE(method, &PyMethodDescr_Type)) {
            PyMethodDef *about = ((PyMethodDescrObject *)method)->d_method;
            if (about->ml_flags == (METH_FASTCALL | METH_KEYWORDS)
                    && about->ml_meth != (PyCFunction)(void (*)(void))clfuse_view) {
                clfuse_numpys_view = (clfuse_method)(void (*)(void))about->ml_meth;
                clfuse_our_class = Py_NewRef(ours);
                clfuse_numpys_class = Py_NewRef(numpys);
                about->ml_meth = (PyCFunction)(void (*)(void))clfuse_view;
            }
        }
        Py_DECREF(method);
        return 0;
    }
    """
    int clfuse_let_view(object, object) except -1


def let_view():
    """Let ``x.view(ndarray)`` of NumPy's arrays take our class for NumPy's."""
    clfuse_let_view(NUMPY, ARRAY)
