/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The process of one property: how it ends, and how it calls the subject.
 */
#include "harness/drive.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/instrumented.h"
#include "harness/asked.h"
#include "harness/footprint.h"
#include "harness/interpose.h"
#include "model/attribution.h"
#include "python/python.h"
#include "python/python_half.h"
#include "shims/recorder.h"
#include "shims/shim.h"
#include "subject/python_subject.h"

/* The state of this process, which belongs to one property. */
static struct {
    struct drive_setup setup;
    struct subject subject;
    struct random random;
    atomic_int ended; /* 1 once a thread has begun to write the verdict */
    bool loaded;
    bool is_child; /* of in_child */
    bool is_trial; /* a child of child_survives */
    uint64_t begun;
    uint64_t memcheck_errors_before;
    char short_of[256]; /* why it has not tried all that it is about, or "" */
} drive;

/* Where this thread leaves its trace, from 1 on; 0: it has not called yet; NO_SLOT: all are taken
 * by threads that live, those that Python and the subject start included. */
enum { NO_SLOT = -1 };
static _Thread_local int slot;
static _Thread_local struct call nobodys_call, nobodys_making; /* without a slot */
static _Atomic bool slot_is_taken[CALL_SLOTS];
static pthread_key_t slot_key; /* by which it is given back when the thread ends */

/* The properties that are about blocks which share memory, about a struct that is gone, and about
 * exceptions left behind. */
#define OVERLAPS "malloc.disjoint"
#define STRUCT_STAYS "abi.struct-stays"
#define SETS_EXCEPTION "env.no-exception-set"

const struct property *drive_property(void)
{
    return drive.setup.property;
}

/* ---- traces ------------------------------------------------------------------------------ */

static void take_slot(void)
{
    slot = NO_SLOT;
    for (int i = 0; i < CALL_SLOTS && slot == NO_SLOT; i++) {
        if (!atomic_exchange(&slot_is_taken[i], true))
            slot = i + 1;
    }
    if (slot != NO_SLOT)
        pthread_setspecific(slot_key, &slot_is_taken[slot - 1]);
}

static void give_slot_back(void *taken)
{
    slot = 0;
    atomic_store((_Atomic bool *)taken, false);
}

static struct call *own_call(void)
{
    return slot > 0 ? &drive.setup.record->calls[slot - 1] : &nobodys_call;
}

/* Of the block that the latest call is about, where it is one of no bytes. */
static struct call *own_making(void)
{
    return slot > 0 ? &drive.setup.record->makings[slot - 1] : &nobodys_making;
}

/* ---- ends ------------------------------------------------------------------------------- */

/* The first thread that gets here ends the process; any other stops where it is.  What exit()
 * would run (the subject's destructors, the interpreter's end) is left to the properties that
 * are about it. */
static void only_once(void)
{
    if (atomic_exchange(&drive.ended, 1) != 0) {
        for (;;)
            pause();
    }
}

static void count_memcheck_errors(void)
{
    drive.setup.record->memcheck_errors += memcheck_error_count() - drive.memcheck_errors_before;
}

enum { SURVIVED = 49 }; /* the status of a child that came to its end */

static _Noreturn void leave(enum verdict verdict)
{
    struct record *record = drive.setup.record;
    if (drive.is_trial)
        _exit(verdict == PASS || verdict == SKIP ? SURVIVED : 0);
    fflush(stdout);
    if (verdict == PASS && record->short_in_child == SHORT_IN_CHILD)
        stopped_short("a process that it forked stopped at a limit");
    if (verdict == PASS && drive.short_of[0] != '\0') {
        snprintf(record->seen, sizeof record->seen, "%s", drive.short_of);
        record->expected[0] = '\0';
        verdict = INCOMPLETE;
    }
    record->reached = verdict;
    record->suspects[MADE_EMPTY] = *own_making();
    count_memcheck_errors();
    atomic_store(&record->state, RECORD_ENDED);
    if (drive.setup.at_end != NULL && !drive.is_child)
        drive.setup.at_end();
    _exit(0);
}

