//! Grammar of filters.
//!
//! What comes out is in the order of evaluation, operands before operators, and flat: neither its check nor its end goes down a tree
//! that a hostile filter made deep.

use super::error::FilterError;
use super::lexer::{Lexer, Token};
use super::number::{Bitwise, Comparison, Number};
use super::pattern::Pattern;
use std::ops::Range;

/// The longest filter, in bytes.
pub(super) const MAX_LENGTH: usize = 4096;

/// How deep parentheses and signs may nest.
const MAX_DEPTH: usize = 64;

/// `&&` and `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Or,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(Number),
    Truth(bool),
    Text(Pattern),
    /// The field that is called what stands at the place.
    Field,
    Negate,
    Complement,
    Not,
    Bitwise(Bitwise),
    Compare(Comparison),
    /// Between the two sides: the second is left out if the first decides.
    Between(Logic),
    /// Behind the second side.
    Behind(Logic),
}

/// A step and its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) node: Node,
    pub(super) place: Range<usize>,
}

/// An operator with two sides.
#[derive(Clone, Copy)]
enum Operator {
    Logic(Logic),
    Compare(Comparison),
    Bitwise(Bitwise),
}

/// The operator that a symbol stands for, and how strongly it binds.
fn operator(token: &Token) -> Option<(Operator, u8)> {
    let Token::Symbol(symbol) = token else { return None };
    let compare = |comparison| Some((Operator::Compare(comparison), 3));
    let bits = |operator, binds| Some((Operator::Bitwise(operator), binds));
    match *symbol {
        "||" => Some((Operator::Logic(Logic::Or), 1)),
        "&&" => Some((Operator::Logic(Logic::And), 2)),
        "==" => compare(Comparison::Equal),
        "!=" => compare(Comparison::NotEqual),
        "<" => compare(Comparison::Less),
        "<=" => compare(Comparison::LessOrEqual),
        ">" => compare(Comparison::Greater),
        ">=" => compare(Comparison::GreaterOrEqual),
        "|" => bits(Bitwise::Or, 4),
        "^" => bits(Bitwise::Xor, 5),
        "&" => bits(Bitwise::And, 6),
        "<<" => bits(Bitwise::Left, 7),
        ">>" => bits(Bitwise::Right, 7),
        _ => None,
    }
}

/// Reads a filter.
pub(super) fn parse(text: &str) -> Result<Vec<Step>, FilterError> {
    if text.len() > MAX_LENGTH {
        let reason = format!("the filter has {} bytes; {MAX_LENGTH} is the most", text.len());
        return Err(FilterError::new(text, text.len()..text.len(), reason));
    }
    let mut lexer = Lexer::new(text);
    let (token, place) = lexer.next()?;
    let mut parser = Parser { text, lexer, token, place, depth: 0, steps: Vec::new() };
    parser.binary(1)?;
    match parser.token {
        Token::End => Ok(parser.steps),
        Token::Symbol(")") => Err(parser.error("this `)` closes nothing")),
        _ => Err(parser.error("expected an operator, such as `==` or `&&`, or the end")),
    }
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The word that is looked at, and its place.
    token: Token,
    place: Range<usize>,
    depth: usize,
    steps: Vec<Step>,
}

impl Parser<'_> {
    fn error(&self, reason: impl Into<String>) -> FilterError {
        FilterError::new(self.text, self.place.clone(), reason)
    }

    /// Goes to the next word, and gives the place of this one.
    fn advance(&mut self) -> Result<Range<usize>, FilterError> {
        let (token, place) = self.lexer.next()?;
        self.token = token;
        Ok(std::mem::replace(&mut self.place, place))
    }

    fn push(&mut self, node: Node, place: Range<usize>) {
        self.steps.push(Step { node, place });
    }

    /// Operands with operators between them that bind as strongly as `least`.
    fn binary(&mut self, least: u8) -> Result<(), FilterError> {
        self.unary()?;
        let mut compared = false;
        while let Some((operator, binds)) = operator(&self.token).filter(|(_, binds)| *binds >= least) {
            if let Operator::Compare(_) = operator {
                if compared {
                    return Err(self.error("comparisons do not follow one another; use `&&` between two"));
                }
                compared = true;
            }
            let place = self.advance()?;
            match operator {
                Operator::Logic(logic) => {
                    self.push(Node::Between(logic), place.clone());
                    self.binary(binds + 1)?;
                    self.push(Node::Behind(logic), place);
                }
                Operator::Compare(comparison) => {
                    self.binary(binds + 1)?;
                    self.push(Node::Compare(comparison), place);
                }
                Operator::Bitwise(bitwise) => {
                    self.binary(binds + 1)?;
                    self.push(Node::Bitwise(bitwise), place);
                }
            }
        }
        Ok(())
    }

    /// An operand, with what stands in front of it.
    fn unary(&mut self) -> Result<(), FilterError> {
        let node = match self.token {
            Token::Symbol("!") => Node::Not,
            Token::Symbol("~") => Node::Complement,
            Token::Symbol("-") => Node::Negate,
            _ => return self.primary(),
        };
        self.deeper()?;
        let place = self.advance()?;
        self.unary()?;
        self.push(node, place);
        self.depth -= 1;
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), FilterError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} parentheses and signs are inside each other here")));
        }
        Ok(())
    }

    fn primary(&mut self) -> Result<(), FilterError> {
        let node = match &self.token {
            Token::Name => match &self.text[self.place.clone()] {
                "true" => Node::Truth(true),
                "false" => Node::Truth(false),
                _ => Node::Field,
            },
            Token::Number(number) => Node::Number(*number),
            Token::Text(pattern) => Node::Text(pattern.clone()),
            Token::Symbol("(") => return self.parentheses(),
            Token::End if self.steps.is_empty() && self.depth == 0 => return Err(self.error("the filter is empty")),
            Token::End => return Err(self.error("the filter ends too soon: a field, a number or a text is missing")),
            Token::Symbol(_) => return Err(self.error("expected a field, a number, a text or `(`")),
        };
        let place = self.advance()?;
        self.push(node, place);
        Ok(())
    }

    fn parentheses(&mut self) -> Result<(), FilterError> {
        self.deeper()?;
        let open = self.advance()?;
        self.binary(1)?;
        match self.token {
            Token::Symbol(")") => {}
            Token::End => return Err(FilterError::new(self.text, open, "this `(` is not closed")),
            _ => return Err(self.error("expected an operator, such as `==` or `&&`, or `)`")),
        }
        self.advance()?;
        self.depth -= 1;
        Ok(())
    }
}
