/* SPDX-License-Identifier: BSD-3-Clause */
#include "harness/code_place.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

/* The handler's file.  In memory of our own: a handler that writes outside its blocks may destroy
 * what dladdr() reads. */
static struct {
    uintptr_t base, first, last; /* addresses; 0 if unknown */
    char path[sizeof((struct code_place *)0)->object];
} file;

/* Of libgcc, which is not linked: its file is loaded before anything can crash. */
static struct {
    __typeof__(_Unwind_Backtrace) *backtrace; /* or NULL */
    __typeof__(_Unwind_GetIPInfo) *get_ip_info;
} unwinder;

void code_place_prepare(void)
{
    void *library = dlopen("libgcc_s.so.1", RTLD_NOW);
    if (library == NULL)
        return;
    unwinder.get_ip_info = (__typeof__(_Unwind_GetIPInfo) *)dlsym(library, "_Unwind_GetIPInfo");
    if (unwinder.get_ip_info != NULL)
        unwinder.backtrace = (__typeof__(_Unwind_Backtrace) *)dlsym(library, "_Unwind_Backtrace");
}

static void fill_in(uintptr_t instruction, uintptr_t base, const char *path,
                    struct code_place *place)
{
    place->offset = instruction - base;
    int length = snprintf(place->object, sizeof place->object, "%s", path);
    if (length < 0 || (size_t)length >= sizeof place->object)
        place->object[0] = '\0';
}

void code_place_find(uintptr_t instruction, struct code_place *place)
{
    Dl_info info = {.dli_fname = NULL};
    place->object[0] = '\0';
    if (instruction == 0 || dladdr((void *)instruction, &info) == 0 || info.dli_fname == NULL ||
        info.dli_fname[0] != '/') /* overwritten */
        return;
    snprintf(place->symbol, sizeof place->symbol, "%s",
             info.dli_sname != NULL ? info.dli_sname : "");
    fill_in(instruction, (uintptr_t)info.dli_fbase, info.dli_fname, place);
}

static int note_if_it_has(struct dl_phdr_info *info, size_t size, void *code)
{
    uintptr_t address = (uintptr_t)code, first = UINTPTR_MAX, last = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at = (uintptr_t)info->dlpi_addr + (uintptr_t)part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        first = at < first ? at : first;
        last = at + part->p_memsz > last ? at + (uintptr_t)part->p_memsz - 1 : last;
    }
    if (address < first || address > last)
        return 0;
    file.first = first;
    file.last = last;
    return 1;
}

void code_place_note_handler(void (*code)(void))
{
    Dl_info info;
    if (dladdr((void *)(uintptr_t)code, &info) == 0 || info.dli_fname == NULL ||
        dl_iterate_phdr(note_if_it_has, (void *)(uintptr_t)code) == 0)
        return;
    file.base = (uintptr_t)info.dli_fbase;
    snprintf(file.path, sizeof file.path, "%s", info.dli_fname);
}

struct unwinding {
    uintptr_t found; /* or 0 */
    int frames;
};

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *data)
{
    enum { MOST_FRAMES = 64 };
    struct unwinding *unwinding = data;
    int is_instruction = 0; /* the frame was interrupted; else this is a return address */
    uintptr_t at = unwinder.get_ip_info(context, &is_instruction);
    at -= is_instruction ? 0 : 1;
    if (at >= file.first && at <= file.last)
        unwinding->found = at;
    return unwinding->found != 0 || ++unwinding->frames == MOST_FRAMES ? _URC_END_OF_STACK
                                                                       : _URC_NO_REASON;
}

/* Comes last: dladdr() may not survive what the handler has overwritten. */
static void note_callee(uintptr_t instruction, struct code_place *place)
{
    Dl_info info = {.dli_fname = NULL};
    if (instruction == 0 || dladdr((void *)instruction, &info) == 0 || info.dli_fname == NULL)
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(place->callee, sizeof place->callee, "%s",
             info.dli_sname != NULL ? info.dli_sname
             : slash != NULL        ? slash + 1
                                    : info.dli_fname);
}

void code_place_unwind(uintptr_t instruction, struct code_place *place)
{
    struct unwinding unwinding = {.found = 0};
    if (file.base != 0 && unwinder.backtrace != NULL)
        unwinder.backtrace(look_at_frame, &unwinding);
    if (unwinding.found != 0) {
        fill_in(unwinding.found, file.base, file.path, place);
        if (unwinding.found != instruction)
            note_callee(instruction, place);
        return;
    }
    place->is_elsewhere = 1;
    code_place_find(instruction, place);
}
