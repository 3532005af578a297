#!/bin/sh
# run.sh FOLDER COMMAND...: in a private namespace where programs for aarch64 start through FOLDER's emulator, with the
# libraries of its sysroot. QEMU_CPU chooses the processor. Needs Linux 6.7 or newer, no rights outside of namespaces.
set -eu
folder=$(cd "$1" && pwd)
shift
export QEMU_LD_PREFIX="$folder/sysroot"
# Emulated, an idle thread of NumPy's OpenBLAS spins for as long as its process lives.
export OPENBLAS_NUM_THREADS=1
# 183 is aarch64 in an ELF header; F: the emulator is opened now, wherever programs later change root to.
register=':aarch64:M:0:\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
register=$register':\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
register=$register":$folder/usr/bin/qemu-aarch64:F"
# shellcheck disable=SC2016
exec unshare --user --map-root-user --mount sh -c 'mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc &&
  printf %s "$1" > /proc/sys/fs/binfmt_misc/register || {
    echo "no emulator can be registered: this needs Linux 6.7 or newer (here: $(uname -r)) and the right to mount binfmt_misc" >&2
    exit 1
  }
  shift && exec "$@"' sh "$register" "$@"
