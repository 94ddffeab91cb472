/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The wave equation u_tt = u_xx + u_yy in the unit square, at rest to begin with, and 0 at its
 * edges for ever.  What begins as
 *
 *     sum over m, n of a[m][n] sin(m pi x) sin(n pi y)
 *
 * is, at the time t, the same sum with each term times cos(pi sqrt(m^2 + n^2) t).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "memory.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "loan.h"
#include "picture.h"
#include "tally.h"
#include "base/text.h"
#include "wave.h"
#include "workers.h"

/* When to look, and the drops: where they fall, how high the water stands there, and how wide. */
static const double until = 0.36;
static const struct {
    double x, y, height, width;
} drops[] = {{0.31, 0.64, 1.0, 0.024}, {0.72, 0.30, 0.8, 0.020}, {0.66, 0.80, 0.6, 0.016}};

/* What the host lends to the threads. */
struct surface {
    int points;
    struct loan *modes, *field, *progress;
};

static double frequency(int m, int n)
{
    return M_PI * sqrt((double)(m * m + n * n));
}

/* Of exp(-(x - centre)^2 / 2 width^2), the part that sin(mode pi x) has.  The bell is narrow enough
 * to be taken for one on the whole line. */
static double bell(double centre, double width, int mode)
{
    double k = mode * M_PI;
    return 2 * width * sqrt(2 * M_PI) * exp(-k * k * width * width / 2) * sin(k * centre);
}

/* A drop is the curvature of a bell: a dent with a wall around it. */
static void set_modes(double *modes)
{
    for (int m = 1; m <= WAVE_MODES; m++) {
        for (int n = 1; n <= WAVE_MODES; n++) {
            double sum = 0;
            for (size_t i = 0; i < sizeof drops / sizeof *drops; i++)
                sum += drops[i].height * bell(drops[i].y, drops[i].width, m) *
                       bell(drops[i].x, drops[i].width, n) *
                       pow(frequency(m, n) * drops[i].width, 2) / 2;
            *modes++ = sum;
        }
    }
}

/* sines[m][i] is sin((m + 1) pi x) at the point i of a row; the caller frees it. */
static double *sines(int points)
{
    double *sines = calloc((size_t)WAVE_MODES * points, sizeof *sines);
    for (int m = 0; m < WAVE_MODES && sines != NULL; m++)
        for (int i = 0; i < points; i++)
            sines[(size_t)m * points + i] = sin((m + 1) * M_PI * (i + 1) / (points + 1));
    return sines;
}

/* The terms as they are at the time `until`. */
static void swing(const double *modes, double *later)
{
    for (int m = 1; m <= WAVE_MODES; m++)
        for (int n = 1; n <= WAVE_MODES; n++)
            *later++ = *modes++ * cos(frequency(m, n) * until);
}

/* One row of the surface that has these terms. */
static void exact_row(const double *terms, const double *sine, int points, int row, double *out)
{
    double along[WAVE_MODES] = {0};
    for (int m = 0; m < WAVE_MODES; m++)
        for (int n = 0; n < WAVE_MODES; n++)
            along[n] += sine[(size_t)m * points + row] * terms[m * WAVE_MODES + n];
    for (int i = 0; i < points; i++)
        out[i] = 0;
    for (int n = 0; n < WAVE_MODES; n++)
        for (int i = 0; i < points; i++)
            out[i] += along[n] * sine[(size_t)n * points + i];
}

/* How far a surface is from the exact one: at the worst place, and as the root of the mean square.
 */
struct error {
    double worst, mean;
};

/* The error of what was handed in.  A number that is none is wrong by infinity.  0, or -1 with an
 * exception set. */
static int measure(const struct surface *s, struct error *error)
{
    double *sine = sines(s->points), *row = calloc((size_t)s->points, sizeof *row);
    double terms[WAVE_MODES * WAVE_MODES], squares = 0;
    bool fine = sine != NULL && row != NULL;
    *error = (struct error){0};
    swing(s->modes->numbers, terms);
    for (int r = 0; r < s->points && fine; r++) {
        exact_row(terms, sine, s->points, r, row);
        for (int i = 0; i < s->points; i++) {
            double off = fabs(s->field->numbers[(size_t)r * s->points + i] - row[i]);
            error->worst = fmax(error->worst, isnan(off) ? INFINITY : off);
            squares += off * off;
        }
    }
    error->mean = isfinite(error->worst) ? sqrt(squares / (double)s->field->count) : INFINITY;
    free(sine);
    free(row);
    if (!fine)
        PyErr_NoMemory();
    return fine ? 0 : -1;
}

