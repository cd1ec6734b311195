"""Accesses outside a simulated device's memory, for `clfuse.runtime.simulated.guard_memory`: a part of
`compiled.pyx`.

The blocks of such a device lie in a range of addresses of which nothing else may be read or written.
While kernels run, a signal handler makes a page of it that one touches accessible, filled with the
pattern of undefined memory, and notes where that was; so the kernel ends, and its launch says what
it did. All other faults go to who handled them before, or end the process, with the kernel's name
on the standard error.

The handler is C and calls what POSIX allows in one (write), and mprotect, which is a bare system
call wherever it has signals.
"""

cdef extern from *:
    """
    #if defined(__unix__) || defined(__APPLE__)
    #include <errno.h>
    #include <signal.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #if defined(__linux__) && defined(__x86_64__)
    #include <ucontext.h>
    #endif

    #define CLFUSE_GUARDS 1
    enum { MOST_FAULTS = 1 << 16, MOST_NAME = 200 };

    static struct {
        uintptr_t start, end, page;
        uint16_t pattern;
    } clfuse_range;
    static struct { uintptr_t address; int wrote; } clfuse_faults[MOST_FAULTS];
    static unsigned clfuse_count;
    static char clfuse_name[MOST_NAME];
    static struct sigaction clfuse_before[2];
    static const int clfuse_signals[2] = {SIGSEGV, SIGBUS};

    /* 1 where the access was a write, 0 where it was a read, -1 where that is not known. */
    static int clfuse_wrote(void *context)
    {
    #if defined(__linux__) && defined(__x86_64__) && defined(REG_ERR)
        return (((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
    #else
        (void)context;
        return -1;
    #endif
    }

    static void clfuse_say(const char *text)
    {
        ssize_t written = write(2, text, strlen(text));
        (void)written;
    }

    static void clfuse_say_address(uintptr_t address)
    {
        char text[2 * sizeof address + 3] = "0x";
        int place;
        for (place = 2 * (int)sizeof address + 1; place > 1; place--, address >>= 4)
            text[place] = "0123456789abcdef"[address & 15];
        clfuse_say(text);
    }

    static int clfuse_is_mended(uintptr_t address, void *context)
    {
        unsigned number;
        uintptr_t page;
        uint16_t *place;
        if (address < clfuse_range.start || address >= clfuse_range.end) return 0;
        number = __atomic_fetch_add(&clfuse_count, 1, __ATOMIC_RELAXED);
        if (number >= MOST_FAULTS) return 0;
        page = address & ~(clfuse_range.page - 1);
        if (mprotect((void *)page, clfuse_range.page, PROT_READ | PROT_WRITE) != 0) return 0;
        for (place = (uint16_t *)page; (uintptr_t)place < page + clfuse_range.page; place++)
            *place = clfuse_range.pattern;
        clfuse_faults[number].wrote = clfuse_wrote(context);
        __atomic_store_n(&clfuse_faults[number].address, address, __ATOMIC_RELEASE);
        return 1;
    }

    static void clfuse_on_fault(int number, siginfo_t *info, void *context)
    {
        int kept = errno;
        struct sigaction *before = &clfuse_before[number == SIGBUS];
        if (!clfuse_is_mended((uintptr_t)info->si_addr, context)) {
            clfuse_say("clfuse: a simulated device: kernel ");
            clfuse_say(clfuse_name);
            clfuse_say(" or something beside it touches memory that nobody has, at ");
            clfuse_say_address((uintptr_t)info->si_addr);
            clfuse_say(": a wild pointer, or (at 0) a vector that is not aligned\\n");
            if (before->sa_flags & SA_SIGINFO)
                before->sa_sigaction(number, info, context);
            else if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN)
                signal(number, SIG_DFL);  /* the access is repeated, and ends the process */
            else
                before->sa_handler(number);
        }
        errno = kept;
    }

    static int clfuse_watch(const char *name)
    {
        struct sigaction ours, found;
        int each;
        strncpy(clfuse_name, name, MOST_NAME - 1);
        memset(&ours, 0, sizeof ours);
        ours.sa_sigaction = clfuse_on_fault;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
        for (each = 0; each < 2; each++) {
            if (sigaction(clfuse_signals[each], NULL, &found) != 0) return -1;
            if ((found.sa_flags & SA_SIGINFO) && found.sa_sigaction == clfuse_on_fault) continue;
            clfuse_before[each] = found;
            if (sigaction(clfuse_signals[each], &ours, NULL) != 0) return -1;
        }
        return 0;
    }

    static void clfuse_unwatch(void)
    {
        struct sigaction found;
        int each;
        for (each = 0; each < 2; each++)
            if (sigaction(clfuse_signals[each], NULL, &found) == 0
                && (found.sa_flags & SA_SIGINFO) && found.sa_sigaction == clfuse_on_fault)
                sigaction(clfuse_signals[each], &clfuse_before[each], NULL);
    }

    static void clfuse_guard(uintptr_t start, uintptr_t end, uintptr_t page, uint16_t pattern)
    {
        clfuse_range.start = start, clfuse_range.end = end;
        clfuse_range.page = page, clfuse_range.pattern = pattern;
    }

    static unsigned clfuse_faults_seen(void)
    {
        unsigned count = __atomic_load_n(&clfuse_count, __ATOMIC_ACQUIRE);
        return count < MOST_FAULTS ? count : MOST_FAULTS;
    }

    static uintptr_t clfuse_address_of(unsigned number)
    {
        return __atomic_load_n(&clfuse_faults[number].address, __ATOMIC_ACQUIRE);
    }

    static int clfuse_wrote_at(unsigned number) { return clfuse_faults[number].wrote; }

    static void clfuse_forget(void)
    {
        memset(clfuse_faults, 0, clfuse_faults_seen() * sizeof clfuse_faults[0]);
        __atomic_store_n(&clfuse_count, 0, __ATOMIC_RELEASE);
    }
    #else
    #include <stdint.h>
    #define CLFUSE_GUARDS 0
    static int clfuse_watch(const char *name) { return -1; }
    static void clfuse_unwatch(void) {}
    static void clfuse_guard(uintptr_t a, uintptr_t b, uintptr_t c, uint16_t d) {}
    static unsigned clfuse_faults_seen(void) { return 0; }
    static uintptr_t clfuse_address_of(unsigned number) { return 0; }
    static int clfuse_wrote_at(unsigned number) { return -1; }
    static void clfuse_forget(void) {}
    #endif
    """
    const int CLFUSE_GUARDS
    int clfuse_watch(const char *)
    void clfuse_unwatch()
    void clfuse_guard(uintptr_t, uintptr_t, uintptr_t, unsigned short)
    unsigned clfuse_faults_seen()
    uintptr_t clfuse_address_of(unsigned)
    int clfuse_wrote_at(unsigned)
    void clfuse_forget()


def guard(uintptr_t start, uintptr_t end, uintptr_t page, unsigned short pattern):
    """Whether faults in this range of addresses can be handled, from the next `watch` on.

    `page` is the system's page size, `pattern` what a page is filled with that a kernel touches.
    """
    clfuse_guard(start, end, page, pattern)
    return bool(CLFUSE_GUARDS)


def watch(bytes name):
    """Handle faults from here on; `name` is said where one ends the process."""
    if clfuse_watch(name) != 0:
        raise OSError("no handler for SIGSEGV and SIGBUS can be set")


def unwatch():
    """Let faults go to who handled them before, and return what was seen since `watch`: a list of
    (address, whether it was a write or None)."""
    clfuse_unwatch()
    cdef unsigned number
    cdef int wrote
    found = []
    for number in range(clfuse_faults_seen()):
        wrote = clfuse_wrote_at(number)
        found.append((clfuse_address_of(number), None if wrote < 0 else bool(wrote)))
    clfuse_forget()
    return found
