/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is done with reports that were saved, and runs nothing.
 */
#ifndef CONFORM_SAVED_REPORTS_H
#define CONFORM_SAVED_REPORTS_H

#include "model/options.h"

enum exit_code compare_run(const struct options *options);
enum exit_code from_run(const struct options *options);
enum exit_code verify_run(const struct options *options);

#endif
