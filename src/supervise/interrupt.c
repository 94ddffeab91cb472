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

static volatile sig_atomic_t came;

static void note(int number)
{
    came = number;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = note}, old;
    for (size_t i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

int interrupt_came(void)
{
    return came;
}

void interrupt_reset(void)
{
    struct sigaction old;
    for (size_t i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == note)
            signal(signals[i], SIG_DFL);
    }
}

_Noreturn void interrupt_die(void)
{
    int number = came;
    fflush(stdout);
    fprintf(stderr, "conform: interrupted\n");
    signal(number, SIG_DFL);
    raise(number);
    _exit(128 + number);
}
