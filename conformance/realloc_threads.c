/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc without the GIL, and on other threads than the one that made the block.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/harness.h"
#include "harness/interpose.h"
#include "harness/property_child.h"
#include "harness/threads.h"
#include "ordinary_use.h"
#include "python/api.h"
#include "python/python.h"

/* Two threads parse texts, one is busy with arrays of its own, each with the subject installed. */
enum { PARSERS = 2, WORKERS = PARSERS + 1, PARSES = 5, NUMBERS = 12500 };
struct worker {
    void (*work)(struct worker *self);
    size_t number;
    char text[NUMBERS * 2 + 1]; /* of a parser: digits, each with a space behind it */
};
static pthread_barrier_t all_ready;
static atomic_int parsing; /* threads that still do */

/* np.fromstring of the first `count` numbers of the text. */
static void parse(char *text_of_numbers, size_t count)
{
    char separator[] = " ";
    PyArrayObject *array = (PyArrayObject *)PyArray_FromString(
        text_of_numbers, (npy_intp)(2 * count), PyArray_DescrFromType(NPY_INT64), -1, separator);
    if (array == NULL)
        fail(fmt("np.fromstring of %zu numbers to give an array", count), "%s", python_error());
    const int64_t *numbers = PyArray_DATA(array);
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] != text_of_numbers[2 * i] - '0')
            fail(fmt("number %zu of %zu from np.fromstring to be %c", i, count,
                     text_of_numbers[2 * i]),
                 "%lld", (long long)numbers[i]);
    }
    Py_DECREF(array);
}

static void parse_texts(struct worker *self)
{
    for (size_t i = 0; i < (is_instrumented() ? 2 : PARSES); i++) {
        parse(self->text, NUMBERS - i);
        parse(self->text, 3 + i);
    }
    atomic_fetch_sub(&parsing, 1);
}

/* Resizes an array to `count` numbers, and checks those that it had. */
static void resize_array(PyArrayObject *array, npy_intp count)
{
    npy_intp had = PyArray_DIM(array, 0);
    PyArray_Dims shape = {&count, 1};
    PyObject *none = PyArray_Resize(array, &shape, 0, NPY_CORDER);
    if (none == NULL)
        fail(fmt("ndarray.resize from %zd to %zd numbers to work", had, count), "%s",
             python_error());
    Py_DECREF(none);
    const int64_t *numbers = PyArray_DATA(array);
    for (npy_intp i = 0; i < had && i < count; i++) {
        if (numbers[i] != i)
            fail(fmt("number %zd to be %zd still, after ndarray.resize from %zd to %zd", i, i, had,
                     count),
                 "%lld", (long long)numbers[i]);
    }
}

static void resize_arrays(struct worker *self)
{
    npy_intp small = 500, large = 4000;
    (void)self;
    while (atomic_load(&parsing) > 0) {
        PyArrayObject *array = (PyArrayObject *)PyArray_Arange(0, (double)small, 1, NPY_INT64);
        if (array == NULL)
            fail("np.arange(500) to give an array", "%s", python_error());
        resize_array(array, large);
        resize_array(array, small);
        Py_DECREF(array);
        PyEval_RestoreThread(PyEval_SaveThread()); /* whoever has parsed its text wants to go on */
    }
}

static void work_with_numpy(void *data)
{
    struct worker *worker = data;
    PyGILState_STATE state = PyGILState_Ensure();
    install_handler(subject_traced()); /* the choice of a handler is each thread's own */
    PyThreadState *released = PyEval_SaveThread();
    pthread_barrier_wait(&all_ready);
    PyEval_RestoreThread(released);
    perturb_begin(worker->number);
    worker->work(worker);
    perturb_end();
    PyGILState_Release(state);
}

/* One thread grows a block to a large one, without the GIL, while the other holds it, and asks for
 * a block as soon as that is done, or well under way.  realloc alone is called without the GIL: a
 * handler may take it, and then waits until the other lets go.  Where there is no GIL a third has
 * Python stop all threads to collect garbage, which is as long to wait for. */
struct meeting {
    void *p;
    size_t size;
    bool stops_all;
    atomic_bool held, begun, done;
};

