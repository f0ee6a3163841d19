//! Programs for bpftrace.

use super::{Shape, Words, integer, size};
use tracepoint_reader::usdt::Note;

/// The arguments that bpftrace names on any machine, `arg0` to `arg5`. Further ones are read from memory behind the register of the note.
const NAMED: usize = 6;

/// A program that prints an event; `None` if a register of the note has no name in bpftrace.
pub(super) fn program(path: &str, note: &Note, words: Words<'_>) -> Option<String> {
    let base = if words.by_address {
        Some("arg0".to_owned())
    } else {
        note.arguments.first().and_then(|first| register(first))
    };
    let in_memory = |at: usize| base.as_ref().map(|base| format!("*(uint64 *)({base} + {})", at * 8));
    let word = |at: usize| if at < NAMED && !words.by_address { Some(format!("arg{at}")) } else { in_memory(at) };
    let (mut format, mut arguments) = (vec![note.full_name()], vec![String::new()]);
    for (field, at) in words.fields {
        let name = &field.name;
        match Shape::of(field) {
            Shape::Number { optional, ty } => {
                if optional {
                    format.push(format!("{name}?=%d"));
                    arguments.push(word(at)?);
                }
                let (conversion, value) = number(ty, &word(at + usize::from(optional))?);
                format.push(format!("{name}={conversion}"));
                arguments.push(value);
            }
            Shape::Text => {
                format.push(format!("{name}=%s"));
                arguments.push(format!("str({}, {})", word(at)?, word(at + 1)?));
            }
            Shape::Elements(size) => {
                format.push(format!("{name}=%r"));
                arguments.push(format!("buf({}, {} * {size})", word(at)?, word(at + 1)?));
            }
        }
    }
    let (format, arguments) = (format.join(" "), arguments.join(", "));
    let (provider, event) = (&note.provider, &note.name);
    Some(format!("usdt:{path}:{provider}:{event} {{ printf(\"{format}\\n\"{arguments}); }}"))
}

/// The register behind which an argument is, `8@0(%rax)`, as an expression.
fn register(argument: &str) -> Option<String> {
    let name = argument.split_once("(%")?.1.strip_suffix(')')?;
    let name = name.strip_prefix('r').filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(name);
    Some(format!("reg(\"{name}\")"))
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
