/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The report for people.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>

#include "base/install_path.h"
#include "base/sanitizer_detect.h"
#include "base/text.h"
#include "report/report.h"
#include "search/characterize.h"

struct page {
    FILE *file;
    const struct run *run;
    bool color;
};

static const char *paint(const struct page *page, enum verdict verdict)
{
    return page->color ? verdict_facts[verdict].color : "";
}

static const char *unpaint(const struct page *page)
{
    return page->color ? "\033[0m" : "";
}

static void print_verdict(const struct page *page, enum verdict verdict)
{
    fprintf(page->file, "%s%-7s%s ", paint(page, verdict), verdict_name(verdict), unpaint(page));
}

enum { MARGIN = 8, NAME = 10 };

/* Returns the columns of a line: those of COLUMNS or of the terminal, from 80 to 120; else 100. */
static int width(FILE *file)
{
    enum { LEAST = 80, MOST = 120, USUAL = 100 };
    struct winsize size = {.ws_col = 0};
    const char *columns = getenv("COLUMNS");
    int found = columns != NULL ? atoi(columns) : 0;
    if (found <= 0 && fileno(file) >= 0 && ioctl(fileno(file), TIOCGWINSZ, &size) == 0)
        found = size.ws_col;
    return found <= 0 ? USUAL : MIN(MAX(found, LEAST), MOST);
}

void report_wrap(FILE *file, int column, int right, const char *words)
{
    int at = column;
    bool first = true;
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (!first && at + 1 + (int)length > right) {
            at = fprintf(file, "\n%*s", column, "") - 1;
            first = true;
        }
        at += fprintf(file, "%s%.*s", first ? "" : " ", (int)length, words);
        first = false;
        words += length;
        words += strspn(words, " ");
    }
    fputc('\n', file);
}

static void print_wrapped_from(FILE *file, int column, const char *words)
{
    report_wrap(file, column, width(file), words);
}

static void print_wrapped(FILE *file, int column, const char *words)
{
    fprintf(file, "%*s", column, "");
    print_wrapped_from(file, column, words);
}

static void print_field(FILE *file, const char *name, const char *words)
{
    fprintf(file, "%*s%-*s", MARGIN, "", NAME, name);
    print_wrapped_from(file, MARGIN + NAME, words);
}

/* Each line of it behind the margin, where nobody takes it for one of the report's own. */
static void print_lines(FILE *file, const char *name, const char *lines)
{
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        if (length > 0)
            print_field(file, name, fmt("%.*s", (int)length, lines));
        name = length > 0 ? "" : name;
        lines += length + (lines[length] == '\n');
    }
}

/* Counts the defects of NumPy itself.  --verbose prints each as a finding. */
static void print_numpys(const struct page *page)
{
    char path[PATH_MAX]; /* of the page about them, as installed or in the source tree */
    bool is_installed = installed_path(INSTALLED_DEFECTS, path);
    const size_t *of = page->run->conclusion.runtime.of;
    size_t defects = of[FAIL] + of[WARN] + of[CRASH] + of[TIMEOUT];
    size_t properties = page->run->count - page->run->conclusion.count;
    if (properties > 0)
        fprintf(page->file, "%s in %s about NumPy itself, not counted%s%s\n",
                plural(defects, "defect"),
                properties == 1 ? "1 property" : fmt("%zu properties", properties),
                defects > 0 ? "; --verbose or " : "",
                defects == 0   ? ""
                : is_installed ? path
                               : "numpy-defects/defects.md");
}

static void print_reproducer(FILE *file, const struct run *run, size_t i)
{
    const struct run_reproducer *made = run->reproducers != NULL ? &run->reproducers[i] : NULL;
    if (made != NULL && made->file != NULL)
        fprintf(file, "%*s%-*s%s\n", MARGIN, "", NAME, "in C", escape(made->file));
    else if (made != NULL && made->why[0] != '\0')
        print_field(file, "in C", fmt("none: %s", escape(made->why)));
}

static void print_known(FILE *file, const char *name, const char *words)
{
    if (words != NULL && *words != '\0')
        print_field(file, name, words);
}

