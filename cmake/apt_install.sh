# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that need Debian packages.

# apt_install <package>...: installs those that are missing and says which. Without apt, says what
# is expected to be there and goes on.
apt_install() {
  local missing=() package
  if ! command -v apt-get >/dev/null; then
    echo "No apt-get here; these packages or their like are needed: $*"
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q
             -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600)
  ((EUID == 0)) || apt=(sudo "${apt[@]}")
  echo "Installing with apt: ${missing[*]}"
  local attempt
  for attempt in 1 2 3; do
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" && return 0
    echo "apt-get install failed (attempt $attempt of 3); updating the package lists"
    "${apt[@]}" update || sleep $((attempt * 5))
  done
  echo "Could not install: ${missing[*]}" >&2
  return 1
}
