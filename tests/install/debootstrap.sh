#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# debootstrap.sh [--quickstart]: makes a minimal Debian 12 in a temporary folder, clones the last
# commit into it, and runs examples/quickstart.sh (twice) and tests/run.sh there, so that whatever
# they need they say and install themselves. Needs root, git and mmdebstrap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if ((EUID != 0)); then
  exec sudo "$0" "$@"
fi

system=$(mktemp -d /var/tmp/lockstep-debian.XXXXXX)
trap 'rm -rf --one-file-system "$system"' EXIT

# The mirror and the proxy of this machine are those that work here.
options=()
for scheme in http https; do
  proxy=$(apt-config dump "Acquire::$scheme::Proxy" | sed -nE 's/.*"(.+)";/\1/p' | head -1)
  [[ -z $proxy ]] || options+=("--aptopt=Acquire::$scheme::Proxy \"$proxy\"")
done
sources=(/etc/apt/sources.list.d/debian.sources)
[[ -e ${sources[0]} ]] || sources=()
mmdebstrap --mode=root --variant=minbase --include=ca-certificates "${options[@]}" \
  bookworm "$system" "${sources[@]}"
[[ ! -e /etc/resolv.conf ]] || cp -L /etc/resolv.conf "$system/etc/resolv.conf"
git clone --quiet --no-hardlinks . "$system/srv/lockstep"

inside='set -eux; cd /srv/lockstep; examples/quickstart.sh; time examples/quickstart.sh'
[[ ${1-} == --quickstart ]] || inside+='; tests/run.sh'
# The mount lives in a namespace of its own and ends with the command.
unshare --mount bash -c '
  mount -t proc proc "$0/proc" || echo "no /proc inside"
  exec chroot "$0" env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 bash -c "$1"' \
  "$system" "$inside"
