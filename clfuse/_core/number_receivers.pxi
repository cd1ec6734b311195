"""What is written in C and knows numbers by their memory: a part of `compiled.pyx`.

``timedelta(days=x)`` and ``time.sleep(x)`` ask whether the class of `x` derives from Python's float,
and read the number where an object of that class has it. A lazy scalar has none there. Classes that
ask so get a function of here that makes their objects, and functions that ask so one that is called
in their place: these put NumPy's scalars where lazy ones were given, and call what was there.
"""

cdef extern from *:
    """
    #define CLFUSE_MOST_RECEIVERS 16
    #define CLFUSE_DEEPEST_LIST 3

    /* What puts numbers in the place of lazy scalars: called with a tuple, a dict or one of them. */
    static PyObject *clfuse_numbers_of;

    static int clfuse_is_lazy(PyObject *value) {
        int number;
        if (!(Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE))
            return 0;
        for (number = 0; number < clfuse_lazy_scalars_known; number++)
            if (Py_TYPE(value) == clfuse_lazy_scalars[number])
                return 1;
        return 0;
    }

    static int clfuse_has_lazy(PyObject *value, int depth) {
        Py_ssize_t place;
        if (PyTuple_CheckExact(value) && depth) {
            for (place = 0; place < PyTuple_GET_SIZE(value); place++)
                if (clfuse_has_lazy(PyTuple_GET_ITEM(value, place), depth - 1))
                    return 1;
            return 0;
        }
        if (PyList_CheckExact(value) && depth) {
            for (place = 0; place < PyList_GET_SIZE(value); place++)
                if (clfuse_has_lazy(PyList_GET_ITEM(value, place), depth - 1))
                    return 1;
            return 0;
        }
        return clfuse_is_lazy(value);
    }

    static int clfuse_names_lazy(PyObject *named) {
        PyObject *key, *value;
        Py_ssize_t place = 0;
        if (named != NULL)
            while (PyDict_Next(named, &place, &key, &value))
                if (clfuse_has_lazy(value, CLFUSE_DEEPEST_LIST))
                    return 1;
        return 0;
    }

    /* -- classes -- */

    static struct {
        PyTypeObject *kind;
        newfunc make;
    } clfuse_makers[CLFUSE_MOST_RECEIVERS];
    static int clfuse_makers_known;

    static newfunc clfuse_usual_maker(PyTypeObject *kind) {
        PyObject *order = kind->tp_mro;
        Py_ssize_t place;
        int number;
        for (place = 0; order != NULL && place < PyTuple_GET_SIZE(order); place++)
            for (number = 0; number < clfuse_makers_known; number++)
                if ((PyObject *)clfuse_makers[number].kind == PyTuple_GET_ITEM(order, place))
                    return clfuse_makers[number].make;
        return NULL;
    }

    static PyObject *clfuse_make_of_numbers(PyTypeObject *kind, PyObject *args, PyObject *named) {
        newfunc make = clfuse_usual_maker(kind);
        PyObject *made = NULL;
        if (make == NULL) {
            PyErr_SetString(PyExc_SystemError, "no class that clfuse has opened");
            return NULL;
        }
        if (args == NULL)  /* from C, as NumPy's StringDType does it */
            return make(kind, args, named);
        if (!clfuse_has_lazy(args, CLFUSE_DEEPEST_LIST) && !clfuse_names_lazy(named))
            return make(kind, args, named);
        args = PyObject_CallFunctionObjArgs(clfuse_numbers_of, args, NULL);
        if (args == NULL)
            return NULL;
        if (named != NULL) {
            named = PyObject_CallFunctionObjArgs(clfuse_numbers_of, named, NULL);
            if (named == NULL) {
                Py_DECREF(args);
                return NULL;
            }
        }
        made = make(kind, args, named);
        Py_DECREF(args);
        Py_XDECREF(named);
        return made;
    }

    /* -- functions: each has functions of its own, which know its number -- */

    static struct {
        PyMethodDef *about;
        PyCFunction call;
    } clfuse_receivers[CLFUSE_MOST_RECEIVERS];
    static int clfuse_receivers_known;

    static PyObject *clfuse_receive_one(int number, PyObject *self, PyObject *value) {
        PyObject *answer;
        if (!clfuse_is_lazy(value))
            return clfuse_receivers[number].call(self, value);
        value = PyObject_CallFunctionObjArgs(clfuse_numbers_of, value, NULL);
        if (value == NULL)
            return NULL;
        answer = clfuse_receivers[number].call(self, value);
        Py_DECREF(value);
        return answer;
    }

    static PyObject *clfuse_receive_named(
        int number, PyObject *self, PyObject *args, PyObject *named) {
        PyCFunctionWithKeywords call =
            (PyCFunctionWithKeywords)(void (*)(void))clfuse_receivers[number].call;
        PyObject *answer;
        if (!clfuse_has_lazy(args, 1) && !clfuse_names_lazy(named))
            return call(self, args, named);
        args = PyObject_CallFunctionObjArgs(clfuse_numbers_of, args, NULL);
        if (args == NULL)
            return NULL;
        if (named != NULL) {
            named = PyObject_CallFunctionObjArgs(clfuse_numbers_of, named, NULL);
            if (named == NULL) {
                Py_DECREF(args);
                return NULL;
            }
        }
        answer = call(self, args, named);
        Py_DECREF(args);
        Py_XDECREF(named);
        return answer;
    }

    static PyObject *clfuse_receive_several(int number, PyObject *self, PyObject *args) {
        PyObject *answer;
        if (!clfuse_has_lazy(args, 1))
            return clfuse_receivers[number].call(self, args);
        args = PyObject_CallFunctionObjArgs(clfuse_numbers_of, args, NULL);
        if (args == NULL)
            return NULL;
        answer = clfuse_receivers[number].call(self, args);
        Py_DECREF(args);
        return answer;
    }

    #define CLFUSE_RECEIVER(number) \\
    static PyObject *clfuse_one_##number(PyObject *self, PyObject *value) { \\
        return clfuse_receive_one(number, self, value); \\
    } \\
    static PyObject *clfuse_several_##number(PyObject *self, PyObject *args) { \\
        return clfuse_receive_several(number, self, args); \\
    } \\
    static PyObject *clfuse_named_##number(PyObject *self, PyObject *args, PyObject *named) { \\
        return clfuse_receive_named(number, self, args, named); \\
    }

    CLFUSE_RECEIVER(0)
    CLFUSE_RECEIVER(1)
    CLFUSE_RECEIVER(2)
    CLFUSE_RECEIVER(3)
    CLFUSE_RECEIVER(4)
    CLFUSE_RECEIVER(5)
    CLFUSE_RECEIVER(6)
    CLFUSE_RECEIVER(7)
    CLFUSE_RECEIVER(8)
    CLFUSE_RECEIVER(9)
    CLFUSE_RECEIVER(10)
    CLFUSE_RECEIVER(11)

    #define CLFUSE_RECEIVER_ROW(number) \\
        {clfuse_one_##number, clfuse_several_##number, clfuse_named_##number}

    static const struct {
        PyCFunction one, several;
        PyCFunctionWithKeywords named;
    } clfuse_rows[] = {
        CLFUSE_RECEIVER_ROW(0), CLFUSE_RECEIVER_ROW(1), CLFUSE_RECEIVER_ROW(2), CLFUSE_RECEIVER_ROW(3), CLFUSE_RECEIVER_ROW(4), CLFUSE_RECEIVER_ROW(5),
        CLFUSE_RECEIVER_ROW(6), CLFUSE_RECEIVER_ROW(7), CLFUSE_RECEIVER_ROW(8), CLFUSE_RECEIVER_ROW(9), CLFUSE_RECEIVER_ROW(10), CLFUSE_RECEIVER_ROW(11),
    };

    #define CLFUSE_ROWS ((int)(sizeof(clfuse_rows) / sizeof(clfuse_rows[0])))

    /* The entry of a function of C's, of a method, or of a method of a class; NULL of others. */
    static PyMethodDef *clfuse_entry(PyObject *function) {
        if (PyCFunction_CheckExact(function))
            return ((PyCFunctionObject *)function)->m_ml;
        if (Py_TYPE(function) == &PyMethodDescr_Type ||
            Py_TYPE(function) == &PyClassMethodDescr_Type)
            return ((PyMethodDescrObject *)function)->d_method;
        return NULL;
    }

    /* Let a class or a function take lazy scalars, once in a process; 0 where it cannot. */
    static int clfuse_let_take_numbers(PyObject *receiver, PyObject *numbers_of) {
        PyMethodDef *about;
        PyCFunction ours = NULL;
        int number, flags;
        Py_INCREF(numbers_of);
        Py_XSETREF(clfuse_numbers_of, numbers_of);
        if (PyType_Check(receiver)) {
            PyTypeObject *kind = (PyTypeObject *)receiver;
            if (kind->tp_new == clfuse_make_of_numbers)
                return 1;
            if (clfuse_makers_known == CLFUSE_MOST_RECEIVERS || kind->tp_new == NULL)
                return 0;
            clfuse_makers[clfuse_makers_known].kind = kind;
            clfuse_makers[clfuse_makers_known++].make = kind->tp_new;
            Py_INCREF(kind);
            kind->tp_new = clfuse_make_of_numbers;
            PyType_Modified(kind);
            return 1;
        }
        about = clfuse_entry(receiver);
        if (about == NULL)
            return 0;
        number = clfuse_receivers_known;
        for (flags = 0; flags < number; flags++)
            if (clfuse_receivers[flags].about == about)
                return 1;
        if (number == CLFUSE_ROWS)
            return 0;
        flags = about->ml_flags & ~(METH_CLASS | METH_STATIC | METH_COEXIST);
        if (flags == METH_O)
            ours = clfuse_rows[number].one;
        else if (flags == METH_VARARGS)
            ours = clfuse_rows[number].several;
        else if (flags == (METH_VARARGS | METH_KEYWORDS))
            ours = (PyCFunction)(void (*)(void))clfuse_rows[number].named;
        if (ours == NULL)
            return 0;
        clfuse_receivers[number].about = about;
        clfuse_receivers[number].call = about->ml_meth;
        clfuse_receivers_known++;
        about->ml_meth = ours;
        return 1;
    }
    """
    bint clfuse_let_take_numbers(object, object)

