/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the subject is called, and the trace that a call leaves.
 */
#include "harness/calls.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "harness/interpose.h"
#include "harness/proc_count.h"
#include "harness/process_state.h"
#include "harness/requested_size.h"
#include "harness/test_process.h"
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
static _Thread_local struct step spare_call, spare_making; /* if all slots are taken */
static _Thread_local struct latest latest;                 /* call of this thread */
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

struct step *own_call(void)
{
    return slot > 0 ? &test_process.setup.record->calls[slot - 1] : &spare_call;
}

/* Of the block that the latest call is about, where it is one of no bytes. */
struct step *own_making(void)
{
    return slot > 0 ? &test_process.setup.record->makings[slot - 1] : &spare_making;
}

const struct latest *own_latest(void)
{
    return &latest;
}

/* ---- the state around calls --------------------------------------------------------------- */

static unsigned watched_parts;            /* enum state_part */
static _Thread_local struct state *noted; /* before the first call of this thread */
static _Thread_local size_t watched_calls, watched_large_calls; /* of this thread */

void calls_watch(unsigned parts)
{
    if (noted != NULL)
        state_expect_same(noted, "after the last calls");
    free(noted);
    noted = NULL;
    watched_calls = watched_large_calls = 0;
    watched_parts = parts;
}

static void note_state(void)
{
    int error = errno;
    noted = state_note(watched_parts);
    errno = error;
}

static void check_state_after(const struct step *call)
{
    enum { EACH = 32, EVERY = 1024, LARGE = 1 << 20 };
    int error = errno;
    size_t number = watched_calls++;
    bool is_early = number < EACH || (step_size(call) >= LARGE && watched_large_calls++ < EACH);
    if (is_early || number % EVERY == 0)
        state_expect_same(noted,
                          fmt("after %s of %" PRIu64, step_function(call->kind), step_size(call)));
    errno = error;
}

/* ---- calls ------------------------------------------------------------------------------ */

/* A call of this thread. */
struct frame {
    void (*code)(void);
    struct step *call;
    struct step outer;     /* the call in which Python frees something by this one */
    struct logged *logged; /* by enter(); or NULL */
    const void *exception; /* pending before the call */
};

/* `code` is the subject's function, or NULL. */
static void call_begin(struct frame *frame, struct step made, void (*code)(void))
{
    if (slot == 0)
        take_slot();
    struct step *call = own_call(), *making = own_making();
    size_t size;
    if (__builtin_expect(watched_parts != 0, 0) && noted == NULL)
        note_state();
    frame->code = code;
    frame->call = call;
    if (call->kind != OUTSIDE)
        frame->outer = *call;
    else
        frame->outer.kind = OUTSIDE;
    frame->exception = python_pending();
    if (code == NULL)
        made.trouble = FUNCTION_IS_MISSING;
    else if (made.kind == STEP_FREE && requested_size(made.pointer, &size) && size != made.first)
        made.trouble = WRONG_SIZE;
    if (making->kind != OUTSIDE || made.pointer != NULL)
        *making = requested_maker(made.pointer);
    *call = made;
    if (slot > 0)
        test_process.setup.record->made[slot - 1]++;
    interpose_trouble = &call->trouble;
    atomic_signal_fence(memory_order_seq_cst);
    interpose_enter();
}

static void suspect(const struct step *call)
{
    static atomic_flag has_one = ATOMIC_FLAG_INIT;
    struct step *first = &test_process.setup.record->suspects[RETURNED_WRONG];
    if (!atomic_flag_test_and_set(&has_one) &&
        (first->kind == OUTSIDE || first->trouble == REFUSED_LITTLE))
        *first = *call;
}

void suspect_not_zero(size_t nelem, size_t elsize)
{
    suspect(&(struct step){STEP_CALLOC, .first = nelem, .second = elsize, .trouble = NOT_ZERO});
}

/* True unless the block is aligned as C demands of its size, see C17 7.22.3. */
static bool is_unaligned(const void *p, size_t size)
{
    size_t alignment = _Alignof(max_align_t);
    while (alignment > size)
        alignment /= 2;
    return size > 0 && (uintptr_t)p % alignment != 0;
}

/* What may be wrong gives way to what is. */
static void suspect_refusal(const struct step *call)
{
    static atomic_flag has_one = ATOMIC_FLAG_INIT;
    struct step *first = &test_process.setup.record->suspects[RETURNED_WRONG];
    if (!atomic_flag_test_and_set(&has_one) && first->kind == OUTSIDE) {
        *first = *call;
        first->trouble = REFUSED_LITTLE;
    }
}

/* Whatever kind of call it was. */
static _Noreturn void left_an_exception(const struct step *call)
{
    own_making()->kind = OUTSIDE;
    attribute_to(property_about(TOPIC_EXCEPTION_SET), NULL);
    fail(fmt("no Python exception to be left behind by %s of %" PRIu64, step_function(call->kind),
             step_size(call)),
         "%s", python_error());
}

