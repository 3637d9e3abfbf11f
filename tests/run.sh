#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/run.sh          the check for every change: installs what is missing, builds Release into
#                       build/, runs every test, then comm, distribute and acceptance under TSan
# tests/run.sh --full   adds ASan + UBSan, TSan of everything, clang, a build without oneDNN and
#                       gRPC, a shared library, all install variants, a bare Debian, clang-tidy, ops
#                       against PyTorch's, an MLIR parser's view of programs for TPUs, and what
#                       Fashion-MNIST reaches in 32 and 16 bits
# Exit code 0 only if all passed and nothing skipped but what tests/expected_skips.txt lists.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/apt_install.sh

full=0
case "${1-}" in
  '') ;;
  --full) full=1 ;;
  *) sed -n '3,8s/^# //p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac

packages=(cmake ninja-build g++ ccache git python3 pkg-config binutils
          libeigen3-dev libdnnl-dev libspdlog-dev libfmt-dev nlohmann-json3-dev zlib1g-dev
          libgrpc++-dev openssl libgtest-dev libgmock-dev libbenchmark-dev python3-pip)
((full)) && packages+=(clang-16 clang-tidy-16 mmdebstrap mlir-19-tools python3-venv
                        dataset-fashion-mnist libtorch-dev)
apt_install "${packages[@]}" || exit 1

# A CPU plugin stands in for a TPU's. Where it cannot be had, the tests that need it skip.
if plugin=$(tests/support/pjrt_plugin.sh); then
  export LOCKSTEP_PJRT_CPU_PLUGIN=$plugin
fi

started=$SECONDS
passed=0
failed=()
logs=()

# check <name> <command...>: one more test, passed when the command returns 0.
check() {
  local name=$1 since=$SECONDS
  shift
  echo "=== $name"
  if "$@"; then
    ((++passed))
  else
    failed+=("$name")
  fi
  echo "=== $name: $((SECONDS - since)) s"
}

# suite <name> <folder> <cmake arguments...>: configures, builds, and adds every test of that tree.
suite() {
  local name=$1 tree=$2 since=$SECONDS
  shift 2
  echo "=== $name: building in $tree"
  mkdir -p "$tree"
  if ! { cmake -G Ninja -S . -B "$tree" "$@" >"$tree/configure.log" 2>&1 ||
         { cat "$tree/configure.log"; false; }; } || ! cmake --build "$tree"; then
    failed+=("$name (build)")
    return
  fi
  echo "=== $name: built in $((SECONDS - since)) s"
  since=$SECONDS
  ctest --test-dir "$tree" --parallel 1 --output-on-failure --no-tests=error |
    tee "$tree/ctest.log"
  mapfile -t -O "${#failed[@]}" failed < <(
    sed -nE "s/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) \.*\**(Failed|Timeout|Exception|Not Run).*/$name: \1/p" \
      "$tree/ctest.log")
  passed=$((passed + $(grep -cE '^ *[0-9]+/[0-9]+ Test .* (Passed|\*\*\*Skipped) ' "$tree/ctest.log")))
  logs+=("$tree/ctest.log" "$tree/Testing/Temporary/LastTest.log")
  echo "=== $name: tested in $((SECONDS - since)) s"
}

tidy() {
  run-clang-tidy-16 -quiet -p build/clang -j "$(nproc)" "$PWD/src/.*\\.cc\$" 2>/dev/null >build/tidy.log ||
    { grep -A3 -E '(warning|error):' build/tidy.log; return 1; }
}

# The tests of TPUs once more, by the plugin of the newest interface.
pjrt_second() {
  local plugin
  plugin=$(tests/support/pjrt_plugin.sh second) &&
    LOCKSTEP_PJRT_CPU_PLUGIN=$plugin ctest --test-dir build --output-on-failure \
      -R '^(device|ops|conformance|distribute)_tests$'
}

# Programs for TPUs, those of the ops' tests and of training steps, read by a parser of MLIR.
stablehlo() {
  local programs=$PWD/build/stablehlo
  rm -rf "$programs"
  LOCKSTEP_XLA_DUMP=$programs ctest --test-dir build --output-on-failure \
    -R '^(ops|conformance|distribute)_tests$' && python3 tests/support/stablehlo.py "$programs"
}

# Random chains of ops and their gradients, against PyTorch's.
op_chains() {
  local torch=$PWD/build/benchmarks/torch count=10000
  tests/benchmarks/prepare.sh torch &&
    build/tests/conformance/op_chains $count 1 |
    LD_LIBRARY_PATH=$torch/stand_ins "$torch/bin/python" tests/conformance/chains/replay.py $count
}

# A training step compiled for TPUs, which need not be there.
tpu_compiler() {
  local libtpu
  libtpu=$(tests/support/pjrt_plugin.sh libtpu) &&
    LOCKSTEP_LIBTPU=$libtpu ctest --test-dir build --output-on-failure -R '^tpu_aot_process_test$'
}

# Sanitizers do not see into the plugin, so suites under them go without.
suite release build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=90
lean=(-DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_BUILD_EXAMPLES=OFF -DLOCKSTEP_BUILD_BENCHMARKS=OFF
      -DLOCKSTEP_WITH_CUDA=OFF)
if ((full)); then
  LOCKSTEP_PJRT_CPU_PLUGIN='' suite tsan build/tsan "${lean[@]}" -DLOCKSTEP_SANITIZE=thread \
    -DLOCKSTEP_TEST_FOLDERS=
  LOCKSTEP_PJRT_CPU_PLUGIN='' suite asan build/asan "${lean[@]}" -DLOCKSTEP_SANITIZE=address,undefined
  suite clang build/clang -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16 -DCMAKE_CUDA_ARCHITECTURES=90
  suite minimal build/minimal "${lean[@]}" -DLOCKSTEP_WITH_ONEDNN=OFF -DLOCKSTEP_WITH_GRPC=OFF
  suite shared build/shared -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
    -DCMAKE_CUDA_ARCHITECTURES=90
  check install tests/install/install.sh --all
  check debootstrap tests/install/debootstrap.sh
  check pjrt-second pjrt_second
  check tpu-compiler tpu_compiler
  check stablehlo stablehlo
  check op-chains op_chains
  check fashion-mnist python3 tests/examples/precisions.py build/examples/fashion_mnist
  check clang-tidy tidy
else
  LOCKSTEP_PJRT_CPU_PLUGIN='' suite tsan build/tsan "${lean[@]}" -DLOCKSTEP_SANITIZE=thread \
    "-DLOCKSTEP_TEST_FOLDERS=comm;distribute;acceptance"
fi

python3 tests/support/skips.py tests/expected_skips.txt ${logs[@]+"${logs[@]}"} || failed+=("skips")

if ((${#failed[@]})); then
  printf 'FAILED: %s\n' "${failed[@]}"
fi
total=$((passed + ${#failed[@]}))
echo "Total time: $(((SECONDS - started) / 60)) min $(((SECONDS - started) % 60)) s"
echo "$((total ? 100 * passed / total : 0))% tests passed, ${#failed[@]} tests failed out of $total"
((${#failed[@]} == 0))
