#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# install.sh TREE [COMPILER [BUILD_TYPE]]
#   installs the build tree TREE, moves the prefix, and builds and runs the consumer project against
#   it by find_package and by pkg-config
# install.sh --all
#   the same with g++ and clang++-16, Debug and Release, static (build/) and shared (build/shared)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CMAKE_GENERATOR=Ninja

# install_moved TREE: sets `prefix` to an installation that was moved after it was made.
install_moved() {
  rm -rf "$scratch/first" "$scratch/moved"
  cmake --install "$1" --prefix "$scratch/first" >"$scratch/install.log"
  mkdir "$scratch/moved"
  mv "$scratch/first" "$scratch/moved/here"
  prefix=$scratch/moved/here
  if grep -rIlE "$scratch/first|$(cd "$root" && pwd)/" "$prefix"; then
    echo "these files name a path of the build"
    return 1
  fi
}

# The installed launcher, which a tree without examples does not have.
launch() {
  grep -q '^LOCKSTEP_BUILD_EXAMPLES:BOOL=ON' "$1/CMakeCache.txt" || return 0
  local out
  out=$("$prefix/bin/lockstep-run" -n 2 -- sh -c 'echo $TF_CONFIG')
  grep -q '^\[worker 1\] .*"index":1' <<<"$out" || { echo "lockstep-run says: $out"; return 1; }
}

consume_by_cmake() {
  local compiler=$1 build_type=$2
  local build=$scratch/consumer-$compiler-$build_type
  rm -rf "$build"
  cmake -S "$here/consumer" -B "$build" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE="$build_type" >"$scratch/configure.log" ||
    { cat "$scratch/configure.log"; return 1; }
  cmake --build "$build" && "$build/consumer"
}

consume_by_pkg_config() {
  local compiler=$1 libdir
  command -v pkg-config >/dev/null || { echo "pkg-config is not there"; return 1; }
  libdir=$(dirname "$(find "$prefix" -name lockstep.pc)")
  read -ra flags < <(PKG_CONFIG_PATH=$libdir pkg-config --cflags --libs lockstep)
  "$compiler" -O1 "$here/consumer/main.cc" -o "$scratch/by-pkg-config" "${flags[@]}"
  LD_LIBRARY_PATH=$libdir/.. "$scratch/by-pkg-config"
}

if [[ ${1-} == --all ]]; then
  for tree in "$root/build" "$root/build/shared"; do
    install_moved "$tree"
    launch "$tree"
    for compiler in g++ clang++-16; do
      for build_type in Debug Release; do
        echo "--- $(basename "$tree"), $compiler, $build_type"
        consume_by_cmake "$compiler" "$build_type"
      done
      echo "--- $(basename "$tree"), $compiler, pkg-config"
      consume_by_pkg_config "$compiler"
    done
  done
else
  compiler=${2:-g++}
  install_moved "$1"
  launch "$1"
  consume_by_cmake "$compiler" "${3:-Release}"
  consume_by_pkg_config "$compiler"
fi
