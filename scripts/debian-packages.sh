#!/usr/bin/env bash
# Fetches Debian packages and unpacks them into target/tools/debian/NAME, whose path it prints. Nothing is installed into the system, and its
# lists of packages stay as they are. Packages that are there already are not fetched again.
#
#   scripts/debian-packages.sh NAME PACKAGE[:ARCHITECTURE][=VERSION]…
#
# `rustc-web=1.85*` is the newest version that begins with 1.85. The packages that one needs are not added: name them. No script of a package
# is run.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1-}" in "" | -*) set -- ;; esac
[ $# -ge 2 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }

name=$1
shift
root=$PWD/target/tools/debian/$name
unpacked=$root/packages.txt
if [ -e "$unpacked" ] && [ "$(cat "$unpacked")" = "$*" ]; then
    echo "$root"
    exit
fi
for program in apt-get dpkg-deb; do
    command -v $program >/dev/null || { echo "debian-packages.sh: no $program, which unpacks $*: run this on Debian" >&2; exit 1; }
done

work=$(mktemp -d "${TMPDIR:-/tmp}/debian-packages.XXXXXX")
trap 'rm -rf "$work"' EXIT
lists=$PWD/target/tools/debian/lists
mkdir -p "$lists/partial" "$work/cache/archives/partial" "$work/archives"
exec 9>"$lists.lock"
flock 9
architectures=$(printf '%s\n' "$(dpkg --print-architecture)" "$@" | sed -n '1p; s/^[^:=]*:\([a-z0-9]*\).*/\1/p' | grep -vx all | sort -u)

# What the machine says of mirrors and proxies, without its other settings: those run programs after each update.
{
    apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets'
    printf '%s "%s";\n' Dir::Etc::main /dev/null Dir::Etc::parts /dev/null Dir::State::Lists "$lists" Dir::State::status "$work/status" \
        Dir::Cache "$work/cache" Acquire::Languages none Acquire::Retries 3 APT::Sandbox::User root
    # shellcheck disable=SC2086 # one word for each architecture
    printf 'APT::Architectures:: "%s";\n' $architectures
} >"$work/apt.conf"
touch "$work/status"
export APT_CONFIG=$work/apt.conf

echo "debian-packages.sh: fetching $* into $root" >&2
apt-get update -qq >&2 || true
(cd "$work/archives" && apt-get download -qq "$@" >&2) || {
    echo "debian-packages.sh: not fetched: $*: connect this machine to a Debian mirror that has them (rustc-web: Debian 12, with its security updates), and run the script again" >&2
    exit 1
}
mkdir "$work/root"
for archive in "$work"/archives/*.deb; do
    dpkg-deb -x "$archive" "$work/root"
done
rm -rf "$root"
mkdir -p "$(dirname "$root")"
mv "$work/root" "$root"
printf '%s' "$*" >"$unpacked"
echo "$root"
