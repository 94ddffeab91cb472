/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What bash and zsh complete, from the table of options.
 */
#include <stdio.h>
#include <string.h>

#include "model/option_table.h"

/* What the value of an option is, by what it is called in --help. */
enum kind { ANYTHING, A_FILE, A_FOLDER, A_HANDLER, A_PROPERTY, A_WORD };

static const struct {
    const char *called, *words;
    enum kind kind;
} kinds[] = {
    {"FILE", NULL, A_FILE},       {"FOLDER", NULL, A_FOLDER},
    {"GLOB", NULL, A_PROPERTY},   {"ID", NULL, A_PROPERTY},
    {"HANDLER", NULL, A_HANDLER}, {"PATH", NULL, A_FILE},
    {"OLD NEW", NULL, A_FILE},    {"FILE ...", NULL, A_FILE},
    {"new", "new", A_WORD},       {"WHEN", "auto always never", A_WORD},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static size_t kind_at(const char *called)
{
    size_t i = 0;
    while (i < KINDS && strcmp(kinds[i].called, called) != 0)
        i++;
    return i;
}

static bool is_shown(const struct option_row *row)
{
    return row->heading == NULL && row->help != NULL;
}

/* ---- bash --------------------------------------------------------------------------------- */

static void print_names(enum kind kind)
{
    const char *between = "";
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        const char *called = row->argument != NULL ? row->argument : row->operands;
        if (!is_shown(row) || called == NULL || kind_at(called) == KINDS ||
            kinds[kind_at(called)].kind != kind)
            continue;
        printf("%s--%s", between, row->name);
        if (row->letter != 0)
            printf(" | -%c", row->letter);
        between = " | ";
    }
}

static void print_case(enum kind kind, const char *what)
{
    fputs("    ", stdout);
    print_names(kind);
    printf(")\n        %s ;;\n", what);
}

static void print_words_cases(void)
{
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        size_t at = is_shown(row) && row->argument != NULL ? kind_at(row->argument) : KINDS;
        if (at < KINDS && kinds[at].kind == A_WORD)
            printf("    --%s)\n        _conform_offer -W '%s' ;;\n", row->name, kinds[at].words);
    }
}

void take_bash(const struct option_row *unused, const char *value, struct options *options)
{
    (void)unused, (void)value, (void)options;
    fputs("# bash completion for conform; made by make docs from the table of options.\n\n"
          "_conform_offer()\n{\n"
          "    mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$word\")\n}\n\n"
          "# bash takes --name=value for three words.\n"
          "_conform()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    if [[ $word == = ]]; then\n"
          "        word=\n"
          "    elif [[ $before == = ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    case $before in\n",
          stdout);
    print_case(A_HANDLER,
               "compopt -o filenames\n"
               "        _conform_offer -f -W \"$(conform --list-handlers 2>/dev/null)\"");
    print_case(A_PROPERTY, "_conform_offer -W \"$(conform --list 2>/dev/null | cut -d' ' -f1)\"");
    print_case(A_FILE, "compopt -o filenames\n        _conform_offer -f");
    print_case(A_FOLDER, "compopt -o filenames\n        _conform_offer -d");
    print_words_cases();
    fputs("    *)\n"
          "        if [[ $word != -* ]]; then\n"
          "            compopt -o filenames\n"
          "            _conform_offer -f\n"
          "            return\n"
          "        fi\n"
          "        _conform_offer -W '",
          stdout);
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        if (is_shown(row))
            printf("\n            --%s%s", row->name,
                   row->argument != NULL && !row->may_lack_it ? "=" : "");
    }
    fputs("'\n"
          "        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
          "        ;;\n"
          "    esac\n"
          "}\n"
          "complete -F _conform conform\n",
          stdout);
    options_leave_behind_output();
}

/* ---- zsh ---------------------------------------------------------------------------------- */

/* The beginning of the help, up to where a list or a second thought begins, without what _arguments
 * takes for its own. */
static void print_description(const char *help)
{
    putchar('[');
    for (; *help != '\0' && strchr(",;:", *help) == NULL && strncmp(help, " (", 2) != 0; help++) {
        if (*help == '\'')
            fputs("'\\''", stdout);
        else if (*help == '[' || *help == ']')
            printf("\\%c", *help);
        else
            putchar(*help == '\n' ? ' ' : *help);
    }
    putchar(']');
}

static void print_action(const char *called)
{
    static const char *const actions[] = {
        [ANYTHING] = " ",
        [A_FILE] = "_files",
        [A_FOLDER] = "_files -/",
        [A_HANDLER] = "_conform_handlers",
        [A_PROPERTY] = "_conform_properties",
    };
    size_t at = kind_at(called);
    enum kind kind = at < KINDS ? kinds[at].kind : ANYTHING;
    if (kind == A_WORD)
        printf(":%s:(%s)", called, kinds[at].words);
    else
        printf(":%s:%s", called, actions[kind]);
}

static void print_zsh_row(const struct option_row *row)
{
    fputs("    '*'", stdout);
    if (row->letter != 0)
        printf("{-%c%s,--%s%s}", row->letter, row->argument != NULL ? "+" : "", row->name,
               row->argument != NULL ? "=" : "");
    else
        printf("--%s%s", row->name, row->argument == NULL ? "" : row->may_lack_it ? "=-" : "=");
    putchar('\'');
    print_description(row->help);
    if (row->argument != NULL)
        print_action(row->argument);
    fputs("' \\\n", stdout);
}

void take_zsh(const struct option_row *unused, const char *value, struct options *options)
{
    (void)unused, (void)value, (void)options;
    fputs("#compdef conform\n"
          "# zsh completion for conform; made by make docs from the table of options.\n\n"
          "_conform_handlers() {\n"
          "    local -a names\n"
          "    names=(${(f)\"$(_call_program handlers conform --list-handlers)\"})\n"
          "    _alternative 'handlers:reference handler:compadd -a names' "
          "'files:shared object:_files'\n"
          "}\n\n"
          "_conform_properties() {\n"
          "    local -a ids\n"
          "    ids=(${${(f)\"$(_call_program properties conform --list)\"}%% *})\n"
          "    _describe property ids\n"
          "}\n\n"
          "_arguments -s \\\n",
          stdout);
    for (size_t i = 0; i < option_row_count; i++) {
        if (is_shown(&option_rows[i]))
            print_zsh_row(&option_rows[i]);
    }
    fputs("    '*:FILE:_files'\n", stdout);
    options_leave_behind_output();
}