/* What is in NumPy's hands twice breaks whatever uses it. */
static void note_overlap(struct record *record)
{
    if (record->attribute_to[0] == '\0' && recorder_saw_overlap())
        memcpy(record->attribute_to, OVERLAPS, sizeof OVERLAPS);
}

/* Between control_begin and control_end, and in a child that is forked there. */
static bool in_control(void)
{
    return drive.setup.record->control[0] != '\0';
}

_Noreturn void fail_at(int line, const char *expected, const char *seen, ...)
{
    only_once();
    struct record *record = drive.setup.record;
    va_list arguments;
    va_start(arguments, seen);
    snprintf(record->expected, sizeof record->expected, "%s", expected);
    vsnprintf(record->seen, sizeof record->seen, seen, arguments);
    va_end(arguments);
    record->line = line;
    note_overlap(record);
    if (record->signal != 0) /* of a process that Python forked */
        record->suspects[ENDED_IN] = record->signal_call;
    /* what a control does is ordinary use, and whatever goes wrong there breaks a MUST */
    leave(drive.setup.property->level == MUST || in_control() ? FAIL : WARN);
}

void attribute_to(const char *id, const struct call *call)
{
    drive.setup.record->suspects[ENDED_IN] = *call;
    snprintf(drive.setup.record->attribute_to, sizeof drive.setup.record->attribute_to, "%s", id);
}

static _Noreturn void end_child(void)
{
    fflush(stdout);
    count_memcheck_errors();
    atomic_fetch_add(&drive.setup.record->children_done, 1);
    _exit(0);
}

_Noreturn void skip(const char *reason, ...)
{
    only_once();
    if (drive.is_child && in_control())
        end_child(); /* nothing is wrong there, and the property comes to it by itself */
    va_list arguments;
    va_start(arguments, reason);
    vsnprintf(drive.setup.record->seen, sizeof drive.setup.record->seen, reason, arguments);
    va_end(arguments);
    leave(SKIP);
}

_Noreturn void harness_broke(const char *what, ...)
{
    only_once();
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(drive.setup.record->seen, sizeof drive.setup.record->seen, what, arguments);
    va_end(arguments);
    leave(BROK);
}

/* Kept where no subject can write over it. */
void stopped_short(const char *reason, ...)
{
    va_list arguments;
    if (drive.is_child)
        drive.setup.record->short_in_child = SHORT_IN_CHILD;
    if (drive.short_of[0] != '\0')
        return;
    va_start(arguments, reason);
    vsnprintf(drive.short_of, sizeof drive.short_of, reason, arguments);
    va_end(arguments);
}

_Noreturn void pass(void)
{
    only_once();
    if (drive.is_child)
        end_child();
    leave(PASS);
}

void step(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(drive.setup.record->step, sizeof drive.setup.record->step, format, arguments);
    va_end(arguments);
}

void program_part(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(drive.setup.record->part, sizeof drive.setup.record->part, format, arguments);
    va_end(arguments);
}

/* ---- fatal signals ---------------------------------------------------------------------- */

/* A call through a struct that is gone says nothing about the call.  Async-signal-safe. */
static void note_struct_gone(struct record *record)
{
    if (record->attribute_to[0] == '\0' && drive.loaded &&
        !is_readable(drive.subject.handler, sizeof *drive.subject.handler))
        memcpy(record->attribute_to, STRUCT_STAYS, sizeof STRUCT_STAYS);
}

/* Writes down what was under way; the default action, put back by SA_RESETHAND, then ends the
 * process when the instruction runs again. */
static void on_fatal_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    struct record *record = drive.setup.record;
    record->signal = number;
    record->signal_call = *own_call();
    record->suspects[MADE_EMPTY] = *own_making();
    note_overlap(record);
    note_struct_gone(record);
    record->signal_has_address = info->si_code > 0 && (number == SIGSEGV || number == SIGBUS);
    record->signal_address = (uintptr_t)info->si_addr;
    if (info->si_code <= 0 && number != SIGABRT)
        raise(number);
}

static void catch_fatal_signals(void)
{
    static char stack[64 * 1024];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = on_fatal_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &action, NULL);
}

/* ---- processes that it forks ------------------------------------------------------------- */

