/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exec: what is printed if the program dies of a signal.  The block that is nearest to the
 * address comes first, then Python's faulthandler prints the lines of all threads.
 */
#include "commands/audited_process.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/sanitizer_detect.h"
#include "python/api.h"
#include "supervise/child.h"

static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
enum { FATAL = sizeof fatal / sizeof *fatal };

/* The process has one program. */
static struct {
    struct auditor *auditor;
    bool has_guard;
    struct sigaction before[FATAL];
} crash;

/* How the instruction accessed the address, if this processor's context is known. */
static const char *access_of(const void *context)
{
#if defined __x86_64__
    enum { WRITES = 2 };
    const ucontext_t *at = context;
    return (at->uc_mcontext.gregs[REG_ERR] & WRITES) != 0 ? " by a write" : " by a read";
#else
    (void)context;
    return "";
#endif
}

/* In a signal handler, where the lock of the auditor may be held: reads its tables without it. */
static void report(int number, siginfo_t *info, void *context)
{
    char block[1024] = "", text[1200];
    int which = 0;
    bool has_address = number == SIGSEGV || number == SIGBUS;
    while (which < FATAL - 1 && fatal[which] != number)
        which++;
    has_address &= info->si_code > 0;
    if (has_address)
        auditor_describe(crash.auditor, info->si_addr, crash.has_guard, block, sizeof block);
    int length = snprintf(text, sizeof text, "\nconform: crash report: %s%s%s\n",
                          child_signal_name(number), has_address ? access_of(context) : "", block);
    ssize_t unused = write(STDERR_FILENO, text, (size_t)length);
    (void)unused;
    const struct sigaction *before = &crash.before[which];
    sigaction(number, before, NULL);
    if ((before->sa_flags & SA_SIGINFO) != 0)
        before->sa_sigaction(number, info, context);
    else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
        before->sa_handler(number);
    else
        raise(number);
}

bool crash_report_begin(struct auditor *auditor, bool has_guard)
{
    if (sanitizer_is_running()) /* it has a report of its own */
        return true;
    PyObject *module = PyImport_ImportModule("faulthandler"), *is_enabled = NULL, *done = NULL;
    if (module != NULL)
        is_enabled = PyObject_CallMethod(module, "is_enabled", NULL);
    if (is_enabled != NULL && PyObject_IsTrue(is_enabled) == 0)
        done = PyObject_CallMethod(module, "enable", "i", STDERR_FILENO);
    Py_XDECREF(done);
    Py_XDECREF(is_enabled);
    Py_XDECREF(module);
    if (PyErr_Occurred() != NULL)
        return false;
    crash.auditor = auditor;
    crash.has_guard = has_guard;
    for (int i = 0; i < FATAL; i++) {
        struct sigaction ours = {.sa_sigaction = report,
                                 .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
        sigaction(fatal[i], &ours, &crash.before[i]);
    }
    return true;
}
