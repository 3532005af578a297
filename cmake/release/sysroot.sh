#!/bin/sh
# sysroot.sh FOLDER ARCHITECTURE PYTHON_HEADERS PLATFORM: FOLDER/sysroot, whose C and C++ libraries show a linker no symbol
# that the platform tag (manylinux_2_28) does not have. From Debian's archive; installs nothing on this machine.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
architecture=$2 headers=$3 platform=$4
here=$(dirname "$0")
triplet=$architecture-linux-gnu
sysroot=$folder/sysroot
debian=bullseye # glibc 2.31, the oldest that the archive has
. "$here/../aarch64/apt.sh"

case $architecture in
  aarch64) name=arm64 ;;
  x86_64) name=amd64 ;;
esac
apt_for libraries "$name" "$debian" download libc6 libc6-dev linux-libc-dev libcrypt-dev libgcc-s1 libstdc++6 || {
  echo "no Debian $debian for $name at $mirror: a release needs a mirror that still has it" >&2
  exit 1
}
unpack libraries "$sysroot"
cp -r "$headers" "$sysroot/usr/include"
# Debian keeps the part of pyconfig.h that differs between architectures next to it.
ours=$(dirname "$headers")/$triplet/$(basename "$headers")
[ ! -d "$ours" ] || cp -r "$ours" "$sysroot/usr/include/$triplet"

python "$here/limit.py" "$platform" "$architecture" \
  "$sysroot/lib/$triplet"/lib*.so.* "$sysroot/usr/lib/$triplet"/libstdc++.so.6
"$triplet-g++" --sysroot="$sysroot" -std=c++20 -O2 -fPIC -Wall -Wextra -fvisibility=hidden -c "$here/compat.cpp" \
  -o "$sysroot/usr/lib/$triplet/compat.o"
# The system's libstdc++ is the only one that throws and catches. What it is too old to have comes from the compiler's
# archive and stays inside the library that uses it.
echo "INPUT ( /usr/lib/$triplet/compat.o libstdc++.so.6 -l:libstdc++.a )" > "$sysroot/usr/lib/$triplet/libstdc++.so"
