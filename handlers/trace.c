/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace.c - which Python lines made the arrays: bytes at the peak, live, and most ever.
 *
 * NEP49_TRACE=FILE writes the report there at exit, and to FILE.svg a flame graph of the stacks
 * that held memory at the peak.  SIGUSR2 writes both at the next free.  With FILE - the report goes
 * to stderr, without a graph.  Stacks are up to NEP49_TRACE_DEPTH frames deep (default: 32).
 *
 * Python's functions are looked up in the process, and called only with the GIL held.  NumPy calls
 * realloc without it while it parses text: the block then keeps its stack.  Each block has a header
 * with its size and its stack.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nep49.h"
#include "nep49_advise.h"
#include "nep49_setting.h"

#define OUTPUT "NEP49_TRACE"
#define DEPTH "NEP49_TRACE_DEPTH"

enum { MOST_DEPTH = 256, BUCKETS = 1 << 14, MOST_STACKS = 1 << 18 };

typedef struct _object object; /* PyObject, of which only the address matters here */

/* Bytes of a line or of a stack.  at_peak is updated before the next change: until then, what was
 * live at the last peak is what is live now. */
struct bytes {
    size_t live, most, at_peak, peak; /* peak: the number of the one that at_peak belongs to */
    unsigned long made;
};

struct place { /* a line of a function */
    struct place *next;
    object *code; /* kept, so that no other code takes its address */
    int line;
    const char *file, *function;
    struct bytes bytes;
};

struct stack {          /* a node of the call tree */
    struct stack *next; /* in its bucket */
    struct stack *caller, *callees, *sibling;
    struct place *place; /* NULL: the root */
    struct bytes bytes;  /* of blocks made here, without callees */
    size_t shown;        /* at the peak, with callees; for the flame graph */
};

struct header {
    _Alignas(16) size_t size;
    struct stack *stack;
};

static struct {
    int (*Py_IsInitialized)(void);
    int (*PyGILState_Check)(void);
    object *(*PyEval_GetFrame)(void);
    object *(*PyFrame_GetCode)(object *);
    object *(*PyFrame_GetBack)(object *);
    int (*PyFrame_GetLineNumber)(object *);
    object *(*PyObject_GetAttrString)(object *, const char *);
    const char *(*PyUnicode_AsUTF8)(object *);
    void (*PyErr_Fetch)(object **, object **, object **);
    void (*PyErr_Restore)(object *, object *, object *);
    void (*Py_IncRef)(object *);
    void (*Py_DecRef)(object *);
    bool complete;
} py;

static struct place nowhere = {.file = "?", .function = "not in Python, or without the GIL"};
static struct stack unknown = {.place = &nowhere}, root = {.callees = &unknown};

