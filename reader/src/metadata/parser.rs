//! The grammar of the metadata: a recursive descent over the tokens that builds types as it goes, for a name must be
//! declared before it is used. Blocks (`trace`, `stream`, …) are in `block`, type specifiers in `specifier`.

use std::collections::HashMap;

use super::lexer::{Lexer, Token};
use super::types::{ArrayType, ByteOrder, Length, Reference, Type};

/// How deep types may nest, whether written so or through names.
pub(super) const MAX_DEPTH: u32 = 64;
/// How many types one metadata may declare.
const MAX_TYPES: usize = 1 << 20;

/// Where the text is wrong, and why.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) offset: usize,
    pub(super) reason: String,
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// Offset of `token`.
    pub(super) offset: usize,
    /// Named types, innermost scope last. Structures, variants and enumerations are filed under `struct name` and so on.
    scopes: Vec<HashMap<String, Type>>,
    nesting: u32,
    types: usize,
    pub(super) native: ByteOrder,
    /// Names of clocks in the order in which they were first mentioned; an integer refers to one by its index.
    pub(super) clocks: Vec<String>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, Flaw> {
        let native = native_order(text);
        let mut parser = Self {
            lexer: Lexer::new(text),
            token: Token::End,
            offset: 0,
            scopes: vec![HashMap::new()],
            nesting: 0,
            types: 0,
            native,
            clocks: Vec::new(),
        };
        parser.advance()?;
        Ok(parser)
    }

    pub(super) fn flaw<T>(&self, reason: impl Into<String>) -> Result<T, Flaw> {
        Err(Flaw { offset: self.offset, reason: reason.into() })
    }

    /// The token that is to be read next.
    pub(super) fn peek(&self) -> &Token<'a> {
        &self.token
    }

    /// Takes the next token.
    pub(super) fn advance(&mut self) -> Result<Token<'a>, Flaw> {
        let blank = self.lexer.skip_blank();
        let offset = self.lexer.offset();
        let next = blank.and_then(|()| self.lexer.next()).map_err(|reason| Flaw { offset, reason })?;
        self.offset = offset;
        Ok(std::mem::replace(&mut self.token, next))
    }

    pub(super) fn at(&self, mark: &str) -> bool {
        matches!(self.token, Token::Mark(m) if m == mark)
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(w) if w == word)
    }

    pub(super) fn eat(&mut self, mark: &str) -> Result<bool, Flaw> {
        let found = self.at(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, mark: &str) -> Result<(), Flaw> {
        if self.eat(mark)? {
            return Ok(());
        }
        self.flaw(format!("expected `{mark}`, found {}", self.token.describe()))
    }

    pub(super) fn word(&mut self) -> Result<&'a str, Flaw> {
        match self.token {
            Token::Word(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => self.flaw(format!("expected a name, found {}", self.token.describe())),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, Flaw> {
        match self.token {
            Token::Number(number) => {
                self.advance()?;
                Ok(number)
            }
            _ => self.flaw(format!("expected an unsigned number, found {}", self.token.describe())),
        }
    }

    /// A number with an optional sign, within the range of 64-bit numbers.
    pub(super) fn signed_number(&mut self) -> Result<i128, Flaw> {
        let negative = self.eat("-")?;
        if !negative {
            self.eat("+")?;
        }
        let value = i128::from(self.number()?);
        if negative && value > 1 << 63 {
            return self.flaw("a negative number is below the least 64-bit number");
        }
        Ok(if negative { -value } else { value })
    }

    /// Names joined by dots, such as `stream.packet.context`.
    pub(super) fn path(&mut self) -> Result<Vec<String>, Flaw> {
        let mut path = vec![self.word()?.to_owned()];
        while self.eat(".")? {
            path.push(self.word()?.to_owned());
        }
        Ok(path)
    }

    /// Runs `body` with a scope of its own for named types, one level deeper.
    pub(super) fn scoped<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T, Flaw>) -> Result<T, Flaw> {
        if self.nesting >= MAX_DEPTH {
            return self.flaw(format!("blocks nest deeper than {MAX_DEPTH}"));
        }
        self.nesting += 1;
        self.scopes.push(HashMap::new());
        let result = body(self);
        self.scopes.pop();
        self.nesting -= 1;
        result
    }

    /// Counts a new type against the bounds, and hands it back.
    pub(super) fn admit(&mut self, ty: Type) -> Result<Type, Flaw> {
        self.types += 1;
        if self.types > MAX_TYPES {
            return self.flaw(format!("more than {MAX_TYPES} types"));
        }
        if ty.depth() > MAX_DEPTH {
            return self.flaw(format!("types nest deeper than {MAX_DEPTH}"));
        }
        Ok(ty)
    }

    pub(super) fn find(&self, name: &str) -> Option<Type> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }

    pub(super) fn name_type(&mut self, name: String, ty: Type) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, ty);
        }
    }

    /// `typealias`, `typedef`, or a named type declared for its name alone; `false` if nothing of the kind comes next.
    pub(super) fn type_declaration(&mut self) -> Result<bool, Flaw> {
        if self.at_word("typealias") {
            self.advance()?;
            let ty = self.specifier()?;
            let ty = self.lengths(ty)?;
            self.expect(":=")?;
            let mut name = self.word()?.to_owned();
            while let Token::Word(word) = *self.peek() {
                name.push(' ');
                name.push_str(word);
                self.advance()?;
            }
            self.expect(";")?;
            self.name_type(name, ty);
        } else if self.at_word("typedef") {
            self.advance()?;
            let ty = self.specifier()?;
            loop {
                let (name, ty) = self.declarator(ty.clone())?;
                self.name_type(name.to_owned(), ty);
                if !self.eat(",")? {
                    break;
                }
            }
            self.expect(";")?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// A field's name with the lengths of arrays behind it.
    pub(super) fn declarator(&mut self, ty: Type) -> Result<(&'a str, Type), Flaw> {
        let name = self.word()?;
        let ty = self.lengths(ty)?;
        Ok((name, ty))
    }

    /// Any number of `[length]`; the last one written is the innermost, as in C.
    fn lengths(&mut self, element: Type) -> Result<Type, Flaw> {
        let mut lengths = Vec::new();
        while self.eat("[")? {
            lengths.push(match self.peek() {
                Token::Number(_) => Length::Fixed(self.number()?),
                _ => Length::Field(Reference { path: self.path()?.into(), slot: None }),
            });
            self.expect("]")?;
            if lengths.len() > MAX_DEPTH as usize {
                return self.flaw(format!("types nest deeper than {MAX_DEPTH}"));
            }
        }
        let mut ty = element;
        for length in lengths.into_iter().rev() {
            let dynamic = ty.is_dynamic() || matches!(length, Length::Field(_));
            let depth = ty.depth() + 1;
            ty = self.admit(Type::Array(ArrayType { element: ty, length, depth, dynamic }.into()))?;
        }
        Ok(ty)
    }
}

/// Byte order of the trace, which the types declared before the `trace` block need already.
fn native_order(text: &str) -> ByteOrder {
    let mut lexer = Lexer::new(text);
    let mut depth = 0u64;
    let mut in_trace = false;
    let mut last = ["", "", ""];
    while let Ok(token) = lexer.next() {
        let word = match token {
            Token::Word(word) => word,
            Token::Mark(mark) => mark,
            Token::End => break,
            _ => "",
        };
        match word {
            "{" => {
                in_trace |= depth == 0 && last[2] == "trace";
                depth += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                if in_trace && depth == 0 {
                    break;
                }
            }
            "be" | "network" if in_trace && depth == 1 && last[1..] == ["byte_order", "="] => {
                return ByteOrder::Big;
            }
            _ => {}
        }
        last = [last[1], last[2], word];
    }
    ByteOrder::Little
}