static _Thread_local bool forks_trial; /* what this thread is about to fork is_trial */

/* In whatever process comes of a fork, by the harness, Python or the subject: memcheck's log of it
 * is looked at, too, unless it is one that is only tried. */
static void note_child(void)
{
    struct record *record = drive.setup.record;
    drive.memcheck_errors_before = memcheck_error_count();
    if (forks_trial || drive.is_trial)
        return;
    size_t number = atomic_fetch_add(&record->children, 1);
    if (number < MEMCHECK_CHILDREN)
        record->child[number] = getpid();
}

/* ---- begin ------------------------------------------------------------------------------ */

void drive_begin(const struct drive_setup *setup)
{
    drive.setup = *setup;
    drive.random = random_for(setup->seed, setup->property->id);
    drive.memcheck_errors_before = memcheck_error_count();
    drive.begun = clock_now();
    setup->record->pid = getpid();
    if (pthread_key_create(&slot_key, give_slot_back) != 0)
        harness_broke("a key for threads cannot be made");
    atomic_store(&setup->record->state, RECORD_RUNNING);
    if (!CONFORM_SANITIZED && setup->at_end == NULL)
        catch_fatal_signals();
    if (memcheck_is_running())
        pthread_atfork(NULL, NULL, note_child);
}

static void tell_load(enum load_state state, const char *why)
{
    struct load *load = drive.setup.load;
    if (load == NULL)
        return;
    snprintf(load->why, sizeof load->why, "%s", why);
    if (state == LOAD_DONE) {
        memcpy(load->name, drive.subject.handler->name, sizeof load->name);
        load->version = drive.subject.handler->version;
        load->has_name = 1;
        snprintf(load->claims, sizeof load->claims, "%s", drive.subject.claims);
        snprintf(load->how, sizeof load->how, "%s", drive.subject.how);
    }
    atomic_store(&load->state, state);
}

void drive_load_subject(void)
{
    char why[512] = "";
    step("loading %s", drive.setup.place->label);
    if (drive.setup.place->module != NULL && !python_is_up())
        skip("a handler from a Python module needs the interpreter");
    enum load_state state =
        drive.setup.place->module != NULL
            ? python_subject_load(drive.setup.place, &drive.subject, why, sizeof why)
            : subject_load(drive.setup.place, &drive.subject, why, sizeof why);
    if (state == LOAD_DONE && !is_readable(drive.subject.handler, sizeof *drive.subject.handler)) {
        snprintf(why, sizeof why,
                 "the struct that it hands out, at %p, is not in memory that can "
                 "be read",
                 (void *)drive.subject.handler);
        state = LOAD_FAILED;
    }
    tell_load(state, why);
    /* the first property, which tells how it went, came before */
    bool was_fit = drive.setup.load == NULL && python_is_up();
    if (state == LOAD_UNFIT && was_fit) {
        stopped_short("it could be loaded before, and now says that it cannot work here: %s", why);
        pass();
    }
    if (state == LOAD_UNFIT)
        skip("it says that it cannot work here: %s", why);
    if (state != LOAD_DONE)
        fail("a handler to come of loading it", "%s", why);
    drive.loaded = true;
    drive.setup.record->step[0] = '\0';
}

void subject_load_now(void)
{
    if (!drive.loaded)
        drive_load_subject();
}

void start_python_now(void)
{
    struct environment environment;
    memcheck_turn_deaf(); /* the errors of CPython's start are not the subject's */
    const char *wrong = python_start(drive.setup.python_path, &environment);
    memcheck_listen_again();
    if (wrong != NULL)
        harness_broke("Python cannot be started: %s", wrong);
}

void python_call(const char *module, const char *function)
{
    const char *wrong = python_half_has(module, function);
    if (wrong != NULL)
        harness_broke("conformance/%s", wrong);
    wrong = python_half_run(module, function);
    if (wrong != NULL)
        fail("Python and NumPy to work as they do with NumPy's own handler", "%s", wrong);
}

PyDataMem_Handler *subject_handler(void)
{
    return drive.subject.handler;
}

const struct subject *subject(void)
{
    return &drive.subject;
}

