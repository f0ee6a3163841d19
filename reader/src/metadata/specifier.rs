//! Type specifiers: `integer {…}`, `struct {…}`, `enum : u8 {…}`, names of types, and so on.

use std::sync::Arc;

use super::lexer::{Token, shorten};
use super::parser::{Flaw, Parser};
use super::types::{
    Base, ByteOrder, EnumType, Field, Float, Integer, Mapping, Reference, StructType, Type, VariantType,
};

/// Largest alignment that is believed, in bits.
const MAX_ALIGN: u64 = 1 << 16;

/// Most labels of one enumeration: they are searched one by one.
const MAX_LABELS: usize = 1 << 16;

/// Words of C that may stand together as one type name.
const C_WORDS: [&str; 9] = ["void", "char", "short", "int", "long", "float", "double", "signed", "unsigned"];

impl Parser<'_> {
    /// Any type specifier.
    pub(super) fn specifier(&mut self) -> Result<Type, Flaw> {
        while self.at_word("const") {
            self.advance()?;
        }
        let word = self.word()?;
        match word {
            "integer" => {
                let integer = self.integer()?;
                self.admit(Type::Integer(integer))
            }
            "floating_point" => {
                let float = self.float()?;
                self.admit(Type::Float(float))
            }
            "string" => {
                if self.at("{") {
                    self.attributes(|_, _| Ok(()))?;
                }
                self.admit(Type::String)
            }
            "struct" => self.structure(),
            "variant" => self.variant(),
            "enum" => self.enumeration(),
            _ => self.named(word),
        }
    }

    fn named(&mut self, first: &str) -> Result<Type, Flaw> {
        let mut name = first.to_owned();
        if C_WORDS.contains(&first) {
            while let Token::Word(word) = *self.peek() {
                if !C_WORDS.contains(&word) {
                    break;
                }
                name.push(' ');
                name.push_str(word);
                self.advance()?;
            }
        }
        match self.find(&name) {
            Some(ty) => Ok(ty),
            None => self.flaw(format!("no type is called `{}`; declare it before its first use", shorten(&name))),
        }
    }

    /// `{ name = value; … }` of an integer and its like.
    fn attributes(&mut self, mut take: impl FnMut(&mut Self, &str) -> Result<(), Flaw>) -> Result<(), Flaw> {
        self.expect("{")?;
        while !self.eat("}")? {
            let name = self.word()?;
            self.expect("=")?;
            take(self, name)?;
            // What the caller had no use for.
            while !self.at(";") {
                if matches!(self.peek(), Token::End | Token::Mark("}")) {
                    return self.flaw(format!("expected `;`, found {}", self.peek().describe()));
                }
                self.advance()?;
            }
            self.expect(";")?;
        }
        Ok(())
    }

    fn integer(&mut self) -> Result<Integer, Flaw> {
        let mut bits = 0;
        let mut align = 0;
        let mut integer = Integer {
            bits: 0,
            align: 0,
            signed: false,
            base: Base::Decimal,
            order: self.native,
            text: false,
            clock: None,
            slot: None,
        };
        self.attributes(|parser, name| {
            match name {
                "size" => bits = parser.number()?,
                "align" => align = parser.alignment()?,
                "signed" => integer.signed = parser.boolean()?,
                "base" => integer.base = parser.base()?,
                "byte_order" => integer.order = parser.byte_order()?,
                "encoding" => {
                    integer.text = matches!(parser.word()?, "UTF8" | "utf8" | "ASCII" | "ascii");
                }
                "map" => integer.clock = parser.mapped_clock()?,
                _ => {}
            }
            Ok(())
        })?;
        if !(1..=64).contains(&bits) {
            return self.flaw("an integer needs a `size` of 1 to 64 bits");
        }
        integer.bits = bits as u8;
        integer.align = match align {
            0 if bits % 8 == 0 => 8,
            0 => 1,
            given => given,
        };
        Ok(integer)
    }

    fn float(&mut self) -> Result<Float, Flaw> {
        let (mut exponent, mut mantissa, mut align) = (0, 0, 8);
        let mut order = self.native;
        self.attributes(|parser, name| {
            match name {
                "exp_dig" => exponent = parser.number()?,
                "mant_dig" => mantissa = parser.number()?,
                "align" => align = parser.alignment()?,
                "byte_order" => order = parser.byte_order()?,
                _ => {}
            }
            Ok(())
        })?;
        let bits = match (exponent, mantissa) {
            (8, 24) => 32,
            (11, 53) => 64,
            _ => {
                return self.flaw(
                    "a floating-point number must have exp_dig 8 and mant_dig 24, or exp_dig 11 and mant_dig 53",
                );
            }
        };
        Ok(Float { bits, align, order })
    }

    fn alignment(&mut self) -> Result<u32, Flaw> {
        let align = self.number()?;
        if !align.is_power_of_two() || align > MAX_ALIGN {
            return self.flaw(format!("an alignment must be a power of two of at most {MAX_ALIGN} bits"));
        }
        Ok(align as u32)
    }

    fn boolean(&mut self) -> Result<bool, Flaw> {
        match *self.peek() {
            Token::Number(number) => {
                self.advance()?;
                Ok(number != 0)
            }
            _ => match self.word()? {
                "true" | "TRUE" => Ok(true),
                "false" | "FALSE" => Ok(false),
                other => self.flaw(format!("`{}` is neither true nor false", shorten(other))),
            },
        }
    }

    fn base(&mut self) -> Result<Base, Flaw> {
        let name = match self.advance()? {
            Token::Number(number) => number.to_string(),
            Token::Word(word) => word.to_owned(),
            Token::Text(text) => text,
            other => return self.flaw(format!("{} is no base", other.describe())),
        };
        match name.as_str() {
            "2" | "binary" | "b" => Ok(Base::Binary),
            "8" | "octal" | "oct" | "o" => Ok(Base::Octal),
            "10" | "decimal" | "dec" | "d" | "i" | "u" => Ok(Base::Decimal),
            "16" | "hexadecimal" | "hex" | "x" | "X" | "p" => Ok(Base::Hexadecimal),
            other => self.flaw(format!("`{}` is no base: use 2, 8, 10 or 16", shorten(other))),
        }
    }

    /// `le`, `be`, `network` or `native`.
    pub(super) fn byte_order(&mut self) -> Result<ByteOrder, Flaw> {
        match self.word()? {
            "le" => Ok(ByteOrder::Little),
            "be" | "network" => Ok(ByteOrder::Big),
            "native" => Ok(self.native),
            other => self.flaw(format!("`{}` is no byte order: use le, be, network or native", shorten(other))),
        }
    }

    fn mapped_clock(&mut self) -> Result<Option<u16>, Flaw> {
        let path = self.path()?;
        let [_, name, _] = &path[..] else {
            return self.flaw("an integer is mapped to a clock by `clock.NAME.value`");
        };
        let index = match self.clocks.iter().position(|clock| clock == name) {
            Some(index) => index,
            None if self.clocks.len() < 256 => {
                self.clocks.push(name.clone());
                self.clocks.len() - 1
            }
            None => return self.flaw("more than 256 clocks"),
        };
        Ok(Some(index as u16))
    }

    /// The optional name after `struct`, `variant` or `enum`, as it is filed.
    fn tag_name(&mut self, kind: &str) -> Result<Option<String>, Flaw> {
        match *self.peek() {
            Token::Word(word) => {
                self.advance()?;
                Ok(Some(format!("{kind} {word}")))
            }
            _ => Ok(None),
        }
    }

    fn declared(&mut self, name: Option<String>) -> Result<Type, Flaw> {
        let Some(name) = name else {
            return self.flaw(format!("expected `{{`, found {}", self.peek().describe()));
        };
        match self.find(&name) {
            Some(ty) => Ok(ty),
            None => self.flaw(format!("no type is called `{}`; declare it before its first use", shorten(&name))),
        }
    }

    fn structure(&mut self) -> Result<Type, Flaw> {
        let name = self.tag_name("struct")?;
        if !self.at("{") {
            return self.declared(name);
        }
        let fields = self.fields()?;
        let mut align = 1;
        if self.at_word("align") {
            self.advance()?;
            self.expect("(")?;
            align = self.alignment()?;
            self.expect(")")?;
        }
        align = fields.iter().map(|f| f.ty.align()).fold(align, u32::max);
        let depth = 1 + fields.iter().map(|f| f.ty.depth()).max().unwrap_or(0);
        let dynamic = fields.iter().any(|f| f.ty.is_dynamic());
        let ty = self.admit(Type::Struct(StructType { fields, align, depth, dynamic }.into()))?;
        if let Some(name) = name {
            self.name_type(name, ty.clone());
        }
        Ok(ty)
    }

    fn fields(&mut self) -> Result<Vec<Field>, Flaw> {
        self.expect("{")?;
        self.scoped(|parser| {
            let mut fields = Vec::new();
            while !parser.eat("}")? {
                if parser.type_declaration()? {
                    continue;
                }
                let ty = parser.specifier()?;
                if parser.eat(";")? {
                    continue;
                }
                loop {
                    let (name, ty) = parser.declarator(ty.clone())?;
                    let ty = parser.admit(ty)?;
                    fields.push(Field { raw_name: name.into(), ty });
                    if !parser.eat(",")? {
                        break;
                    }
                }
                parser.expect(";")?;
            }
            Ok(fields)
        })
    }

    fn variant(&mut self) -> Result<Type, Flaw> {
        let name = self.tag_name("variant")?;
        let mut path = Vec::new();
        if self.eat("<")? {
            path = self.path()?;
            self.expect(">")?;
        }
        let tag = Reference { path: path.into(), slot: None };
        if !self.at("{") {
            // A variant declared before, now with its tag.
            let Type::Variant(declared) = self.declared(name)? else {
                return self.flaw("expected a variant");
            };
            let mut variant = (*declared).clone();
            if !tag.path.is_empty() {
                variant.tag = tag;
            }
            return self.admit(Type::Variant(variant.into()));
        }
        let options = self.fields()?;
        let depth = 1 + options.iter().map(|f| f.ty.depth()).max().unwrap_or(0);
        let ty = self.admit(Type::Variant(VariantType { tag, choices: Arc::new([]), options, depth }.into()))?;
        if let Some(name) = name {
            self.name_type(name, ty.clone());
        }
        Ok(ty)
    }

    fn enumeration(&mut self) -> Result<Type, Flaw> {
        let name = self.tag_name("enum")?;
        if !self.at("{") && !self.at(":") {
            return self.declared(name);
        }
        let container = if self.eat(":")? { self.specifier()? } else { self.named("int")? };
        let Type::Integer(container) = container else {
            return self.flaw("the values of an enumeration must be kept in an integer");
        };
        self.expect("{")?;
        let mut mappings = Vec::new();
        let mut next = 0i128;
        while !self.eat("}")? {
            let label = match self.advance()? {
                Token::Word(word) => word.to_owned(),
                Token::Text(text) => text,
                other => return self.flaw(format!("expected a label, found {}", other.describe())),
            };
            let (mut first, mut last) = (next, next);
            if self.eat("=")? {
                first = self.signed_number()?;
                last = if self.eat("...")? { self.signed_number()? } else { first };
                if last < first {
                    return self.flaw("a range of values ends before it begins");
                }
            }
            next = last + 1;
            if mappings.len() >= MAX_LABELS {
                return self.flaw(format!("an enumeration has more than {MAX_LABELS} labels"));
            }
            mappings.push(Mapping { label, first, last });
            if !self.eat(",")? && !self.at("}") {
                return self.flaw(format!("expected `,` or `}}`, found {}", self.peek().describe()));
            }
        }
        let ty = self.admit(Type::Enum(container, Arc::new(EnumType { mappings })))?;
        if let Some(name) = name {
            self.name_type(name, ty.clone());
        }
        Ok(ty)
    }
}
