/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Claims and figures, on stdout.
 */
#include "embed_demo.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int claims, failures;

void report_claim(bool passed, const char *part, const char *format, ...)
{
    va_list arguments;
    flockfile(stdout); /* a script's threads may have no GIL to take turns by */
    printf("%-8s%-9s", passed ? "PASS" : "FAIL", part);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    claims++;
    failures += !passed;
    funlockfile(stdout);
}

void report_note_exit(void)
{
    for (struct tracker *t = tracker_first(); t != NULL; t = t->next)
        t->at_exit = tracker_read(t);
}

static void claim_balance(void)
{
    size_t blocks_at_exit = 0, bytes_at_exit = 0, blocks = 0;
    unsigned long strangers = 0;
    for (struct tracker *t = tracker_first(); t != NULL; t = t->next) {
        blocks_at_exit += t->at_exit.blocks;
        bytes_at_exit += t->at_exit.bytes;
        blocks += t->now.blocks;
        strangers += t->now.strangers;
    }
    report_claim(blocks == 0 && strangers == 0, "balance",
                 "%zu blocks of %.1f MB outlived the script, %zu outlived Python, %lu freed by "
                 "another",
                 blocks_at_exit, (double)bytes_at_exit / 1e6, blocks, strangers);
}

static void print_table(void)
{
    unsigned long null_frees = 0, wrong_sizes = 0;
    printf("\n%-12s%-20s%9s%9s%9s%9s%12s%11s%10s%8s\n", "thread", "handler", "malloc", "calloc",
           "realloc", "free", "bytes", "peak", "at exit", "at end");
    for (struct tracker *t = tracker_first(); t != NULL; t = t->next) {
        const struct figures *f = &t->now;
        printf("%-12s%-20s%9lu%9lu%9lu%9lu%12zu%11zu%10zu%8zu\n", t->owner, t->handler.name,
               f->calls[CALLS_MALLOC], f->calls[CALLS_CALLOC], f->calls[CALLS_REALLOC],
               f->calls[CALLS_FREE], f->given, f->peak, t->at_exit.bytes, f->bytes);
        null_frees += f->null_frees;
        wrong_sizes += f->wrong_sizes;
    }
    printf("\nfrees of NULL: %lu; with a size not asked for: %lu\n", null_frees, wrong_sizes);
}

int report_end(int status)
{
    claim_balance();
    print_table();
    if (status != 0)
        printf("embed_demo: not everything passed: the script ended with status %d\n", status);
    else if (failures > 0)
        printf("embed_demo: not everything passed (%d of %d claims not)\n", failures, claims);
    else
        printf("embed_demo: everything passed (%d claim%s)\n", claims, claims == 1 ? "" : "s");
    if (fflush(stdout) != 0 || ferror(stdout))
        fprintf(stderr, "embed_demo: stdout cannot be written: %s\n", strerror(errno));
    return status == 0 && (failures > 0 || ferror(stdout)) ? 1 : status;
}