const struct subject_place *subject_place(void)
{
    return drive.setup.place;
}

struct claims subject_claims(void)
{
    struct claims claims;
    claims_parse(drive.subject.claims, &claims);
    return claims;
}

/* ---- calls ------------------------------------------------------------------------------ */

/* A call of this thread, and what it came upon. */
struct frame {
    struct call *call;
    struct call outer; /* the call that this one is inside of: Python has freed something in it */
    const void *exception;
};

static void call_begin(struct frame *frame, struct call made, bool is_missing)
{
    if (slot == 0)
        take_slot();
    struct call *call = own_call(), *making = own_making();
    size_t size;
    frame->call = call;
    if (call->function != OUTSIDE)
        frame->outer = *call;
    else
        frame->outer.function = OUTSIDE;
    frame->exception = python_pending();
    if (is_missing)
        made.trouble = FUNCTION_IS_MISSING;
    else if (made.function == IN_FREE && asked_size(made.pointer, &size) && size != made.first)
        made.trouble = WRONG_SIZE;
    if (making->function != OUTSIDE || made.pointer != NULL)
        *making = asked_maker_of_empty(made.pointer);
    *call = made;
    if (slot > 0)
        drive.setup.record->made[slot - 1]++;
    interpose_trouble = &call->trouble;
    atomic_signal_fence(memory_order_seq_cst);
    interpose_enter();
}

static void suspect(const struct call *call)
{
    static atomic_flag has_one = ATOMIC_FLAG_INIT;
    struct call *first = &drive.setup.record->suspects[RETURNED_WRONG];
    if (!atomic_flag_test_and_set(&has_one) && first->function == OUTSIDE)
        *first = *call;
}

static const char *const function_names[] = {"outside", "malloc", "calloc", "realloc", "free"};

/* Whatever kind of call it was. */
static _Noreturn void left_an_exception(const struct call *call)
{
    own_making()->function = OUTSIDE;
    attribute_to(SETS_EXCEPTION, &(struct call){.function = OUTSIDE});
    fail(text("no Python exception to be left behind by %s of %zu", function_names[call->function],
              call->function == IN_CALLOC ? call->first * call->second : call->first),
         "%s", python_error());
}

/* Returns what the call was. */
static struct call call_end(struct frame *frame)
{
    interpose_leave();
    atomic_signal_fence(memory_order_seq_cst);
    struct call made = *frame->call;
    frame->call->function = OUTSIDE;
    if (frame->outer.function != OUTSIDE)
        *frame->call = frame->outer;
    if (frame->exception == NULL && python_pending() != NULL)
        left_an_exception(&made);
    return made;
}

/* A call that has returned NULL, or a block of no bytes: whatever breaks later may come of it. */
static void note_return(const struct call *call, const void *p)
{
    if (p != NULL)
        asked_note_empty(p, call);
    else if (call->trouble == NO_TROUBLE && attribution_for_null(call) != NULL)
        suspect(call);
}

void *handler_malloc(PyDataMem_Handler *handler, size_t size)
{
    struct frame frame;
    call_begin(&frame, (struct call){IN_MALLOC, .first = size}, handler->allocator.malloc == NULL);
    void *p = handler->allocator.malloc(handler->allocator.ctx, size);
    struct call call = call_end(&frame);
    if (p == NULL || size == 0)
        note_return(&call, p);
    asked_note(p, size);
    return p;
}

void *handler_calloc(PyDataMem_Handler *handler, size_t nelem, size_t elsize)
{
    struct frame frame;
    call_begin(&frame, (struct call){IN_CALLOC, .first = nelem, .second = elsize},
               handler->allocator.calloc == NULL);
    void *p = handler->allocator.calloc(handler->allocator.ctx, nelem, elsize);
    struct call call = call_end(&frame);
    if (p == NULL || nelem == 0 || elsize == 0)
        note_return(&call, p);
    asked_note(p, nelem * elsize);
    return p;
}

