//! The grammar of filters; `docs/filters.md` describes it.

use super::error::FilterError;
use super::literal;
use super::number::{Bitwise, Comparison};
use super::step::{Input, Logic, Node, Parsed, State, Step, characters, is_of_name};
use crate::syntax::SyntaxError;
use std::ops::Range;
use winnow::Parser;
use winnow::combinator::{alt, eof, not, opt, peek, terminated};
use winnow::stream::{LocatingSlice, Location};
use winnow::token::{any, one_of};

/// The longest filter, in bytes.
pub(super) const MAX_LENGTH: usize = 4096;

/// Maximum nesting depth of parentheses and signs.
const MAX_DEPTH: usize = 64;

/// Reads a filter.
pub(super) fn parse(text: &str) -> Result<Vec<Step>, FilterError> {
    if text.len() > MAX_LENGTH {
        let reason = format!("the filter has {} bytes; {MAX_LENGTH} is the most", text.len());
        return Err(FilterError::new(text, text.len()..text.len(), reason));
    }
    let mut input = Input { input: LocatingSlice::new(text), state: State::default() };
    filter(&mut input).map_err(|error| {
        let (place, reason) = error.into_parts();
        FilterError::new(text, place, reason)
    })?;
    Ok(input.state.steps)
}

fn filter(input: &mut Input<'_>) -> Parsed<()> {
    space(input)?;
    if is_next(input, eof) {
        let end = input.current_token_start();
        return Err(SyntaxError::at(end..end, "the filter is empty"));
    }
    binary(input, 1)?;
    if is_next(input, ')') {
        let start = input.current_token_start();
        return Err(SyntaxError::at(start..start + 1, "this `)` closes nothing"));
    }
    if is_next(input, eof) { Ok(()) } else { Err(unexpected(input, "an operator, such as `==` or `&&`, or the end")) }
}

/// Reads operands and the operators between them that bind at least as strongly as `least`.
fn binary(input: &mut Input<'_>, least: u8) -> Parsed<()> {
    unary(input)?;
    let mut compared = false;
    let binds = |(_, binds): &(Node, u8)| *binds >= least;
    while let Some(((node, binds), place)) = opt(word(operator.verify(binds))).parse_next(input)? {
        if matches!(node, Node::Compare(_)) && std::mem::replace(&mut compared, true) {
            return Err(SyntaxError::at(place, "comparisons cannot be chained; use `&&` between two"));
        }
        if let Node::Behind(logic) = node {
            push(input, Node::Between(logic), place.clone());
        }
        binary(input, binds + 1)?;
        push(input, node, place);
    }
    Ok(())
}

/// A binary operator, and its precedence.
fn operator(input: &mut Input<'_>) -> Parsed<(Node, u8)> {
    let logic = alt(("||".value((Node::Behind(Logic::Or), 1)), "&&".value((Node::Behind(Logic::And), 2))));
    let shift = alt(("<<".value(Bitwise::Left), ">>".value(Bitwise::Right)));
    let comparison = alt((
        "==".value(Comparison::Equal),
        "!=".value(Comparison::NotEqual),
        "<=".value(Comparison::LessOrEqual),
        ">=".value(Comparison::GreaterOrEqual),
        '<'.value(Comparison::Less),
        '>'.value(Comparison::Greater),
    ));
    let bits = alt(('|'.value((Bitwise::Or, 4)), '^'.value((Bitwise::Xor, 5)), '&'.value((Bitwise::And, 6))));
    alt((
        logic,
        shift.map(|operator| (Node::Bitwise(operator), 7)),
        comparison.map(|operator| (Node::Compare(operator), 3)),
        bits.map(|(operator, binds)| (Node::Bitwise(operator), binds)),
    ))
    .parse_next(input)
}

/// An operand and the signs in front of it.
fn unary(input: &mut Input<'_>) -> Parsed<()> {
    let not_sign = terminated('!', not('=')).value(Node::Not);
    let sign = alt((not_sign, '~'.value(Node::Complement), '-'.value(Node::Negate)));
    let Some((node, place)) = opt(word(sign)).parse_next(input)? else { return primary(input) };
    nested(input, &place, unary)?;
    push(input, node, place);
    Ok(())
}

