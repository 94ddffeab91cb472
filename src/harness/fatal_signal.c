/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records a fatal signal: the calls in progress and the location of the fault, which comes last
 * because it takes dladdr() and the unwinder, in which a corrupted process may die.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "harness/code_place.h"
#include "harness/proc_count.h"
#include "harness/test_process.h"

/* 0 if this processor's context is not known. */
static uintptr_t instruction_of(const void *context)
{
    const ucontext_t *at = context;
#if defined __x86_64__
    return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#elif defined __i386__
    return (uintptr_t)at->uc_mcontext.gregs[REG_EIP];
#elif defined __aarch64__
    return at->uc_mcontext.pc;
#else
    (void)at;
    return 0;
#endif
}

/* A crash through a struct that is no longer readable is not the call's. */
static void note_struct_gone(struct record *record)
{
    if (record->attribute_to[0] == '\0' && test_process.loaded &&
        !is_readable(test_process.subject.handler, sizeof *test_process.subject.handler))
        record_attribute(record, TOPIC_STRUCT_GONE);
}

/* False if another thread of this process already records a signal. */
static bool is_first_to_note(void)
{
    static _Atomic pid_t noted_in;
    return atomic_exchange(&noted_in, getpid()) != getpid();
}

static void note_signal(int number, const siginfo_t *info, const void *context)
{
    struct record *record = test_process.setup.record;
    record->signal = number;
    record->signal_is_noted = 1;
    record->signal_call = *own_call();
    record->signal_elsewhere = gettid() != getpid();
    record->suspects[MADE_EMPTY] = *own_making();
    note_overlap(record);
    note_struct_gone(record);
    record->signal_has_address = info->si_code > 0 && (number == SIGSEGV || number == SIGBUS);
    record->signal_address = (uintptr_t)info->si_addr;
    code_place_unwind(info->si_code > 0 ? instruction_of(context) : 0, &record->place);
}

/* Records the signal; the default action then ends the process, when the instruction runs again. */
static void on_fatal_signal(int number, siginfo_t *info, void *context)
{
    if (is_first_to_note())
        note_signal(number, info, context);
    else
        poll(NULL, 0, 100); /* the other one ends the process */
    signal(number, SIG_DFL);
    if (info->si_code <= 0 && number != SIGABRT)
        raise(number);
}

/* Records where a thread is that does not return from the handler; the worker then kills it. */
static void on_hang(int number, siginfo_t *info, void *context)
{
    static atomic_flag is_noted = ATOMIC_FLAG_INIT;
    (void)number, (void)info;
    if (own_call()->kind != OUTSIDE && !atomic_flag_test_and_set(&is_noted))
        code_place_unwind(instruction_of(context), &test_process.setup.record->place);
}

void catch_fatal_signals(void)
{
    static char stack[64 * 1024];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = on_fatal_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &action, NULL);
    action.sa_sigaction = on_hang;
    sigaction(SIGNAL_OF_HANG, &action, NULL);
}
