#!/bin/sh
# venv.sh PYTHON FOLDER: makes the virtual environment, after a look at what the build will need from the system.
set -eu
python=$1 folder=$2

missing() {
  echo "dovetail: $1 is missing: on Debian or Ubuntu, apt-get install $2" >&2
  exit 1
}

command -v "$python" > /dev/null || missing "$python" python3
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "dovetail: expected Python 3.11 or newer, got $python $version: name another one, as in PYTHON=python3.12 make" >&2
  exit 1
}
case $(command -v "$python") in /usr/bin/*) package=python$version ;; *) package="the headers of $python" ;; esac
"$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
  missing "Python.h" "$package-dev"
command -v "${CXX:-c++}" > /dev/null || missing "a C++ compiler" g++
command -v "${CC:-cc}" > /dev/null || missing "a C compiler" gcc

rm -rf "$folder"
if "$python" -c 'import ensurepip, venv' 2> /dev/null; then
  "$python" -m venv "$folder"
elif "$python" -c 'import pip, venv' 2> /dev/null; then
  "$python" -m venv --without-pip "$folder"
  "$python" -m pip --python "$folder/bin/python" install --quiet pip
elif "$python" -m virtualenv --version > /dev/null 2>&1; then
  "$python" -m virtualenv --quiet "$folder"
else
  missing "venv, or pip" "$package-venv"
fi
