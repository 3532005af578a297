#!/bin/sh
# venv.sh PYTHON FOLDER: makes the virtual environment, after a look at what the build will need from the system.
set -eu
python=$1 folder=$2
missing='' packages=''

want() { # what the package
  missing="$missing${missing:+, }$1" packages="$packages $2"
}
stop_if_missing() {
  [ -n "$packages" ] || return 0
  echo "dovetail: missing: $missing. On Debian or Ubuntu: apt-get install$packages" >&2
  exit 1
}
try() { # code: whether Python runs it
  "$python" -c "$1" > /dev/null 2>&1
}

try 'pass' || want "$python" python3
stop_if_missing
try 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "dovetail: expected Python 3.11 or newer, got $("$python" -V): name another, as in PYTHON=python3.12 make" >&2
  exit 1
}
package=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')

command -v "${CXX:-c++}" > /dev/null || want "a C++ compiler" g++
command -v "${CC:-cc}" > /dev/null || want "a C compiler" gcc
try 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
  want "Python.h" "$package-dev"
if try 'import ensurepip, venv'; then
  make_it() { "$python" -m venv "$folder"; }
elif try 'import pip, venv'; then
  make_it() { "$python" -m venv --without-pip "$folder" && "$python" -m pip --python "$folder/bin/python" install -q pip; }
elif try 'import virtualenv'; then
  make_it() { "$python" -m virtualenv --quiet "$folder"; }
else
  want "venv or pip" "$package-venv"
fi
stop_if_missing

rm -rf "$folder"
make_it
