#!/bin/sh
# onednn.sh FOLDER: Debian's newest oneDNN for aarch64, for tests. FOLDER is sysroot.sh's; FOLDER/onednn/usr is oneDNN to
# build with, and FOLDER/onednn another folder to run programs in (run.sh): that oneDNN wants a newer C library than a
# cross build shall.
set -eu
folder=$(cd "$1" && pwd)
. "$(dirname "$0")/apt.sh"

apt_for sid arm64 sid install -y --download-only libdnnl-dev
rm -rf "$folder/onednn"
mkdir -p "$folder/onednn/usr/bin"
ln "$folder/usr/bin/qemu-aarch64" "$folder/onednn/usr/bin/"
cp -al "$folder/sysroot" "$folder/onednn/sysroot"
cd "$folder/onednn/sysroot"
# Newer packages have nothing in /lib any more.
cp -al lib/. usr/lib/
rm -r lib
ln -s usr/lib lib
for package in "$folder"/apt/sid/archives/*.deb; do dpkg-deb -x "$package" .; done
for package in "$folder"/apt/sid/archives/libdnnl*.deb; do dpkg-deb -x "$package" ..; done
