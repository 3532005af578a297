# shellcheck shell=sh
# Sourced: packages of another architecture or release of Debian, without installing anything on this machine. $folder
# is where they are kept.
# shellcheck disable=SC2154

# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | sort -u | head -n 1)

# apt with a state of its own: apt_for NAME ARCHITECTURE RELEASE COMMAND...
apt_for() {
  state=$folder/apt/$1
  if [ ! -e "$state/apt.conf" ]; then
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    : > "$state/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $3 main" > "$state/sources.list"
    cat > "$state/apt.conf" << CONF
APT::Architecture "$2"; APT::Architectures "$2"; APT::Install-Recommends "0"; APT::Sandbox::User "root";
Acquire::Languages "none"; Debug::NoLocking "1";
Dir::State::Lists "$state/lists"; Dir::State::status "$state/status"; Dir::Cache "$state";
Dir::Etc::SourceList "$state/sources.list"; Dir::Etc::SourceParts "/dev/null";
CONF
    APT_CONFIG=$state/apt.conf apt-get -qq update
  fi
  shift 3
  (cd "$state/archives" && APT_CONFIG=$state/apt.conf apt-get -qq "$@" > /dev/null)
}

# A new sysroot of what apt_for fetched: unpack NAME SYSROOT
unpack() {
  rm -rf "$2"
  mkdir -p "$2"
  for package in "$folder/apt/$1"/archives/*.deb; do dpkg-deb -x "$package" "$2"; done
  # A link to /lib/... would lead out of the sysroot; the linker then takes the static library instead, silently.
  find "$2" -type l -lname '/*' | while read -r link; do
    target=$2$(readlink "$link")
    [ ! -e "$target" ] || ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$target")" "$link"
  done
}