static struct {
    unsigned depth; /* 0: not decided yet */
    char *output;   /* or NULL */
    pid_t process;
    pthread_mutex_t lock; /* of all below */
    struct bytes total;
    size_t live_blocks, peaks, place_count, stack_count;
    struct place *places[BUCKETS];
    struct stack *stacks[BUCKETS];
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static volatile sig_atomic_t wanted; /* a report */
static _Thread_local char busy __attribute__((tls_model("initial-exec")));

/* ---- who is it? ------------------------------------------------------------------------------ */

static size_t mix(size_t hash, size_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* A copy of code's attribute, cleaned of what would break a line; never NULL. */
static char *attribute(object *code, const char *name)
{
    object *value = py.PyObject_GetAttrString(code, name);
    const char *text = value ? py.PyUnicode_AsUTF8(value) : NULL;
    char *copy = strdup(text ? text : "?");

    for (char *c = copy; c != NULL && *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    if (value != NULL)
        py.Py_DecRef(value);
    return copy;
}

/* Python is called without our lock: it may collect garbage, and so call free.  Two threads may
 * enter the same place; the report then has two rows. */
static struct place *place_of(object *code, int line)
{
    size_t bucket = mix((uintptr_t)code, (size_t)line) % BUCKETS;
    struct place *p;
    object *type, *value, *traceback;

    pthread_mutex_lock(&trace.lock);
    for (p = trace.places[bucket]; p != NULL && (p->code != code || p->line != line);)
        p = p->next;
    pthread_mutex_unlock(&trace.lock);
    if (p != NULL || (p = calloc(1, sizeof(*p))) == NULL)
        return p ? p : &nowhere;
    py.PyErr_Fetch(&type, &value, &traceback); /* keeps a pending exception, and drops ours */
    p->code = code;
    p->line = line;
    p->file = attribute(code, "co_filename");
    p->function = attribute(code, "co_name");
    py.PyErr_Restore(type, value, traceback);
    if (p->file == NULL || p->function == NULL) {
        free((char *)p->file);
        free((char *)p->function);
        free(p);
        return &nowhere;
    }
    py.Py_IncRef(code);
    pthread_mutex_lock(&trace.lock);
    p->next = trace.places[bucket];
    trace.places[bucket] = p;
    trace.place_count++;
    pthread_mutex_unlock(&trace.lock);
    return p;
}

/* Returns the stack in which `caller` calls the place, or `caller` if there is no room for more. */
static struct stack *callee(struct stack *caller, struct place *place)
{
    size_t bucket = mix((uintptr_t)caller, (uintptr_t)place) % BUCKETS;
    struct stack *s = trace.stacks[bucket];

    while (s != NULL && (s->caller != caller || s->place != place))
        s = s->next;
    if (s != NULL || trace.stack_count == MOST_STACKS || (s = calloc(1, sizeof(*s))) == NULL)
        return s ? s : caller;
    *s = (struct stack){
        .next = trace.stacks[bucket], .caller = caller, .sibling = caller->callees, .place = place};
    trace.stacks[bucket] = s;
    trace.stack_count++;
    return caller->callees = s;
}

/* Returns the stack that runs on this thread, or NULL if it is not known. */
static struct stack *stack_here(void)
{
    struct place *at[MOST_DEPTH];
    unsigned depth = 0;

    if (!py.complete || busy || !py.Py_IsInitialized() || !py.PyGILState_Check())
        return NULL;
    busy = 1;
    object *frame = py.PyEval_GetFrame();
    if (frame != NULL)
        py.Py_IncRef(frame);
    while (frame != NULL && depth < trace.depth) {
        object *code = py.PyFrame_GetCode(frame);
        at[depth++] = place_of(code, py.PyFrame_GetLineNumber(frame));
        py.Py_DecRef(code);
        object *back = py.PyFrame_GetBack(frame);
        py.Py_DecRef(frame);
        frame = back;
    }
    if (frame != NULL)
        py.Py_DecRef(frame);
    busy = 0;
    struct stack *s = &root;
    pthread_mutex_lock(&trace.lock);
    while (depth > 0)
        s = callee(s, at[--depth]); /* the innermost place comes first */
    pthread_mutex_unlock(&trace.lock);
    return s != &root ? s : NULL;
}

/* ---- what is live ---------------------------------------------------------------------------- */

static void settle(struct bytes *b)
{
    if (b->peak != trace.peaks) {
        b->peak = trace.peaks;
        b->at_peak = b->live;
    }
}

static void write_reports(void);

/* Adds a block to a stack, its line and the total, or takes one off. */
static void count(struct stack *s, bool made, size_t size)
{
    struct bytes *const all[] = {&s->bytes, &s->place->bytes, &trace.total};

    pthread_mutex_lock(&trace.lock);
    size_t most = trace.total.most;
    for (int i = 0; i < 3; i++) {
        settle(all[i]);
        all[i]->live += made ? size : -size;
        all[i]->made += made;
        if (all[i]->live > all[i]->most)
            all[i]->most = all[i]->live;
    }
    trace.live_blocks += made ? 1 : -(size_t)1;
    trace.peaks += trace.total.most > most;
    pthread_mutex_unlock(&trace.lock);
    if (!made && wanted) {
        wanted = 0;
        write_reports();
    }
}

/* ---- the handler ----------------------------------------------------------------------------- */

static void *finish(struct header *h, size_t size, struct stack *s)
{
    if (h == NULL)
        return NULL;
    if (s == NULL)
        s = &unknown;
    *h = (struct header){.size = size, .stack = s};
    count(s, true, size);
    return h + 1;
}

static void *trace_malloc(void *ctx, size_t size)
{
    size_t total;

    (void)ctx;
    if (__builtin_add_overflow(size, sizeof(struct header), &total))
        return NULL;
    struct header *h = nep49_advise(malloc(total), total);
    return h ? finish(h, size, stack_here()) : NULL;
}

static void *trace_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size, total;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) ||
        __builtin_add_overflow(size, sizeof(struct header), &total))
        return NULL;
    struct header *h = nep49_advise(calloc(1, total), total);
    return h ? finish(h, size, stack_here()) : NULL;
}