/* What is forgotten is so before another thread can be given that address. */
void *handler_realloc(PyDataMem_Handler *handler, void *p, size_t size)
{
    struct frame frame;
    size_t old;
    bool was_known = asked_size(p, &old);
    call_begin(&frame, (struct call){IN_REALLOC, p, .first = size},
               handler->allocator.realloc == NULL);
    asked_forget(p);
    void *moved = handler->allocator.realloc(handler->allocator.ctx, p, size);
    struct call call = call_end(&frame);
    if (moved == NULL)
        note_return(&call, moved);
    if (moved != NULL)
        asked_note(moved, size);
    else if (was_known)
        asked_note(p, old);
    return moved;
}

void handler_free(PyDataMem_Handler *handler, void *p, size_t size)
{
    struct frame frame;
    call_begin(&frame, (struct call){IN_FREE, p, .first = size}, handler->allocator.free == NULL);
    asked_forget(p);
    handler->allocator.free(handler->allocator.ctx, p, size);
    call_end(&frame);
}

void *subject_malloc(size_t size)
{
    return handler_malloc(drive.subject.handler, size);
}

void *subject_calloc(size_t nelem, size_t elsize)
{
    return handler_calloc(drive.subject.handler, nelem, elsize);
}

void *subject_realloc(void *p, size_t size)
{
    return handler_realloc(drive.subject.handler, p, size);
}

void subject_free(void *p, size_t size)
{
    handler_free(drive.subject.handler, p, size);
}

/* ---- the subject as a shim sees it --------------------------------------------------------- */

static void *traced_malloc(void *ctx, size_t size)
{
    void *p = subject_malloc(size);
    shim_show_through(ctx, drive.subject.handler);
    return p;
}

/* NumPy takes zero for a NULL reference, and anything else for an object. */
static void look_whether_zero(const unsigned char *p, size_t nelem, size_t elsize)
{
    enum { WHOLE = 4096 };
    size_t size = nelem * elsize < WHOLE ? nelem * elsize : WHOLE;
    if (p != NULL && size > 0 && (p[0] != 0 || memcmp(p, p + 1, size - 1) != 0))
        suspect(&(struct call){IN_CALLOC, NULL, nelem, elsize, NOT_ZERO});
}

static void *traced_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = subject_calloc(nelem, elsize);
    look_whether_zero(p, nelem, elsize);
    shim_show_through(ctx, drive.subject.handler);
    return p;
}

static void *traced_realloc(void *ctx, void *old, size_t size)
{
    void *p = subject_realloc(old, size);
    shim_show_through(ctx, drive.subject.handler);
    return p;
}

static void traced_free(void *ctx, void *p, size_t size)
{
    subject_free(p, size);
    shim_show_through(ctx, drive.subject.handler);
}

PyDataMem_Handler *subject_traced(void)
{
    static PyDataMem_Handler traced = {
        .allocator = {&traced, traced_malloc, traced_calloc, traced_realloc, traced_free}};
    shim_show_through(&traced, drive.subject.handler);
    return &traced;
}

/* ---- calls that have to succeed ------------------------------------------------------------ */

enum { FAIR_SIZE = 1 << 20, FAIR_BYTES = 16 << 20, FAIR_BLOCKS = 16384 };

bool refusal_is_fair(size_t size, size_t live_bytes, size_t live_blocks)
{
    return size > FAIR_SIZE || live_bytes > FAIR_BYTES || live_blocks > FAIR_BLOCKS;
}

static void *not_refused(void *p, const char *call, size_t size)
{
    if (p != NULL)
        return p;
    if (refusal_is_fair(size, 0, 0))
        skip("the subject refuses %s", call);
    fail(text("%s to return a block: little else is live", call), "NULL");
}

void *must_malloc(size_t size)
{
    void *p = subject_malloc(size);
    return p != NULL ? p : not_refused(p, text("malloc(%zu)", size), size);
}

void *must_calloc(size_t nelem, size_t elsize)
{
    void *p = subject_calloc(nelem, elsize);
    return p != NULL ? p : not_refused(p, text("calloc(%zu, %zu)", nelem, elsize), nelem * elsize);
}

void *must_realloc(void *old, size_t size)
{
    void *p = subject_realloc(old, size);
    return p != NULL ? p : not_refused(p, text("realloc(%p, %zu)", old, size), size);
}

