# For scripts that set $folder: packages from Debian's own archive, without installing anything on this machine.

# apt with a state of its own, for another architecture or release: apt_for NAME ARCHITECTURE RELEASE COMMAND...
# What it downloads lies in $folder/apt/NAME/archives.
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | sort -u | head -n 1)
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