static void *trace_realloc(void *ctx, void *ptr, size_t new_size)
{
    size_t total;

    if (ptr == NULL)
        return trace_malloc(ctx, new_size);
    if (__builtin_add_overflow(new_size, sizeof(struct header), &total))
        return NULL;
    struct header old = ((struct header *)ptr)[-1];
    struct header *h = realloc((struct header *)ptr - 1, total);
    if (h == NULL)
        return NULL;
    struct stack *s = stack_here();
    count(old.stack, false, old.size);
    return finish(h, new_size, s ? s : old.stack);
}

static void trace_free(void *ctx, void *ptr, size_t size)
{
    int saved = errno;

    (void)ctx;
    (void)size; /* a guess of NumPy's: what was added is what has to come off */
    if (ptr == NULL)
        return;
    struct header *h = (struct header *)ptr - 1;
    count(h->stack, false, h->size);
    free(h);
    errno = saved;
}

static PyDataMem_Handler handler = {
    .name = "trace",
    .version = 1,
    .allocator = {NULL, trace_malloc, trace_calloc, trace_realloc, trace_free},
};

void nep49_get_statistics(nep49_statistics *figures)
{
    pthread_mutex_lock(&trace.lock);
    *figures = (nep49_statistics){.live_blocks = trace.live_blocks,
                                  .live_bytes = trace.total.live,
                                  .peak_bytes = trace.total.most,
                                  .made = trace.total.made};
    pthread_mutex_unlock(&trace.lock);
}

/* ---- the report, as text --------------------------------------------------------------------- */

static int by_peak(const void *a, const void *b)
{
    const struct place *p = *(struct place *const *)a, *q = *(struct place *const *)b;
    int order = strcmp(p->file, q->file);

    if (p->bytes.at_peak != q->bytes.at_peak)
        return p->bytes.at_peak < q->bytes.at_peak ? 1 : -1;
    return order ? order : (p->line > q->line) - (p->line < q->line);
}

static void write_text(FILE *file)
{
    struct place **all = malloc((trace.place_count + 1) * sizeof(struct place *));
    size_t count = 0;

    if (all == NULL)
        return;
    for (size_t b = 0; b <= BUCKETS; b++) {
        for (struct place *p = b < BUCKETS ? trace.places[b] : &nowhere; p; p = p->next) {
            settle(&p->bytes);
            if (p->bytes.made > 0)
                all[count++] = p;
        }
    }
    qsort(all, count, sizeof(*all), by_peak);
    fprintf(file, "trace: %zu bytes at the peak, %zu live, %lu blocks made\n\n", trace.total.most,
            trace.total.live, trace.total.made);
    fprintf(file, "%14s %14s %14s %10s  line\n", "at the peak", "live", "most ever", "made");
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%14zu %14zu %14zu %10lu  %s:%d %s\n", all[i]->bytes.at_peak,
                all[i]->bytes.live, all[i]->bytes.most, all[i]->bytes.made, all[i]->file,
                all[i]->line, all[i]->function);
    free(all);
}

/* ---- the report, as a flame graph ------------------------------------------------------------ */

enum { WIDTH = 1200, ROW = 18 };

static void write_escaped(FILE *file, const char *text, int most)
{
    for (; *text != '\0' && most > 0; text++, most -= ((unsigned char)*text & 0xc0) != 0x80) {
        const char *escaped = *text == '<' ? "&lt;" : *text == '&' ? "&amp;" : NULL;
        if (escaped != NULL)
            fputs(escaped, file);
        else
            fputc(*text, file);
    }
}

static void write_box(FILE *file, const struct place *p, double x, double width, double y,
                      size_t bytes)
{
    unsigned shade = (unsigned)(mix((uintptr_t)p->line, strlen(p->function)) % 60);

    fprintf(file,
            "<g><rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"rgb(%u,%u,70)\" "
            "stroke=\"white\" stroke-width=\"0.5\"/><title>",
            x, y, width, ROW - 1, 205 + shade / 2, 110 + shade);
    write_escaped(file, p->function, 200);
    fputs(" (", file);
    write_escaped(file, p->file, 400);
    fprintf(file, ":%d): %zu bytes, %.1f%%</title>", p->line, bytes, 100 * width / WIDTH);
    if (width > 40) {
        fprintf(file, "<text x=\"%.1f\" y=\"%.0f\">", x + 3, y + ROW - 5);
        write_escaped(file, p->function, (int)(width / 8));
        fputs("</text>", file);
    }
    fputs("</g>\n", file);
}

