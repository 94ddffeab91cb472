/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the subject is called, and the trace that a call leaves.
 */
#include "harness/calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/direction_flag.h"
#include "harness/asked.h"
#include "harness/footprint.h"
#include "harness/interpose.h"
#include "harness/own.h"
#include "harness/verdict.h"
#include "heap/heap.h"
#include "model/attribution.h"
#include "python/python.h"
#include "repro/call_log.h"
#include "shims/shim.h"

/* Where this thread leaves its trace, from 1 on; 0: it has not called yet; NO_SLOT: all are taken
 * by threads that live, those that Python and the subject start included. */
enum { NO_SLOT = -1 };
static _Thread_local int slot;
static _Thread_local struct call nobodys_call, nobodys_making; /* without a slot */
static _Thread_local struct latest latest;                     /* call of this thread */
static _Atomic bool slot_is_taken[CALL_SLOTS];
static pthread_key_t slot_key; /* by which it is given back when the thread ends */

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

void calls_prepare(void)
{
    if (pthread_key_create(&slot_key, give_slot_back) != 0)
        harness_broke("a key for threads cannot be made");
}

struct call *own_call(void)
{
    return slot > 0 ? &own.setup.record->calls[slot - 1] : &nobodys_call;
}

/* Of the block that the latest call is about, where it is one of no bytes. */
struct call *own_making(void)
{
    return slot > 0 ? &own.setup.record->makings[slot - 1] : &nobodys_making;
}

const struct latest *own_latest(void)
{
    return &latest;
}

/* ---- calls ------------------------------------------------------------------------------ */

/* A call of this thread, and what it came upon. */
struct frame {
    void (*code)(void);
    struct call *call;
    struct call outer; /* the call that this one is inside of: Python has freed something in it */
    const void *exception;
};

/* `code` is the subject's function, or NULL. */
static void call_begin(struct frame *frame, struct call made, void (*code)(void))
{
    if (slot == 0)
        take_slot();
    struct call *call = own_call(), *making = own_making();
    size_t size;
    frame->code = code;
    frame->call = call;
    if (call->function != OUTSIDE)
        frame->outer = *call;
    else
        frame->outer.function = OUTSIDE;
    frame->exception = python_pending();
    if (code == NULL)
        made.trouble = FUNCTION_IS_MISSING;
    else if (made.function == IN_FREE && asked_size(made.pointer, &size) && size != made.first)
        made.trouble = WRONG_SIZE;
    if (making->function != OUTSIDE || made.pointer != NULL)
        *making = asked_maker_of_empty(made.pointer);
    *call = made;
    if (slot > 0)
        own.setup.record->made[slot - 1]++;
    interpose_trouble = &call->trouble;
    atomic_signal_fence(memory_order_seq_cst);
    interpose_enter();
}

static void suspect(const struct call *call)
{
    static atomic_flag has_one = ATOMIC_FLAG_INIT;
    struct call *first = &own.setup.record->suspects[RETURNED_WRONG];
    if (!atomic_flag_test_and_set(&has_one) &&
        (first->function == OUTSIDE || first->trouble == REFUSED_LITTLE))
        *first = *call;
}

void suspect_not_zero(size_t nelem, size_t elsize)
{
    suspect(&(struct call){IN_CALLOC, NULL, nelem, elsize, NOT_ZERO});
}

/* What may be wrong gives way to what is. */
static void suspect_refusal(const struct call *call)
{
    static atomic_flag has_one = ATOMIC_FLAG_INIT;
    struct call *first = &own.setup.record->suspects[RETURNED_WRONG];
    if (!atomic_flag_test_and_set(&has_one) && first->function == OUTSIDE) {
        *first = *call;
        first->trouble = REFUSED_LITTLE;
    }
}

static const char *const function_names[] = {"outside", "malloc", "calloc", "realloc", "free"};

static size_t size_of(const struct call *call)
{
    return call->function == IN_CALLOC ? call->first * call->second : call->first;
}

