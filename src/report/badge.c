/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A badge: how the report stands, as a picture of one line.
 */
#include <string.h>

#include "base/text.h"
#include "report/markup.h"
#include "report/reading.h"
#include "report/report.h"
#include "report/standing.h"

int report_badge(FILE *file, const json_t *value)
{
    enum { LABEL = 54, LETTER = 7, MARGIN = 7 }; /* pixels */
    json_t *reports = reports_in(value, true);
    const struct standing *worst = standing_of_all(reports);
    int width = LETTER * (int)strlen(worst->words);
    const char *whole = text("%d", LABEL + width + 2 * MARGIN);
    markup_say(file,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%\" height=\"20\" role=\"img\" "
               "aria-label=\"NEP 49: %\">\n<title>NEP 49: %</title>\n"
               "<clipPath id=\"r\"><rect width=\"%\" height=\"20\" rx=\"3\"/></clipPath>\n"
               "<g clip-path=\"url(#r)\"><rect width=\"%\" height=\"20\" fill=\"#444\"/>"
               "<rect x=\"54\" width=\"%\" height=\"20\" fill=\"%\"/></g>\n"
               "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">"
               "<text x=\"7\" y=\"14\" textLength=\"40\">NEP 49</text>"
               "<text x=\"61\" y=\"14\" textLength=\"%\">%</text></g>\n</svg>\n",
               whole, worst->words, worst->words, whole, whole, text("%d", width + 2 * MARGIN),
               worst->color, text("%d", width), worst->words);
    json_decref(reports);
    return ferror(file) ? -1 : 0;
}