static void never_returned(int number)
{
    (void)number;
    fail("malloc with the GIL to return while realloc without it grows a block to 16 MiB",
         "no end after %.3g s: whoever has the GIL waits for a lock, and whoever has the lock for "
         "the GIL",
         hang_limit());
}

static void ask_with_gil(struct meeting *meeting)
{
    static const double a_moment = 0.002;
    signal(SIGALRM, never_returned);
    alarm_in(hang_limit());
    PyGILState_STATE state = PyGILState_Ensure();
    atomic_store(&meeting->held, true);
    while (!atomic_load(&meeting->begun))
        sched_yield();
    for (uint64_t begin = clock_now(); !atomic_load(&meeting->done);) {
        if (clock_since(begin) > a_moment)
            break;
        sched_yield();
    }
    give_back(subject_malloc(100), 100);
    PyGILState_Release(state);
    alarm_in(0);
}

static void grow_without_gil(struct meeting *meeting)
{
    enum { LARGE = 16 << 20 };
    while (!atomic_load(&meeting->held))
        sched_yield();
    if (meeting->stops_all)
        usleep(5000); /* until the third waits for those that run Python */
    atomic_store(&meeting->begun, true);
    void *larger = subject_realloc(meeting->p, LARGE);
    atomic_store(&meeting->done, true);
    if (larger != NULL) {
        meeting->p = larger;
        meeting->size = LARGE;
    }
}

static void stop_all(struct meeting *meeting)
{
    while (!atomic_load(&meeting->held))
        sched_yield();
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *gc = PyImport_ImportModule("gc");
    Py_XDECREF(gc != NULL ? PyObject_CallMethod(gc, "collect", NULL) : NULL);
    Py_XDECREF(gc);
    PyErr_Clear();
    PyGILState_Release(state);
}

struct party {
    void (*part)(struct meeting *meeting);
    struct meeting *meeting;
};

static void take_part(void *data)
{
    struct party *party = data;
    party->part(party->meeting);
}

PROPERTY(realloc_without_gil,
    .id     = "realloc.without-gil", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_IN_USE, RANK_IN_USE, 31}, .threads = true,
    .clause = "realloc works without the GIL, while other threads are inside the handler",
    .source = "NumPy 1.22 to 2.5: ctors.c array_from_text, within NPY_BEGIN_ALLOW_THREADS",
    .why    = "np.fromstring and np.fromfile of text do it while other threads use arrays",
    .hint   = "call only PyMem_Raw* of Python's; lock shared data; wait for no GIL with a lock",
    .looks  = "FAIL: realloc not to call PyMem_Malloc without the GIL")
{
    static struct worker workers[WORKERS];
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i].number = i;
        workers[i].work = i < PARSERS ? parse_texts : resize_arrays;
        for (size_t j = 0; i < PARSERS && j < NUMBERS; j++) {
            workers[i].text[2 * j] = (char)('0' + (j * 7 + i) % 10);
            workers[i].text[2 * j + 1] = ' ';
        }
    }
    parsing = PARSERS;
    pthread_barrier_init(&all_ready, NULL, WORKERS);
    gil_watch();
    struct meeting meeting = {.p = must_malloc(100), .size = 100, .stops_all = !python_uses_gil()};
    python_release();
    in_threads(WORKERS, work_with_numpy, workers, sizeof workers[0]);
    struct party parties[] = {
        {ask_with_gil, &meeting}, {grow_without_gil, &meeting}, {stop_all, &meeting}};
    step("growing a large block without the GIL, while another thread has it and asks for one");
    in_threads(meeting.stops_all ? 3 : 2, take_part, parties, sizeof parties[0]);
    python_acquire();
    subject_free(meeting.p, meeting.size);
}

/* What a thread is to do with the blocks: resize each to a size that depends on the turn. */
struct relay {
    struct blocks blocks;
    size_t turn;
};

static size_t relay_size(size_t i, size_t turn)
{
    static const size_t large[] = {8192, 40000, 131072, 200000};
    if (i % 64 == 63)
        return large[(i / 64 + turn) % 4];
    return turn % 2 == 0 ? i + 1 : turn % 4 == 1 ? 2 * i + 33 : (i + 2) / 2;
}

