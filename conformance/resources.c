/* SPDX-License-Identifier: BSD-3-Clause
 *
 * resources: what the handler takes from the system besides memory.  A fixed number of anything is
 * its own affair; what each block takes, or no free gives back, ends a program that has many.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/growth.h"
#include "harness/harness.h"
#include "harness/limits.h"
#include "harness/proc_count.h"
#include "harness/property_child.h"
#include "ordinary_use.h"

GROUP(resources, 10, "What blocks use besides memory, and what they leave behind.",
      .rank = {RANK_AT_LENGTH, RANK_AT_LENGTH, 42});

/* ---- blocks that are live at once ------------------------------------------------------------ */

enum { AT_ONCE = 32, LARGE = 10000 };
static const size_t small_sizes[] = {40, 1000}, sizes[] = {40, 5000, 70000, 300000};
enum { SIZES = LENGTH(sizes), SMALL_SIZES = LENGTH(small_sizes) };

/* And those of which many can be live where nobody writes to them. */
static const size_t large_sizes[] = {2 << 20, 64 << 20};
static bool can_have_large(void)
{
    return !is_instrumented() &&
           lacking_memory(AT_ONCE * large_sizes[LENGTH(large_sizes) - 1]) == NULL &&
           !subject_fills_blocks();
}

/* As many as it gives, the large ones untouched. */
struct crowd {
    void *at[AT_ONCE];
    size_t size, count;
};

static void *grown(size_t size)
{
    enum { LITTLE = 8 };
    void *p = subject_malloc(LITTLE), *moved = p != NULL ? subject_realloc(p, size) : NULL;
    if (moved == NULL)
        give_back(p, LITTLE);
    return moved;
}

static struct crowd make_crowd(size_t size)
{
    struct crowd crowd = {.size = size};
    for (size_t i = 0; i < AT_ONCE; i++) {
        void *p = i % 3 == 2                   ? grown(size)
                  : i % 3 == 0 || size > LARGE ? subject_malloc(size)
                                               : subject_calloc(size, 1);
        if (p != NULL)
            crowd.at[crowd.count++] = p;
    }
    return crowd;
}

static void free_crowd(struct crowd *crowd)
{
    while (crowd->count > 0)
        subject_free(crowd->at[--crowd->count], crowd->size);
}

/* One in four has grown before it goes. */
static void make_and_free_crowd(size_t size)
{
    struct crowd crowd = make_crowd(size);
    for (size_t i = 0; i < crowd.count; i += 4) {
        void *moved = subject_realloc(crowd.at[i], 2 * size);
        if (moved != NULL) {
            subject_free(moved, 2 * size);
            crowd.at[i] = subject_malloc(size);
        }
        if (crowd.at[i] == NULL)
            crowd.at[i] = crowd.at[--crowd.count];
    }
    free_crowd(&crowd);
}

static void come_and_go(void *unused)
{
    enum { MIB = 1 << 20 };
    (void)unused;
    for (size_t i = 0; i < SIZES; i++)
        resize_and_free(subject_malloc(sizes[i]), sizes[i], 2 * sizes[i], 2 * sizes[i]);
    resize_and_free(subject_malloc(2 * MIB), 2 * MIB, 4 * MIB, 4 * MIB);
    give_back(subject_calloc(1, 2 * MIB), 2 * MIB);
}

/* Blocks of all sizes, of threads that end as well. */
static void make_and_free_crowds(void *unused)
{
    enum { THREADS_EACH = 4 };
    (void)unused;
    for (size_t i = 0; i < SIZES; i++)
        make_and_free_crowd(sizes[i]);
    for (size_t i = 0; i < THREADS_EACH; i++)
        in_threads(1, come_and_go, NULL, 0);
}

static void make_free_and_refuse(void *unused)
{
    make_and_free_crowds(unused);
    ask_too_much();
}

/* And of mappings, in most handlers, which nobody writes to. */
static void make_and_free_large_too(void *unused)
{
    make_free_and_refuse(unused);
    if (can_have_large()) {
        struct crowd crowd = make_crowd(8 << 20);
        free_crowd(&crowd);
    }
}

