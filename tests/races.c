/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the runner keeps of calls, used by several threads at once, for ThreadSanitizer to look at.
 * With an argument it makes a race of its own, which has to be seen.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "harness/asked.h"
#include "shims/shim.h"

enum { THREADS = 3, BLOCKS = 3000, ROUNDS = 20 };

static PyDataMem_Handler names[] = {{.name = "one", .version = 1}, {.name = "other", .version = 2}};
static PyDataMem_Handler shim;
static int races, racing;

/* Blocks of its own, which share rows with those of others. */
static void use_blocks(uintptr_t number)
{
    for (uintptr_t i = 0; i < BLOCKS; i++) {
        const void *p = (const void *)(16 * (1 + number + THREADS * i)); /* nothing is read there */
        const struct call by = {.function = IN_MALLOC, .first = i};
        size_t size;
        asked_note(p, i);
        asked_size(p, &size);
        asked_note_empty(p, &by);
        asked_maker_of_empty(p);
        asked_forget(p);
    }
}

static void *use_all(void *number)
{
    for (int round = 0; round < ROUNDS; round++) {
        use_blocks((uintptr_t)number);
        shim_show_through(&shim, &names[round % 2]); /* it renames itself all the time */
        if (racing)
            races++;
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    (void)arguments;
    racing = count > 1;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use_all, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return strcmp(shim.name, "one") != 0 && strcmp(shim.name, "other") != 0;
}