/* What the five-point formula may be wrong by at this distance of points.  On the grid each term is
 * a sine still, which swings with a frequency that is lower than it should be, by what theory says;
 * a stable step in time only makes that better.  At the worst place the errors of all terms add up;
 * in the mean each counts by its square, of which a product of two sines has a quarter. */
static struct error allowed_error(const double *modes, int points)
{
    double h = 1.0 / (points + 1), sum = 0, squares = 0;
    for (int m = 1; m <= WAVE_MODES; m++) {
        for (int n = 1; n <= WAVE_MODES; n++) {
            double on_grid = 2 / h * hypot(sin(m * M_PI * h / 2), sin(n * M_PI * h / 2));
            double late = (frequency(m, n) - on_grid) * until;
            double off = fabs(*modes++) * fmin(2, fabs(late));
            sum += off;
            squares += off * off / 4;
        }
    }
    return (struct error){.worst = sum, .mean = sqrt(squares)};
}

/* Theory and practice. */
static int judge(const struct surface *s, int threads, double seconds)
{
    struct error is, may = allowed_error(s->modes->numbers, s->points);
    if (measure(s, &is) != 0)
        return -1;
    tally(is.worst <= may.worst && is.mean <= may.mean, "wave",
          "%d x %d points, %d threads, %.2f s: error %.1e (allowed %.1e), at worst %.1e (%.1e)",
          s->points, s->points, threads, seconds, is.mean, may.mean, is.worst, may.worst);
    return 0;
}

static int surface_open(struct surface *s, int points, int count)
{
    *s = (struct surface){
        .points = points,
        .modes = loan_new(WAVE_MODES * WAVE_MODES),
        .field = loan_new((size_t)points * points),
        .progress = loan_new((size_t)count),
    };
    if (s->modes == NULL || s->field == NULL || s->progress == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    set_modes(s->modes->numbers);
    for (size_t i = 0; i < s->field->count; i++)
        s->field->numbers[i] = NAN; /* until somebody hands something in */
    return 0;
}

static void surface_close(struct surface *s)
{
    struct loan *loans[] = {s->modes, s->field, s->progress};
    for (size_t i = 0; i < sizeof loans / sizeof *loans; i++)
        if (loans[i] != NULL)
            loan_let_go(loans[i]);
}

/* What the function is called with, after its rank and the number of threads. */
static PyObject *arguments_of(const struct surface *s)
{
    const Py_ssize_t modes[] = {WAVE_MODES, WAVE_MODES}, field[] = {s->points, s->points};
    const Py_ssize_t threads[] = {(Py_ssize_t)s->progress->count};
    PyObject *all[] = {
        loan_as_array(s->modes, 2, modes),
        PyFloat_FromDouble(until),
        loan_as_array(s->field, 2, field),
        loan_as_array(s->progress, 1, threads),
    };
    PyObject *arguments = NULL;
    if (all[0] != NULL && all[1] != NULL && all[2] != NULL && all[3] != NULL)
        arguments = PyTuple_Pack(4, all[0], all[1], all[2], all[3]);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        Py_XDECREF(all[i]);
    return arguments;
}

static double seconds_since(const struct timespec *begin)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

static int solve(const struct wave_job *wave, const struct surface *s)
{
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    PyObject *arguments = arguments_of(s);
    if (arguments == NULL)
        return -1;
    const struct job job = {
        .name = "wave",
        .count = wave->count,
        /* A strip's share of some surfaces, and as much again as small ones need. */
        .room = 16 * s->field->count * sizeof(double) / (size_t)wave->count + (4 << 20),
        .function = wave->function,
        .arguments = arguments,
        .abort = wave->abort,
        .progress = s->progress->numbers,
    };
    PyObject *results = workers_run(&job);
    Py_DECREF(arguments);
    if (results == NULL)
        return -1;
    int failed =
        judge(s, wave->count, seconds_since(&begin)) != 0 || workers_prove("wave", results) != 0;
    Py_DECREF(results);
    return failed;
}

static void draw(const char *path, const struct surface *s)
{
    const char *wrong = picture_write(path, s->field->numbers, s->points);
#ifdef HAVE_LIBPNG
    tally(wrong == NULL, "picture", "%s", wrong == NULL ? text_safe(path) : wrong);
#else
    tally_skip("picture", wrong);
#endif
}

int wave_run(const struct wave_job *job)
{
    struct surface surface;
    int failed = surface_open(&surface, job->points, job->count) != 0 || solve(job, &surface) != 0;
    if (!failed && job->picture != NULL)
        draw(job->picture, &surface);
    surface_close(&surface);
    return failed ? -1 : 0;
}
