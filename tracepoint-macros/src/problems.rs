//! What is wrong with an input: all of it, not only what comes first.

use proc_macro2::TokenTree;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, Result, Token, token};

/// The problems found so far.
#[derive(Default)]
pub(crate) struct Problems(Option<Error>);

impl Problems {
    pub(crate) fn add(&mut self, problem: Error) {
        match &mut self.0 {
            Some(all) => all.combine(problem),
            None => self.0 = Some(problem),
        }
    }

    /// The value, or one problem more.
    pub(crate) fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|problem| self.add(problem)).ok()
    }

    /// `value`, unless something was wrong.
    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }

    /// `item, item, …` to the end of `content`, without those that are wrong.
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

/// Leaves `content` behind the next comma that an item follows. Others may stand in a type or an expression that was not parsed.
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

/// Leaves `input` behind the next `;` or `{ … }`.
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
    // A stream that is not empty has a token tree.
    let _ = input.parse::<TokenTree>();
}