cdef extern from *:
    """
    /* Put a method into a class that lets nobody set attributes, as those of Cython's do not. */
    static int clfuse_put_method(PyTypeObject *kind, PyObject *name, PyObject *method) {
    #if PY_VERSION_HEX >= 0x030C0000
        PyObject *methods = PyType_GetDict(kind);
    #else
        PyObject *methods = Py_XNewRef(kind->tp_dict);
    #endif
        int wrong;
        if (methods == NULL) {
            PyErr_SetString(PyExc_TypeError, "a class without methods");
            return -1;
        }
        wrong = PyDict_SetItem(methods, name, method);
        Py_DECREF(methods);
        PyType_Modified(kind);
        return wrong;
    }
    """
    int clfuse_put_method(PyTypeObject *, object, object) except -1


def let_take_numbers(receiver, numbers_of):
    """Let a class or function written in C, and that alone, take lazy scalars: it gets what
    `numbers_of` makes of its arguments. False where it is of a kind that is not known here."""
    return clfuse_let_take_numbers(receiver, numbers_of)


def put_method(kind, str name, method):
    """``kind.name = method``, of a class in C that allows nobody to do so; none of those that Python
    calls by slots (`__call__`)."""
    if kind.__module__ == "builtins":
        raise TypeError(f"{kind.__name__} is Python's")
    clfuse_put_method(<PyTypeObject *>kind, name, method)
