#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Looks for flakes: every sound handler in many rounds, with one worker and with two, in order and
# shuffled.  In each round every verdict has to be PASS or SKIP, and one that is SKIP in one round
# has to be so in all.  Prints what was not; takes long.
#
#     tests/flakes.sh [ROUNDS] [HANDLER...]        in the build tree; 50 rounds unless told

set -u
rounds=${1:-50}
case $rounds in
    *[!0-9]* | 0*)
        echo "flakes.sh: $rounds: no number of rounds; flakes.sh [ROUNDS] [HANDLER...]" >&2
        exit 2
        ;;
esac
[ $# -gt 0 ] && shift
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046 # handlers are words
    set -- $(./conform --list-handlers) $(
        for object in handlers/sound/*.so; do
            nm -D --defined-only "$object" | awk -v object="$object" '
                $2 !~ /[BDT]/ || $3 ~ /^_/ { next }
                $3 ~ /^nep49_/ { print object; next }
                { print object ":" $3 }'
        done)
fi

# verdicts TAP: the id of each property and what became of it.  Those of a SKIP say in how many
# rounds, where it was not one in all.
verdicts() {
    awk '/^(not )?ok / {
        id = $1 == "not" ? $5 : $4
        what = $1 == "not" ? "bad" : / # SKIP / ? "SKIP" : "PASS"
        if (what == "SKIP" && match($0, /\(in [0-9]+ of [0-9]+ rounds\)$/))
            what = "SKIP " substr($0, RSTART)
        print id, what
    }' "$1" | sort
}

folder=$(mktemp -d) || exit
trap 'rm -rf "$folder"' EXIT
flakes=0 series=0
for handler in "$@"; do
    rm -f "$folder/first"
    for how in "--jobs=1" "--jobs=2" "--jobs=2 --shuffle"; do
        series=$((series + 1))
        # shellcheck disable=SC2086 # two words
        ./conform --handler="$handler" $how --repeat="$rounds" --strict --quiet --tap="$folder/tap"
        status=$?
        if [ $status -eq 77 ]; then # it has said why
            series=$((series - 1))
            break
        fi
        verdicts "$folder/tap" >"$folder/now"
        [ -e "$folder/first" ] || cp "$folder/now" "$folder/first"
        grep ' SKIP (' "$folder/now" >"$folder/differs" # a rare one
        diff "$folder/first" "$folder/now" >>"$folder/differs"
        if [ $status -eq 0 ] && [ ! -s "$folder/differs" ]; then
            echo "$handler $how: $rounds rounds, no flake"
        else
            cat "$folder/differs"
            echo "$handler $how: FLAKE"
            flakes=$((flakes + 1))
        fi
    done
done
echo "$flakes of $series series with a flake"
[ "$flakes" -eq 0 ]
