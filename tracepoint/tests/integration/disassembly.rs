//! The cost of a site that is off, in the machine code of an optimised build.
//!
//! The fixture has each body three times, without a site (`plain`), with the lazy form and with the function form, for four kinds of
//! argument: (1) by value, (2) `&local` in a loop, (3) `v[i]`, (4) the result of a call that is not inlined. This test examines the *hot
//! path* of each: all instructions that can be reached from the function's entry while the site does not jump. A panic ends the path, and
//! is not part of it.
//!
//! Asserted for the lazy form: the site is on the hot path, as the one instruction `mov r11d, imm32`, and jumps out of the hot path; the
//! hot path has no more loads, stores, compares, conditional branches and calls than the body without a site. Asserted for the function
//! form: the same, plus the costs of the caller's argument: (3) a bounds check and a load, (4) a call.
//!
//! Asserted for a span around a call, dropped or ended: both its ends are such sites, and it has no other cost of this kind. (A register is
//! cleared, and saved.)
//!
//! Both forms have one additional cost: in (2) the local must be in memory, because a reference points to it, so that its two
//! fields are stored whenever they change. A reference to a copy, `&{ local }`, is made in the cold path, and needs no stores.
//!
//! Not asserted, because the register allocator and the code layout decide it: moves between registers; pushes and pops of
//! registers that the cold path uses, which LLVM moves there in simple functions only; the place of unconditional jumps.

use crate::fixture::Build;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Add, Range};
use std::path::Path;
use std::process::Command;

/// The number of instructions of each kind on a hot path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    loads: usize,
    stores: usize,
    compares: usize,
    branches: usize,
    calls: usize,
}

impl Cost {
    const fn each(self) -> [usize; 5] {
        [self.loads, self.stores, self.compares, self.branches, self.calls]
    }

    fn is_within(self, limit: Self) -> bool {
        std::iter::zip(self.each(), limit.each()).all(|(is, limit)| is <= limit)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            loads: self.loads + other.loads,
            stores: self.stores + other.stores,
            compares: self.compares + other.compares,
            branches: self.branches + other.branches,
            calls: self.calls + other.calls,
        }
    }
}

struct Instruction {
    bytes: Vec<u8>,
    /// In Intel's syntax, the destination first.
    mnemonic: String,
    operands: String,
}

impl Instruction {
    /// Returns the target of a jump: objdump prints the address in front of the symbol.
    fn target(&self) -> Option<u64> {
        u64::from_str_radix(self.operands.split(' ').next()?, 16).ok()
    }

    fn is_branch(&self) -> bool {
        self.mnemonic.starts_with('j') && self.mnemonic != "jmp"
    }

    /// Returns whether this is a call of a function outside the fixture: these are panics, which do not return.
    fn is_panic(&self) -> bool {
        self.mnemonic == "call" && !["<opaque>", "__tracepoint_fire"].iter().any(|known| self.operands.contains(known))
    }

    fn cost(&self) -> Cost {
        let (destination, source) = self.operands.split_once(',').unwrap_or((&self.operands, ""));
        // Neither address computations nor pushes and pops count.
        let none = ["lea", "nop", "push", "pop"].contains(&self.mnemonic.as_str());
        let (to_memory, from_memory) = (!none && destination.contains('['), !none && source.contains('['));
        let compares = ["cmp", "test"].contains(&self.mnemonic.as_str());
        let only_writes = self.mnemonic.starts_with("mov");
        Cost {
            loads: usize::from(from_memory || to_memory && !only_writes),
            stores: usize::from(to_memory && !compares),
            compares: usize::from(compares),
            branches: usize::from(self.is_branch()),
            calls: usize::from(self.mnemonic == "call"),
        }
    }
}

/// The fixture's functions and sites.
struct Program {
    functions: BTreeMap<String, Range<u64>>,
    code: BTreeMap<u64, Instruction>,
    /// Each site, and the target of its jump when it is on, from the table in the program.
    sites: BTreeMap<u64, u64>,
}

