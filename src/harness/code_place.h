/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where code of the handler is: its file, and the offset in it.
 */
#ifndef CONFORM_CODE_PLACE_H
#define CONFORM_CODE_PLACE_H

#include <stdint.h>

#include "model/record.h"

/* Loads the unwinder; call it once, before a process of a property is forked. */
void code_place_prepare(void);

/* Stores where the instruction is; `place` is empty if it is in no file. */
void code_place_find(uintptr_t instruction, struct code_place *place);

/* Notes the file that has the handler's function `code`, for code_place_unwind(). */
void code_place_note_handler(void (*code)(void));

/* Stores the innermost frame of this thread's stack that is in the handler's file, or else
 * `instruction`, which is where a signal came; 0 if that is unknown.  For a signal handler. */
void code_place_unwind(uintptr_t instruction, struct code_place *place);

#endif
