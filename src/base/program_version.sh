#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# program_version.sh SOURCE VERSION: what the program made of that folder says that it is, which is
# the number alone where the folder is a release: a clean checkout of the tag vVERSION.  Any other
# has its commit behind it, VERSION+g1234abc, and .dirty where a file in it was changed since.  What
# make dist has packed says what it was packed from, in .version; of any other copy nobody knows.

set -u
unset CDPATH GIT_DIR GIT_WORK_TREE
GIT_OPTIONAL_LOCKS=0
export GIT_OPTIONAL_LOCKS

cd "$1" || exit
version=$2

if [ -f .version ]; then
    cat .version
# a copy may lie within a checkout of something else
elif [ -e .git ] && commit=$(git rev-parse --short=7 --verify HEAD 2>/dev/null); then
    dirty=
    [ -z "$(git status --porcelain --untracked-files=no)" ] || dirty=.dirty
    if [ -z "$dirty" ] && git tag --points-at HEAD | grep -qxF "v$version"; then
        echo "$version"
    else
        echo "$version+g$commit$dirty"
    fi
else
    echo "$version+unknown"
fi
