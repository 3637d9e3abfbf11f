#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# prepare.sh <torch|libtorch|python3_torch|tensorflow|v4|char_lm>...: makes what benchmarks compare
# against, below build/benchmarks/, unless it is there: peers in their newest version, our own library
# compiled for x86-64-v4 only, and the example char_lm with a text to learn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/apt_install.sh
out=$PWD/build/benchmarks
mkdir -p "$out"

# PyTorch's package on PyPI is linked with CUDA libraries of several GB, none of which a CPU needs.
# The two small ones are installed; functions of the others are stood in for by some that abort.
torch_stand_ins() {
  local torch=$1 dir=$2 library version
  mkdir -p "$dir"
  {
    echo '#include <stdlib.h>'
    nm -D --undefined-only "$torch"/*.so | awk '{ sub(/@.*/, "", $2); print $2 }' | sort -u |
      grep -E '^(cublas|cudnn|cuFile|cufft|cusparse|cusolver|nccl|nvrtc|nvshmem)' |
      sed 's/.*/void &(void) { abort(); }/'
  } >"$dir/stand_ins.c"
  readelf -d "$torch"/*.so | sed -nE 's/.*NEEDED.*\[(lib(cu|nccl|nvrtc|nvshmem).*)\]/\1/p' |
    sort -u | grep -vE '^lib(cudart|cupti|cuda)\.so' |
    while read -r library; do
      version=$library
      [[ $library == libnvshmem* ]] && version=NVSHMEM
      echo "$version { global: *; };" >"$dir/version.map"
      cc -shared -fPIC -w -Wl,-soname,"$library" -Wl,--version-script="$dir/version.map" \
        "$dir/stand_ins.c" -o "$dir/$library"
    done
}

prepare_torch() {
  [[ -e $out/torch/ready ]] && return
  rm -rf "$out/torch"
  python3 -m venv "$out/torch"
  local pip=("$out/torch/bin/pip" install -q --no-warn-conflicts)
  "${pip[@]}" --no-deps torch
  "${pip[@]}" numpy filelock typing_extensions sympy networkx jinja2 fsspec setuptools
  local requirements cuda
  requirements=$("$out/torch/bin/python" -c \
    'import importlib.metadata as m; print("\n".join(m.requires("torch")))')
  cuda=$(sed -nE 's/^cuda-toolkit\[[^]]*\](==[0-9.]+).*/\1/p' <<<"$requirements")
  "${pip[@]}" "cuda-toolkit[cudart,cupti]$cuda"
  torch_stand_ins "$(echo "$out"/torch/lib/python*/site-packages/torch/lib)" "$out/torch/stand_ins"
  LD_LIBRARY_PATH=$out/torch/stand_ins "$out/torch/bin/python" -c 'import torch; torch.ones(1) + 1'
  touch "$out/torch/ready"
}

prepare_libtorch() {
  apt_install libtorch-dev libopenblas0-pthread
  local source=tests/benchmarks/peers/torch_mlp.cc
  [[ $out/torch_mlp -nt $source && $out/torch_mlp -nt tests/benchmarks/window.h ]] && return
  g++ -std=c++20 -O2 -DNDEBUG -I/usr/include/torch/csrc/api/include $source -o "$out/torch_mlp" \
    -ltorch -ltorch_cpu -lc10
}

# Debian's, whose LibTorch libtorch_step is built with.
prepare_python3_torch() {
  apt_install libtorch-dev python3-torch libopenblas0-pthread
}

prepare_tensorflow() {
  [[ -e $out/tensorflow/ready ]] && return
  rm -rf "$out/tensorflow"
  python3 -m venv "$out/tensorflow"
  "$out/tensorflow/bin/pip" install -q tensorflow-cpu
  touch "$out/tensorflow/ready"
}

prepare_v4() {
  mkdir -p "$out/v4"
  cmake -G Ninja -S . -B "$out/v4" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-march=x86-64-v4 \
    -DLOCKSTEP_BUILD_TESTS=OFF -DLOCKSTEP_BUILD_EXAMPLES=OFF \
    -DLOCKSTEP_BUILD_BENCHMARKS=ON >"$out/v4/configure.log"
  cmake --build "$out/v4"
}

prepare_char_lm() {
  apt_install bible-kjv
  bible Gen1:1-Rev22:21 >"$out/bible.txt"
  mkdir -p "$out/release"
  cmake -G Ninja -S . -B "$out/release" -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_BUILD_TESTS=OFF \
    -DLOCKSTEP_BUILD_EXAMPLES=ON -DLOCKSTEP_BUILD_BENCHMARKS=ON >"$out/release/configure.log"
  cmake --build "$out/release" --target char_lm
}

for what in "$@"; do
  "prepare_$what"
done