static _Noreturn void left_direction_down(const struct step *call)
{
    own_making()->kind = OUTSIDE;
    attribute_to(property_about(TOPIC_DIRECTION_FLAG_SET), NULL);
    fail(fmt("the direction flag to be clear after %s of %" PRIu64, step_function(call->kind),
             step_size(call)),
         "a set flag: memcpy and memset run backward");
}

/* Clears the flag of x86 by which string instructions go down, and returns whether it was set.
 * Compiled code relies on it being clear. */
static bool clear_direction_flag(void)
{
    bool was_set = false;
#ifdef __x86_64__
    was_set = (__builtin_ia32_readeflags_u64() & 0x400) != 0;
    if (was_set)
        __asm__ volatile("cld" ::: "cc", "memory");
#endif
    return was_set;
}

/* Returns what the call was. */
static struct step call_end(struct frame *frame)
{
    bool goes_down = clear_direction_flag(); /* before anything is copied */
    interpose_leave();
    atomic_signal_fence(memory_order_seq_cst);
    struct step made = *frame->call;
    latest = (struct latest){made, frame->code};
    frame->call->kind = OUTSIDE;
    if (frame->outer.kind != OUTSIDE)
        *frame->call = frame->outer;
    if (goes_down)
        left_direction_down(&made);
    if (frame->exception == NULL && python_pending() != NULL)
        left_an_exception(&made);
    if (__builtin_expect(watched_parts != 0, 0))
        check_state_after(&made);
    return made;
}

/* Notes the size of the block, and what later failures may be due to: NULL, a zero-size block, or a
 * block that cannot be as large as requested. */
static void note_return(const struct step *call, const void *p, size_t size)
{
    bool is_empty = (call->kind == STEP_MALLOC && call->first == 0) ||
                    (call->kind == STEP_CALLOC && (call->first == 0 || call->second == 0));
    if (p != NULL && !is_empty && call_is_absurd(call))
        suspect(call);
    else if (p == NULL && call->trouble == NO_TROUBLE && call_may_not_return_null(call))
        suspect(call);
    else if (p == NULL && call_is_of_little(call))
        suspect_refusal(call);
    else if (__builtin_expect(is_unaligned(p, size), 0)) {
        struct step unaligned = *call;
        unaligned.trouble = NOT_ALIGNED;
        suspect(&unaligned);
    }
    requested_note(p, size, is_empty ? call : NULL);
}

#define CODE(function) ((void (*)(void))(function))

/* Begins one call, and logs it if it is to the handler under test. */
static void enter(struct frame *frame, const PyDataMem_Handler *handler, struct step call,
                  void (*code)(void))
{
    size_t size;
    frame->logged = NULL;
    if (handler == test_process.subject.handler)
        frame->logged = call_log_begin(call, requested_size(call.pointer, &size) ? size : 0);
    call_begin(frame, call, code);
}

static struct step returned(struct frame *frame, const void *p)
{
    struct step call = call_end(frame);
    call_log_end(frame->logged, p, 1);
    return call;
}

void *handler_malloc(PyDataMem_Handler *handler, size_t size)
{
    struct frame frame;
    enter(&frame, handler, (struct step){STEP_MALLOC, .first = size},
          CODE(handler->allocator.malloc));
    void *p = handler->allocator.malloc(handler->allocator.ctx, size);
    struct step call = returned(&frame, p);
    note_return(&call, p, size);
    return p;
}

void *handler_calloc(PyDataMem_Handler *handler, size_t nelem, size_t elsize)
{
    struct frame frame;
    enter(&frame, handler, (struct step){STEP_CALLOC, .first = nelem, .second = elsize},
          CODE(handler->allocator.calloc));
    void *p = handler->allocator.calloc(handler->allocator.ctx, nelem, elsize);
    struct step call = returned(&frame, p);
    note_return(&call, p, nelem * elsize);
    return p;
}

/* The block is forgotten before another thread can be given its address. */
void *handler_realloc(PyDataMem_Handler *handler, void *p, size_t size)
{
    struct frame frame;
    size_t old;
    bool was_known = requested_size(p, &old);
    struct step maker = requested_maker(p);
    enter(&frame, handler, (struct step){STEP_REALLOC, .pointer = p, .first = size},
          CODE(handler->allocator.realloc));
    requested_forget(p);
    void *moved = handler->allocator.realloc(handler->allocator.ctx, p, size);
    struct step call = returned(&frame, moved);
    note_return(&call, moved, size);
    if (moved == NULL && was_known)
        requested_note(p, old, &maker);
    return moved;
}

void handler_free(PyDataMem_Handler *handler, void *p, size_t size)
{
    struct frame frame;
    enter(&frame, handler, (struct step){STEP_FREE, .pointer = p, .first = size},
          CODE(handler->allocator.free));
    requested_forget(p);
    handler->allocator.free(handler->allocator.ctx, p, size);
    returned(&frame, NULL);
}

