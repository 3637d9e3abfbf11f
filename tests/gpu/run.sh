#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run.sh [build folder]: builds with CUDA for this machine's GPU, compares every op and the
# training of a small network with the CPU's, and trains the digits on all GPUs.
# Exit code 77 where there is no GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tree=${1:-build/gpu}
if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  echo "no GPU: nvidia-smi lists none"
  exit 77
fi
nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d . | tr -d ' ')
# Libraries that came as Python packages lie in folders of their own.
for folder in $(python3 -c 'import glob, site
for root in site.getsitepackages(): print(*glob.glob(root + "/nvidia/*/lib"), sep="\n")' 2>/dev/null); do
  export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
done

cmake -G Ninja -S . -B "$tree" -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_WITH_CUDA=ON \
  -DCMAKE_CUDA_ARCHITECTURES="$arch" -DLOCKSTEP_BUILD_BENCHMARKS=OFF -DLOCKSTEP_TEST_FOLDERS=gpu
cmake --build "$tree"
"$tree/tests/gpu/gpu_tests"
"$tree/examples/digits" --strategy 'mirrored:GPU:*'
