#!/usr/bin/env bash
# Makes a Debian package of a built tracectl: the program, its manual pages and completions, and the units of examples/systemd. Prints the
# package's path. It depends on libgcc, and on the C library in the version that the program needs.
#
#   scripts/deb.sh TRACECTL DIRECTORY
set -euo pipefail
[ $# -eq 2 ] && [ -x "$1" ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tracectl=$(realpath "$1")
directory=$(realpath "$2")
cd "$(dirname "$0")/.."
for program in dpkg-deb objdump; do
    command -v $program >/dev/null || { echo "deb.sh: no $program: apt-get install dpkg binutils" >&2; exit 1; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/deb.XXXXXX")
trap 'rm -rf "$work"' EXIT

version=$("$tracectl" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)
libc=$(objdump -T "$tracectl" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
field() { sed -n "s/^$1 = \"\(.*\)\"/\1/p" "$2"; }
documents=usr/share/doc/tracectl

root=$work/root
umask 022
mkdir -p "$root/DEBIAN" "$root/$documents/examples"
install -D -m 755 "$tracectl" "$root/usr/bin/tracectl"
"$tracectl" man "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
completions() { # shell, file
    mkdir -p "$(dirname "$root/$2")"
    "$tracectl" completions "$1" >"$root/$2"
}
completions bash usr/share/bash-completion/completions/tracectl
completions zsh usr/share/zsh/vendor-completions/_tracectl
completions fish usr/share/fish/vendor_completions.d/tracectl.fish
for unit in examples/systemd/tracectl-*.service; do
    install -D -m 644 /dev/stdin "$root/usr/lib/systemd/system/$(basename "$unit")" < <(sed 's|/usr/local/bin/tracectl|/usr/bin/tracectl|' "$unit")
done
install -m 644 examples/systemd/server.service "$root/$documents/examples/"
gzip -9nc CHANGELOG.md >"$root/$documents/changelog.gz"
cat - LICENSE-MIT LICENSE-APACHE >"$root/$documents/copyright" <<<"tracectl is licensed under $(field license Cargo.toml):"$'\n'

cat >"$root/DEBIAN/control" <<END
Package: tracectl
Version: $version
Architecture: $architecture
Maintainer: The tracepoint developers
Section: devel
Priority: optional
Depends: libc6 (>= $libc), libgcc-s1
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Description: controls and records programs with tracepoints, and reads traces
 $(field description cli/Cargo.toml).
END
package=$directory/tracectl_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zgzip --build "$root" "$package" >/dev/null
echo "$package"