impl Program {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("a program");
        let file = object::File::parse(&*bytes).expect("an object file");
        let functions: BTreeMap<_, _> = file
            .symbols()
            .filter(|symbol| symbol.size() > 0)
            .map(|symbol| {
                (symbol.name().expect("UTF-8").to_owned(), symbol.address()..symbol.address() + symbol.size())
            })
            .collect();
        let section = file.section_by_name("tracepoint_sites").expect("a table of sites");
        let mut sites = BTreeMap::new();
        for (entry, at) in section.data().expect("its bytes").chunks_exact(16).zip((section.address()..).step_by(16)) {
            let distance = |at: usize| i32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes")).into();
            sites.insert(at.wrapping_add_signed(distance(0)), (at + 4).wrapping_add_signed(distance(4)));
        }
        let code = [VALUE, LOCAL, INDEX, CALL]
            .iter()
            .flatten()
            .chain([&COPIED])
            .chain(&SPAN)
            .flat_map(|name| disassemble(path, &functions[*name]))
            .collect();
        Self { functions, code, sites }
    }

    /// The addresses of all instructions that run while the function's sites are off.
    fn hot_path(&self, name: &str) -> BTreeSet<u64> {
        let mut hot = BTreeSet::new();
        let mut ahead = vec![self.functions[name].start];
        while let Some(at) = ahead.pop() {
            let instruction =
                self.code.get(&at).unwrap_or_else(|| panic!("{name} leads out of the function to {at:x}"));
            if instruction.is_panic() || !hot.insert(at) || instruction.mnemonic == "ret" {
                continue;
            }
            if instruction.mnemonic.starts_with('j') {
                ahead.push(instruction.target().expect("a jump's target"));
            }
            if instruction.mnemonic != "jmp" {
                ahead.push(at + instruction.bytes.len() as u64);
            }
        }
        hot
    }

    /// The cost of the hot path, without its sites.
    fn cost(&self, name: &str) -> Cost {
        let hot = self.hot_path(name);
        let rest = hot.iter().filter(|at| !self.sites.contains_key(at)).map(|at| self.code[at].cost());
        rest.fold(Cost::default(), Add::add)
    }

    /// Asserts that the function has `count` sites, all of them on its hot path, each of which is one instruction, and that their cold
    /// paths are not part of it. (Where a call may unwind, a span has one more, but not here.)
    fn has_sites(&self, name: &str, count: usize) {
        let hot = self.hot_path(name);
        let sites = self.sites.range(self.functions[name].clone());
        assert_eq!(sites.clone().count(), count, "{name}: sites");
        for (site, cold) in sites {
            assert!(hot.contains(site), "{name}: the site is not on the hot path");
            assert!(!hot.contains(cold), "{name}: the cold path is on the hot path");
            assert!(self.functions[name].contains(cold), "{name}: the site jumps out of the function");
            let Instruction { bytes, mnemonic, operands } = &self.code[site];
            assert_eq!((&bytes[..2], bytes.len(), mnemonic.as_str()), (&[0x41, 0xbb][..], 6, "mov"), "{name}");
            assert!(operands.starts_with("r11d,"), "{name}: {operands}");
            let distance = i64::from(i32::from_le_bytes(bytes[2..].try_into().expect("four bytes")));
            assert_eq!((site + 6).wrapping_add_signed(distance), *cold, "{name}: the instruction's operand");
        }
        let fires = hot.iter().any(|at| self.code[at].operands.contains("__tracepoint_fire"));
        assert!(!fires, "{name}: the hot path fires");
    }

    /// Asserts that the hot path of `name` costs at most that of `plain` plus `more`.
    fn costs_at_most(&self, name: &str, plain: &str, more: Cost) {
        let (is, limit) = (self.cost(name), self.cost(plain) + more);
        assert!(is.is_within(limit), "{name} costs {is:?}, and may cost {limit:?}");
    }
}

/// Returns the instructions of a function, by address.
fn disassemble(program: &Path, function: &Range<u64>) -> BTreeMap<u64, Instruction> {
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "-w", "-M", "intel"]);
    objdump.arg(format!("--start-address={}", function.start)).arg(format!("--stop-address={}", function.end));
    let output = objdump.arg(program).output();
    let output = output.unwrap_or_else(|error| panic!("objdump cannot be run ({error}): run scripts/setup.sh"));
    assert!(output.status.success(), "objdump: {}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8(output.stdout).expect("UTF-8");
    listing.lines().filter_map(instruction).collect()
}

/// Parses a line of objdump: address, bytes, instruction, separated by tabs.
fn instruction(line: &str) -> Option<(u64, Instruction)> {
    let mut parts = line.split('\t');
    let at = u64::from_str_radix(parts.next()?.trim().strip_suffix(':')?, 16).ok()?;
    let bytes = parts.next()?.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("a byte")).collect();
    // objdump prints prefixes before the mnemonic, and remarks after `#`.
    let text = parts.next()?.split('#').next()?.trim();
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    Some((at, Instruction { bytes, mnemonic: mnemonic.to_owned(), operands: operands.trim().to_owned() }))
}

// The bodies, each as `plain`, `lazy`, `function`.
const VALUE: [&str; 3] = ["value_plain", "value_lazy", "value_function"];
const LOCAL: [&str; 3] = ["local_plain", "local_lazy", "local_function"];
const INDEX: [&str; 3] = ["index_plain", "index_lazy", "index_function"];
const CALL: [&str; 3] = ["call_plain", "call_lazy", "call_function"];
/// The lazy form with a reference to a copy of `LOCAL`'s.
const COPIED: &str = "local_copied";
/// A call without a span, in a dropped span, and in an ended span.
const SPAN: [&str; 3] = ["span_plain", "span_lazy", "span_ended"];

#[test]
fn hot_paths() {
    let program = Program::read(&Build::profile("release").binary("disassembly"));
    let nothing = Cost::default();
    let in_memory = Cost { stores: 2, ..nothing };
    let checked_load = Cost { loads: 1, compares: 1, branches: 1, ..nothing };
    let call = Cost { calls: 1, ..nothing };
    for ([plain, lazy, function], more_lazy, more_function) in [
        (VALUE, nothing, nothing),
        (LOCAL, in_memory, in_memory),
        (INDEX, nothing, checked_load),
        (CALL, nothing, call),
    ] {
        assert!(program.sites.range(program.functions[plain].clone()).next().is_none(), "{plain} has a site");
        for (name, more) in [(lazy, more_lazy), (function, more_function)] {
            program.has_sites(name, 1);
            program.costs_at_most(name, plain, more);
        }
    }
    program.has_sites(COPIED, 1);
    program.costs_at_most(COPIED, LOCAL[0], nothing);

    let [plain, dropped, ended] = SPAN;
    for spanned in [dropped, ended] {
        program.has_sites(spanned, 2);
        program.costs_at_most(spanned, plain, nothing);
    }

    // The check is sensitive: the function form has the cost that the lazy form avoids.
    assert_eq!(program.cost(INDEX[2]), program.cost(INDEX[0]) + checked_load);
    assert_eq!(program.cost(CALL[2]), program.cost(CALL[0]) + call);
}
