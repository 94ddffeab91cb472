/* SPDX-License-Identifier: BSD-3-Clause */
#include "harness/code_place.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

void code_place_find(uintptr_t instruction, struct code_place *place)
{
    Dl_info info = {.dli_fname = NULL};
    place->object[0] = '\0';
    if (instruction == 0 || dladdr((void *)instruction, &info) == 0 || info.dli_fname == NULL)
        return;
    place->offset = instruction - (uintptr_t)info.dli_fbase;
    snprintf(place->symbol, sizeof place->symbol, "%s",
             info.dli_sname != NULL ? info.dli_sname : "");
    int length = snprintf(place->object, sizeof place->object, "%s", info.dli_fname);
    if (length < 0 || (size_t)length >= sizeof place->object)
        place->object[0] = '\0';
}

struct unwinding {
    const void *base; /* of the handler's file */
    uintptr_t found;  /* or 0 */
    int frames;
};

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *data)
{
    enum { MOST_FRAMES = 64 };
    struct unwinding *unwinding = data;
    int is_instruction = 0; /* the frame was interrupted; else this is a return address */
    uintptr_t at = _Unwind_GetIPInfo(context, &is_instruction);
    Dl_info info;
    at -= is_instruction ? 0 : 1;
    if (dladdr((void *)at, &info) != 0 && info.dli_fbase == unwinding->base)
        unwinding->found = at;
    return unwinding->found != 0 || ++unwinding->frames == MOST_FRAMES ? _URC_END_OF_STACK
                                                                       : _URC_NO_REASON;
}

void code_place_unwind(uintptr_t instruction, void (*code)(void), struct code_place *place)
{
    Dl_info info;
    struct unwinding unwinding = {.found = 0};
    code_place_find(instruction, place);
    if (code == NULL || dladdr((void *)(uintptr_t)code, &info) == 0)
        return;
    unwinding.base = info.dli_fbase;
    _Unwind_Backtrace(look_at_frame, &unwinding);
    if (unwinding.found != 0)
        code_place_find(unwinding.found, place);
}
