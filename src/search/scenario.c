/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The factors and their levels, which of them can be combined, and how rows are drawn.
 */
#include "search/scenario.h"

#include <sys/param.h>

/* ---- factors and levels ---------------------------------------------------------------------- */

#define KIB(n) (UINT64_C(n) << 10)
#define MIB(n) (UINT64_C(n) << 20)

/* Powers of two and the bytes beside them are levels or ends of levels, because size classes,
 * pages and thresholds for mmap begin there. */
static const struct factor_level sizes[] = {{"0", 0, 0, 2},
                                            {"1", 1, 1, 4},
                                            {"2 to 7", 2, 7, 4},
                                            {"8", 8, 8, 4},
                                            {"9 to 15", 9, 15, 4},
                                            {"16", 16, 16, 4},
                                            {"17 to 31", 17, 31, 4},
                                            {"32", 32, 32, 4},
                                            {"33 to 47", 33, 47, 4},
                                            {"48 to 63", 48, 63, 4},
                                            {"64", 64, 64, 4},
                                            {"65 to 127", 65, 127, 6},
                                            {"128", 128, 128, 4},
                                            {"129 to 255", 129, 255, 6},
                                            {"256", 256, 256, 4},
                                            {"257 to 511", 257, 511, 6},
                                            {"512 to 767", 512, 767, 4},
                                            {"768 to 1023", 768, 1023, 4},
                                            {"1 KiB to 1535", 1024, 1535, 4},
                                            {"1536 to 2047", 1536, 2047, 4},
                                            {"2 KiB to 3071", 2048, 3071, 4},
                                            {"3 KiB to 4095", 3072, 4095, 4},
                                            {"4 KiB", 4096, 4096, 4},
                                            {"4 to 6 KiB", 4097, 6143, 4},
                                            {"6 to 8 KiB", 6144, 8192, 4},
                                            {"8 to 16 KiB", 8193, KIB(16), 4},
                                            {"16 to 32 KiB", KIB(16) + 1, KIB(32), 4},
                                            {"32 to 64 KiB", KIB(32) + 1, KIB(64), 4},
                                            {"64 to 96 KiB", KIB(64) + 1, KIB(96), 3},
                                            {"96 to 128 KiB", KIB(96) + 1, KIB(128), 3},
                                            {"128 to 192 KiB", KIB(128) + 1, KIB(192), 3},
                                            {"192 to 256 KiB", KIB(192) + 1, KIB(256), 3},
                                            {"256 to 512 KiB", KIB(256) + 1, KIB(512), 3},
                                            {"512 KiB to 1 MiB", KIB(512) + 1, MIB(1), 3},
                                            {"1 to 2 MiB", MIB(1) + 1, MIB(2), 2},
                                            {"2 to 4 MiB", MIB(2) + 1, MIB(4), 2},
                                            {"4 to 8 MiB", MIB(4) + 1, MIB(8), 1},
                                            {"8 to 16 MiB", MIB(8) + 1, MIB(16), 1},
                                            {"16 to 32 MiB", MIB(16) + 1, MIB(32), 1},
                                            {"32 to 64 MiB", MIB(32) + 1, MIB(64), 1}};

static const struct factor_level makers[] = {
    [BY_MALLOC] = {"malloc", .weight = 4},
    [BY_CALLOC_N_1] = {"calloc(n, 1)", .weight = 3},
    [BY_CALLOC_1_N] = {"calloc(1, n)", .weight = 2},
    [BY_CALLOC_N_K] = {"calloc(n, k)", .weight = 2},
    [BY_REALLOC_NULL] = {"realloc(NULL, n)", .weight = 2},
    [GROWN] = {"grown", .weight = 3},
    [GROWN_STEPWISE] = {"grown step by step", .weight = 2},
    [SHRUNK] = {"shrunk", .weight = 3},
    [SHRUNK_STEPWISE] = {"shrunk step by step", .weight = 2},
    [RESIZED_AND_BACK] = {"resized, and back to its size", .weight = 2},
    [FROM_EMPTY] = {"grown from 0 bytes", .weight = 1}};

static const struct factor_level befores[] = {
    [FRESH] = {"fresh", .weight = 4},
    [FREED_SAME] = {"freed, of the same size", .weight = 4},
    [FREED_LARGER] = {"freed, of a larger size", .weight = 3},
    [FREED_SMALLER] = {"freed, of a smaller size", .weight = 2},
    [REST_OF_SHRINK] = {"rest of a shrink", .weight = 4},
    [MERGED_NEIGHBORS] = {"merged neighbors", .weight = 3},
    [AFTER_BURST] = {"freed after a burst", .weight = 2},
    [FREED_BY_OTHER] = {"freed by another thread", .weight = 1},
    [FREED_BY_ENDED] = {"made and freed by an ended thread", .weight = 1}};

