//! Programs for SystemTap.

use super::{Shape, integer, printf};
use tracepoint_reader::usdt::Note;

/// A program that prints an event; never `None`.
pub(super) fn program(path: &str, note: &Note) -> Option<String> {
    let by_address = note.is_by_address();
    let word = |at: usize, signed: bool| match (by_address, signed) {
        (false, _) => format!("$arg{}", at + 1),
        (true, false) => format!("user_uint64($arg1 + {})", at * 8),
        (true, true) => format!("user_int64($arg1 + {})", at * 8),
    };
    let value = |shape: Shape<'_>, at| {
        Some(match shape {
            Shape::Number(ty) => {
                let signed = integer(ty).starts_with('i');
                let conversion = match integer(ty) {
                    "f32" | "f64" => "%#x",
                    _ if ty.starts_with("hex") => "%#x",
                    _ if signed => "%d",
                    _ => "%u",
                };
                (conversion, word(at, signed))
            }
            Shape::Text => ("%s", format!("user_string_n({}, {})", word(at, false), word(at + 1, false))),
            Shape::Elements(_) => ("%p[%d]", format!("{}, {}", word(at, false), word(at + 1, false))),
        })
    };
    let (printf, provider, event) = (printf(note, value)?, &note.provider, &note.name);
    Some(format!("probe process(\"{path}\").provider(\"{provider}\").mark(\"{event}\") {{ {printf} }}"))
}
