/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a record says of the process that left it.
 */
#include "runner/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/sanitizer_detect.h"
#include "base/text.h"

/* The call that the signal hit, or any that had not returned: of those of several threads one that
 * met trouble.  Sanitizers catch signals themselves. */
static struct step call_at_end(struct record *record)
{
    struct step call = {.kind = OUTSIDE};
    if (record->signal != 0 && record->signal_is_noted == 1 && !sanitizer_is_running())
        return record->signal_call;
    for (int i = 0; i < CALL_SLOTS; i++) {
        bool better = call.kind == OUTSIDE ||
                      (call.trouble == NO_TROUBLE && record->calls[i].trouble != NO_TROUBLE);
        if (!better || call_in_words(&record->calls[i]) == NULL)
            continue;
        record->suspects[MADE_EMPTY] = record->makings[i];
        call = record->calls[i];
    }
    return call;
}

/* Where the process was: in that call, or elsewhere. */
static const char *where_it_was(const struct record *record)
{
    const char *words = call_in_words(&record->suspects[ENDED_IN]);
    int part = (int)strnlen(record->part, sizeof record->part); /* who knows what is there */
    const char *in = part > 0 ? fmt(", in %.*s", part, record->part) : "";
    if (words != NULL && record->signal != 0 && record->signal_elsewhere)
        return fmt("inside %s, in another thread than the first%s", words, in);
    if (words != NULL)
        return fmt("inside %s%s", words, in);
    int length = (int)strnlen(record->step, sizeof record->step);
    return length > 0 ? fmt("while %.*s%s", length, record->step, in)
                      : fmt("outside the handler%s", in);
}

void ending_describe(struct record *record, const char *how)
{
    const char *address = record->signal != 0 && record->signal_has_address
                              ? fmt(" at address %#zx", (size_t)record->signal_address)
                              : "";
    record->suspects[ENDED_IN] = call_at_end(record);
    snprintf(record->expected, sizeof record->expected, "%s",
             call_in_words(&record->suspects[ENDED_IN]) != NULL ? "the call to return"
                                                                : "the property to run to its end");
    snprintf(record->seen, sizeof record->seen, "%s%s, %s", how, address, where_it_was(record));
}

/* What stands behind `mark` in what was printed, to the end of the line and before `end`, without
 * whitespace at the end; "" where it does not. */
static const char *printed_behind(const struct record *record, const char *mark, const char *end)
{
    char printed[sizeof record->output + 1];
    size_t length = record->output_length < sizeof record->output ? record->output_length
                                                                  : sizeof record->output;
    memcpy(printed, record->output, length);
    printed[length] = '\0';
    char *found = strstr(printed, mark);
    if (found == NULL)
        return "";
    found += strlen(mark);
    found[strcspn(found, "\n")] = '\0';
    char *cut = strstr(found, end);
    if (cut != NULL)
        *cut = '\0';
    return escape(found);
}

bool ending_by_sanitizer(struct record *record)
{
    const char *what = printed_behind(record, "ERROR: AddressSanitizer: ", " at pc ");
    if (strncmp(what, "SEGV ", 5) == 0 || strncmp(what, "BUS ", 4) == 0 ||
        strncmp(what, "FPE ", 4) == 0 || strncmp(what, "ILL ", 4) == 0)
        return false; /* a crash like any other */
    bool is_address = *what != '\0';
    if (!is_address)
        what = printed_behind(record, ": runtime error: ", "\n");
    if (*what == '\0')
        return false;
    record->suspects[ENDED_IN] = call_at_end(record);
    snprintf(record->expected, sizeof record->expected, "no error under %s",
             is_address ? "AddressSanitizer" : "UndefinedBehaviorSanitizer");
    snprintf(record->seen, sizeof record->seen, "%s, %s", what, where_it_was(record));
    record->by_checker = is_address ? FOUND_ERROR : FOUND_UNDEFINED;
    return true;
}

void ending_forget_cause(struct record *record)
{
    record->attribute_to[0] = '\0';
    record->control[0] = '\0';
    memset(record->suspects, 0, sizeof record->suspects);
}

void record_terminate(struct record *record)
{
    record->expected[sizeof record->expected - 1] = '\0';
    record->seen[sizeof record->seen - 1] = '\0';
    record->step[sizeof record->step - 1] = '\0';
    if (record->reached < PASS || (int)record->reached >= VERDICT_COUNT) {
        record->reached = BROK;
        snprintf(record->seen, sizeof record->seen, "its record was overwritten");
    }
}
