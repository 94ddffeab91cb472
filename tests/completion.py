# SPDX-License-Identifier: BSD-3-Clause
"""What bash and zsh complete: the files are as the program writes them, and both shells, each at a
terminal of its own where it needs one, offer what there is.
"""

import concurrent.futures
import os
import shutil

import suite

COMPLETIONS = os.path.abspath(os.path.join(suite.SOURCE, "completions"))

# A line, the last word of which is to be completed, and what is offered, or some of it.
LINES = [
    (["--hel"], {"--help", "--helgrind"}, True),
    (["--json"], {"--json="}, True),
    (["--list"], {"--list", "--list-handlers"}, True),
    (["--options-as"], set(), True),
    (["--handler", "=", "shift"], {"shift_header"}, True),
    (["--handler", "=", "mine"], {"mine one.so"}, True),
    (["-H", "alig"], {"aligned"}, True),
    (["--run", "realloc.keeps"], {"realloc.keeps-contents"}, False),
    (["--skip", "=", "abi.ver"], {"abi.version"}, True),
    (["--color", "=", "a"], {"auto", "always"}, True),
    (["--fail-on", "="], {"new"}, True),
    (["--repro", "=", "fol"], {"folder"}, True),
    (["--json", "=", "fol"], {"folder", "fold.json"}, True),
    (["--compare", "fold.j"], {"fold.json"}, True),
]

# As bash calls it, but that compopt is for a shell that completes.
BASH = """
compopt() { :; }
source "$1"
shift
COMP_WORDS=(conform "$@")
COMP_CWORD=$#
_conform
printf '%s\\n' "${COMPREPLY[@]}"
"""

# A shell that completes at a terminal, and prints the line as completed.
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
read_to() {
    local chunk text=
    repeat 600; do
        while zpty -rt shell chunk; do text+=$chunk; done
        [[ $text == *${~1}* ]] && { print -r -- $text; return }
        sleep 0.1
    done
    print -r -- "no $1: $text"
}
zpty -w shell "PS1=; unsetopt zle_bracketed_paste; fpath=($1 \\$fpath)"
zpty -w shell "autoload -Uz compinit; compinit -u -D"
zpty -w shell "show() { print -r -- \\"<\\$BUFFER>\\" }; zle -N show; bindkey ^X show"
zpty -w shell "print rea''dy"
read_to ready >/dev/null
zpty -wn shell "$2"$'\\t'
sleep 0.3
zpty -wn shell $'\\x18'
read_to '<*>'
"""
ZSH_LINES = [
    ("conform --helg", "conform --helgrind "),
    ("conform --js", "conform --json="),
    ("conform --handler=shift", "conform --handler=shift_header "),
    ("conform -H alig", "conform -H aligned "),
    ("conform --run=abi.ver", "conform --run=abi.version "),
    ("conform --color=al", "conform --color=always "),
    ("conform --compare fold.j", "conform --compare fold.json "),
]


def as_written(tap):
    for name, option in (("conform", "--options-as-bash"), ("_conform", "--options-as-zsh")):
        with open(os.path.join(COMPLETIONS, name)) as file:
            tap.point(file.read() == suite.conform(option).stdout,
                      "completions/%s has the options as the program has them" % name,
                      "run make docs")


def in_bash(tap):
    for words, offered, all_of_it in LINES:
        result = suite.run(["bash", "-c", BASH, "bash", os.path.join(COMPLETIONS, "conform"),
                            *words])
        told = set(filter(None, result.stdout.split("\n")))
        tap.point(result.code == 0 and not result.stderr
                  and (told == offered if all_of_it else offered <= told),
                  "bash completes conform " + " ".join(words), result)


def in_zsh(tap):
    if shutil.which("zsh") is None:
        tap.skip("zsh completes", "install zsh, or run ./bootstrap --ci-tools")
        return
    with concurrent.futures.ThreadPoolExecutor() as pool:  # each mostly waits
        results = pool.map(lambda each: suite.run(["zsh", "-f", "-c", ZSH, "zsh", COMPLETIONS,
                                                   each[0]]), ZSH_LINES)
    for (line, wanted), result in zip(ZSH_LINES, results):
        tap.point("<%s>" % wanted in result.stdout, "zsh completes " + line, result)


def main():
    tap = suite.Tap()
    as_written(tap)
    os.environ["PATH"] = os.path.dirname(suite.CONFORM) + os.pathsep + os.environ["PATH"]
    with suite.scratch() as folder:
        os.chdir(folder)
        os.mkdir("folder")
        for name in "fold.json", "mine one.so":
            open(name, "w").close()
        in_bash(tap)
        in_zsh(tap)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