/* Whatever kind of call it was. */
static _Noreturn void left_an_exception(const struct call *call)
{
    own_making()->function = OUTSIDE;
    attribute_to(property_about(TOPIC_EXCEPTION_SET), &(struct call){.function = OUTSIDE});
    fail(text("no Python exception to be left behind by %s of %zu", function_names[call->function],
              size_of(call)),
         "%s", python_error());
}

static _Noreturn void left_direction_down(const struct call *call)
{
    own_making()->function = OUTSIDE;
    attribute_to(property_about(TOPIC_DIRECTION_FLAG_SET), &(struct call){.function = OUTSIDE});
    fail(text("the direction flag to be clear after %s of %zu", function_names[call->function],
              size_of(call)),
         "it is set: memcpy and memset go down from there");
}

/* Returns what the call was. */
static struct call call_end(struct frame *frame)
{
    bool goes_down = clear_direction_flag(); /* before anything is copied */
    interpose_leave();
    atomic_signal_fence(memory_order_seq_cst);
    struct call made = *frame->call;
    latest = (struct latest){made, frame->code};
    frame->call->function = OUTSIDE;
    if (frame->outer.function != OUTSIDE)
        *frame->call = frame->outer;
    if (goes_down)
        left_direction_down(&made);
    if (frame->exception == NULL && python_pending() != NULL)
        left_an_exception(&made);
    return made;
}

static bool is_empty(const struct call *call)
{
    return (call->function == IN_MALLOC && call->first == 0) ||
           (call->function == IN_CALLOC && (call->first == 0 || call->second == 0));
}

/* A call that has returned NULL, a block of no bytes, or one that cannot be as long as it was asked
 * for: whatever breaks later may come of it. */
static void note_return(const struct call *call, const void *p)
{
    if (p != NULL && is_empty(call))
        asked_note_empty(p, call);
    else if (p != NULL && call_is_absurd(call))
        suspect(call);
    else if (p == NULL && call->trouble == NO_TROUBLE && call_may_not_return_null(call))
        suspect(call);
    else if (p == NULL && call_is_of_little(call))
        suspect_refusal(call);
}

#define CODE(function) ((void (*)(void))(function))

/* A call of the subject's, and of no twin of it. */
static struct logged *log_call(const PyDataMem_Handler *handler, enum step_kind kind,
                               const void *given, size_t first, size_t second)
{
    size_t size = 0;
    if (handler != own.subject.handler || (given != NULL && !asked_size(given, &size)))
        size = 0;
    return handler == own.subject.handler ? call_log_begin(kind, given, size, first, second) : NULL;
}

void *handler_malloc(PyDataMem_Handler *handler, size_t size)
{
    struct frame frame;
    struct logged *logged = log_call(handler, STEP_MALLOC, NULL, size, 0);
    call_begin(&frame, (struct call){IN_MALLOC, .first = size}, CODE(handler->allocator.malloc));
    void *p = handler->allocator.malloc(handler->allocator.ctx, size);
    struct call call = call_end(&frame);
    call_log_end(logged, p, 1);
    note_return(&call, p);
    asked_note(p, size);
    return p;
}

void *handler_calloc(PyDataMem_Handler *handler, size_t nelem, size_t elsize)
{
    struct frame frame;
    struct logged *logged = log_call(handler, STEP_CALLOC, NULL, nelem, elsize);
    call_begin(&frame, (struct call){IN_CALLOC, .first = nelem, .second = elsize},
               CODE(handler->allocator.calloc));
    void *p = handler->allocator.calloc(handler->allocator.ctx, nelem, elsize);
    struct call call = call_end(&frame);
    call_log_end(logged, p, 1);
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
    struct logged *logged = log_call(handler, STEP_REALLOC, p, size, 0);
    call_begin(&frame, (struct call){IN_REALLOC, p, .first = size},
               CODE(handler->allocator.realloc));
    asked_forget(p);
    void *moved = handler->allocator.realloc(handler->allocator.ctx, p, size);
    struct call call = call_end(&frame);
    call_log_end(logged, moved, 1);
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
    struct logged *logged = log_call(handler, STEP_FREE, p, size, 0);
    call_begin(&frame, (struct call){IN_FREE, p, .first = size}, CODE(handler->allocator.free));
    asked_forget(p);
    handler->allocator.free(handler->allocator.ctx, p, size);
    call_end(&frame);
    call_log_end(logged, NULL, 1);
}

