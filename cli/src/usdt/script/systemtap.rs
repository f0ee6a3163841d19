//! Programs for SystemTap.

use super::{Shape, Words, integer};
use tracepoint_reader::usdt::Note;

/// A program that prints an event.
pub(super) fn program(path: &str, note: &Note, words: Words<'_>) -> String {
    let word = |at: usize, signed: bool| match (words.by_address, signed) {
        (false, _) => format!("$arg{}", at + 1),
        (true, false) => format!("user_uint64($arg1 + {})", at * 8),
        (true, true) => format!("user_int64($arg1 + {})", at * 8),
    };
    let (mut format, mut arguments) = (vec![note.full_name()], vec![String::new()]);
    for (field, at) in words.fields {
        let name = &field.name;
        match Shape::of(field) {
            Shape::Number { optional, ty } => {
                if optional {
                    format.push(format!("{name}?=%d"));
                    arguments.push(word(at, false));
                }
                let signed = integer(ty).starts_with('i');
                let conversion = match integer(ty) {
                    "f32" | "f64" => "%#x",
                    _ if ty.starts_with("hex") => "%#x",
                    _ if signed => "%d",
                    _ => "%u",
                };
                format.push(format!("{name}={conversion}"));
                arguments.push(word(at + usize::from(optional), signed));
            }
            Shape::Text => {
                format.push(format!("{name}=%s"));
                arguments.push(format!("user_string_n({}, {})", word(at, false), word(at + 1, false)));
            }
            Shape::Elements(_) => {
                format.push(format!("{name}=%p[%d]"));
                arguments.extend([word(at, false), word(at + 1, false)]);
            }
        }
    }
    let (format, arguments) = (format.join(" "), arguments.join(", "));
    let (provider, event) = (&note.provider, &note.name);
    format!(
        "probe process(\"{path}\").provider(\"{provider}\").mark(\"{event}\") {{ printf(\"{format}\\n\"{arguments}) }}"
    )
}
