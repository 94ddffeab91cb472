/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One breakpoint, and single steps between two of them.
 */
#include "harness/breakpoint.h"

#include <dlfcn.h>
#include <string.h>

#include "base/text.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

/* breakpoint_begin() returns false on other processors. */
#if defined(__x86_64__)
enum { IS_X86 = 1, AT = REG_RIP, STACK = REG_RSP, FLAGS = REG_EFL };
#elif defined(__i386__)
enum { IS_X86 = 1, AT = REG_EIP, STACK = REG_ESP, FLAGS = REG_EFL };
#else
enum { IS_X86 = 0, AT = 0, STACK = 0, FLAGS = 0 };
#define greg_t unsigned long
#endif

static greg_t *registers_of(void *context)
{
#if defined(__x86_64__) || defined(__i386__)
    return ((ucontext_t *)context)->uc_mcontext.gregs;
#else
    return context;
#endif
}

enum { MOST_TRACED = 600, MOST_RANGES = 1024, TRAP_FLAG = 0x100, INT3 = 0xcc };

/* Code that is stepped through. */
struct range {
    uintptr_t begin, end;
};

static struct {
    int memory; /* /proc/self/mem, by which code can be written as it is, read-only */
    struct range ranges[MOST_RANGES];
    size_t range_count;
    _Atomic uintptr_t address; /* of the breakpoint; 0: there is none */
    unsigned char original;    /* the byte that it stands for */
    enum { NOTHING, TO_ENTRY, STEPPING, OVER_A_CALL, TO_POINT } aim;
    struct points *points;
    uintptr_t entry_stack; /* the stack pointer at the entry of the traced function */
    size_t steps;
    size_t stops_behind; /* that many of them */
    void (*pause)(void);
    uintptr_t where; /* it was last called */
} state;

static _Thread_local bool is_watched;

/* ---- code ------------------------------------------------------------------------------- */

/* True of libc, Python and this program: their calls are long, and not searched for races. */
static bool is_system(const char *path)
{
    static const char *const names[] = {"ld-",        "libc-",     "libc.so",
                                        "libpthread", "libpython", "linux-"};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (begins_with(name, names[i]))
            return true;
    }
    return name[0] == '\0'; /* the program of this process */
}

/* True of the object that this code is in, which is not the program if it was preloaded. */
static bool is_own(const struct dl_phdr_info *object)
{
    Dl_info own;
    return dladdr((void *)is_own, &own) != 0 && (uintptr_t)own.dli_fbase == object->dlpi_addr;
}

static int add_ranges(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size, (void)data;
    if (is_system(object->dlpi_name) || is_own(object))
        return 0;
    for (int i = 0; i < object->dlpi_phnum && state.range_count < MOST_RANGES; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0)
            state.ranges[state.range_count++] = (struct range){begin, begin + segment->p_memsz};
    }
    return 0;
}

static bool is_stepped(uintptr_t address)
{
    for (size_t i = 0; i < state.range_count; i++) {
        if (address >= state.ranges[i].begin && address < state.ranges[i].end)
            return true;
    }
    return false;
}

static void add_point(uintptr_t address)
{
    struct points *points = state.points;
    for (size_t i = 0; i < points->count; i++) {
        if (points->at[i] == address)
            return;
    }
    if (points->count < MOST_POINTS)
        points->at[points->count++] = address;
}

/* ---- the breakpoint --------------------------------------------------------------------- */

static bool write_code(uintptr_t address, unsigned char byte)
{
    return pwrite(state.memory, &byte, 1, (off_t)address) == 1;
}

static bool put_breakpoint(uintptr_t address)
{
    if (pread(state.memory, &state.original, 1, (off_t)address) != 1)
        return false;
    atomic_store(&state.address, address);
    return write_code(address, INT3);
}

/* False if it is not there.  Any thread may hit it. */
static bool take_breakpoint(uintptr_t address)
{
    if (address == 0 || atomic_load(&state.address) != address)
        return false;
    write_code(address, state.original);
    atomic_store(&state.address, 0);
    return true;
}

/* ---- in the signal handler -------------------------------------------------------------- */

/* The return address of a function that is not stepped through: on top of the stack, or below what
 * the dynamic linker pushes before it binds one. */
static uintptr_t return_address(const uintptr_t *stack)
{
    enum { PUSHED = 2 };
    for (size_t i = 0; i <= PUSHED; i++) {
        if (is_stepped(stack[i]))
            return stack[i];
    }
    return 0;
}