/* ---- what can be counted --------------------------------------------------------------------- */

/* Fails if live blocks of that size take more than `most_each` of the measure. */
static void expect_few_for_live(enum measure measure, size_t most_each, size_t size)
{
    size_t before = measure_now(measure);
    struct crowd crowd = make_crowd(size);
    size_t live = measure_now(measure), blocks = crowd.count;
    free_crowd(&crowd);
    size_t most = before + MAX(blocks * most_each, AT_ONCE / 2);
    expect(live < most || blocks < AT_ONCE / 2,
           fmt("fewer than %zu %s more while %zu blocks of %zu bytes are live", most - before,
               measure_name(measure), blocks, size),
           "%zu before, %zu then", before, live);
}

/* Fails if anything grows with the number of blocks made so far. */
static void expect_nothing_left(void (*work)(void *unused))
{
    enum { CYCLES = 3 };
    expect_no_growth_at(__LINE__, MEASURES, CYCLES, work, NULL, NULL,
                        "blocks are made and freed, threads end, and requests are refused");
}

static void expect_few(enum measure measure)
{
    make_and_free_crowds(NULL); /* what is made once is made by now */
    for (size_t i = 0; i < SIZES; i++)
        expect_few_for_live(measure, 0, sizes[i]);
    for (size_t i = 0; i < LENGTH(large_sizes) && can_have_large(); i++)
        expect_few_for_live(measure, 0, large_sizes[i]);
    expect_nothing_left(make_free_and_refuse);
}

PROPERTY(resources_descriptors,
    .id     = "resources.descriptors", .level = SHOULD, .basis = BASIS_QOI,
    .scenarios = true, .answers_for = ABOUT(DESCRIPTORS_GROW),
    .title  = "few descriptors per live block",
    .clause = "Live blocks do not need a descriptor each, and freed blocks leave none open.",
    .source = "good practice; getrlimit(): RLIMIT_NOFILE is 1024 unless somebody raised it",
    .why    = "The thousandth array, or the program's next file or connection, fails with EMFILE.",
    .wrong  = "p = mmap(NULL, size, prot, MAP_SHARED, fd, 0); /* fd stays open */",
    .right  = "p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);\n"
              "close(fd);",
    .hint   = "Close the descriptor after mmap, or keep many blocks in one file.",
    .looks  = "expected fewer than 16 descriptors more while 32 blocks are live; seen 5 before, 37 "
              "then")
{
    expect_few(DESCRIPTORS);
}

PROPERTY(resources_threads,
    .id     = "resources.threads", .level = SHOULD, .basis = BASIS_QOI,
    .scenarios = true, .answers_for = ABOUT(THREADS_GROW),
    .title  = "few threads per live block",
    .clause = "Live blocks do not need a thread each, and freed blocks leave none running.",
    .source = "good practice",
    .why    = "Threads are limited: ten thousand arrays would need ten thousand.",
    .hint   = "Use one thread or a few, and join each when its work is done.",
    .looks  = "expected fewer than 16 threads more while 32 blocks are live; seen 1 before, 33 "
              "then")
{
    expect_few(THREADS);
}

PROPERTY(resources_mappings,
    .id     = "resources.mappings", .level = SHOULD, .basis = BASIS_QOI,
    .scenarios = true, .answers_for = ABOUT(MAPPINGS_GROW),
    .title  = "few mappings per live block",
    .clause = "A small live block needs fewer than four mappings, and freed blocks leave none.",
    .source = "good practice; proc_sys_vm(5), max_map_count: 65530 mappings per process by default",
    .why    = "After 65530 mappings, mmap fails with ENOMEM in the whole process.",
    .hint   = "Place guard pages next to each other, so that they count as one mapping. Free pages "
              "with munmap.",
    .looks  = "expected fewer than 128 mappings more while 32 blocks are live; seen 80, then 240")
{
    if (is_instrumented())
        skip("memcheck and the sanitizers map memory of their own as they go");
    make_and_free_crowds(NULL);
    for (size_t i = 0; i < SMALL_SIZES; i++)
        expect_few_for_live(MAPPINGS, 4, small_sizes[i]);
    expect_nothing_left(make_and_free_large_too);
}

