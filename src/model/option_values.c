/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Taking the value of an option, or saying what is wrong with it.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "model/claims.h"
#include "model/option_table.h"

static void *field_of(const struct option_row *row, struct options *options)
{
    return (char *)options + row->field;
}

void take_flag(const struct option_row *row, const char *value, struct options *options)
{
    (void)value;
    *(bool *)field_of(row, options) = true;
}

void take_github(const struct option_row *row, const char *value, struct options *options)
{
    (void)row, (void)value;
    options->reports[REPORT_github] = "/dev/stderr";
}

void take_text(const struct option_row *row, const char *value, struct options *options)
{
    *(const char **)field_of(row, options) = value;
}

void take_count(const struct option_row *row, const char *value, struct options *options)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (errno != 0 || *value < '0' || *value > '9' || *end != '\0' || number < 1 ||
        number > (unsigned long long)row->most)
        die(EXIT_USAGE, "--%s=%s: give a whole number from 1 to %.0f", row->name, escape(value),
            row->most);
    *(size_t *)field_of(row, options) = (size_t)number;
}

void take_seconds(const struct option_row *row, const char *value, struct options *options)
{
    char *end;
    errno = 0;
    double number = strtod(value, &end);
    if (errno != 0 || *end != '\0' || !(number >= row->least && number <= row->most) ||
        strspn(value, "0123456789.e-") != strlen(value))
        die(EXIT_USAGE, "%s%s%s%s: give a number of seconds from %g to %g",
            row->name != NULL ? "--" : "", row->name != NULL ? row->name : "",
            row->name != NULL ? "=" : "", escape(value), row->least, row->most);
    *(double *)field_of(row, options) = number;
}

/* A leading 0 means nothing; 0x is what a seed from elsewhere may begin with. */
void take_seed(const struct option_row *row, const char *value, struct options *options)
{
    bool hexadecimal = value[0] == '0' && (value[1] == 'x' || value[1] == 'X');
    const char *digits = hexadecimal ? value + 2 : value;
    char *end;
    errno = 0;
    options->seed = strtoull(digits, &end, hexadecimal ? 16 : 10);
    if (errno != 0 || !isxdigit((unsigned char)*digits) || *end != '\0')
        die(EXIT_USAGE, "--%s=%s: give a whole number from 0 to 2^64 - 1", row->name,
            escape(value));
}

void take_color(const struct option_row *row, const char *value, struct options *options)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, words[i]) == 0) {
            options->color = (enum color)i;
            return;
        }
    }
    die(EXIT_USAGE, "--%s=%s: give auto, always or never", row->name, escape(value));
}

void take_handler(const struct option_row *row, const char *value, struct options *options)
{
    size_t count = options->handler_count++;
    (void)row;
    options->handlers = reallocarray(options->handlers, count + 1, sizeof *options->handlers);
    if (options->handlers == NULL)
        die(EXIT_HARNESS_BROKE, "out of memory");
    options->handler = options->handlers[count] = value;
}

void take_python(const struct option_row *row, const char *value, struct options *options)
{
    (void)row;
    if (options->python != NULL)
        die(EXIT_USAGE, "--python is given twice; run conform once for each interpreter");
    options->python = value;
}

/* What a handler cannot keep on this machine is no failure of it.  NULL, or one line. */
static const char *lacks_nodes(const struct claims *claims)
{
    struct nodes here = {0};
    if (syscall(SYS_get_mempolicy, NULL, here.bits, (unsigned long)MOST_NODES, NULL,
                (unsigned long)MPOL_F_MEMS_ALLOWED) != 0)
        return NULL; /* nobody can tell, then or now */
    for (size_t node = 0; node < MOST_NODES; node++) {
        if (has_node(&claims->nodes, node) && !has_node(&here, node))
            return fmt("numa=%s: there is no memory node %zu here", claims->numa, node);
    }
    return NULL;
}

void take_claim(const struct option_row *row, const char *value, struct options *options)
{
    struct claims claims;
    char *words;
    claims_parse(options->claims != NULL ? options->claims : "", &claims);
    const char *wrong = claims_add(value, &claims);
    if (wrong == NULL)
        wrong = lacks_nodes(&claims);
    if (strspn(value, " ") == strlen(value))
        wrong = "no claim; give one of those that nep49.h lists";
    if (wrong != NULL)
        die(EXIT_USAGE, "--%s: %s", row->name, escape(wrong));
    if (asprintf(&words, "%s%s%s", options->claims != NULL ? options->claims : "",
                 options->claims != NULL ? " " : "", value) < 0)
        die(EXIT_HARNESS_BROKE, "out of memory");
    options->claims = words;
}

void take_fail_on(const struct option_row *row, const char *value, struct options *options)
{
    if (strcmp(value, "new") != 0)
        die(EXIT_USAGE, "--%s=%s: give new", row->name, escape(value));
    options->fail_on_new = true;
}

static void add_filter(struct options *options, bool take, const char *glob, const char *option)
{
    struct filter *filters =
        realloc(options->filters, (options->filter_count + 1) * sizeof *filters);
    if (filters == NULL)
        die(EXIT_HARNESS_BROKE, "out of memory");
    filters[options->filter_count++] = (struct filter){take, glob, option};
    options->filters = filters;
}

void take_run(const struct option_row *row, const char *value, struct options *options)
{
    add_filter(options, true, value, row->name);
}

void take_skip(const struct option_row *row, const char *value, struct options *options)
{
    add_filter(options, false, value, row->name);
}
