/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The process of one handler, which does what it is told.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/text.h"
#include "bench/bench.h"
#include "python/api.h"
#include "python/python.h"
#include "subject/python_subject.h"

static struct task task;

static PyObject *tell_task(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("inIn", (int)(task.work - WORK_ADD), (Py_ssize_t)task.size, task.threads,
                         (Py_ssize_t)task.times);
}

static PyMethodDef methods[] = {
    {"task", tell_task, METH_NOARGS, "What is to be done: kind, size, threads, times."},
    {NULL, NULL, 0, NULL},
};

static const char *put_in_force(PyDataMem_Handler *handler)
{
    PyObject *capsule = PyCapsule_New(handler, "mem_handler", NULL);
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    return before == NULL ? python_error() : NULL;
}

/* NULL, or what is wrong. */
static const char *begin(const struct subject_place *place, const char *python,
                         struct subject *subject, struct environment *environment,
                         enum load_state *state)
{
    static char why[256];
    const char *wrong = python_start(python, environment);
    if (wrong == NULL)
        wrong = python_add_module("_conform_bench", methods);
    if (wrong == NULL)
        wrong = python_import_array();
    if (wrong != NULL)
        return wrong;
    if (place->module != NULL)
        *state = python_subject_load(place, subject, why, sizeof why);
    else
        *state = subject_load(place, subject, why, sizeof why);
    if (*state != LOAD_DONE)
        return why;
    return place->is_default ? NULL : put_in_force(subject->handler);
}

static void say_hello(int to, const char *wrong, const struct environment *environment,
                      enum load_state state)
{
    struct hello hello = {.state = state};
    snprintf(hello.wrong, sizeof hello.wrong, "%s", wrong != NULL ? wrong : "");
    snprintf(hello.python, sizeof hello.python, "Python %s, NumPy %s", environment->python,
             environment->numpy);
    if (write(to, &hello, sizeof hello) != sizeof hello || wrong != NULL)
        _exit(EXIT_FAILURE);
}

_Noreturn void bench_serve(const struct subject_place *place, const char *python, int from, int to)
{
    struct subject subject = {0};
    struct environment environment = {0};
    enum load_state state = LOAD_UNKNOWN;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *wrong = begin(place, python, &subject, &environment, &state);
    say_hello(to, wrong, &environment, state);
    while (read(from, &task, sizeof task) == sizeof task && task.times > 0) {
        struct answer answer;
        bench_do(&task, subject.handler, &answer);
        if (write(to, &answer, sizeof answer) != sizeof answer)
            break;
    }
    _exit(EXIT_SUCCESS);
}