/* True if the thread goes on in single steps. */
static bool step(greg_t *registers)
{
    uintptr_t address = (uintptr_t)registers[AT], stack = (uintptr_t)registers[STACK];
    state.aim = NOTHING;
    if (stack > state.entry_stack || ++state.steps > MOST_TRACED)
        return false; /* the call has returned, or takes too long */
    if (is_stepped(address) && state.steps > state.stops_behind) {
        state.where = address;
        state.pause();
        return false;
    }
    if (is_stepped(address)) {
        add_point(address);
        state.aim = STEPPING;
        return true;
    }
    uintptr_t back = return_address((const uintptr_t *)stack);
    if (back != 0 && put_breakpoint(back))
        state.aim = OVER_A_CALL;
    return false;
}

/* At the breakpoint; true if the thread goes on in single steps. */
static bool arrive(greg_t *registers)
{
    if (state.aim == TO_ENTRY) {
        state.entry_stack = (uintptr_t)registers[STACK];
        state.steps = 0;
    } else if (state.aim == TO_POINT) {
        state.aim = NOTHING;
        state.where = (uintptr_t)registers[AT];
        state.pause();
    }
    return (state.aim == TO_ENTRY || state.aim == OVER_A_CALL) && step(registers);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    int saved = errno;
    greg_t *registers = registers_of(context);
    bool steps = false;
    if (info->si_code == SI_KERNEL) { /* of int3, after which it stands now */
        uintptr_t address = (uintptr_t)registers[AT] - 1;
        bool ours = take_breakpoint(address);
        unsigned char byte = 0;
        if (!ours && pread(state.memory, &byte, 1, (off_t)address) == 1 && byte == INT3) {
            signal(SIGTRAP, SIG_DFL); /* the handler's own breakpoint ends the process */
            raise(SIGTRAP);
        } else {
            registers[AT]--; /* also if another thread has just removed it */
        }
        steps = ours && is_watched && arrive(registers);
    } else {
        steps = is_watched && state.aim == STEPPING && step(registers);
    }
    if (steps)
        registers[FLAGS] |= TRAP_FLAG;
    else
        registers[FLAGS] &= ~(greg_t)TRAP_FLAG;
    errno = saved;
}

/* ---- for the thread --------------------------------------------------------------------- */

/* A debugger would take each trap for its own. */
static bool has_debugger(void)
{
    char line[256];
    int pid = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "TracerPid: %d", &pid) != 1)
        continue;
    if (file != NULL)
        fclose(file);
    return pid != 0;
}

uintptr_t breakpoint_function(const PyDataMemAllocator *a, enum step_kind function)
{
    return function == STEP_MALLOC    ? (uintptr_t)a->malloc
           : function == STEP_CALLOC  ? (uintptr_t)a->calloc
           : function == STEP_REALLOC ? (uintptr_t)a->realloc
                                      : (uintptr_t)a->free;
}

bool breakpoint_begin(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    state.memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (!IS_X86 || state.memory < 0 || has_debugger())
        return false;
    state.range_count = 0;
    dl_iterate_phdr(add_ranges, NULL);
    is_watched = true;
    return sigaction(SIGTRAP, &action, NULL) == 0;
}

void breakpoint_stop_behind(uintptr_t function, size_t instructions, struct points *points,
                            void (*pause)(void))
{
    state.points = points;
    state.stops_behind = instructions;
    state.pause = pause;
    state.aim = TO_ENTRY;
    put_breakpoint(function);
}

void breakpoint_set(uintptr_t point, void (*pause)(void))
{
    state.pause = pause;
    state.aim = TO_POINT;
    put_breakpoint(point);
}

uintptr_t breakpoint_where(void)
{
    return state.where;
}

void breakpoint_clear(void)
{
    state.aim = NOTHING;
    take_breakpoint(atomic_load(&state.address));
}

const char *breakpoint_name(uintptr_t point)
{
    Dl_info info;
    if (dladdr((void *)point, &info) == 0 || info.dli_fname == NULL)
        return fmt("%#zx", (size_t)point);
    const char *slash = strrchr(info.dli_fname, '/');
    return fmt("%s+%#zx", escape(slash != NULL ? slash + 1 : info.dli_fname),
               (size_t)(point - (uintptr_t)info.dli_fbase));
}