PROPERTY(resources_children,
    .id     = "resources.children", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "calls leave no child process",
    .clause = "No call leaves a child process, running or ended.",
    .source = "good practice; POSIX.1-2024, wait()",
    .why    = "A program that waits for any child gets one that it did not start, and SIGCHLD.",
    .hint   = "Use a thread, or wait for the child before the call returns.",
    .looks  = "expected no child process, while blocks are live; seen there is one")
{
    adopt_orphans();
    for (size_t i = 0; i < SIZES; i++) {
        struct crowd crowd = make_crowd(sizes[i]);
        expect(!has_child(), "no child process, while blocks are live", "there is one");
        free_crowd(&crowd);
        expect(!has_child(), "no child process, after all blocks were freed", "there is one");
    }
    ask_too_much();
    expect(!has_child(), "no child process, after requests that were refused", "there is one");
}

/* ---- with the usual limit -------------------------------------------------------------------- */

enum { MANY = 1100, USUAL_DESCRIPTORS = 1024 };

static void set_descriptor_limit(size_t most)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < most)
        skip("a process may have %llu descriptors here", (unsigned long long)limit.rlim_max);
    limit.rlim_cur = most;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        harness_broke("RLIMIT_NOFILE: %s", strerror(errno));
}

/* A refusal fails only where the same is granted with more descriptors, each time: what refuses now
 * and then does so for another reason. */
static void expect_not_for_descriptors(size_t size, size_t live)
{
    enum { TIMES = 3 };
    bool is_granted = true;
    for (int i = 0; i < TIMES && is_granted; i++) {
        void *without = subject_malloc(size);
        set_descriptor_limit(2 * USUAL_DESCRIPTORS);
        void *with = subject_malloc(size);
        set_descriptor_limit(USUAL_DESCRIPTORS);
        is_granted = without == NULL && with != NULL;
        give_back(with, size);
        give_back(without, size);
    }
    expect(!is_granted,
           fmt("malloc(%zu) to return a block with %zu live, where a process may have %d "
               "descriptors",
               size, live, USUAL_DESCRIPTORS),
           "NULL; with %d it does", 2 * USUAL_DESCRIPTORS);
}

PROPERTY(resources_thousand_blocks,
    .id     = "resources.thousand-blocks", .level = MUST, .basis = BASIS_C,
    .title  = "1100 small blocks can be live",
    .clause = "1100 small blocks can be live in a process that is limited to 1024 descriptors.",
    .source = "C17 7.22.3.4: NULL only if space cannot be allocated; getrlimit(): RLIMIT_NOFILE",
    .why    = "A list of a thousand small arrays raises MemoryError with gigabytes free.",
    .hint   = "Close the descriptor when its file is mapped, or keep many blocks in one file.",
    .looks  = "expected malloc(5000) to return a block with 1015 live; seen NULL; with 2048 it "
              "does")
{
    static const size_t of_each[] = {40, 5000};
    set_descriptor_limit(USUAL_DESCRIPTORS);
    for (size_t i = 0; i < LENGTH(of_each); i++) {
        void *live[MANY];
        size_t count = 0, size = of_each[i];
        while (count < MANY && (live[count] = subject_malloc(size)) != NULL)
            count++;
        if (count < MANY)
            expect_not_for_descriptors(size, count);
        while (count > 0)
            subject_free(live[--count], size);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

/* What a child of this process finds out; shared with it. */
enum { MOST_FILES = 512, NAME = 128 };
struct files {
    size_t count;
    char names[MOST_FILES][NAME]; /* that it maps to share, or writes to */
    size_t for_blocks, blocks;    /* most of them that came with live blocks, and how many blocks */
    size_t first;                 /* the first of those */
    char folder[NAME];            /* its working directory, or "" */
    bool by_name;                 /* one at least of those has nothing but its name */
    pid_t process;
    bool is_taken; /* another had its number and left something */
};

static const char shared_memory[] = "/dev/shm/";

static void add_file(struct files *files, const char *path)
{
    size_t length = strlen(path);
    if (path[0] != '/' || length >= NAME || access(path, F_OK) != 0)
        return; /* a pipe, or a file that is deleted already: its name says so */
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->names[i], path) == 0)
            return;
    }
    if (files->count < MOST_FILES)
        memcpy(files->names[files->count++], path, length + 1);
}

