#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/support/pjrt_plugin.sh [primary|second]   prints the path of a PJRT CPU plugin, which it gets
#                                                 from PyPI into build/pjrt/ where it is not yet
# The plugins stand in for a TPU's. `primary` is xla-cpu-pjrt, which is at the old end of the range of
# versions we speak and has the official header beside it; `second` is lammps-jax-pjrt-cpu, at the new
# end. A wheel with another checksum is refused.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

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
  *)
    sed -n '3,7s/^# //p' "${BASH_SOURCE[0]}" >&2
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
    --require-hashes --dest "$folder.new" --requirement "$folder.new/requirements.txt" >&2
  python3 -m zipfile -e "$folder.new"/*.whl "$folder.new"
  rm "$folder.new"/*.whl
  rm -rf "$folder"
  mv "$folder.new" "$folder"
fi
echo "$folder/$library"