static void resize_here(void *data)
{
    struct relay *relay = data;
    for (size_t i = 0; i < relay->blocks.count; i++) {
        struct block *b = &relay->blocks.at[i];
        size_t size = relay_size(i, relay->turn);
        b->p = must_realloc(b->p, size);
        expect_pattern(b->p, MIN(b->size, size), b->number,
                       "after realloc from %zu to %zu in another thread", b->size, size);
        b->size = size;
        pattern_fill(b->p, size, b->number);
    }
}

static void make_for_relay(struct relay *relay)
{
    for (size_t i = 0; i < (is_instrumented() ? 256 : 1000); i++) {
        size_t size = relay_size(i, 0);
        void *p = i % 3 == 0 ? must_calloc(size, 1) : must_malloc(size);
        blocks_add(&relay->blocks, p, size);
    }
}

/* A block that this thread knows, by a realloc in place and one that was refused, is freed, and a
 * larger one comes to stand there. */
struct successor {
    unsigned char *p;
    size_t size;
};

static void succeed(void *data)
{
    struct successor *s = data;
    enum { TRIES = 32 };
    unsigned char *old = s->p, *made[TRIES];
    size_t count = 0;
    subject_free(must_malloc(100), 100); /* a thread that made none may keep none */
    subject_free(old, s->size);
    s->size += 4;
    for (s->p = NULL; count < TRIES && s->p != old; count++)
        s->p = made[count] = must_malloc(s->size);
    for (size_t i = 0; i + 1 < count; i++)
        subject_free(made[i], s->size);
}

static void resize_successors(bool elsewhere)
{
    static const size_t sizes[] = {20, 36, 52, 100, 244, 1000, 5000};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t size = sizes[i], more = 2 * size + 100;
        struct successor s = {must_realloc(must_malloc(size + 1), size), size};
        absurd_begin();
        unsigned char *given = subject_realloc(s.p, PTRDIFF_MAX);
        absurd_end();
        if (given != NULL)
            return; /* realloc.failure-keeps-block tests that */
        if (elsewhere)
            in_threads(1, succeed, &s, sizeof s);
        else
            succeed(&s);
        uint64_t number = 2 * size + elsewhere; /* the control's may lie where it is moved to */
        pattern_fill(s.p, s.size, number);
        s.p = must_realloc(s.p, more);
        expect_pattern(s.p, s.size, number,
                       "after realloc from %zu to %zu of a block that another thread made, at the "
                       "address of one of %zu that it freed",
                       s.size, more, size);
        subject_free(s.p, more);
    }
}

/* As the property, by one thread alone. */
static void relay_to_nobody(void *unused)
{
    struct relay relay = {0};
    (void)unused;
    make_for_relay(&relay);
    for (relay.turn = 1; relay.turn <= 4; relay.turn++)
        resize_here(&relay);
    blocks_verify(&relay.blocks, "after realloc");
    blocks_free_all(&relay.blocks);
    resize_successors(false);
}

PROPERTY(realloc_in_another_thread,
    .id     = "realloc.in-another-thread", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_IN_USE, RANK_IN_USE, 30}, .slow_ms = 50, .threads = true,
    .clause = "a block can be resized in another thread than the one that made it",
    .source = "NumPy 1.22 to 2.5: shape.c PyArray_Resize, in any thread; NEP 49, High level design",
    .why    = "arrays are handed from thread to thread, and keep their handler",
    .hint   = "keep what realloc needs with the block: a thread's own notes become outdated",
    .looks  = "FAIL: byte 0 of 17 to be 0xc3, after realloc in another thread; seen 0x00")
{
    struct relay relay = {0};
    control_run(relay_to_nobody, NULL, "in one thread alone");
    make_for_relay(&relay);
    for (relay.turn = 1; relay.turn <= 4; relay.turn++)
        in_threads(1, resize_here, &relay, sizeof relay);
    blocks_verify(&relay.blocks, "after realloc in four other threads");
    blocks_free_all(&relay.blocks);
    resize_successors(true);
}
