#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Run by OSS-Fuzz and ClusterFuzzLite, which set SRC, WORK, OUT, CC, CFLAGS, CXX, CXXFLAGS and
# LIB_FUZZING_ENGINE: makes $OUT/fuzz_mine, and the seeds, the dictionary and the options that go with it.
set -eu

# The judge is conform's, and neither its coverage nor its memory is looked at.
mkdir -p "$WORK/conform"
cd "$SRC/conform"
test -f configure || autoreconf -i >/dev/null
cd "$WORK/conform"
CFLAGS=-O2 CXXFLAGS=-O2 CPPFLAGS='' "$SRC/conform/configure" --quiet --disable-dependency-tracking
make -s libconform-fuzz.a

for each in "$SRC/mine/mine.c" "$SRC/conform/src/fuzz/fuzz_handler.c"; do
    # shellcheck disable=SC2086
    $CC $CFLAGS -fPIC -I "$SRC/conform/handlers" -c -o "$WORK/$(basename "$each" .c).o" "$each"
done
# zlib is not there where this runs, and comes along.
# shellcheck disable=SC2086
$CXX $CXXFLAGS -o "$OUT/fuzz_mine" "$WORK/mine.o" "$WORK/fuzz_handler.o" \
    "$WORK/conform/libconform-fuzz.a" $LIB_FUZZING_ENGINE -pthread -Wl,-Bstatic -lz -Wl,-Bdynamic

cd "$SRC/conform/profiles"
zip -q "$OUT/fuzz_mine_seed_corpus.zip" ./*.trace
cp "$SRC/conform/src/fuzz/fuzz_handler.dict" "$OUT/fuzz_mine.dict"
printf '[libfuzzer]\nmax_len = 16384\nmalloc_limit_mb = 1048576\n' >"$OUT/fuzz_mine.options"