/* How long it takes over a large block, which is freed or cut. */
static double time_of_large(bool cut)
{
    enum { LARGE = 64 << 20, SMALL = 1000 };
    uint64_t begun = clock_now();
    void *p = subject_malloc(LARGE), *q = p != NULL && cut ? subject_realloc(p, SMALL) : NULL;
    subject_free(q != NULL ? q : p, q != NULL ? SMALL : LARGE);
    return clock_since(begun);
}

bool subject_fills_blocks(void)
{
    enum { TRIES = 3 };
    static const double long_time = 0.004; /* filling one takes three times as long, and more */
    for (int i = 0; i < TRIES; i++) {      /* for it may just have been interrupted */
        if (time_of_large(false) < long_time && time_of_large(true) < long_time)
            return false;
    }
    return true;
}

/* ---- chance, threads, memory ---------------------------------------------------------------- */

struct random *rng(void)
{
    return &drive.random;
}

struct job {
    void (*body)(void *);
    void *data;
    bool with_gil;
};

static void *run_job(void *data)
{
    struct job *job = data;
    if (job->with_gil)
        python_call_with_gil(job->body, job->data);
    else
        job->body(job->data);
    return NULL;
}

/* Many at once get small stacks, and may be more than this machine allows. */
static void start_thread(pthread_t *thread, struct job *job, size_t count)
{
    enum { FEW = 16, SMALL_STACK = 512 << 10 };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (count > FEW)
        pthread_attr_setstacksize(&attributes, SMALL_STACK);
    int error = pthread_create(thread, &attributes, run_job, job);
    pthread_attr_destroy(&attributes);
    if (error != 0 && count > FEW)
        skip("%zu threads at once cannot be started: %s", count, strerror(error));
    if (error != 0)
        harness_broke("a thread cannot be started: %s", strerror(error));
}

void in_threads(size_t count, void (*body)(void *), void *data, size_t element)
{
    pthread_t *threads = calloc(count, sizeof *threads);
    struct job *jobs = calloc(count, sizeof *jobs);
    if (threads == NULL || jobs == NULL)
        harness_broke("no memory for %zu threads", count);
    bool had_gil = python_has_gil();
    if (had_gil)
        python_release();
    for (size_t i = 0; i < count; i++) {
        jobs[i] = (struct job){body, (char *)data + i * element, had_gil && count == 1};
        start_thread(&threads[i], &jobs[i], count);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    if (had_gil)
        python_acquire();
    free(jobs);
    free(threads);
}

static void end_program(void)
{
    count_memcheck_errors();
    exit(SURVIVED);
}

/* What children share; the child does not come back from `end`. */
static pid_t begin_process(void (*body)(void *data), void *data, void (*end)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        harness_broke("fork: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        drive.is_child = true;
        body(data);
        end();
    }
    return pid;
}

/* `done`: children that had come to their end before this one was made.  False where it died of the
 * signal `spared`. */
static bool await_process(pid_t pid, int done, bool is_program, int spared)
{
    struct record *record = drive.setup.record;
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            harness_broke("waitpid: %s", strerror(errno));
    }
    if (atomic_load(&record->state) == RECORD_ENDED) {
        only_once();
        leave(record->reached);
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == spared)
        return false;
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    bool program_ended = is_program && WEXITSTATUS(status) == SURVIVED;
    if (atomic_load(&record->children_done) == done && !program_ended)
        _exit(WEXITSTATUS(status)); /* the subject ended the child: the worker sees no verdict */
    return true;
}

struct child start_child(void (*body)(void *data), void *data)
{
    int done = atomic_load(&drive.setup.record->children_done);
    return (struct child){begin_process(body, data, pass), done};
}

void await_child(struct child child)
{
    await_process(child.pid, child.done, false, 0);
}

void in_child(void (*body)(void *data), void *data)
{
    await_child(start_child(body, data));
}

bool in_child_unless(int killed_by, void (*body)(void *data), void *data)
{
    struct record *record = drive.setup.record;
    struct child child = start_child(body, data);
    bool lived = await_process(child.pid, child.done, false, killed_by);
    for (int i = 0; !lived && i < CALL_SLOTS; i++)
        record->calls[i].function = OUTSIDE;
    return lived;
}

