"""The buffer protocol of arrays and scalars: a part of `_compiled.pyx`.

A class of Python's cannot export a buffer before Python 3.12, and the two slots of a class are the
same in all versions: `export_buffers` fills them. Which memory is lent is said by `api.buffers`; all
checks (contiguity, writing, formats) are NumPy's own, whose array is asked in the place of ours.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc

cdef extern from "Python.h":
    ctypedef struct Lease "Py_buffer":
        PyObject *obj
        void *internal
    ctypedef object (*newfunc)(PyTypeObject *, PyObject *, PyObject *)
    ctypedef struct BufferSlots "PyBufferProcs":
        int (*bf_getbuffer)(PyObject *, Lease *, int) except -1
        void (*bf_releasebuffer)(PyObject *, Lease *) noexcept
    ctypedef struct TypeWithSlots "PyTypeObject":
        BufferSlots *tp_as_buffer
        newfunc tp_new
    int PyObject_GetBuffer(object, Lease *, int) except -1
    void PyBuffer_Release(Lease *) noexcept

cdef object lent_memory
cdef newfunc make_memoryview = NULL
cdef bint is_memoryview = False


cdef int lend(PyObject *owner, Lease *lease, int flags) except -1:
    """`bf_getbuffer`: the lease of NumPy's array, in the name of ours."""
    global is_memoryview
    cdef Lease *inner
    is_wanted, is_memoryview = is_memoryview, False
    lease.obj = NULL
    handle = <object>owner
    host = lent_memory(handle, flags, is_wanted)
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


cdef object new_memoryview(PyTypeObject *kind, PyObject *arguments, PyObject *options):
    """``memoryview(x)``, which may be written through and sees what is written to `x`.

    It asks for the same as ``numpy.asarray(x)`` does, and that gets a snapshot: conversions must
    not make operations on `x` look at what NumPy's arrays may have done to it.
    """
    global is_memoryview
    if PyTuple_GET_SIZE(<object>arguments) == 1:
        is_memoryview = type(<object>PyTuple_GET_ITEM(<object>arguments, 0)) is ARRAY
    elif options != NULL:
        is_memoryview = type((<dict><object>options).get("object")) is ARRAY
    try:
        return make_memoryview(kind, arguments, options)
    finally:
        is_memoryview = False


def export_buffers(classes, lent):
    """Let arrays of `classes` be buffers: of the array that ``lent(x, flags, is_memoryview)``
    gives."""
    global lent_memory, make_memoryview
    lent_memory = lent
    for kind in classes:
        slots = (<TypeWithSlots *><PyObject *>kind).tp_as_buffer
        slots.bf_getbuffer = lend
        slots.bf_releasebuffer = take_back
    view = <TypeWithSlots *><PyObject *>memoryview
    if make_memoryview == NULL:
        make_memoryview = view.tp_new
        view.tp_new = new_memoryview
