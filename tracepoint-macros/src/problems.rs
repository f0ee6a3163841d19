//! Collects all errors of an input, so that one build reports all of them.

use proc_macro2::{Span, TokenTree};
use std::fmt::Display;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, Result, Token, token};

/// The errors found so far.
#[derive(Default)]
pub(crate) struct Problems(Option<Error>);

impl Problems {
    pub(crate) fn add(&mut self, problem: Error) {
        match &mut self.0 {
            Some(all) => all.combine(problem),
            None => self.0 = Some(problem),
        }
    }

    /// Returns the value, or adds the error.
    pub(crate) fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|problem| self.add(problem)).ok()
    }

    /// Returns `value`, or the errors if there are any.
    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }

    /// Parses `item, item, …` to the end of `content`, and omits items with errors.
    pub(crate) fn list<T: Parse>(&mut self, content: ParseStream<'_>) -> Vec<T> {
        let mut items = Vec::new();
        while !content.is_empty() {
            let item = content.parse::<T>().and_then(|item| {
                if !content.is_empty() {
                    let _: Token![,] = content.parse()?;
                }
                Ok(item)
            });
            match item {
                Ok(item) => items.push(item),
                Err(problem) => {
                    self.add(problem);
                    skip_to_item(content);
                }
            }
        }
        items
    }
}

/// Parses `T`, or fails with this message at this place: the preceding token, rather than the next line.
pub(crate) fn expect<T: Parse>(input: ParseStream<'_>, place: Span, message: impl Display) -> Result<T> {
    input.parse().map_err(|_| Error::new(place, message))
}

/// Skips to the next item: to the first token after a comma that is followed by `name:` or an attribute. Other commas may be part of the type or
/// expression that failed to parse.
fn skip_to_item(content: ParseStream<'_>) {
    while !content.is_empty() {
        let comma = content.peek(Token![,]);
        skip_tree(content);
        let named = content.peek(Ident::peek_any) && content.peek2(Token![:]) && !content.peek2(Token![::]);
        if comma && (named || content.peek(Token![#])) {
            return;
        }
    }
}

/// Skips to the first token after the next `;` or `{ … }`.
pub(crate) fn skip_declaration(input: ParseStream<'_>) {
    while !input.is_empty() {
        let last = input.peek(Token![;]) || input.peek(token::Brace);
        skip_tree(input);
        if last {
            return;
        }
    }
}

fn skip_tree(input: ParseStream<'_>) {
    // Cannot fail: a stream that is not empty begins with a token tree.
    let _ = input.parse::<TokenTree>();
}
