"""Threads that write to parts of one array: a part of `compiled.pyx`.

What is written is either put into the array's memory, after a look at who else refers to that, or
recorded as what comes after what was recorded before. Another thread must not do the same in between,
or one of the two is lost: NumPy loses nothing where the parts are different. The lock is that of
`clfuse.engine.evaluate`, and costs nothing where there is one thread.
"""

cdef extern from *:
    """
    static int clfuse_has_company(void) {
        PyThreadState *first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
        return first == NULL || PyThreadState_Next(first) != NULL;
    }
    """
    bint clfuse_has_company() noexcept

cdef object turn_to_write  # the lock


def connect_company(lock):
    """Take the lock."""
    global turn_to_write
    turn_to_write = lock
