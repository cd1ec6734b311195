"""What programs do to see a value: ``float(x)`` of a lazy scalar, `clfuse.control.evaluate` and
`clfuse.control.synchronize`: a part of `compiled.pyx`. In Python they are `clfuse.classes.operators` and
`clfuse.control`.

This comes right after a kernel that has read large arrays: see `known_evaluations.pxi`.
"""

cdef extern from "Python.h":
    int Py_AddPendingCall(int (*)(void *) except -1, void *)
    void PyErr_SetInterrupt()


cdef int raised_now(void *held) except -1:
    error = <object>held
    Py_DECREF(error)
    raise error


cdef int raise_later(object error) except -1:
    """Raise it where the main thread goes on, whatever SIGINT does."""
    Py_INCREF(error)
    if Py_AddPendingCall(raised_now, <void *>error):
        Py_DECREF(error)
        PyErr_SetInterrupt()  # Python can keep no more calls
    return 0

cdef object evaluate_now
cdef frozenset lazy_scalars


def connect_looks(names):
    """As `connect`, for what is used here alone."""
    global lazy_scalars, evaluate_now, DeviceBuffer, b_mem, b_address
    global Block, k_pool, k_nbytes, k_mem, k_block_nbytes
    lazy_scalars, evaluate_now = names["scalars"], names["evaluate_nodes"]
    DeviceBuffer, Block = names["Buffer"], names["Block"]
    b_mem, b_address = _offset(DeviceBuffer, "mem"), _offset(DeviceBuffer, "address")
    k_pool, k_nbytes = _offset(Block, "pool"), _offset(Block, "nbytes")
    k_mem, k_block_nbytes = _offset(Block, "mem"), _offset(Block, "block_nbytes")


cdef bint is_usable(object device) except -1:
    """Whether its queue may be asked."""
    return device._queue is not None and device.cause is None and not device.forked


cdef inline object number_in(object scalar):
    """The scalar of NumPy's that a lazy one is, computed now if need be; `DEFER` where Python has
    to find out."""
    return value_of(scalar, True)


cdef inline object computed_number(object scalar):
    """The same of one that was computed; `DEFER` of any other."""
    return value_of(scalar, False)


cdef object value_of(object scalar, bint is_asked_for):
    cdef PyObject *cell
    cdef PyObject *buffer
    if type(scalar) not in lazy_scalars or PyList_GET_ITEM(tracers, 0) != <PyObject *>NONE_ALIVE:
        return DEFER
    cell = peek(scalar, h_cell)
    if cell == NULL or type(<object>cell) is not Storage or (
        peek(scalar, h_view) != <PyObject *>None
    ):
        return DEFER
    node = <object>look(cell, s_node)
    if type(node) is not Node or get(get(node, n_op), o_kind) is CONSTANT:
        return DEFER
    if peek(node, n_buffer) == <PyObject *>None:
        if not is_asked_for:
            return DEFER
        evaluate_now([node])
    elif unseen is not None:
        were_seen((node,))
    dtype = get(node, n_dtype)
    buffer = peek(node, n_buffer)
    if type(<object>buffer) is HostBuffer:
        array = get(<object>buffer, b_array)
        if type(array) is not NUMPY or array_rank(<PyObject *>array) != 0 or (
            array_descr(<PyObject *>array) != <PyObject *>dtype
        ):
            return DEFER
        return PyArray_Scalar(
            array_data(<PyObject *>array), <PyArray_Descr *><PyObject *>dtype, NULL
        )
    if type(<object>buffer) is not DeviceBuffer:
        return DEFER
    device = get(<object>buffer, b_device)
    pool = device.pool
    if pool is None or not pool.in_place or not is_usable(device):
        return DEFER
    memory = get(<object>buffer, b_mem).hostbuf
    if type(memory) is not NUMPY:
        return DEFER
    wait_for(device, device._queue)
    return PyArray_Scalar(
        array_data(<PyObject *>memory), <PyArray_Descr *><PyObject *>dtype, NULL
    )


def converting(plain, convert):
    """``convert(self)`` of a lazy scalar, a class of Python's numbers, before `plain`."""

    def method(self):
        value = number_in(self)
        return plain(self) if value is DEFER else convert(value)

    return method


def item(plain):
    """``self.item()`` of a lazy scalar, before `plain`."""

    def method(self, *args):
        if not args:
            value = number_in(self)
            if value is not DEFER:
                return value.item()
        return plain(self, *args)

    return method


def evaluating_arrays(plain, evaluate_nodes):
    """``evaluate(*arrays, wait=wait, build=build)``, of arrays of ours, before `plain`."""

    def evaluate(*arrays, wait=True, build=False):
        cdef PyObject *cell
        cdef bint is_any_there = False
        nodes = []
        if not build and PyList_GET_ITEM(tracers, 0) == <PyObject *>NONE_ALIVE:
            for array in arrays:
                if is_ours(array) and is_on_host(array):
                    is_any_there = True
                    continue
                cell = NULL
                if type(array) is ARRAY or type(array) in lazy_scalars:
                    cell = cell_in(array)
                if cell == NULL or type(<object>cell) is not Storage:
                    break
                nodes.append(<object>look(cell, s_node))
            else:
                if nodes:
                    return evaluate_nodes(nodes, wait=wait)
                if is_any_there:
                    return None
        nodes = None
        return plain(*arrays, wait=wait, build=build)

    return evaluate


def synchronizing(plain):
    """``synchronize()``, before `plain`."""

    def synchronize():
        device = current_device()
        if device is None or not is_usable(device):
            plain()
        else:
            wait_for(device, device._queue)

    return synchronize


def giving_back(plain, dict counters):
    """``Block.__del__``, before `plain`.

    Nobody catches what is raised here. There is no bytecode at which an interrupt could be, but for
    the first block of a size; such an interrupt comes again where the program goes on.
    """

    def __del__(self):
        pool, size = peek(self, k_pool), peek(self, k_block_nbytes)
        if pool == NULL or size == NULL:
            return  # half made: an interrupt has ended its constructor
        counters["device_bytes_now"] -= get(self, k_nbytes)
        if <object>size:
            held = (<object>pool)._bins.get(<object>size)
            if held is None:
                try:
                    (<object>pool).give(get(self, k_mem), <object>size)
                except KeyboardInterrupt as interrupt:
                    raise_later(interrupt)
            else:
                (<list>held).append(get(self, k_mem))

    return __del__


def uncounting(dict counters):
    """``Counted.__del__``, without a bytecode at which an interrupt could be, and be lost."""

    def __del__(self):
        nbytes = getattr(self, "nbytes", None)
        if nbytes is not None:
            counters["device_bytes_now"] -= nbytes

    return __del__


def undisturbed(plain):
    """A destructor that comes to its end whatever interrupts it: `plain`, which is called again
    where an interrupt has ended it. That interrupt comes where the program goes on: what a
    destructor raises nobody catches."""

    def __del__(self):
        caught = None
        while True:
            try:
                plain(self)
                break
            except KeyboardInterrupt as interrupt:
                caught = interrupt
        if caught is not None:
            raise_later(caught)

    return __del__
