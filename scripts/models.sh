#!/usr/bin/env bash
# Runs the loom models. With --mutate (and in the long mode) it also weakens each ordering in turn, in a copy, and demands that
# a model fails: a model that passes whatever the code does shows nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$*" in
    "" | --mutate | --long) ;;
    *) echo "usage: scripts/models.sh [--mutate|--long]" >&2; exit 2 ;;
esac

run_models() { # in the current directory; with options for cargo
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$target" cargo test -q -p tracepoint-models --release --lib "$@"
}

target=${CARGO_TARGET_DIR:-$PWD/target}/loom
run_models
[ $# -gt 0 ] || exit 0

root=$PWD
# Its own: cargo may take the artifact of a copy for that of the tree.
target=${CARGO_TARGET_DIR:-$root/target}/loom-mutated
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/ring" "$copy/reader/src/ring" "$copy/sinks/src" "$copy/probes/src"
cp -r models "$copy/"
cp Cargo.lock "$copy/"
sed -e 's/^members = .*/members = ["models"]/' Cargo.toml > "$copy/Cargo.toml"
# The copy has no other crates: drop the workspace dependencies that name them by path.
sed -i '/path = /d' "$copy/Cargo.toml"
cd "$copy"

mutate() { # letter, file below ring/src, sinks/src, probes/src or reader/src, regular expression of perl, replacement
    rm -rf ring/src sinks/src/bucket
    cp -r "$root/ring/src" ring/
    cp -r "$root/sinks/src/bucket" sinks/src/
    cp "$root/probes/src/flights.rs" probes/src/
    cp "$root/reader/src/ring/call_order.rs" reader/src/ring/
    local file=ring/src/$2
    [ -e "$file" ] || file=sinks/src/$2
    [ -e "$file" ] || file=probes/src/$2
    [ -e "$file" ] || file=reader/src/$2
    perl -0pi -e "s/$3/$4/" "$file"
    if cmp -s "$file" "$root/$file"; then
        echo "models.sh: the mutation $1 no longer matches $2" >&2
        exit 1
    fi
    # A copy that does not compile is not a model that fails.
    if ! run_models --no-run; then
        echo "models.sh: the copy without $1 does not compile" >&2
        exit 1
    fi
    if run_models >/dev/null 2>&1; then
        echo "models.sh: no model fails without $1" >&2
        exit 1
    fi
    echo "without $1 a model fails, as it should"
}

mutate "G1 (fence in enter)" grace.rs '        fence\(\);(?=\n        true)' ''
mutate "G1 (fence in enter, inside a section)" grace.rs '            fence\(\);(?=\n            return false)' ''
mutate "G2 (fence of the waiter)" grace.rs '    heavy_fence\(\)(?=\n\})' '    true'
mutate "G3 (release in exit)" grace.rs 'inside.wrapping_add\(1\), Ordering::Release\)' 'inside.wrapping_add(1), Ordering::Relaxed)'
mutate "G3 (release in enter)" grace.rs 'store\(outside \+ 1, Ordering::Release\)' 'store(outside + 1, Ordering::Relaxed)'
mutate "P1 (release of the list)" rcu_pointer.rs 'Ordering::AcqRel' 'Ordering::Relaxed'
mutate "P1 (acquire of the list)" rcu_pointer.rs 'load\(Ordering::Acquire\)' 'load(Ordering::Relaxed)'
mutate "K1 (release of the words)" clock/seqcount_latch.rs 'store\(generation, Ordering::Release\)' 'store(generation, Ordering::Relaxed)'
mutate "K1 (acquire of the words)" clock/seqcount_latch.rs 'load\(Ordering::Acquire\)' 'load(Ordering::Relaxed)'
mutate "K2 (fence of the reader)" clock/seqcount_latch.rs 'fence\(Ordering::Acquire\);' ''
mutate "K2 (fence of the writer)" clock/seqcount_latch.rs 'fence\(Ordering::Release\);' ''
mutate "K4 (release of the slot)" clock/rcu_slots.rs 'Ordering::AcqRel' 'Ordering::Relaxed'
mutate "K4 (acquire of the slot)" clock/rcu_slots.rs 'load\(Ordering::Acquire\)' 'load(Ordering::Relaxed)'
mutate "the wait before a slot is reused" clock/rcu_slots.rs '&& has_elapsed\(\)' '&& true'
mutate "the wait" grace.rs 'while !self.has_ended\(open\)' 'while false'
mutate "F1 (fence in enter)" channel/flush_handshake.rs '(?<=\n)        owner_fence\(\);' ''
mutate "F2 (fence of the flusher)" primitive.rs '(?<=heavy_fence\(\) -> bool \{\n)    fence\(Ordering::SeqCst\);' ''
mutate "F3 (release in leave)" channel/flush_handshake.rs 'writing.store\(0, Ordering::Release\)' 'writing.store(0, Ordering::Relaxed)'
mutate "F3 (acquire in try_close)" channel/flush_handshake.rs 'self.writing.load\(Ordering::Acquire\)' 'self.writing.load(Ordering::Relaxed)'
mutate "F4 (release of the flusher)" channel/flush_handshake.rs 'store\(IDLE, Ordering::Release\)' 'store(IDLE, Ordering::Relaxed)'
mutate "the check that keeps handlers out" channel/flush_handshake.rs 'self.writing.load\(Ordering::Relaxed\) != 0' 'false'
mutate "L1 (release of the end)" channel/ownership.rs 'store\(ENDED, Ordering::Release\)' 'store(ENDED, Ordering::Relaxed)'
mutate "L1 (acquire of the drain)" channel/ownership.rs 'load\(Ordering::Acquire\)' 'load(Ordering::Relaxed)'
mutate "L2 (release of put)" channel/pool.rs 'Ordering::Release, Ordering::Relaxed\)' 'Ordering::Relaxed, Ordering::Relaxed)'
mutate "L2 (acquire of take)" channel/pool.rs 'swap\(null_mut\(\), Ordering::Acquire\)' 'swap(null_mut(), Ordering::Relaxed)'
mutate "C1 (release of the commit)" channel/packet.rs 'store\(bits\(content\).to_le\(\), Ordering::Release\)' 'store(bits(content).to_le(), Ordering::Relaxed)'
mutate "C2 (fence behind the old magic and content)" channel/packet.rs 'fence\(Ordering::Release\);' ''
mutate "C2 (release of the magic)" channel/packet.rs 'PACKET_MAGIC\)\).to_le\(\), Ordering::Release\)' 'PACKET_MAGIC)).to_le(), Ordering::Relaxed)'
mutate "C2 (the number, in another call than the magic)" ring/call_order.rs 'let numbered = look\(\)\?;' 'let numbered = found;'
mutate "C2 (the magic, in another call behind the number)" ring/call_order.rs 'if has_magic\(&whole\)' 'if true'
mutate "C2 (the number behind a copy, in another call than the magic)" ring/call_order.rs 'let \(magic, _\) = look\(\)\?;\n.*\n.*\n *Ok\(\(magic, sequence\)\)' 'look()'
mutate "C3 (fence behind a call)" ring/call_order.rs 'fence\(Ordering::Acquire\);' ''
mutate "W1 (fence of the consumer)" channel/sleep_state.rs '(?<=`must_wake`.\n)        fence\(Ordering::SeqCst\);' ''
mutate "W2 (fence of the owner)" channel/sleep_state.rs '(?<=`announce`.\n)        fence\(Ordering::SeqCst\);' ''
mutate "the swap by which one owner wakes" channel/sleep_state.rs '&& self.0.swap\(AWAKE, Ordering::Relaxed\) == ASLEEP' ''
mutate "F5 (the owner's second check)" channel/flush_handshake.rs 'if self.state.load\(Ordering::Relaxed\) != IDLE' 'if false'
mutate "the swap of the bucket" bucket/words.rs 'match self.taken.compare_exchange_weak\(taken, end, Ordering::Relaxed, Ordering::Relaxed\)' 'match { self.taken.store(end, Ordering::Relaxed); Ok::<u64, u64>(0) }'
mutate "the word that was found by the swap of the bucket" bucket/words.rs 'Err\(found\) => taken = found,' 'Err(_) => return Some(send_at),'
mutate "the limit of a reservation" bucket/words.rs 'if send_at > latest' 'if false'
mutate "the sum of the bucket, as one instruction" bucket/words.rs 'self.charged.fetch_add\(bytes as u64, Ordering::Relaxed\);' 'self.charged.store(self.charged() + bytes as u64, Ordering::Relaxed);'
mutate "O1 (release in begin)" flights.rs '(?<=identity, Ordering::Relaxed\);\n)(\s+)word.store\(time, Ordering::Release\)' '$1word.store(time, Ordering::Relaxed)'
mutate "O1 (acquire in own)" flights.rs 'compare_exchange\(time, OWNED, Ordering::Acquire' 'compare_exchange(time, OWNED, Ordering::Relaxed'
mutate "the second look at the identity" flights.rs 'if of_way.load\(Ordering::Relaxed\) == identity \{' 'if true {'
mutate "the swap of an end" flights.rs 'word.compare_exchange\(time, OWNED, Ordering::Acquire, Ordering::Relaxed\).ok\(\)\?;' 'word.store(OWNED, Ordering::Relaxed);'
mutate "the swap of a beginning" flights.rs '&& word.compare_exchange\(FREE, OWNED, Ordering::Acquire, Ordering::Relaxed\).is_ok\(\)' ''