/* Adds up the bytes at the peak of a stack and its callees; returns how deep those are. */
static unsigned add_up(struct stack *s)
{
    unsigned deepest = 0;

    settle(&s->bytes);
    s->shown = s->bytes.at_peak;
    for (struct stack *c = s->callees; c != NULL; c = c->sibling) {
        unsigned depth = add_up(c);
        s->shown += c->shown;
        deepest = depth > deepest ? depth : deepest;
    }
    return s->shown > 0 ? deepest + 1 : 0;
}

/* Draws the callees at y, from x on, and theirs above. */
static void write_callees(FILE *file, const struct stack *s, double x, double y, double scale)
{
    for (const struct stack *c = s->callees; c != NULL; c = c->sibling) {
        double width = (double)c->shown * scale;
        if (width < 0.2)
            continue;
        write_box(file, c->place, x, width, y, c->shown);
        write_callees(file, c, x, y - ROW, scale);
        x += width;
    }
}

static void write_svg(FILE *file)
{
    unsigned height = (add_up(&root) + 2) * ROW;

    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
            "font-family=\"monospace\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"3\" y=\"13\">bytes of arrays at the peak: %zu</text>\n",
            WIDTH, height, root.shown);
    if (root.shown > 0)
        write_callees(file, &root, 0, height - ROW, (double)WIDTH / (double)root.shown);
    fputs("</svg>\n", file);
}

/* Written beside it and renamed, so that nobody reads half a report. */
static void write_file(const char *suffix, void (*write)(FILE *))
{
    char name[4096], part[4096 + 8];

    snprintf(name, sizeof(name), "%s%s", trace.output, suffix);
    snprintf(part, sizeof(part), "%s.part", name);
    FILE *file = fopen(part, "we");
    if (file == NULL)
        return;
    write(file);
    if (fclose(file) != 0 || rename(part, name) != 0)
        unlink(part);
}

/* Forked children have no report of their own. */
static void write_reports(void)
{
    if (trace.output == NULL || trace.process != getpid())
        return;
    pthread_mutex_lock(&trace.lock);
    if (strcmp(trace.output, "-") == 0) {
        write_text(stderr);
    } else {
        write_file("", write_text);
        write_file(".svg", write_svg);
    }
    pthread_mutex_unlock(&trace.lock);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    wanted = number;
}

static void before_fork(void)
{
    pthread_mutex_lock(&trace.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&trace.lock);
}

/* True where Python is in this process, and 3.9 or later. */
static bool find_python(void)
{
#define FIND(name) ((*(void **)&py.name = dlsym(RTLD_DEFAULT, #name)) != NULL)
    return FIND(Py_IsInitialized) && FIND(PyGILState_Check) && FIND(PyEval_GetFrame) &&
           FIND(PyFrame_GetCode) && FIND(PyFrame_GetBack) && FIND(PyFrame_GetLineNumber) &&
           FIND(PyObject_GetAttrString) && FIND(PyUnicode_AsUTF8) && FIND(PyErr_Fetch) &&
           FIND(PyErr_Restore) && FIND(Py_IncRef) && FIND(Py_DecRef);
}

/* Decides once: blocks may be alive when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    const char *depth = getenv(DEPTH), *output = getenv(OUTPUT);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    char *end;
    unsigned long n = strtoul(depth ? depth : "32", &end, 10);

    if (trace.depth != 0)
        return &handler;
    if ((depth != NULL && (*depth < '0' || *depth > '9')) || *end != '\0' || n < 1 ||
        n > MOST_DEPTH)
        return nep49_refuse(why, DEPTH "='%.40s': only a number from 1 to %d is accepted", depth,
                            MOST_DEPTH);
    bool to_file = output != NULL && strcmp(output, "-") != 0;
    int fd = to_file ? open(output, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (to_file && (fd < 0 || strlen(output) > 4000))
        return nep49_refuse(why, OUTPUT "='%.40s': %s", output,
                            strerror(fd < 0 ? errno : ENAMETOOLONG));
    if (fd >= 0)
        close(fd);
    if (pthread_atfork(before_fork, after_fork, after_fork) != 0 ||
        (output != NULL && (trace.output = strdup(output)) == NULL))
        return nep49_refuse(why, "out of memory");
    py.complete = find_python();
    trace.process = getpid();
    if (output != NULL) { /* a program's own handler of the signal stays */
        atexit(write_reports);
        if (sigaction(SIGUSR2, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(SIGUSR2, &action, NULL);
    }
    trace.depth = (unsigned)n;
    return &handler;
}