void in_program(void (*body)(void *data), void *data)
{
    int done = atomic_load(&drive.setup.record->children_done);
    await_process(begin_process(body, data, end_program), done, true, 0);
}

double hang_limit(void)
{
    static const double without_limit = 3;
    return drive.setup.limit > 0 ? drive.setup.limit / 3 : without_limit;
}

void alarm_in(double seconds)
{
    long microseconds = (long)(seconds * 1e6);
    struct itimerval soon = {.it_value = {microseconds / 1000000, microseconds % 1000000}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

static bool survives(void (*body)(void *data), void *data, void (*end)(int status))
{
    fflush(stdout);
    forks_trial = true;
    pid_t pid = fork();
    forks_trial = false;
    if (pid < 0)
        harness_broke("fork: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
        for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
            signal(fatal[i], SIG_DFL); /* the record is the parent's */
        static struct record nobodys;
        drive.setup.record = &nobodys;
        drive.is_trial = true;
        signal(SIGALRM, SIG_DFL);
        alarm_in(hang_limit());
        body(data);
        end(SURVIVED);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            harness_broke("waitpid: %s", strerror(errno));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == SURVIVED;
}

bool child_survives(void (*body)(void *data), void *data)
{
    return survives(body, data, _exit);
}

bool program_survives(void (*body)(void *data), void *data)
{
    return survives(body, data, exit);
}

void control_run(void (*body)(void *data), void *data, const char *when)
{
    if (is_instrumented())
        return; /* it does little else there */
    step("it is tried %s", when);
    control_begin(when);
    in_child(body, data);
    control_end();
    drive.setup.record->step[0] = '\0';
}

void control_begin(const char *when)
{
    record_enter_control(drive.setup.record, when);
}

void control_end(void)
{
    record_enter_control(drive.setup.record, "");
}

/* A number of bytes from a file that holds one, or SIZE_MAX. */
static size_t bytes_in_file(const char *path, const char *format, size_t unit)
{
    size_t value = SIZE_MAX;
    char line[256];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return SIZE_MAX;
    while (value == SIZE_MAX && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, format, &value) == 1)
            value *= unit;
    }
    fclose(file);
    return value;
}

const char *lacking_memory(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur / 2 < bytes)
        return text("the address space is limited to %zu MiB", (size_t)limit.rlim_cur >> 20);
    size_t available = bytes_in_file("/proc/meminfo", "MemAvailable: %zu", 1024);
    if (available != SIZE_MAX && available / 2 < bytes)
        return text("%zu MiB of memory are available", available >> 20);
    size_t group = bytes_in_file("/sys/fs/cgroup/memory.max", "%zu", 1);
    if (group != SIZE_MAX && group / 2 < bytes)
        return text("the control group allows %zu MiB", group >> 20);
    return NULL;
}

void ask_for_memory(size_t bytes)
{
    const char *why = lacking_memory(bytes);
    if (why != NULL)
        skip("it needs %zu MiB, and %s", bytes >> 20, why);
}

size_t output_so_far(void)
{
    fflush(stdout);
    int length = 0;
    if (drive.setup.at_end != NULL)
        skip("with --no-fork the output is not captured");
    if (ioctl(OUTPUT_FD, FIONREAD, &length) != 0)
        harness_broke("the captured output cannot be measured: %s", strerror(errno));
    return (size_t)length;
}

bool is_instrumented(void)
{
    return CONFORM_SANITIZED || memcheck_is_running();
}

double time_limit(void)
{
    return drive.setup.limit;
}

bool time_is_up(void)
{
    return drive.setup.limit > 0 && clock_since(drive.begun) > drive.setup.limit / 2;
}

size_t stride(size_t longer)
{
    if (!is_instrumented() && !time_is_up())
        return 1;
    if (!is_instrumented())
        stopped_short("sizes were left out when half of its %g s were over; give it more by "
                      "--timeout",
                      drive.setup.limit);
    return longer;
}
