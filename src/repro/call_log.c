/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing calls down as they come.
 */
#include "repro/call_log.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct call_log *log_of_calls;

struct call_log *call_log_create(void)
{
    void *log = mmap(NULL, sizeof(struct call_log), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return log != MAP_FAILED ? log : NULL;
}

void call_log_clear(struct call_log *log)
{
    madvise(log, sizeof *log, MADV_REMOVE);
    log->count = 0;
    log->threads = 0;
}

void call_log_to(struct call_log *log)
{
    log_of_calls = log;
    if (log != NULL)
        log->process = getpid();
}

static uint32_t thread_number(void)
{
    static _Thread_local uint32_t number; /* one more than it */
    if (number == 0)
        number = 1 + atomic_fetch_add(&log_of_calls->threads, 1);
    return number - 1;
}

/* Whether the beginning and the end of the block are one word, again and again. */
static bool is_full_of(const unsigned char *p, size_t size, uint64_t *word)
{
    enum { ENOUGH = 128 };
    if (size < sizeof *word)
        return false;
    memcpy(word, p, sizeof *word);
    for (size_t at = sizeof *word; at < size; at++) {
        if (at == ENOUGH && size > 2 * ENOUGH)
            at = size - ENOUGH;
        if (p[at] != p[at % sizeof *word])
            return false;
    }
    return true;
}

struct logged *call_log_begin(struct step step, size_t size)
{
    int error = errno;
    uint32_t at = log_of_calls != NULL ? atomic_fetch_add(&log_of_calls->count, 1) : MOST_STEPS;
    if (at >= MOST_STEPS)
        return NULL;
    struct logged *call = &log_of_calls->calls[at];
    step.error = (uint8_t)error;
    step.thread = thread_number();
    step.times = 1;
    call->step = step;
    call->process = getpid();
    call->has_word = step.pointer != NULL && is_full_of(step.pointer, size, &call->word);
    errno = error;
    return call;
}

void call_log_expect(struct logged *call, size_t times)
{
    if (call != NULL)
        call->step.times = (uint32_t)times;
}

void call_log_end(struct logged *call, const void *result, size_t times)
{
    if (call == NULL)
        return;
    call->result = result;
    call->step.times = (uint32_t)times;
    call->step.returned = 1;
}