static void add_mapped_files(struct files *files)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        char *path = strchr(line, '/'), sharing = 'p';
        line[strcspn(line, "\n")] = '\0';
        if (path != NULL && sscanf(line, "%*s %*3c%c", &sharing) == 1 && sharing == 's')
            add_file(files, path);
    }
    if (maps != NULL)
        fclose(maps);
}

/* From descriptor 3 on: the others are the runner's. */
static void add_open_files(struct files *files)
{
    DIR *open_files = opendir("/proc/self/fd");
    for (struct dirent *entry; open_files != NULL && (entry = readdir(open_files)) != NULL;) {
        char path[NAME] = "";
        int fd = atoi(entry->d_name), flags = fd > 2 ? fcntl(fd, F_GETFL) : -1;
        if (flags == -1 || (flags & O_ACCMODE) == O_RDONLY)
            continue;
        ssize_t length = readlink(fmt("/proc/self/fd/%d", fd), path, sizeof path - 1);
        if (length > 0 && length < NAME - 1)
            add_file(files, path);
    }
    if (open_files != NULL)
        closedir(open_files);
}

/* Whether the number of this process stands in it. */
static bool names_us(const char *name)
{
    const char *us = fmt("%d", (int)getpid()), *digits = "0123456789";
    for (size_t length; *(name += strcspn(name, digits)) != '\0'; name += length) {
        length = strspn(name, digits);
        if (length == strlen(us) && strncmp(name, us, length) == 0)
            return true;
    }
    return false;
}

/* What is closed already and mapped by nobody, as far as its name says whose it is. */
static void add_named_files(struct files *files)
{
    DIR *folder = opendir(shared_memory);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        struct stat file;
        size_t before = files->count;
        if (names_us(entry->d_name) &&
            fstatat(dirfd(folder), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(file.st_mode) && file.st_uid == geteuid())
            add_file(files, fmt("%s%s", shared_memory, entry->d_name));
        files->by_name = files->by_name || files->count > before;
    }
    if (folder != NULL)
        closedir(folder);
}

/* A segment of System V's shared memory that was made by that process, or -1. */
static int segment_of(pid_t maker)
{
    char line[512];
    int found = -1, segment, process;
    FILE *segments = fopen("/proc/sysvipc/shm", "re");
    while (segments != NULL && fgets(line, sizeof line, segments) != NULL) {
        if (sscanf(line, "%*d %d %*o %*u %d", &segment, &process) == 2 && process == maker)
            found = segment;
    }
    if (segments != NULL)
        fclose(segments);
    return found;
}

/* How many it left.  They are removed. */
static size_t remove_segments(pid_t maker)
{
    enum { MOST = 10000 };
    size_t count = 0;
    for (int segment; count < MOST && (segment = segment_of(maker)) >= 0; count++) {
        if (shmctl(segment, IPC_RMID, NULL) != 0)
            break;
    }
    return count;
}

static void find_files(struct files *files)
{
    add_mapped_files(files);
    add_open_files(files);
    add_named_files(files);
}

static void go_to_folder(const struct files *files)
{
    if (files->folder[0] != '\0' && chdir(files->folder) != 0)
        harness_broke("%s: %s", files->folder, strerror(errno));
}

static void work_with_crowd(struct files *files, size_t size)
{
    size_t before = files->count;
    struct crowd crowd = make_crowd(size);
    find_files(files);
    if (files->count - before > files->for_blocks) {
        files->for_blocks = files->count - before;
        files->first = before;
        files->blocks = crowd.count;
    }
    free_crowd(&crowd);
}

