"""Graphs that are known, for `clfuse.ir.known_graphs`: a part of `compiled.pyx`."""

cdef class Known:
    """A graph that was planned before; called with roots, it answers nodes and buffers if these
    are the roots of another one like it, else None: see `ir.known_graphs`."""

    cdef list items, several, twins, uses
    cdef tuple roots
    cdef bytes flags
    cdef Py_ssize_t leaves
    cdef int live, computed

    def __init__(self, snapshot, live, computed, names_of_several):
        self.items = list(snapshot.items)
        self.roots = snapshot.roots
        self.flags = snapshot.flags
        self.live, self.computed = live, computed
        self.leaves = 1 + max([item[2] for item in self.items if item[0] is None], default=-1)
        self.uses = [0] * len(self.items)
        for root in self.roots:
            self.uses[root] += 1
        first = {}
        self.several = []
        self.twins = []
        for position, item in enumerate(self.items):
            if item[0] is None or not item[3:]:
                continue
            for other in item[3:]:
                self.uses[other] += 1
            if item[0].name in names_of_several:
                self.several.append(position)
            if first.setdefault(item[3:], position) != position:
                self.twins.append((first[item[3:]], position))

    def __call__(self, roots):
        cdef Py_ssize_t count = len(self.items)
        cdef PyObject **nodes = <PyObject **>calloc(count + self.leaves, sizeof(PyObject *))
        if nodes == NULL:
            raise MemoryError
        try:
            if not self.matches(roots, nodes, nodes + count):
                return None
            return (
                [<object>nodes[place] for place in range(count)],
                [<object>nodes[count + place] for place in range(self.leaves)],
            )
        finally:
            free(nodes)

    cdef bint matches(self, list roots, PyObject **nodes, PyObject **buffers) except -1:
        # Names that do not count: who else holds a node is seen by its references.
        cdef Py_ssize_t position, place, other, number, count = len(self.items)
        cdef PyObject *node
        cdef PyObject *inputs
        cdef PyObject *buffer
        cdef int flag
        for place in range(PyTuple_GET_SIZE(self.roots)):
            nodes[<Py_ssize_t>self.roots[place]] = <PyObject *>roots[place]
        for position in range(count - 1, -1, -1):
            item = <tuple>self.items[position]
            node = nodes[position]
            op = item[0]
            if op is None:
                if not is_same(node, n_shape, item[1]) or not is_same(node, n_dtype, item[3]):
                    return False
                buffer = look(node, n_buffer)
                number = item[2]
                if buffer == <PyObject *>None or (
                    buffers[number] != NULL and buffers[number] != buffer
                ):
                    return False
                buffers[number] = buffer
            else:
                inputs = look(node, n_inputs)
                if type(<object>node) is Node:
                    if look(node, n_op) != <PyObject *>op:
                        return False
                else:
                    # Of late nodes the inputs first: they may become others (`modifications`).
                    inputs = <PyObject *>(<object>node).inputs
                    if (<object>node).op is not op:
                        return False
                if look(node, n_buffer) != <PyObject *>None:
                    return False
                if get(op, o_kind) is not CONSTANT:
                    if not is_same(node, n_shape, item[1]):
                        return False
                    if type(<object>node) is Node:
                        if not is_same(node, n_param, item[2]):
                            return False
                    elif (<object>node).param != item[2]:
                        return False
                    if PyTuple_GET_SIZE(item) > 3:
                        if PyTuple_GET_SIZE(<object>inputs) != PyTuple_GET_SIZE(item) - 3:
                            return False
                        for place in range(PyTuple_GET_SIZE(<object>inputs)):
                            other = <object>PyTuple_GET_ITEM(item, place + 3)
                            if nodes[other] == NULL:
                                nodes[other] = PyTuple_GET_ITEM(<object>inputs, place)
                            elif nodes[other] != PyTuple_GET_ITEM(<object>inputs, place):
                                return False
            flag = self.flags[position]
            if (<object>look(node, n_computed) is True) != ((flag & self.computed) != 0):
                return False
        for number in range(self.leaves):
            for other in range(number):
                if buffers[number] == buffers[other]:
                    return False
        for position in range(count):
            node = nodes[position]
            is_held = Py_REFCNT(node) > <Py_ssize_t>self.uses[position]
            buffer = look(node, n_buffer)
            if not is_held and buffer != <PyObject *>None:
                is_held = Py_REFCNT(buffer) > 1 or bool((<object>buffer).exported)
            flag = self.flags[position]
            if is_held != ((flag & self.live) != 0):
                return False
        for position in self.several:
            # One tuple of inputs that several nodes share holds them once.
            if Py_REFCNT(look(nodes[position], n_inputs)) > 1:
                return False
        for first, second in self.twins:
            if look(nodes[<Py_ssize_t>first], n_inputs) == look(nodes[<Py_ssize_t>second], n_inputs):
                return False
        return True


cdef inline bint is_same(PyObject *owner, Py_ssize_t offset, object value) except -1:
    cdef PyObject *found = look(owner, offset)
    return found == <PyObject *>value or <object>found == value
