#!/usr/bin/env bash
# Packages every crate that is published, in order, into a directory source with the dependencies of Cargo.lock, and uses nothing but these
# archives: README's first program and `cargo install tracectl` are built from them, and tracectl's Debian package is built, unpacked into a
# directory of its own, used and removed. The links in the READMEs of the archives must not leave them, and each archive has its licences.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/packages.sh" >&2; exit 2; }
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}/packages
source=$target/source
export CARGO_TARGET_DIR=$target CARGO_PROFILE_DEV_DEBUG=0
work=$(mktemp -d "${TMPDIR:-/tmp}/packages.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed() { echo "packages.sh: $*" >&2; exit 1; }

mkdir -p "$target"
if ! cmp -s Cargo.lock "$target/vendored"; then
    echo "packages.sh: a directory source of the dependencies, in $source" >&2
    cargo vendor -q --locked "$source" >/dev/null
    cp Cargo.lock "$target/vendored"
fi
replaced=(--config 'source.crates-io.replace-with="packages"' --config "source.packages.directory=\"$source\"")

# Each crate behind those that its manifest names with a version, also for its tests: a registry asks for them.
cargo metadata -q --locked --no-deps --format-version 1 >"$work/metadata"
order=$(jq -r '.packages | map(select(.publish != [])) | map(.name) as $ours | .[] | .name as $name
    | "\($name) \($name)", (.dependencies[] | select(.req != "*" and IN(.name; $ours[])) | "\(.name) \($name)")' "$work/metadata" | tsort)
for crate in $order; do
    # A package of a registry never changes, so cargo does not look whether these have.
    rm -rf "$source/$crate"-[0-9]* "$target/package" "$target"/debug/.fingerprint/"$crate"-*
done
for crate in $order; do
    cargo package -q --offline --locked --allow-dirty --no-verify "${replaced[@]}" -p "$crate" 2>"$work/said" || failed "$crate: $(cat "$work/said")"
    archive=$(ls "$target"/package/"$crate"-[0-9]*.crate)
    unpacked=$source/$(basename "$archive" .crate)
    tar -xzf "$archive" -C "$source"
    echo '{"files":{}}' >"$unpacked/.cargo-checksum.json"
    for needed in LICENSE-MIT LICENSE-APACHE README.md; do
        [ -s "$unpacked/$needed" ] || failed "the archive of $crate has no $needed"
    done
    for link in $(grep -oE '\]\([^) ]+\)' "$unpacked/README.md" | sed 's/^](//; s/)$//' | grep -vE '^(https?:|#)'); do
        [ -e "$unpacked/${link%%#*}" ] || failed "README.md of $crate links to $link, which its archive does not have"
    done
done
echo "packages.sh: $(wc -w <<<"$order") archives" >&2

CARGO_TARGET_DIR=$target scripts/new-program.sh --source "$source"
cargo install -q --offline --locked --debug --no-track --root "$target/installed" --force "${replaced[@]}" tracectl
tracectl=$target/installed/bin/tracectl
package=$(scripts/deb.sh "$tracectl" "$work")

# A system of its own, which has what the package depends on.
system=$work/system
mkdir -p "$system/var/lib/dpkg/info" "$system/var/lib/dpkg/updates"
dpkg-query -s libc6 libgcc-s1 >"$system/var/lib/dpkg/status"
touch "$system"/var/lib/dpkg/info/{libc6,libgcc-s1}:"$(dpkg --print-architecture)".list
in_system() { dpkg --root="$system" --force-not-root --force-script-chrootless --log=/dev/null "$@" >&2; }
in_system --install "$package"

export TRACEPOINT_RUN_DIR=$work/run PATH=$system/usr/bin:$PATH
[ "$(command -v tracectl)" = "$system/usr/bin/tracectl" ] || failed "the package has no tracectl"
tracectl create flight --wait -e '*' --policy overwrite --start >&2
tracectl status --json | grep -c flight >&2 || failed "the installed tracectl does not list its session"
tracectl destroy flight >&2
zcat "$system/usr/share/man/man1/tracectl-record.1.gz" | grep -c '^\.TH' >&2 || failed "the package has no manual page of a verb"
bash -c '. "$1/usr/share/bash-completion/completions/tracectl" && complete -p tracectl' bash "$system" >&2 || failed "bash does not accept the completions"
for command in $(sed -n 's/^Exec[A-Za-z]*=\([^ ]*tracectl\) .*/\1/p' "$system"/usr/lib/systemd/system/*.service); do
    [ -x "$system$command" ] || failed "a unit runs $command, which is not in the package"
done
[ -s "$system/usr/share/doc/tracectl/copyright" ] || failed "the package has no copyright file"

in_system --purge tracectl
left=$(find "$system/usr" -type f 2>/dev/null || true)
[ -z "$left" ] || failed "left behind after the package was removed: $left"
echo "packages.sh: README's program and tracectl are built from the archives; tracectl's Debian package is installed, used and removed" >&2
