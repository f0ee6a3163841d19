//! The note of a marker for other tools: the arguments of the core's `__tracepoint_note!`.

use crate::field::{Base, Field, Kind, Scalar};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::fmt::Write;
use syn::{Ident, LitStr};

/// Maximum number of words that are passed as separate arguments. The core has the same limit.
const MAX_ARGUMENTS: usize = 12;
/// Maximum length of a crate name used as provider, in words of eight bytes: the limit of crates.io. A longer name is truncated.
const PROVIDER_WORDS: usize = 8;

/// The call on a marker that adds its note.
pub(super) fn with_note(krate: &Ident, provider: Option<&LitStr>, name: &str, fields: &[Field]) -> Option<TokenStream> {
    if !cfg!(feature = "usdt") {
        return None;
    }
    let provider = provider.map_or_else(
        || name_of_crate(krate),
        |provider| {
            let bytes = format!(".ascii \"{}\"", provider.value());
            quote!(#bytes [])
        },
    );
    let conditions: Vec<_> = fields.iter().filter_map(|field| field.condition.as_ref()).collect();
    let (words, arguments) = described(fields.iter());
    let note = if conditions.is_empty() {
        quote!(#words, #arguments)
    } else {
        // If the event lacks some fields, the note describes only those before the first conditional one.
        let (few_words, few_arguments) = described(fields.iter().take_while(|field| field.condition.is_none()));
        let all = quote!((#(#conditions)&&*));
        quote!({ if #all { #words } else { #few_words } }, #arguments, #all, #few_arguments)
    };
    Some(quote!(.with_note(#krate::__tracepoint_note!(#provider #name, #note))))
}

/// The number of words of these fields; their names and types; and the sizes and offsets of the arguments that hold them.
fn described<'f>(fields: impl Iterator<Item = &'f Field> + Clone) -> (usize, TokenStream) {
    let names: Vec<_> = fields.clone().map(|field| format!("{}:{}", field.name, field.kind.note_type())).collect();
    let names = names.join(",");
    let sizes: Vec<_> = fields.flat_map(|field| field.kind.words()).collect();
    let words = sizes.len();
    let arguments = if words <= MAX_ARGUMENTS { sizes } else { vec!["8"; 2] };
    let offsets = (0..arguments.len()).map(|at| at * 8);
    (words, quote!(#names #(#arguments #offsets)*))
}

/// The bytes of the crate's name, which is known to the compiler but not to the macro: constants, of which the assembler emits as many
/// bytes as the name has.
fn name_of_crate(krate: &Ident) -> TokenStream {
    let mut template = String::new();
    for at in 0..PROVIDER_WORDS * 8 {
        let _ = write!(template, ".if {{len}} > {at}\n.byte ({{w{}}} >> {}) & 255\n.endif\n", at / 8, at % 8 * 8);
    }
    let name = quote!(#krate::__macro_support::crate_name(::core::module_path!()));
    let words = (0..PROVIDER_WORDS).map(|n| {
        let operand = format_ident!("w{n}");
        quote!(#operand = const #krate::__macro_support::name_word(#name, #n),)
    });
    quote!(#template [len = const #name.len(), #(#words)*])
}

impl Kind {
    /// The sizes of the words of a field, as in a note: bytes, negative for signed numbers.
    fn words(&self) -> Vec<&'static str> {
        match self {
            Self::Scalar { scalar, .. } | Self::Enum { scalar, .. } => vec![scalar.size()],
            Self::DerivedEnum(_) | Self::SystemTime => vec!["-8"],
            Self::Duration | Self::Pointer => vec!["8"],
            Self::Optional(kind) => match &kind.words()[..] {
                [number] => vec!["1", number],
                _ => kind.words(),
            },
            _ => vec!["8", "8"],
        }
    }

    /// The type of a field, for readers of the note. The length of an array is an argument.
    fn note_type(&self) -> String {
        let number = |ident: &Ident, base: &Base| match base {
            Base::Hexadecimal => format!("hex {ident}"),
            Base::Octal => format!("oct {ident}"),
            Base::Binary => format!("bin {ident}"),
            Base::Decimal => ident.to_string(),
        };
        match self {
            Self::Scalar { ident, base, .. } => number(ident, base),
            Self::Enum { ident, .. } => format!("enum {ident}"),
            Self::DerivedEnum(_) => "enum i64".to_owned(),
            Self::Duration => "u64".to_owned(),
            Self::SystemTime => "i64".to_owned(),
            Self::Pointer => "hex u64".to_owned(),
            Self::Path => "path".to_owned(),
            Self::Text | Self::Printed | Self::Formatted { .. } | Self::Character => "str".to_owned(),
            Self::Optional(kind) => format!("Option<{}>", kind.note_type()),
            Self::Array { ident, base, .. } | Self::Sequence { ident, base, .. } => {
                format!("[{}]", number(ident, base))
            }
        }
    }
}

impl Scalar {
    /// The size of its word in a note. A float is the bits of an `f64`.
    const fn size(self) -> &'static str {
        match self {
            Self::Integer { bits: 8, signed: true } => "-1",
            Self::Integer { bits: 16, signed: true } => "-2",
            Self::Integer { bits: 32, signed: true } => "-4",
            Self::Integer { signed: true, .. } => "-8",
            Self::Integer { bits: 8, .. } | Self::Bool => "1",
            Self::Integer { bits: 16, .. } => "2",
            Self::Integer { bits: 32, .. } => "4",
            Self::Integer { .. } | Self::Float { .. } => "8",
        }
    }
}