void *subject_malloc(size_t size)
{
    return handler_malloc(test_process.subject.handler, size);
}

void *subject_calloc(size_t nelem, size_t elsize)
{
    return handler_calloc(test_process.subject.handler, nelem, elsize);
}

void *subject_realloc(void *p, size_t size)
{
    return handler_realloc(test_process.subject.handler, p, size);
}

void subject_free(void *p, size_t size)
{
    handler_free(test_process.subject.handler, p, size);
}

/* ---- calls by the hundred thousand ----------------------------------------------------------- */

/* True if many calls have to end before the i-th. */
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

/* Records which function is called next. */
static void note_next(struct step *call, enum step_kind kind, const void *p)
{
    call->kind = (uint8_t)kind;
    call->pointer = p;
    atomic_signal_fence(memory_order_seq_cst);
}

size_t subject_malloc_and_free(size_t size, size_t pairs)
{
    const PyDataMemAllocator *a = &test_process.subject.handler->allocator;
    struct bounds bounds = bounds_now();
    struct frame frame;
    size_t done = 0;
    struct step call = {STEP_MALLOC, .first = size}, pair = {STEP_MALLOC_FREE, .first = size};
    struct logged *logged = call_log_begin(pair, 0);
    call_log_expect(logged, pairs);
    call_begin(&frame, call, a->free == NULL ? NULL : CODE(a->malloc));
    for (; done < pairs && !is_past(&bounds, done); done++) {
        note_next(frame.call, STEP_MALLOC, NULL);
        unsigned char *p = a->malloc(a->ctx, size);
        if (p == NULL)
            break;
        note_next(frame.call, STEP_FREE, p);
        a->free(a->ctx, p, size);
    }
    call_end(&frame);
    call_log_end(logged, NULL, done + 1);
    return done;
}

size_t subject_malloc_many(void **blocks, size_t count, size_t size)
{
    const PyDataMemAllocator *a = &test_process.subject.handler->allocator;
    struct bounds bounds = bounds_now();
    struct frame frame;
    size_t done = 0;
    const struct step call = {STEP_MALLOC, .first = size};
    call_begin(&frame, call, CODE(a->malloc));
    while (done < count && !is_past(&bounds, done)) {
        struct logged *logged = call_log_begin(call, 0);
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
    const PyDataMemAllocator *a = &test_process.subject.handler->allocator;
    struct frame frame;
    struct step call = {STEP_FREE, .first = size};
    call_begin(&frame, call, CODE(a->free));
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] == NULL)
            continue;
        note_next(frame.call, STEP_FREE, blocks[i]);
        call.pointer = blocks[i];
        struct logged *logged = call_log_begin(call, 0);
        a->free(a->ctx, blocks[i], size);
        call_log_end(logged, NULL, 1);
    }
    call_end(&frame);
}

/* ---- the subject as a shim sees it --------------------------------------------------------- */

static void *traced_malloc(void *ctx, size_t size)
{
    void *p = subject_malloc(size);
    shim_show_through(ctx, test_process.subject.handler);
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
    shim_show_through(ctx, test_process.subject.handler);
    return p;
}

static void *traced_realloc(void *ctx, void *old, size_t size)
{
    void *p = subject_realloc(old, size);
    shim_show_through(ctx, test_process.subject.handler);
    return p;
}

static void traced_free(void *ctx, void *p, size_t size)
{
    subject_free(p, size);
    shim_show_through(ctx, test_process.subject.handler);
}

PyDataMem_Handler *subject_traced(void)
{
    static PyDataMem_Handler traced = {
        .allocator = {&traced, traced_malloc, traced_calloc, traced_realloc, traced_free}};
    shim_show_through(&traced, test_process.subject.handler);
    return &traced;
}

/* ---- calls that have to succeed ------------------------------------------------------------ */

static void *not_refused(void *p, const char *call, size_t size)
{
    if (p != NULL)
        return p;
    if (heap_may_refuse(size, 0, 0))
        skip("the subject refuses %s", call);
    fail(fmt("%s to return a block: little else is live", call), "NULL");
}

void *must_malloc(size_t size)
{
    void *p = subject_malloc(size);
    return p != NULL ? p : not_refused(p, fmt("malloc(%zu)", size), size);
}

void *must_calloc(size_t nelem, size_t elsize)
{
    void *p = subject_calloc(nelem, elsize);
    return p != NULL ? p : not_refused(p, fmt("calloc(%zu, %zu)", nelem, elsize), nelem * elsize);
}

void *must_realloc(void *old, size_t size)
{
    void *p = subject_realloc(old, size);
    return p != NULL ? p : not_refused(p, fmt("realloc(%p, %zu)", old, size), size);
}

static size_t own_page_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (size_t)usage.ru_minflt : 0;
}

/* True if it does not fill a large block that is freed or shrunk: a block that is new to the
 * process has a page fault for each page that is filled, of up to 2 MiB; one that the handler had
 * kept takes time alone. */
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
