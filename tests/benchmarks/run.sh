#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/benchmarks/run.sh               measures everything against its peers
# tests/benchmarks/run.sh mlp conv ...  measures these; --list names all of them
# tests/benchmarks/char_lm.py           compares what is learned instead of the time it takes
# Installs the peers and builds Release below build/benchmarks/, prints one table, and writes its
# rows to build/benchmarks/<name>.json. Options go to driver.py (--pairs, --seconds, ...).
# Exit code 0 only when every bar is met. Let nothing else run meanwhile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/apt_install.sh
out=build/benchmarks

if [[ ${1-} != --list ]]; then
  apt_install cmake ninja-build g++ ccache python3 python3-venv pkg-config binutils libeigen3-dev \
    libdnnl-dev libspdlog-dev libfmt-dev nlohmann-json3-dev zlib1g-dev libgrpc++-dev \
    libbenchmark-dev libtorch-dev
  mkdir -p $out/release
  cmake -G Ninja -S . -B $out/release -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_BUILD_TESTS=OFF \
    -DLOCKSTEP_BUILD_EXAMPLES=OFF -DLOCKSTEP_BUILD_BENCHMARKS=ON >$out/release/configure.log
  cmake --build $out/release
fi
exec python3 tests/benchmarks/driver.py "$@"
