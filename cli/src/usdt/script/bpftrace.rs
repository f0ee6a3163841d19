//! Programs for bpftrace.

use super::{Shape, integer, is_plain, printf, size};
use tracepoint_reader::usdt::Note;

/// Number of arguments that bpftrace names on any machine, `arg0` to `arg5`. Further ones are read from memory at the register of the note.
const NAMED: usize = 6;

/// A program that prints an event; `None` if a register of the note has no name in bpftrace.
pub(super) fn program(path: &str, note: &Note) -> Option<String> {
    let by_address = note.is_by_address();
    let register = || note.arguments.first().and_then(|first| register(first));
    let base = if by_address { Some("arg0".to_owned()) } else { register() };
    let word = |at: usize| match &base {
        _ if at < NAMED && !by_address => Some(format!("arg{at}")),
        base => base.as_ref().map(|base| format!("*(uint64 *)({base} + {})", at * 8)),
    };
    let value = |shape: Shape<'_>, at| {
        Some(match shape {
            Shape::Number(ty) => number(ty, &word(at)?),
            Shape::Text => ("%s", format!("str({}, {})", word(at)?, word(at + 1)?)),
            Shape::Elements(size) => ("%r", format!("buf({}, {} * {size})", word(at)?, word(at + 1)?)),
        })
    };
    let (printf, provider, event) = (printf(note, value)?, &note.provider, &note.name);
    Some(format!("usdt:{path}:{provider}:{event} {{ {printf}; }}"))
}

/// The register behind which an argument is, `8@0(%rax)`, as an expression.
fn register(argument: &str) -> Option<String> {
    let name = argument.split_once("(%")?.1.strip_suffix(')')?;
    let name = name.strip_prefix('r').filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(name);
    is_plain(name, "").then(|| format!("reg(\"{name}\")"))
}

/// The conversion and the value of a number in a word.
fn number(ty: &str, word: &str) -> (&'static str, String) {
    let bits = size(ty) * 8;
    match integer(ty) {
        "f32" | "f64" => ("0x%lx", word.to_owned()),
        "bool" => ("%d", word.to_owned()),
        name if name.starts_with('i') => ("%ld", format!("(int64)(int{bits})({word})")),
        _ if ty.starts_with("hex") => ("0x%lx", format!("(uint{bits})({word})")),
        _ => ("%lu", format!("(uint{bits})({word})")),
    }
}
