#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/support/pjrt_plugin.sh [primary|second|libtpu]   prints the path of a PJRT plugin, which it
#                                       gets from PyPI into build/pjrt/ where it is not yet
# The first two stand in for a TPU's on CPUs. `primary` is xla-cpu-pjrt, which is at the old end of the
# range of versions we speak and has the official header beside it; `second` is lammps-jax-pjrt-cpu, at
# the new end. `libtpu` is Google's own, under its terms (libtpu/LICENSE): it compiles for TPUs that
# are not there. A wheel with another checksum is refused.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

options=()
case "${1:-primary}" in
  primary)
    package=xla-cpu-pjrt==0.0.1
    sha256=55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc
    library=xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so
    ;;
  second)
    package=lammps-jax-pjrt-cpu==0.11.2
    sha256=1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1
    library=lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
    ;;
  libtpu)
    package=libtpu==0.0.51
    sha256=aeb662a3174a89fd9a94ac64c965a72f43c65436f5546abbcb8968c9d9552631
    library=libtpu/libtpu.so
    options=(--python-version 3.12 --platform manylinux_2_31_x86_64)
    ;;
  *)
    sed -n '3,8s/^# //p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac

folder=$PWD/build/pjrt/${package%%==*}
if [[ ! -e $folder/$library ]]; then
  rm -rf "$folder.new"
  mkdir -p "$folder.new"
  trap 'rm -rf "$folder.new"' EXIT
  echo "$package --hash=sha256:$sha256" >"$folder.new/requirements.txt"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    ${options[@]+"${options[@]}"} --require-hashes --dest "$folder.new" --requirement "$folder.new/requirements.txt" >&2
  python3 -m zipfile -e "$folder.new"/*.whl "$folder.new"
  rm "$folder.new"/*.whl
  rm -rf "$folder"
  mv "$folder.new" "$folder"
fi
echo "$folder/$library"
