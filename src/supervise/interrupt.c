/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Noting signals that want an end.
 */
#include "supervise/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

static volatile sig_atomic_t came, to_pass_on;
static bool another_says_it;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    came = number;
    if (info->si_code != SI_KERNEL || number != SIGINT)
        to_pass_on = number;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO}, old;
    for (size_t i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

int interrupt_came(void)
{
    return came;
}

bool is_interrupted(void *data)
{
    (void)data;
    return came != 0;
}

int interrupt_to_pass_on(void)
{
    int number = to_pass_on;
    to_pass_on = 0;
    return number;
}

void interrupt_reset(void)
{
    struct sigaction old;
    for (size_t i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_sigaction == note)
            signal(signals[i], SIG_DFL);
    }
}

void interrupt_leave_words_to_another(void)
{
    another_says_it = true;
}

_Noreturn void interrupt_die(void)
{
    int number = came;
    if (!ferror(stdout)) /* nobody may take it, and then this would wait */
        fflush(stdout);
    if (!another_says_it)
        fprintf(stderr, "conform: interrupted\n");
    signal(number, SIG_DFL);
    raise(number);
    _exit(128 + number);
}