static const struct factor_level lives[] = {
    {"1", 1, 1, 200},           {"2", 2, 2, 80},
    {"12", 9, 16, 80},          {"100", 65, 130, 40},
    {"300", 256, 320, 20},      {"1,000", 900, 1100, 8},
    {"10,000", 9000, 10000, 2}, {"70,000", 65537, 70000, 1}};

static const struct factor_level orders[] = {[LIFO] = {"last in, first out", .weight = 3},
                                             [FIFO] = {"first in, first out", .weight = 3},
                                             [RANDOM_ORDER] = {"random", .weight = 3},
                                             [EVERY_OTHER] = {"every other first", .weight = 3},
                                             [ALL_BUT_ONE] = {"all but one", .weight = 2},
                                             [NO_FREE] = {"none", .weight = 2}};

static const struct factor_level repetitions[] = {{"1", 1, 1, 200},
                                                  {"8", 6, 12, 150},
                                                  {"64", 60, 70, 80},
                                                  {"256", 254, 258, 40},
                                                  {"1,000", 900, 1100, 12},
                                                  {"10,000", 9000, 11000, 3},
                                                  {"65,536", 65535, 65600, 1},
                                                  {"200,000", 200001, 200100, 1}};

static const struct factor_level resizes[] = {{"as it is made", 0, 0, 200},
                                              {"2 to 8", 2, 8, 20},
                                              {"256", 256, 300, 6},
                                              {"1,000", 900, 1100, 1},
                                              {"65,536", 65536, 65600, 1}};

static const struct factor_level mixes[] = {
    [ONE_SIZE] = {"the same", .weight = 4},
    [ANY_SIZE] = {"any of the range", .weight = 3},
    [EACH_IN_TURN] = {"one byte more each time", .weight = 2}};

static const struct factor_level free_sizes[] = {
    [TRUE_SIZE] = {"true", .weight = 7},
    [NUMPY_SIZE] = {"as NumPy is known to say wrongly", .weight = 1},
    [ANY_TOLD_SIZE] = {"any, up to SIZE_MAX", .weight = 1},
    [NULL_AS_WELL] = {"true; NULL is freed with size 0, too", .weight = 1},
    [NULL_OF_ANY_SIZE] = {"true; NULL is freed with any size, too", .weight = 1}};

static const struct factor_level contents[] = {
    [PATTERN] = {"a pattern", .weight = 8},
    [ZEROS] = {"0x00", .weight = 1},
    [MARKS] = {"0xff, or what marks free memory", .weight = 1},
    [POINTERS] = {"what looks like pointers", .weight = 1},
    [HEADERS] = {"what looks like a header, or stands before a block", .weight = 1}};

static const struct factor_level pressures[] = {
    [NO_PRESSURE] = {"none", .weight = 12},
    [ERRNO_SET] = {"errno set before each call", .weight = 2},
    [REFUSED_BEFORE] = {"impossible requests before and between", .weight = 2},
    [PAGES_LOCKED] = {"pages locked into memory", .weight = 1},
    [REQUEST_REFUSED] = {"a request below the handler refused", .weight = 4},
    [ADDRESS_LIMIT] = {"little address space left", .weight = 1},
    [USED_UP] = {"address space used up by blocks", .weight = 1}};

static const struct factor_level threads[] = {
    [SAME] = {"the same", .weight = 48},
    [FREED_THERE] = {"freed by another", .weight = 2},
    [MADE_THERE] = {"made by another, which has ended", .weight = 3},
    [CHAIN] = {"made, resized and freed by three", .weight = 2},
    [ONE_AFTER_ANOTHER] = {"each use by a new one", .weight = 1},
    [IN_DESTRUCTOR] = {"freed while variables are destroyed", .weight = 1},
    [STOPPED_INSIDE] = {"two at once, one of them stopped inside calls", 2, 2, 1},
    [FEW_AT_ONCE] = {"2 to 4 at once", 2, 4, 4},
    [TEN_AT_ONCE] = {"8 to 16 at once", 8, 16, 2},
    [HUNDREDS_AT_ONCE] = {"270 at once", 260, 280, 1}};

static const struct factor_level processes[] = {
    [ONE_PROCESS] = {"one", .weight = 60},
    [FORK_IN_TURNS] = {"two after fork, in turns", .weight = 1},
    [FORK_AT_ONCE] = {"two after fork, at once", .weight = 1},
    [AT_EXIT] = {"used again while it exits", .weight = 1}};

