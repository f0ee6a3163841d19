//! Types of fields in TSDL. [`tracepoint_ring::field`] writes the bytes.

use super::tsdl::{comment, identifier, literal};
use std::fmt::Write;
use tracepoint_ring::field::{Base, ByteOrder, EnumLabel, FieldDescriptor, FieldType, IntegerType};

/// Writes the declarations of a record's fields, one line each.
pub(super) fn declare(out: &mut String, fields: &[FieldDescriptor]) {
    let mut taken = Vec::new();
    let names: Vec<_> = fields.iter().map(|field| unique(identifier(field.name), &mut taken)).collect();
    for (field, name) in fields.iter().zip(names) {
        comment(out, "\t\t", field.doc);
        out.push_str("\t\t");
        match field.ty {
            FieldType::Array { element, len } => {
                let _ = writeln!(out, "{} {name}[{len}];", plain(element));
            }
            FieldType::Sequence { element } => {
                let length = unique(format!("_{name}_length"), &mut taken);
                let _ = writeln!(out, "uint32_t {length};\n\t\t{} {name}[ {length} ];", plain(element));
            }
            FieldType::Optional { .. } | FieldType::Any => {
                let tag = unique(format!("_{name}_tag"), &mut taken);
                let _ = writeln!(out, "{}", variant(field.ty, &tag, &name));
            }
            ref ty => {
                let _ = writeln!(out, "{} {name};", plain(ty));
            }
        }
    }
}

/// Returns `name`, with underscores appended until it differs from the `taken` names. babeltrace2 compares names both with and without a leading
/// underscore, so that even `_x` and `__x` clash.
fn unique(mut name: String, taken: &mut Vec<String>) -> String {
    let bare = |name: &str| name.strip_prefix('_').unwrap_or(name).to_owned();
    while taken.iter().any(|other| *other == name || bare(other) == name || *other == bare(&name)) {
        name.push('_');
    }
    taken.push(name.clone());
    name
}

/// Returns a type that is written completely before the name.
fn plain(ty: &FieldType) -> String {
    match ty {
        FieldType::Integer(integer) => self::integer(*integer),
        FieldType::Float { bits: 32 } => "floating_point { exp_dig = 8; mant_dig = 24; align = 8; }".to_owned(),
        FieldType::Float { .. } => "floating_point { exp_dig = 11; mant_dig = 53; align = 8; }".to_owned(),
        FieldType::Text | FieldType::Path => "string".to_owned(),
        FieldType::Enum { container, labels } => enumeration(*container, labels),
        // Readers that know this name show a unit.
        FieldType::Duration => "duration_ns".to_owned(),
        // One byte. Other types do not occur here.
        _ => "bool".to_owned(),
    }
}

/// Returns a variant, preceded by the enumeration of its options. Options are never keywords, so readers need not strip underscores.
fn variant(ty: FieldType, tag: &str, name: &str) -> String {
    let options = ty.options();
    let labels: Vec<_> = options.iter().enumerate().map(|(at, (label, _))| format!("\"{label}\" = {at}")).collect();
    let mut out = format!(
        "enum : integer {{ size = 8; align = 8; signed = false; }} {{ {} }} {tag};\n\t\tvariant <{tag}> {{",
        labels.join(", ")
    );
    for (label, ty) in options {
        let ty = ty.as_ref().map_or_else(|| "struct { }".to_owned(), plain);
        let _ = write!(out, " {ty} {label};");
    }
    let _ = write!(out, " }} {name};");
    out
}

fn integer(ty: IntegerType) -> String {
    let IntegerType { bits, signed, base, order } = ty;
    let mut out = format!("integer {{ size = {bits}; align = 8; signed = {signed};");
    if base != Base::Decimal {
        let _ = write!(out, " base = {};", base.radix());
    }
    if order == ByteOrder::Big {
        out.push_str(" byte_order = be;");
    }
    out.push_str(" }");
    out
}

fn enumeration(container: IntegerType, labels: &[EnumLabel]) -> String {
    // TSDL has no enumeration without labels.
    if labels.is_empty() {
        return integer(container);
    }
    let labels: Vec<_> = labels.iter().map(|label| format!("{} = {}", literal(label.name), label.value)).collect();
    format!("enum : {} {{ {} }}", integer(container), labels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(name: &'static str, ty: FieldType) -> String {
        let mut out = String::new();
        declare(&mut out, &[FieldDescriptor { name, ty, doc: "" }]);
        out.trim().to_owned()
    }

    const U16: IntegerType = IntegerType { bits: 16, signed: false, base: Base::Decimal, order: ByteOrder::Little };

    #[test]
    fn integers_have_size_sign_base_and_order() {
        let port = IntegerType { order: ByteOrder::Big, ..U16 };
        assert_eq!(
            declared("port", FieldType::Integer(port)),
            "integer { size = 16; align = 8; signed = false; byte_order = be; } _port;"
        );
        let address = IntegerType { bits: 64, base: Base::Hexadecimal, ..U16 };
        assert_eq!(
            declared("addr", FieldType::Integer(address)),
            "integer { size = 64; align = 8; signed = false; base = 16; } _addr;"
        );
    }

    #[test]
    fn durations_have_a_type_of_their_own() {
        assert_eq!(declared("took", FieldType::Duration), "duration_ns _took;");
        let optional = declared("took", FieldType::Optional { value: &FieldType::Duration });
        assert!(optional.contains("{ struct { } none; duration_ns some; } _took;"), "{optional}");
    }

    #[test]
    fn a_sequence_has_its_length_in_front() {
        let element = &FieldType::Bool;
        assert_eq!(
            declared("data", FieldType::Sequence { element }),
            "uint32_t __data_length;\n\t\tbool _data[ __data_length ];"
        );
    }

    #[test]
    fn no_two_names_clash() {
        let mut out = String::new();
        let field = |name, ty| FieldDescriptor { name, ty, doc: "" };
        let fields = [
            field("data", FieldType::Sequence { element: &FieldType::Bool }),
            field("data_length", FieldType::Text),
            field("_x", FieldType::Text),
            field("x", FieldType::Text),
        ];
        declare(&mut out, &fields);
        for declaration in ["_data[ __data_length_ ];", "string _data_length;", "string __x;", "string _x_;"] {
            assert!(out.contains(declaration), "{declaration} is not in {out}");
        }
    }

    #[test]
    fn labels_are_literals() {
        let labels = &[EnumLabel { name: "Idle \"now\"", value: 0 }, EnumLabel { name: "Run", value: 1 }];
        assert_eq!(
            declared("mode", FieldType::Enum { container: U16, labels }),
            "enum : integer { size = 16; align = 8; signed = false; } { \"Idle \\\"now\\\"\" = 0, \"Run\" = 1 } _mode;"
        );
        assert!(declared("mode", FieldType::Enum { container: U16, labels: &[] }).starts_with("integer"));
    }
}