/* What was observed.  The row is long, and the levels that matter say more. */
static void print_observed(const struct page *page, size_t i)
{
    FILE *file = page->file;
    const struct run *run = page->run;
    const struct record *record = run->records[i];
    const struct characterization *shown = &run->characterized[i];
    enum verdict verdict = run->outcomes[i].verdict;
    bool is_own = run->outcomes[i].note[0] == '\0';
    const char *actual = verdict == BROK ? "error" : verdict == INCOMPLETE ? "stopped" : "actual";
    if (is_own)
        print_known(file, "call", CLEAN(record->call));
    print_known(file, "expected", run_expected(run, i));
    print_field(file, actual, run_actual(run, i));
    if (run->places[i] != NULL && record->place.callee[0] != '\0')
        print_field(file, "handler",
                    fmt("%s (in %s)", run->places[i], CLEAN(record->place.callee)));
    else
        print_known(file, record->place.is_elsewhere ? "outside" : "handler", run->places[i]);
    if (is_own)
        print_known(file, "block", CLEAN(record->past));
    print_known(file, "when", shown->when.words);
    print_known(file, "not when", shown->not_when.words);
    if (is_own && (shown->when.words[0] == '\0' || run->options->verbose))
        print_known(file, "situation", CLEAN(record->situation));
}

static void print_finding(const struct page *page, size_t i)
{
    FILE *file = page->file;
    const struct run *run = page->run;
    const struct property *property = run->properties[i];
    const struct record *record = run->records[i];
    const struct outcome *outcome = &run->outcomes[i];
    enum verdict verdict = outcome->verdict;
    print_verdict(page, verdict);
    int column = MARGIN + fprintf(file, "%s", property->id);
    const char *level = level_name(property->level);
    fprintf(file, "%*s\n", width(file) - column, level);
    print_wrapped(file, MARGIN, property->clause);
    putc('\n', file);
    print_observed(page, i);
    if (run->rounds > 1)
        print_field(file, "rounds", fmt("%zu of %zu were so", outcome->bad_rounds, run->rounds));
    if (outcome->found_by != NULL)
        print_field(file, "found by", outcome->found_by->id);
    if (outcome->runs > 1)
        print_field(file, "runs",
                    fmt("%zu of %zu failed%s", outcome->failed_runs, outcome->runs,
                        outcome->failed_runs < outcome->runs ? ": intermittent" : ""));
    if (record->output_length > 0)
        print_lines(file, "printed", record_output(record));
    if (outcome->waiver != NULL)
        print_field(file, "waived", expectation_words(outcome->waiver));
    if (outcome->unused_waiver != NULL)
        print_field(file, "waiver",
                    fmt("not used: line %d expects %s", outcome->unused_waiver->line,
                        verdict_name(outcome->unused_waiver->verdict)));
    putc('\n', file);
    if (verdict != BROK && verdict != INCOMPLETE)
        print_field(file, "hint", record_hint(record, property));
    print_field(file, "source", property->source);
    print_field(file, "more", fmt("conform explain %s", property->id));
    bool is_checked = run->options->memcheck || run->options->tsan;
    bool is_short = !is_checked && !run->options->verbose;
    fprintf(file, "%*s%-*s%s\n", MARGIN, "", NAME, is_short ? "debug" : "reproduce", /* one line */
            is_short ? run_debug(run, i) : run_reproduce(run, i));
    print_reproducer(file, run, i);
    putc('\n', file);
}

/* --verbose tells how a failure caused a SKIP. */
static bool has_same_reason(const struct run *run, size_t i, size_t k)
{
    const struct property *cause = run->outcomes[i].cause;
    return run->options->verbose || cause == NULL ? run_has_same_reason(run, i, k)
                                                  : run->outcomes[k].cause == cause;
}

/* Reasons that more than three properties share are told once. */
static bool told_before(const struct run *run, size_t i, size_t *same)
{
    bool before = false;
    *same = 0;
    for (size_t k = 0; k < run->count; k++) {
        if (!has_same_reason(run, i, k))
            continue;
        before = before || k < i;
        ++*same;
    }
    return before && *same > 3;
}

/* A SKIP that nothing caused is told on request, or where properties were chosen. */
static bool hides_reason(const struct run *run, size_t i)
{
    const struct options *options = run->options;
    return run->outcomes[i].verdict == SKIP && run->outcomes[i].cause == NULL &&
           !options->verbose && (run->conclusion.whole || options->quick);
}

/* True if the failure is reported in a line, as another one is reported in full. */
static bool is_brief(const struct run *run, size_t i)
{
    return run->leads[i] != i && !run->options->verbose;
}

static void print_brief_line(const struct page *page, size_t i)
{
    const struct run *run = page->run;
    print_verdict(page, run->outcomes[i].verdict);
    int column = MARGIN + fprintf(page->file, "%-30s ", run->properties[i]->id);
    int right = width(page->file);
    const char *message = run_actual(run, i);
    int length = (int)strlen(message);
    bool fits = column + length <= right;
    fprintf(page->file, "%.*s%s\n", fits ? length : right - column - 3, message, fits ? "" : "...");
}