static const struct factor_level times[] = {
    {"no pause", 0, 0, 400}, {"30 ms", 30, 30, 2}, {"1.2 s", 1200, 1200, 1}};

#define LEVELS(name, array)                                                                        \
    {                                                                                              \
        name, array, sizeof(array) / sizeof *(array)                                               \
    }
const struct factor_levels scenario_factors[FACTORS] = {
    [FACTOR_SIZE] = LEVELS("size", sizes),
    [FACTOR_SIZES] = LEVELS("sizes of the uses", mixes),
    [FACTOR_MADE_BY] = LEVELS("made by", makers),
    [FACTOR_MEMORY_BEFORE] = LEVELS("memory before", befores),
    [FACTOR_LIVE_BLOCKS] = LEVELS("live blocks", lives),
    [FACTOR_FREE_ORDER] = LEVELS("order of frees", orders),
    [FACTOR_REPETITION] = LEVELS("repetition", repetitions),
    [FACTOR_RESIZES] = LEVELS("resizes of a block", resizes),
    [FACTOR_FREE_SIZE] = LEVELS("size told to free", free_sizes),
    [FACTOR_CONTENTS] = LEVELS("contents", contents),
    [FACTOR_PRESSURE] = LEVELS("pressure", pressures),
    [FACTOR_THREADS] = LEVELS("threads", threads),
    [FACTOR_PROCESS] = LEVELS("process", processes),
    [FACTOR_TIME] = LEVELS("time", times)};

/* ---- drawing --------------------------------------------------------------------------------- */

/* Two ranges of levels that cannot be combined, and why. */
static const struct constraint {
    struct {
        enum factor factor;
        unsigned first, last;
    } one, other;
} constraints[] = {
    /* A forked process has the thread that forks and no other. */
    {{FACTOR_PROCESS, FORK_IN_TURNS, AT_EXIT}, {FACTOR_THREADS, FREED_THERE, HUNDREDS_AT_ONCE}},
    /* The limit is one of the whole process, and a thread needs memory to start. */
    {{FACTOR_PRESSURE, REQUEST_REFUSED, USED_UP}, {FACTOR_THREADS, FREED_THERE, HUNDREDS_AT_ONCE}},
    {{FACTOR_PRESSURE, REQUEST_REFUSED, USED_UP}, {FACTOR_PROCESS, FORK_IN_TURNS, AT_EXIT}},
    /* A block of 0 bytes has no contents. */
    {{FACTOR_SIZE, 0, 0}, {FACTOR_CONTENTS, ZEROS, HEADERS}},
    /* A thread takes as long to start as a hundred calls. */
    {{FACTOR_THREADS, ONE_AFTER_ANOTHER, ONE_AFTER_ANOTHER}, {FACTOR_REPETITION, 4, 7}},
    {{FACTOR_THREADS, FREED_THERE, IN_DESTRUCTOR}, {FACTOR_REPETITION, 5, 7}}};

static bool is_excluded(const struct scenario *s)
{
    for (size_t i = 0; i < sizeof constraints / sizeof *constraints; i++) {
        const struct constraint *c = &constraints[i];
        unsigned one = s->level[c->one.factor], other = s->level[c->other.factor];
        if (one >= c->one.first && one <= c->one.last && other >= c->other.first &&
            other <= c->other.last)
            return true;
    }
    return false;
}

const struct factor_level *scenario_level(const struct scenario *s, enum factor factor)
{
    return &scenario_factors[factor].level[s->level[factor]];
}

double scenario_cost(const struct scenario *s)
{
    enum { ROUND = 64 }; /* uses by one thread */
    static const double stop = 200, fork = 10000, byte = 1.0 / 8192;
    double uses = (double)scenario_level(s, FACTOR_REPETITION)->high + 12,
           blocks = uses + (double)scenario_level(s, FACTOR_LIVE_BLOCKS)->high,
           cost = blocks * (2 + (double)scenario_level(s, FACTOR_SIZE)->high * byte);
    double resized = s->level[FACTOR_RESIZES] == RESIZED_FEW ? uses : 1;
    cost += resized * (double)scenario_level(s, FACTOR_RESIZES)->high *
            (2 + (double)scenario_level(s, FACTOR_SIZE)->high * byte);
    unsigned relation = s->level[FACTOR_THREADS];
    if (relation == STOPPED_INSIDE)
        return stop * uses;
    if (relation >= FEW_AT_ONCE)
        return cost * (double)scenario_level(s, FACTOR_THREADS)->high;
    if (relation != SAME)
        cost += THREAD_COST * (relation == ONE_AFTER_ANOTHER ? uses : 2 + uses / ROUND * 2);
    return cost + (s->level[FACTOR_PROCESS] != ONE_PROCESS ? fork : 0);
}

