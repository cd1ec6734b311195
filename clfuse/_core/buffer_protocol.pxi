"""The buffer protocol of arrays and scalars: a part of `compiled.pyx`.

A class of Python's cannot export a buffer before Python 3.12, and the two slots of a class are the
same in all versions: `export_buffers` fills them. Which memory is lent is said by `interop.buffers`; all
checks (contiguity, writing, formats) are NumPy's own, whose array is asked in the place of ours.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc

cdef extern from "Python.h":
    ctypedef struct Lease "Py_buffer":
        PyObject *obj
        void *internal
    ctypedef struct BufferSlots "PyBufferProcs":
        int (*bf_getbuffer)(PyObject *, Lease *, int) except -1
        void (*bf_releasebuffer)(PyObject *, Lease *) noexcept
    ctypedef struct TypeWithSlots "PyTypeObject":
        BufferSlots *tp_as_buffer
    int PyObject_GetBuffer(object, Lease *, int) except -1
    void PyBuffer_Release(Lease *) noexcept

cdef object lent_memory


cdef int lend(PyObject *owner, Lease *lease, int flags) except -1:
    """`bf_getbuffer`: the lease of NumPy's array, in the name of ours."""
    cdef Lease *inner
    lease.obj = NULL
    handle = <object>owner
    host = lent_memory(handle, flags)
    inner = <Lease *>PyMem_Malloc(sizeof(Lease))
    if inner == NULL:
        raise MemoryError
    try:
        PyObject_GetBuffer(host, inner, flags)
    except BaseException:
        PyMem_Free(inner)
        raise
    lease[0] = inner[0]
    Py_INCREF(handle)
    lease.obj = owner
    lease.internal = inner
    return 0


cdef void take_back(PyObject *owner, Lease *lease) noexcept:
    """`bf_releasebuffer`."""
    inner = <Lease *>lease.internal
    PyBuffer_Release(inner)
    PyMem_Free(inner)


def export_buffers(classes, lent):
    """Let arrays of `classes` be buffers: of the array that ``lent(x, flags)`` gives."""
    global lent_memory
    lent_memory = lent
    for kind in classes:
        slots = (<TypeWithSlots *><PyObject *>kind).tp_as_buffer
        slots.bf_getbuffer = lend
        slots.bf_releasebuffer = take_back