void *subject_malloc(size_t size)
{
    return handler_malloc(own.subject.handler, size);
}

void *subject_calloc(size_t nelem, size_t elsize)
{
    return handler_calloc(own.subject.handler, nelem, elsize);
}

void *subject_realloc(void *p, size_t size)
{
    return handler_realloc(own.subject.handler, p, size);
}

void subject_free(void *p, size_t size)
{
    handler_free(own.subject.handler, p, size);
}

/* ---- calls by the hundred thousand ----------------------------------------------------------- */

/* Whether, before the i-th of many calls, it is time to come to an end. */
struct bounds {
    uint64_t begun;
    size_t resident;
};
static struct bounds bounds_now(void)
{
    return (struct bounds){clock_now(), resident_bytes()};
}
static bool is_past(const struct bounds *bounds, size_t i)
{
    enum { EVERY = 1024, MUCH = 64 << 20 };
    static const double a_moment = 0.3;
    return i % EVERY == EVERY - 1 &&
           (clock_since(bounds->begun) > a_moment || resident_bytes() > bounds->resident + MUCH);
}

/* It is about to free p. */
static void tell_free(struct call *call, const void *p)
{
    call->function = IN_FREE;
    call->pointer = p;
    atomic_signal_fence(memory_order_seq_cst);
}

/* It is about to ask for another. */
static void tell_ask(struct call *call, enum function function)
{
    call->function = function;
    call->pointer = NULL;
    atomic_signal_fence(memory_order_seq_cst);
}

size_t subject_malloc_and_free(size_t size, size_t pairs)
{
    const PyDataMemAllocator *a = &own.subject.handler->allocator;
    struct bounds bounds = bounds_now();
    struct frame frame;
    size_t done = 0;
    struct logged *logged = call_log_begin(STEP_MALLOC_FREE, NULL, 0, size, 0);
    call_log_expect(logged, pairs);
    call_begin(&frame, (struct call){IN_MALLOC, .first = size},
               a->free != NULL ? CODE(a->malloc) : NULL);
    for (; done < pairs && !is_past(&bounds, done); done++) {
        tell_ask(frame.call, IN_MALLOC);
        void *p = a->malloc(a->ctx, size);
        if (p == NULL)
            break;
        tell_free(frame.call, p);
        a->free(a->ctx, p, size);
    }
    call_end(&frame);
    call_log_end(logged, NULL, done + 1);
    return done;
}

size_t subject_calloc_and_free(size_t size, size_t pairs, void **dirty)
{
    const PyDataMemAllocator *a = &own.subject.handler->allocator;
    struct bounds bounds = bounds_now();
    struct frame frame;
    size_t done = 0;
    struct logged *logged = call_log_begin(STEP_CALLOC_FREE, NULL, 0, size, 1);
    call_log_expect(logged, pairs);
    call_begin(&frame, (struct call){IN_CALLOC, .first = size, .second = 1},
               a->free != NULL ? CODE(a->calloc) : NULL);
    for (*dirty = NULL; done < pairs && !is_past(&bounds, done); done++) {
        tell_ask(frame.call, IN_CALLOC);
        unsigned char *p = a->calloc(a->ctx, size, 1);
        if (p == NULL)
            break;
        if (p[0] != 0 || memcmp(p, p + 1, size - 1) != 0) {
            *dirty = p;
            break;
        }
        memset(p, 0xff, size);
        tell_free(frame.call, p);
        a->free(a->ctx, p, size);
    }
    call_end(&frame);
    call_log_end(logged, NULL, done + 1);
    return done;
}