static bool varies_as_wanted(const struct scenario *s, const struct scenario_limits *limits)
{
    unsigned before = s->level[FACTOR_MEMORY_BEFORE], process = s->level[FACTOR_PROCESS];
    unsigned relation = s->level[FACTOR_THREADS];
    bool at_once = relation >= STOPPED_INSIDE, may_be_at_once = limits->level[FACTOR_THREADS].count;
    bool has_threads =
        (relation != SAME && !at_once) || before == FREED_BY_OTHER || before == FREED_BY_ENDED;
    /* That any size told to free does no harm is a SHOULD: such rows are asked for. */
    bool is_asked_for = limits->level[FACTOR_FREE_SIZE].first == ANY_TOLD_SIZE;
    return (is_asked_for || s->level[FACTOR_FREE_SIZE] != ANY_TOLD_SIZE) &&
           (limits->threads || !has_threads) && (may_be_at_once || !at_once) &&
           (limits->forks || process == ONE_PROCESS || process == AT_EXIT) &&
           (limits->exits || process != AT_EXIT) &&
           (limits->pauses || s->level[FACTOR_TIME] == 0) &&
           (limits->address_limits || s->level[FACTOR_PRESSURE] < REQUEST_REFUSED);
}

bool scenario_is_one_step(const struct scenario *s)
{
    return scenario_level(s, FACTOR_REPETITION)->low > SCENARIO_MANY &&
           s->level[FACTOR_MADE_BY] <= BY_REALLOC_NULL;
}

static bool is_within(const struct scenario *s, const struct scenario_limits *limits)
{
    enum { MANY_TIMES = 16 };
    uint64_t least = scenario_level(s, FACTOR_SIZE)->low,
             most = scenario_level(s, FACTOR_SIZE)->high,
             live = scenario_level(s, FACTOR_LIVE_BLOCKS)->high,
             repeated = scenario_level(s, FACTOR_REPETITION)->high;
    return least >= limits->least_size && (limits->most_size == 0 || most <= limits->most_size) &&
           most * MAX(live, 4) <= limits->most_bytes &&
           most * repeated <= MANY_TIMES * (uint64_t)limits->most_bytes &&
           (limits->most_steps == 0 || live + (scenario_is_one_step(s) ? 1 : repeated) +
                                               scenario_level(s, FACTOR_RESIZES)->high <=
                                           limits->most_steps);
}

static bool is_in_range(const struct scenario *s, const struct scenario_limits *limits)
{
    for (enum factor factor = 0; factor < FACTORS; factor++) {
        const struct level_range *range = &limits->level[factor];
        if (range->count != 0 && (unsigned)(s->level[factor] - range->first) >= range->count)
            return false;
    }
    return true;
}

bool scenario_is_allowed(const struct scenario *s, const struct scenario_limits *limits)
{
    return is_in_range(s, limits) && !is_excluded(s) && is_within(s, limits) &&
           varies_as_wanted(s, limits);
}

static uint8_t draw_level(struct random *random, const struct factor_levels *factor,
                          struct level_range range)
{
    uint64_t sum = 0;
    uint8_t i = range.first, end = range.count != 0 ? i + range.count : (uint8_t)factor->count;
    for (unsigned k = i; k < end; k++)
        sum += factor->level[k].weight;
    uint64_t left = random_below(random, sum);
    for (; left >= factor->level[i].weight; i++)
        left -= factor->level[i].weight;
    return i;
}

struct scenario scenario_draw(struct random *random, const struct scenario_limits *limits)
{
    struct scenario s;
    do {
        for (enum factor factor = 0; factor < FACTORS; factor++)
            s.level[factor] = draw_level(random, &scenario_factors[factor], limits->level[factor]);
    } while (is_excluded(&s) || !is_within(&s, limits) || !varies_as_wanted(&s, limits));
    for (enum factor factor = 0; factor < FACTORS; factor++) {
        bool applies = factor == FACTOR_SIZE || factor == FACTOR_REPETITION;
        if (s.level[FACTOR_THREADS] == STOPPED_INSIDE && factor != FACTOR_THREADS && !applies)
            s.level[factor] = 0; /* interleaved_write() has calls of its own */
    }
    return s;
}

const char *scenario_words(const struct scenario *s, char *buffer, size_t room)
{
    size_t used = 0;
    for (enum factor factor = 0; factor < FACTORS && used < room; factor++) {
        if (factor == FACTOR_SIZE || s->level[factor] != 0)
            used +=
                (size_t)snprintf(buffer + used, room - used, "%s%s: %s", used > 0 ? "; " : "",
                                 scenario_factors[factor].name, scenario_level(s, factor)->name);
    }
    return buffer;
}