/* The failures that are likely due to the one that is reported in full. */
static void print_brief(const struct page *page, size_t lead)
{
    enum { MOST_LINES = 8 };
    const struct run *run = page->run;
    size_t count = 0, printed = 0;
    for (size_t i = 0; i < run->count; i++)
        count += is_brief(run, i) && run->leads[i] == lead;
    if (count == 0)
        return;
    print_wrapped(page->file, 0,
                  fmt("%s, likely due to the defect of %s (--verbose shows %s):",
                      plural(count, "more failure"), run->properties[lead]->id,
                      count > 1 ? "them" : "it"));
    for (size_t i = 0; i < run->count && printed < MOST_LINES; i++) {
        if (is_brief(run, i) && run->leads[i] == lead && ++printed > 0)
            print_brief_line(page, i);
    }
    if (count > printed)
        fprintf(page->file, "%*s... and %zu more\n", MARGIN, "", count - printed);
    putc('\n', page->file);
}

static void print_stale(const struct page *page)
{
    const struct expectations *all = page->run->expectations;
    for (size_t k = 0; all != NULL && k < all->count; k++) {
        if (!all->of[k].is_stale)
            continue;
        fprintf(page->file, "%sSTALE%s   ", paint(page, FAIL), unpaint(page));
        print_wrapped_from(page->file, MARGIN, stale_words(all, &all->of[k]));
    }
    if (page->run->conclusion.stale > 0 && !page->run->options->quiet)
        putc('\n', page->file);
}

/* Whether a GIL keeps Python's threads apart; "" for a Python that always has one. */
static const char *gil_words(const struct run *run)
{
    if (!run->environment->free_threaded)
        return "";
    if (run->environment->gil)
        return " with the GIL";
    return run_has_gil(run) ? " with the GIL, which loading the handler turned on"
                            : " without the GIL";
}

static void print_head(const struct page *page)
{
    const struct run *run = page->run;
    const struct environment *environment = run->environment;
    fprintf(page->file, "conform %s: %s", program_version,
            report_clean(run->place->path, SIZE_MAX, 0));
    if (run->load->has_name != 0)
        fprintf(page->file, ", \"%s\" version %d", CLEAN(run->load->name), run->load->version);
    if (run->load->claims[0] != '\0')
        fprintf(page->file, ", claims %s", CLEAN(run->load->claims));
    if (run->place->claims != NULL)
        fprintf(page->file, ", held to %s", escape(run->place->claims));
    if (run->load->how[0] != '\0')
        fprintf(page->file, ", %s", escape(run->load->how));
    fputc('\n', page->file);
    if (environment->python[0] != '\0') /* else it ended before Python was up */
        fprintf(page->file, "Python %s%s (%s), NumPy %s\n", environment->python, gil_words(run),
                escape(run->python), environment->numpy);
    fprintf(page->file, "%s, %s; seed %llu\n", run->machine.libc, run->machine.kernel,
            (unsigned long long)run->options->seed);
    if (run->tunables != NULL)
        fprintf(page->file, "it loads only with GLIBC_TUNABLES=%s, which was set for it\n",
                run->tunables);
    if (run->allocator[0] != '\0')
        fprintf(page->file, "%s\n", run->allocator);
    fputc('\n', page->file);
}

static void print_tally(const struct page *page)
{
    static const enum verdict order[] = {PASS, FAIL, WARN, CRASH, TIMEOUT, BROK, INCOMPLETE, SKIP};
    const struct tally *handler = &page->run->conclusion.handler;
    size_t count = page->run->conclusion.count;
    if (count == 0)
        return;
    fprintf(page->file, "%zu %s", count, count == 1 ? "property" : "properties");
    if (page->run->rounds > 1)
        fprintf(page->file, " in %zu rounds", page->run->rounds);
    const char *between = ": ";
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        size_t n = handler->of[order[i]];
        if (n == 0)
            continue;
        fprintf(page->file, "%s%s%zu %s%s", between, paint(page, order[i]), n,
                verdict_facts[order[i]].counts, unpaint(page));
        between = ", ";
    }
    bool hides = false;
    for (size_t i = 0; i < page->run->count; i++)
        hides = hides || hides_reason(page->run, i);
    fprintf(page->file, "%s; %.2f s\n", hides ? " (see --verbose)" : "", page->run->seconds);
}

/* Memory that was written outside a block shows anywhere and much later; valgrind sees the write.
 */