static void work_with_files(void *data)
{
    struct files *files = data;
    add_named_files(files);
    files->process = getpid();
    files->is_taken = files->count > 0 || segment_of(files->process) >= 0;
    if (files->is_taken)
        return;
    if (subject_place()->module == NULL) /* a module is found from where we are */
        go_to_folder(files);
    load_subject();
    go_to_folder(files);
    for (size_t i = 0; i < SIZES; i++)
        work_with_crowd(files, sizes[i]);
    size_t large = can_have_large() ? LENGTH(large_sizes) : 0;
    for (size_t i = 0; i < large; i++)
        work_with_crowd(files, large_sizes[i]);
    find_files(files);
}

/* The first file that lies in memory and is still there; all of them are removed. */
static const char *remove_shared_memory(const struct files *files)
{
    const char *found = NULL;
    for (size_t i = 0; i < files->count; i++) {
        if (strncmp(files->names[i], shared_memory, sizeof shared_memory - 1) == 0 &&
            unlink(files->names[i]) == 0 && found == NULL)
            found = escape(files->names[i]);
    }
    return found;
}

/* Numbers of processes come round again, and a machine keeps what faulty handlers left on it. */
static bool work_in_folder(struct files *files)
{
    enum { MOST_TAKEN = 64 };
    for (int tries = 0;; tries++) {
        *files = (struct files){0};
        memcpy(files->folder, scratch_folder(), SCRATCH_NAME);
        if (mkdir(files->folder, 0700) != 0)
            harness_broke("%s: %s", files->folder, strerror(errno));
        bool survived = program_survives(work_with_files, files);
        if (!files->is_taken)
            return survived;
        scratch_remove(files->folder);
        if (tries == MOST_TAKEN)
            skip("the number of each process that was tried stands in the name of a file "
                 "in /dev/shm");
    }
}

/* The same once more: another process can have a file with that number in its name, and not with
 * that of the next one too. */
static const char *shared_again(struct files *files)
{
    work_in_folder(files);
    scratch_remove(files->folder);
    return remove_shared_memory(files);
}

PROPERTY(resources_files,
    .id     = "resources.files", .level = SHOULD, .basis = BASIS_QOI, .fixture = FIXTURE_UNLOADED,
    .title  = "no files are left behind",
    .clause = "Live blocks do not need a named file each, and a process that ended leaves no file "
              "or shared memory behind.",
    .tests  = "The places are /dev/shm, the working directory and System V shared memory.",
    .source = "good practice; shm_overview(7): a shared memory object stays until it is unlinked",
    .why    = "A file left in /dev/shm is memory that no process owns and nothing releases.",
    .hint   = "Use memfd_create, or call shm_unlink or shmctl with IPC_RMID right after mapping.",
    .looks  = "expected nothing to be left in /dev/shm when the process has ended; seen mine.4711")
{
    struct files *files =
        mmap(NULL, sizeof *files, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (files == MAP_FAILED)
        harness_broke("no memory to share: %s", strerror(errno));
    bool survived = work_in_folder(files);
    const char *left = scratch_remove(files->folder), *shared = remove_shared_memory(files);
    size_t segments = remove_segments(files->process);
    if (!survived) { /* once more, for how it ends, which others test */
        attribute_to("numpy.finalises", NULL);
        files->folder[0] = '\0';
        in_program(work_with_files, files);
    }
    expect(files->for_blocks == 0 || files->for_blocks < files->blocks / 2,
           fmt("fewer files than half of %zu live blocks", files->blocks), "%zu, %s among them",
           files->for_blocks, escape(files->names[files->first]));
    if (shared != NULL && files->by_name)
        shared = shared_again(files);
    expect(shared == NULL, "nothing to be left in /dev/shm when the process has ended", "%s",
           shared);
    expect(segments == 0,
           "no segment of System V's shared memory to be left when the process has ended",
           "%zu of them", segments);
    expect(left == NULL, "nothing to be left in the working directory when the process has ended",
           "%s", left);
}