fn primary(input: &mut Input<'_>) -> Parsed<()> {
    let Some(first) = opt(peek(any)).parse_next(input)? else {
        return Err(unexpected(input, ""));
    };
    let (node, place) = match first {
        '(' => return parentheses(input),
        '"' => word(literal::text.map(Node::Text)).parse_next(input)?,
        '0'..='9' => word(literal::number.map(Node::Number)).parse_next(input)?,
        'a'..='z' | 'A'..='Z' | '_' => word(name).parse_next(input)?,
        _ => return Err(unexpected(input, "a field, a number, a text or `(`")),
    };
    push(input, node, place);
    Ok(())
}

fn name(input: &mut Input<'_>) -> Parsed<Node> {
    let name = characters(1.., is_of_name).parse_next(input)?;
    Ok(match name {
        "true" => Node::Truth(true),
        "false" => Node::Truth(false),
        _ => Node::Field,
    })
}

fn parentheses(input: &mut Input<'_>) -> Parsed<()> {
    let (_, open) = word('(').parse_next(input)?;
    nested(input, &open, |input| binary(input, 1))?;
    if is_next(input, eof) {
        return Err(SyntaxError::at(open, "this `(` is not closed"));
    }
    match opt(word(')')).parse_next(input)? {
        Some(_) => Ok(()),
        None => Err(unexpected(input, "an operator, such as `==` or `&&`, or `)`")),
    }
}

/// Runs `parser` on the input after the sign or parenthesis at `place`.
fn nested<'t>(
    input: &mut Input<'t>,
    place: &Range<usize>,
    parser: impl Fn(&mut Input<'t>) -> Parsed<()>,
) -> Parsed<()> {
    if input.state.depth == MAX_DEPTH {
        let reason = format!("more than {MAX_DEPTH} parentheses and signs are nested here");
        return Err(SyntaxError::at(place.clone(), reason));
    }
    input.state.depth += 1;
    parser(input)?;
    input.state.depth -= 1;
    Ok(())
}

fn push(input: &mut Input<'_>, node: Node, place: Range<usize>) {
    input.state.steps.push(Step { node, place });
}

/// Runs `parser`, then skips white space; also returns the place of the parsed text.
fn word<'t, T>(
    parser: impl Parser<Input<'t>, T, SyntaxError>,
) -> impl Parser<Input<'t>, (T, Range<usize>), SyntaxError> {
    terminated(parser.with_span(), space)
}

fn space(input: &mut Input<'_>) -> Parsed<()> {
    characters(0.., char::is_whitespace).void().parse_next(input)
}

fn is_next<'t, T>(input: &mut Input<'t>, parser: impl Parser<Input<'t>, T, SyntaxError>) -> bool {
    peek(parser).parse_next(input).is_ok()
}

/// The error for input other than `expected`.
fn unexpected(input: &mut Input<'_>, expected: &str) -> SyntaxError {
    let start = input.current_token_start();
    let known = opt(known_word).parse_next(input).unwrap_or_default();
    let next = known.or_else(|| Parsed::ok(any.take().parse_next(input))).unwrap_or("");
    let reason = match next {
        "" => "the filter ends too soon: a field, a number or a text is missing".to_owned(),
        "=" => "`=` is not an operator; equality is `==`".to_owned(),
        "'" => "a text stands in double quotes".to_owned(),
        "+" | "*" | "/" | "%" => {
            format!("there is no `{next}`: filters compare and work on bits, but do not calculate")
        }
        _ if known.is_some() => format!("expected {expected}"),
        _ => format!("`{}` has no meaning here", next.escape_debug()),
    };
    SyntaxError::at(start..start + next.len(), reason)
}

/// Reads a word of the filter language.
fn known_word<'t>(input: &mut Input<'t>) -> Parsed<&'t str> {
    let double = alt(("||", "&&", "==", "!=", "<=", ">=", "<<", ">>"));
    let single = one_of(['<', '>', '|', '^', '&', '!', '~', '-', '(', ')', '"']).take();
    alt((characters(1.., is_of_name), double, single)).parse_next(input)
}
