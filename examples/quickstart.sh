#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a clean machine to a trained model: installs what is missing, builds lockstep and the digits
# example into build/quickstart, and trains it on as many CPU replicas as there are cores. Arguments
# go to the example.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/apt_install.sh
apt_install cmake ninja-build g++ libeigen3-dev libdnnl-dev libspdlog-dev libfmt-dev \
  nlohmann-json3-dev zlib1g-dev libgrpc++-dev

tree=build/quickstart
if [[ ! -e $tree/build.ninja ]]; then
  cmake -G Ninja -S . -B "$tree" -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_BUILD_TESTS=OFF
fi
cmake --build "$tree" --target digits
(($#)) || set -- --strategy "mirrored:$(nproc)"
exec "$tree/examples/digits" "$@"
