#!/bin/sh
# sysroot.sh FOLDER PYTHON_TAG: what a cross build for aarch64 and its emulated tests need, from Debian's own archive
# and without installing anything on this machine: FOLDER/sysroot (C and C++ libraries, CPython with headers) and
# FOLDER/usr/bin/qemu-aarch64.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
tag=$2
. /etc/os-release
emulator_at_least=10.0.3 # knows neoverse-n2; before, a minimum of unsigned numbers is wrong on machines with AVX-512
[ "$ID" = debian ] || {
  echo "this needs Debian, whose archive has the libraries of aarch64; here is ${PRETTY_NAME:-$ID}" >&2
  exit 1
}
command -v aarch64-linux-gnu-g++ > /dev/null || {
  echo "aarch64-linux-gnu-g++ is missing: apt-get install g++-aarch64-linux-gnu" >&2
  exit 1
}
compiler=$(aarch64-linux-gnu-g++ -dumpversion | cut -d. -f1)

. "$(dirname "$0")/apt.sh"

apt_for arm64 arm64 "$VERSION_CODENAME" install -y --download-only "python$tag-minimal" "libpython$tag-stdlib" \
  "libpython$tag-dev" "libstdc++-$compiler-dev" libgomp1 || {
  echo "Debian $VERSION_CODENAME has no Python $tag for arm64: choose the one that it has with PYTHON=python3.x" >&2
  exit 1
}
unpack arm64 "$folder/sysroot"

# This release's emulator where it is new enough, else that of Debian 13, which needs no library.
release=$VERSION_CODENAME
version=$(apt-cache policy qemu-user 2> /dev/null | sed -n 's/^ *Candidate: //p')
dpkg --compare-versions "${version:-0}" ge "1:$emulator_at_least" || release=trixie
apt_for emulator "$(dpkg --print-architecture)" "$release" download qemu-user
dpkg-deb --fsys-tarfile "$folder"/apt/emulator/archives/qemu-user_*.deb | tar -x -C "$folder" ./usr/bin/qemu-aarch64
