/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --compare, --from and --verify: the Python package reads saved reports; no property runs.
 */
#ifndef CONFORM_SAVED_REPORTS_H
#define CONFORM_SAVED_REPORTS_H

#include "model/options.h"

enum exit_code saved_reports_run(const struct options *options);

#endif
