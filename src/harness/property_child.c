/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The process of one property: its beginning, and loading the subject.
 */
#include "harness/property_child.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitizer_detect.h"
#include "harness/code_place.h"
#include "harness/data_races.h"
#include "harness/proc_count.h"
#include "harness/test_process.h"
#include "python/python.h"
#include "repro/call_log.h"
#include "subject/subject.h"

struct test_process test_process;

const char *scratch_folder(void)
{
    return test_process.setup.scratch;
}

const struct property *running_property(void)
{
    return test_process.setup.property;
}

/* ---- begin ------------------------------------------------------------------------------ */

void begin_property(const struct property_setup *setup)
{
    test_process.setup = *setup;
    test_process.random = random_for(setup->seed, setup->property->id);
    test_process.memcheck_errors_before = memcheck_error_count();
    test_process.begun = clock_now();
    setup->record->pid = getpid();
    calls_prepare();
    call_log_to(setup->log);
    if (setup->data_races)
        data_races_watch();
    atomic_store(&setup->record->state, RECORD_RUNNING);
    if (!sanitizer_is_running() && setup->at_end == NULL)
        catch_fatal_signals();
    if (memcheck_is_running())
        pthread_atfork(NULL, NULL, note_child);
}

static void report_load(enum load_state state, const char *why)
{
    struct load *load = test_process.setup.load;
    if (load == NULL)
        return;
    snprintf(load->why, sizeof load->why, "%s", why);
    if (state == LOAD_DONE) {
        memcpy(load->name, test_process.subject.handler->name, sizeof load->name);
        load->version = test_process.subject.handler->version;
        load->has_name = 1;
        load->has_gil = python_is_up() && python_uses_gil();
        snprintf(load->claims, sizeof load->claims, "%s", test_process.subject.claims);
        snprintf(load->how, sizeof load->how, "%s", test_process.subject.how);
    }
    atomic_store(&load->state, state);
}

void load_subject(void)
{
    char why[512] = "";
    if (test_process.loaded)
        return;
    step("loading %s", test_process.setup.place->label);
    if (test_process.setup.place->module != NULL && !python_is_up())
        skip("a handler from a Python module needs the interpreter");
    enum load_state state =
        test_process.setup.place->module != NULL
            ? python_subject_load(test_process.setup.place, &test_process.subject, why, sizeof why)
            : subject_load(test_process.setup.place, &test_process.subject, why, sizeof why);
    if (state == LOAD_DONE &&
        !is_readable(test_process.subject.handler, sizeof *test_process.subject.handler)) {
        snprintf(why, sizeof why,
                 "the struct that it hands out, at %p, is not in memory that can be read",
                 (void *)test_process.subject.handler);
        state = LOAD_FAILED;
    }
    report_load(state, why);
    if (state == LOAD_UNFIT && test_process.setup.load == NULL && python_is_up()) {
        /* the first property could load it */
        mark_incomplete("it could be loaded before, and now says that it cannot work here: %s",
                        why);
        pass();
    }
    if (state == LOAD_UNFIT)
        skip("it says that it cannot work here: %s", why);
    if (state == LOAD_CONTRADICTED)
        skip("%s", why);
    if (state != LOAD_DONE)
        fail("a handler to come of loading it", "%s", why);
    test_process.as_loaded = *test_process.subject.handler;
    code_place_note_handler((void (*)(void))test_process.as_loaded.allocator.malloc);
    test_process.loaded = true;
    test_process.setup.record->step[0] = '\0';
}

/* Describes a member of the struct that has changed. */
static const char *change_of(const PyDataMem_Handler *was, const PyDataMem_Handler *is)
{
    const PyDataMemAllocator *a = &was->allocator, *b = &is->allocator;
    if (a->ctx != b->ctx)
        return fmt("ctx %p, which was %p", b->ctx, a->ctx);
    if (is->version != was->version)
        return fmt("version %d, which was %d", is->version, was->version);
    return memcmp(a, b, sizeof *a) != 0 ? "other functions" : "another name";
}

void expect_struct_as_loaded(void)
{
    const PyDataMem_Handler *is = test_process.subject.handler;
    if (test_process.setup.load != NULL) /* the first property, which has loaded it */
        return;
    if (!test_process.loaded || !is_readable(is, sizeof *is) ||
        memcmp(is, &test_process.as_loaded, sizeof *is) == 0)
        return;
    attribute_to(property_about(TOPIC_STRUCT_CHANGED), NULL);
    fail("the struct to be at the end what it was when it was loaded", "%s",
         change_of(&test_process.as_loaded, is));
}

/* `environment` is NULL if NumPy is not imported yet. */
static void start_python(struct environment *environment)
{
    const char *path = test_process.setup.python_path;
    memcheck_disable(); /* the errors of CPython's start are not the subject's */
    atomic_store(&test_process.setup.record->python_starts, 1);
    const char *wrong =
        environment != NULL ? python_start(path, environment) : python_start_bare(path);
    if (wrong == NULL)
        wrong = python_module_add();
    atomic_store(&test_process.setup.record->python_starts, 0);
    memcheck_enable();
    if (wrong != NULL)
        harness_broke("Python cannot be started: %s", wrong);
}

void start_python_now(void)
{
    struct environment environment;
    start_python(&environment);
}

void start_python_bare_now(void)
{
    start_python(NULL);
}

void python_call(const char *module, const char *function)
{
    const char *wrong = python_half_has(module, function);
    if (wrong != NULL)
        harness_broke("%s", wrong);
    wrong = python_half_run(module, function);
    if (wrong != NULL)
        fail("Python and NumPy to work as they do with NumPy's own handler", "%s", wrong);
}

PyDataMem_Handler *subject_handler(void)
{
    return test_process.subject.handler;
}

const struct subject *subject(void)
{
    return &test_process.subject;
}

const struct subject_place *subject_place(void)
{
    return test_process.setup.place;
}

struct claims subject_claims(void)
{
    return subject_all_claims(test_process.setup.place, &test_process.subject);
}

bool subject_statistics(nep49_statistics *figures)
{
    if (test_process.subject.get_statistics != NULL)
        test_process.subject.get_statistics(figures);
    return test_process.subject.get_statistics != NULL;
}
