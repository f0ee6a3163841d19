#!/usr/bin/env bash
# Boots Debian's kernel for aarch64 in qemu-system-aarch64, with the test programs of core, ring and patched sites in its initial file system:
# the tests that scripts/arm64.sh cannot run under qemu-user are among them. There the processes have the kernel's own /proc/self/mem, by which
# sites are patched, its seccomp filters, users and lists of mappings, and its clock source. Some minutes; a step of ci.sh --long.
#
#   scripts/arm64-kernel.sh
#
# The packages are fetched by debian-packages.sh (70 MB, once).
set -euo pipefail
cd "$(dirname "$0")/.."
case "$*" in "") ;; *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac

fail() { echo "arm64-kernel.sh: $*" >&2; exit 1; }

# The name of the package with the kernel has its version, which the package linux-image-cloud-arm64 knows.
name=$(scripts/debian-packages.sh arm64-kernel-name linux-image-cloud-arm64:arm64)
kernel=$(readlink "$name/usr/share/doc/linux-image-cloud-arm64") || fail "$name has no link to the package with the kernel"
tools=$(scripts/debian-packages.sh arm64-kernel "$kernel:arm64" busybox-static:arm64 cpio qemu-system-arm \
    libcapstone4 libdaxctl1 libfdt1 libibverbs1 libkmod2 libndctl6 libnl-3-200 libnl-route-3-200 libpmem1 librdmacm1 libslirp0 libvdeplug2)
tools=$(realpath "$tools")
export LD_LIBRARY_PATH=$tools/usr/lib/x86_64-linux-gnu:$tools/lib/x86_64-linux-gnu

work=$(mktemp -d "${TMPDIR:-/tmp}/arm64-kernel.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,lib,proc,sys,tests,tmp}
cp "$tools/bin/busybox" "$root/bin/"
# shellcheck disable=SC2016 # expanded there
libraries=$(env -u LD_LIBRARY_PATH scripts/arm64.sh sh -c 'echo "$QEMU_LD_PREFIX/lib"')
cp -L "$libraries"/{ld-linux-aarch64.so.1,libc.so.6,libm.so.6,libgcc_s.so.1} "$root/lib/"
env -u LD_LIBRARY_PATH scripts/arm64.sh cargo test --no-run -p tracepoint-ring -p tracepoint-core -p tracepoint-probes -p tracepoint \
    --lib --test integration --test sites 2>&1 |
    tee /dev/stderr | sed -n 's/^ *Executable .* (\(.*\))$/\1/p' >"$work/programs"
[ -s "$work/programs" ] || fail "no test program was built"
while read -r program; do
    cp "$program" "$root/tests/"
done <"$work/programs"

# A round of the stress tests takes some 100 ms there: each of its system calls waits until all processors have had their turn (see below).
rounds=200
# Of the tests in `integration`, those that scripts/arm64.sh leaves out. PR_SET_MDWE is younger than this kernel.
cat >"$root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
export PATH=/bin RUST_BACKTRACE=0 TRACEPOINT_ROUNDS=$rounds
uname -a
echo "clock source: \$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
failed=
for program in /tests/*; do
    case \$program in
        */integration-*)
            \$program --exact fork::a_child_does_not_touch_memory_that_it_does_not_have fork_first::a_fork_during_the_first_use
            ;;
        *) \$program --skip memory_may_not_become_writable_and_executable ;;
    esac || failed="\$failed \$program"
done
echo "failed programs:\${failed:- none}"
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | "$tools/bin/cpio" --quiet -o -H newc) >"$work/initrd"

# One thread executes all processors: with a thread for each, qemu 7.2 translates code without a lock on its page. A translation that another
# processor's store has overtaken then stays, and sites are missed.
machine=(-M virt -cpu neoverse-n1 -accel "tcg,thread=single" -smp 4 -m 2G -nic none -display none -monitor none -serial stdio -no-reboot)
"$tools/usr/bin/qemu-system-aarch64" "${machine[@]}" -kernel "$tools"/boot/vmlinuz-* -initrd "$work/initrd" \
    -append 'console=ttyAMA0 quiet panic=-1' </dev/null | tee "$work/log"
tr -d '\r' <"$work/log" | grep -qx 'failed programs: none' || fail "not all tests passed in the virtual machine"