size_t subject_malloc_many(void **blocks, size_t count, size_t size)
{
    const PyDataMemAllocator *a = &own.subject.handler->allocator;
    struct bounds bounds = bounds_now();
    struct frame frame;
    size_t done = 0;
    call_begin(&frame, (struct call){IN_MALLOC, .first = size}, CODE(a->malloc));
    while (done < count && !is_past(&bounds, done)) {
        struct logged *logged = call_log_begin(STEP_MALLOC, NULL, 0, size, 0);
        blocks[done] = a->malloc(a->ctx, size);
        call_log_end(logged, blocks[done], 1);
        if (blocks[done] == NULL)
            break;
        done++;
    }
    call_end(&frame);
    return done;
}

void subject_free_many(void **blocks, size_t count, size_t size)
{
    const PyDataMemAllocator *a = &own.subject.handler->allocator;
    struct frame frame;
    call_begin(&frame, (struct call){IN_FREE, .first = size}, CODE(a->free));
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] == NULL)
            continue;
        tell_free(frame.call, blocks[i]);
        struct logged *logged = call_log_begin(STEP_FREE, blocks[i], 0, size, 0);
        a->free(a->ctx, blocks[i], size);
        call_log_end(logged, NULL, 1);
    }
    call_end(&frame);
}

/* ---- the subject as a shim sees it --------------------------------------------------------- */

static void *traced_malloc(void *ctx, size_t size)
{
    void *p = subject_malloc(size);
    shim_show_through(ctx, own.subject.handler);
    return p;
}

/* NumPy takes zero for a NULL reference, and anything else for an object. */
static void look_whether_zero(const unsigned char *p, size_t nelem, size_t elsize)
{
    enum { WHOLE = 4096 };
    size_t size = nelem * elsize < WHOLE ? nelem * elsize : WHOLE;
    if (p != NULL && size > 0 && (p[0] != 0 || memcmp(p, p + 1, size - 1) != 0))
        suspect_not_zero(nelem, elsize);
}

static void *traced_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = subject_calloc(nelem, elsize);
    look_whether_zero(p, nelem, elsize);
    shim_show_through(ctx, own.subject.handler);
    return p;
}

static void *traced_realloc(void *ctx, void *old, size_t size)
{
    void *p = subject_realloc(old, size);
    shim_show_through(ctx, own.subject.handler);
    return p;
}

static void traced_free(void *ctx, void *p, size_t size)
{
    subject_free(p, size);
    shim_show_through(ctx, own.subject.handler);
}

PyDataMem_Handler *subject_traced(void)
{
    static PyDataMem_Handler traced = {
        .allocator = {&traced, traced_malloc, traced_calloc, traced_realloc, traced_free}};
    shim_show_through(&traced, own.subject.handler);
    return &traced;
}

/* ---- calls that have to succeed ------------------------------------------------------------ */

static void *not_refused(void *p, const char *call, size_t size)
{
    if (p != NULL)
        return p;
    if (heap_may_refuse(size, 0, 0))
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

static size_t own_page_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (size_t)usage.ru_minflt : 0;
}

/* Whether it leaves a large block alone, which is freed or cut: a block that is new to the process
 * has a page fault for each page that is filled, whose size may be 2 MiB; one that it had kept
 * takes time alone. */
static bool leaves_large_alone(bool cut)
{
    enum { LARGE = 64 << 20, SMALL = 1000, MANY_FAULTS = LARGE / (2 << 20) * 3 / 4 };
    static const double long_time = 0.004; /* filling one takes about as long, and mostly more */
    size_t faults = own_page_faults();
    uint64_t begun = clock_now();
    void *p = subject_malloc(LARGE), *q = p != NULL && cut ? subject_realloc(p, SMALL) : NULL;
    subject_free(q != NULL ? q : p, q != NULL ? SMALL : LARGE);
    return clock_since(begun) < long_time && own_page_faults() - faults < MANY_FAULTS;
}

bool subject_fills_blocks(void)
{
    enum { TRIES = 3 }; /* for it may just have been interrupted */
    for (int i = 0; i < TRIES; i++) {
        if (leaves_large_alone(false) && leaves_large_alone(true))
            return false;
    }
    return true;
}
