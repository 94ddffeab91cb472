/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of --json and the other formats.  They are written beside their place and renamed, so
 * there is never half a report.
 */
#ifndef CONFORM_REPORT_FILES_H
#define CONFORM_REPORT_FILES_H

#include <jansson.h>
#include <stdbool.h>

#include "model/options.h"
#include "report/report.h"

struct report_files;

/* Before anything runs: leaves with EXIT_USAGE where one of them cannot be written.  Of a regular
 * file nothing is left behind until the report is written. */
struct report_files *report_files_open(const struct options *options);

/* Writes the value as JSON, lets present() make the other formats, with these arguments too, and
 * puts all in place.  Without a value the arguments name saved reports.  Leaves with
 * EXIT_HARNESS_BROKE if a file cannot be written. */
void report_files_write(struct report_files *files, const json_t *value,
                        const char *const *arguments);

/* Keeps those that are devices or pipes open in a program that takes the place of this one, so that
 * nobody takes the report for ended. */
void report_files_pass_on(struct report_files *files);

/* True where one of them is stdout, and the text report has to stay away. */
bool report_files_take_stdout(const struct options *options);

#endif