static void print_advice(const struct page *page)
{
    enum { MANY = 5 };
    const char *python = page->run->options->python;
    const char *with_python = python != NULL ? fmt(" --python=%s", shell_quote(python)) : "";
    size_t crashes = page->run->conclusion.handler.of[CRASH];
    size_t places = page->run->conclusion.crash_places;
    if (crashes >= MANY && places > 1 && !page->run->options->memcheck && !sanitizer_is_running())
        fprintf(page->file,
                "%zu crashes at %zu places: if memory was overwritten, --memcheck shows where:\n"
                "    %s --handler=%s%s --memcheck\n",
                crashes, places, shell_quote(page->run->options->program),
                shell_quote(page->run->place->argument), with_python);
    if (page->run->conclusion.start_with != NULL)
        fprintf(page->file, "fix %s first, then run conform again\n",
                page->run->conclusion.start_with);
}

/* "1,204,332", with a comma before each three digits. */
static const char *grouped(uint64_t number)
{
    return number < 1000 ? fmt("%" PRIu64, number)
                         : fmt("%s,%03d", grouped(number / 1000), (int)(number % 1000));
}

/* "  1,204,332 calls checked, 812 of 820 combinations", or "" if no rows were run. */
static const char *coverage_words(const struct coverage_counts *counts)
{
    return counts->rows == 0 ? ""
                             : fmt("  %s calls checked, %" PRIu32 " of %" PRIu32 " combinations",
                                   grouped(counts->calls), counts->pairs, counts->possible);
}

/* What is told in one line; the others as findings. */
static bool is_line(const struct run *run, size_t i)
{
    const struct outcome *outcome = &run->outcomes[i];
    size_t same;
    told_before(run, i, &same);
    return outcome->verdict == PASS || outcome->verdict == SKIP ||
           (outcome->waiver != NULL && !run->options->verbose) ||
           (outcome->verdict == INCOMPLETE && (same > 3 || run->interrupted));
}

/* Returns whether a line was printed. */
static bool print_line(const struct page *page, size_t i)
{
    const struct run *run = page->run;
    const struct outcome *outcome = &run->outcomes[i];
    const char *id = run->properties[i]->id;
    enum verdict verdict = outcome->verdict;
    bool quiet = run->options->quiet, verbose = run->options->verbose;
    size_t same;
    if (told_before(run, i, &same) || (quiet && verdict != INCOMPLETE) || hides_reason(run, i) ||
        (verdict == PASS && !verbose) ||
        (verdict == INCOMPLETE && run->interrupted)) /* the last line tells it, for all */
        return false;
    print_verdict(page, verdict);
    if (verdict == PASS)
        fprintf(page->file, "%-36s %6.1f ms%s\n", id, run->records[i]->seconds * 1e3,
                coverage_words(&run->records[i]->coverage));
    else if (outcome->waiver != NULL && !verbose)
        print_wrapped_from(page->file, MARGIN,
                           fmt("%s: waived: %s", id, expectation_words(outcome->waiver)));
    else if (same <= 3)
        print_wrapped_from(page->file, MARGIN, fmt("%s: %s", id, run_seen(run, i)));
    else if (outcome->cause != NULL && !verbose)
        print_wrapped_from(page->file, MARGIN,
                           fmt("%zu properties: caused by %s", same, outcome->cause->id));
    else
        print_wrapped_from(page->file, MARGIN, fmt("%zu properties: %s", same, run_seen(run, i)));
    return true;
}

static void print_lines_of_all(const struct page *page)
{
    size_t lines = 0;
    for (size_t i = 0; i < page->run->count; i++)
        lines += is_line(page->run, i) && print_line(page, i);
    if (lines > 0 && !page->run->options->quiet)
        fputc('\n', page->file);
}

int report_text(FILE *file, const struct run *run, bool color)
{
    struct page page = {file, run, color};
    const struct conclusion *c = &run->conclusion;
    bool quiet = run->options->quiet, verbose = run->options->verbose;
    if (!quiet)
        print_head(&page);
    if (verbose)
        print_lines_of_all(&page);
    for (size_t i = 0; i < run->count; i++) {
        bool counted = run->properties[i]->target == TARGET_RUNTIME && !verbose &&
                       run->outcomes[i].verdict != BROK; /* by print_numpys */
        if (!is_line(run, i) && !is_brief(run, i) && !counted) {
            print_finding(&page, i);
            print_brief(&page, i);
        }
    }
    if (!verbose)
        print_lines_of_all(&page);
    print_stale(&page);
    if (!quiet) {
        print_numpys(&page);
        print_tally(&page);
        print_advice(&page);
    }
    enum verdict colored = c->conformant ? PASS : c->code == EXIT_CONFORMANT ? WARN : FAIL;
    if (!quiet || !c->conformant)
        print_wrapped_from(file, 0,
                           fmt("%s%s: %s%s", paint(&page, colored), escape(run->place->label),
                               c->words, unpaint(&page)));
    return fflush(file) != 0 || ferror(file) ? -1 : 0;
}
