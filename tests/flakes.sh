#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Looks for flakes: every sound handler in many rounds, with one worker and with two, in order and
# shuffled.  Prints what was not PASS or SKIP in any of them; takes long.
#
#     tests/flakes.sh [ROUNDS] [HANDLER...]        in the build tree; 50 rounds unless told

set -u
rounds=${1:-50}
[ $# -gt 0 ] && shift
if [ $# -eq 0 ]; then
    sound=handlers/sound/.libs/sound.so
    # shellcheck disable=SC2046 # symbols are words
    set -- aligned shift_header $(nm -D --defined-only "$sound" |
        awk -v object="$sound" '$2 ~ /[BDT]/ && $3 !~ /^_/ { print object ":" $3 }')
fi

flakes=0
for handler in "$@"; do
    for how in "--jobs=1" "--jobs=2" "--jobs=2 --shuffle"; do
        # shellcheck disable=SC2086 # two words
        if ./conform --handler="$handler" $how --repeat="$rounds" --strict --quiet; then
            echo "$handler $how: $rounds rounds, no flake"
        else
            flakes=$((flakes + 1))
        fi
    done
done
echo "$flakes of $(($# * 3)) series with a flake"
[ "$flakes" -eq 0 ]
