"""Memory of large results that NumPy computes for clfuse, kept for the next ones: a part of
`compiled.pyx`.

The system's allocator gives the memory of large arrays back, and fresh pages take longer than an
addition. NumPy avoids that where an expression writes to its own temporaries, as operators of ours
do (`temporaries.pxi`), but functions do not. So results get memory by this allocator, which keeps
some of what was freed.
Arrays remember the allocator that they came from, whoever holds them in the end.
"""

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>
    #include "numpy/ndarraytypes.h"
    #if defined(__GLIBC__)
    #include <malloc.h>
    #include <sys/mman.h>
    #define CLFUSE_KEEPS 1
    #else
    #define CLFUSE_KEEPS 0
    #endif

    enum { KEPT_BLOCKS = 16 };
    #define KEPT_LEAST ((size_t)1 << 17)  /* of a block: the allocator itself keeps smaller ones */
    #define KEPT_MOST ((size_t)1 << 26)   /* of all blocks */
    #define KEPT_HUGE ((size_t)1 << 22)   /* from here on NumPy asks for large pages, too */

    static struct { void *block; size_t nbytes; } clfuse_kept[KEPT_BLOCKS];
    static unsigned clfuse_kept_count;
    static size_t clfuse_kept_nbytes;

    #if CLFUSE_KEEPS
    static char clfuse_kept_busy;

    /* Nobody waits: who comes second goes without. A fork may leave it busy for ever. */
    static int clfuse_kept_enter(void)
    {
        return !__atomic_test_and_set(&clfuse_kept_busy, __ATOMIC_ACQUIRE);
    }

    static void clfuse_kept_leave(void) { __atomic_clear(&clfuse_kept_busy, __ATOMIC_RELEASE); }

    static void clfuse_kept_drop(unsigned place)
    {
        clfuse_kept_nbytes -= clfuse_kept[place].nbytes;
        clfuse_kept_count--;
        memmove(
            clfuse_kept + place, clfuse_kept + place + 1,
            (clfuse_kept_count - place) * sizeof *clfuse_kept
        );
    }

    /* The block that was freed last of those that fit, and are not much too large; or NULL. */
    static void *clfuse_kept_find(size_t nbytes)
    {
        void *found = NULL;
        unsigned place;
        if (nbytes < KEPT_LEAST || !clfuse_kept_enter()) return NULL;
        for (place = clfuse_kept_count; place-- > 0 && !found;)
            if (clfuse_kept[place].nbytes >= nbytes && clfuse_kept[place].nbytes - nbytes <= nbytes / 4) {
                found = clfuse_kept[place].block;
                clfuse_kept_drop(place);
            }
        clfuse_kept_leave();
        return found;
    }

    static void *clfuse_kept_malloc(void *context, size_t nbytes)
    {
        void *block = clfuse_kept_find(nbytes);
        (void)context;
        if (block) return block;
        block = malloc(nbytes);
        if (!block && clfuse_kept_enter()) {
            while (clfuse_kept_count) {
                free(clfuse_kept[0].block);
                clfuse_kept_drop(0);
            }
            clfuse_kept_leave();
            block = malloc(nbytes);
        }
    #ifdef MADV_HUGEPAGE
        if (block && nbytes >= KEPT_HUGE) {
            const size_t page = 4096, skipped = page - (size_t)block % page;
            madvise((char *)block + skipped, (nbytes - skipped) / page * page, MADV_HUGEPAGE);
        }
    #endif
        return block;
    }

    static void *clfuse_kept_calloc(void *context, size_t count, size_t nbytes)
    {
        (void)context;
        return calloc(count, nbytes);
    }

    static void *clfuse_kept_realloc(void *context, void *block, size_t nbytes)
    {
        (void)context;
        return realloc(block, nbytes);
    }

    static void clfuse_kept_free(void *context, void *block, size_t asked)
    {
        const size_t nbytes = block ? malloc_usable_size(block) : 0;
        (void)context;
        (void)asked;
        if (nbytes >= KEPT_LEAST && nbytes <= KEPT_MOST / 2 && clfuse_kept_enter()) {
            while (clfuse_kept_count
                   && (clfuse_kept_count == KEPT_BLOCKS || clfuse_kept_nbytes + nbytes > KEPT_MOST)) {
                free(clfuse_kept[0].block);  /* the one that was freed first */
                clfuse_kept_drop(0);
            }
            clfuse_kept[clfuse_kept_count].block = block;
            clfuse_kept[clfuse_kept_count++].nbytes = nbytes;
            clfuse_kept_nbytes += nbytes;
            clfuse_kept_leave();
            return;
        }
        free(block);
    }

    static PyDataMem_Handler clfuse_kept_handler = {
        "clfuse", 1,
        {NULL, clfuse_kept_malloc, clfuse_kept_calloc, clfuse_kept_realloc, clfuse_kept_free}
    };

    static PyObject *clfuse_keeper(void)
    {
        return PyCapsule_New(&clfuse_kept_handler, "mem_handler", NULL);
    }
    #else
    static PyObject *clfuse_keeper(void) { Py_RETURN_NONE; }
    #endif
    """
    object clfuse_keeper()
    bint CLFUSE_KEEPS
    size_t clfuse_kept_nbytes

cdef extern from "numpy/arrayobject.h":
    object PyDataMem_SetHandler(object)

cdef enum:
    KEPT_ADDITIONS = 1 << 14  # of work from which on a result may be so large

cdef object keeper = clfuse_keeper()
cdef bint is_large_work = False  # what NumPy is about to be asked, by the last question whether it is


cdef inline void note_work(double additions) noexcept:
    """Note how much NumPy is asked to do next."""
    global is_large_work
    is_large_work = CLFUSE_KEEPS and additions >= KEPT_ADDITIONS


cdef class KeptMemory:
    """A block in which NumPy's results have memory that is kept; for what is not called from here."""

    cdef object before

    def __enter__(self):
        self.before = PyDataMem_SetHandler(keeper) if CLFUSE_KEEPS else None

    def __exit__(self, *error):
        if self.before is not None:
            PyDataMem_SetHandler(self.before)
            self.before = None


def kept_memory_nbytes():
    """Bytes of blocks that are kept, and hold no array."""
    return clfuse_kept_nbytes
