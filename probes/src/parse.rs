//! Parses statistics in the notation of session rules and of the command line.
//!
//! ```text
//!   statistic = measure [ "by" field [ "," field ] [ "max" number ] ]
//!   measure   = "count" | "rate" | "hist" "(" field ")" | "last" "(" field [ "," number ] ")" | "top" "(" field [ "," number ] ")"
//!             | "latency" "(" event "," event [ "by" field ] ")" | "latency" "(" span ")"
//! ```
//!
//! `max` is the maximum number of groups; the default is 100. A span is named as declared, without `_begin` and `_end`.
//! A latency without `by`, or with `by thread`, matches events on the same thread.

use crate::spec::{DEFAULT_GROUPS, Measure, StatisticError, StatisticSpec};
use std::str::FromStr;
use winnow::ascii::{alpha1, digit1, multispace0, multispace1};
use winnow::combinator::{alt, cut_err, delimited, opt, preceded, separated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::token::take_while;
use winnow::{Parser, Result};

/// Default number of values that `last` and `top` keep.
const KEPT: usize = 10;

type Parsed<T> = Result<T, ErrMode<ContextError>>;

fn field(input: &mut &str) -> Parsed<String> {
    let name = take_while(1.., |c: char| c.is_alphanumeric() || c == '_');
    name.map(str::to_owned).context(wanted("the name of a field")).parse_next(input)
}

fn event(input: &mut &str) -> Parsed<String> {
    let name = take_while(1.., |c: char| c.is_alphanumeric() || "_:.-".contains(c));
    name.map(str::to_owned).context(wanted("`provider:name` of an event")).parse_next(input)
}

fn wanted(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

fn token<'a>(text: &'static str) -> impl Parser<&'a str, &'a str, ErrMode<ContextError>> {
    delimited(multispace0, text, multispace0).context(StrContext::Expected(text.into()))
}

fn by<'a, T>(what: impl Parser<&'a str, T, ErrMode<ContextError>>) -> impl Parser<&'a str, T, ErrMode<ContextError>> {
    preceded((multispace0, "by", multispace1), cut_err(what))
}

fn number(input: &mut &str) -> Parsed<usize> {
    digit1.parse_to().context(wanted("a number")).parse_next(input)
}

fn arguments(name: &str, input: &mut &str) -> Parsed<Measure> {
    token("(").parse_next(input)?;
    let measure = match name {
        "hist" => Measure::Histogram { field: field(input)? },
        "latency" => {
            let begin = event(input)?;
            let Some(end) = opt(preceded(token(","), cut_err(event))).parse_next(input)? else {
                token(")").parse_next(input)?;
                return Ok(Measure::span(&begin));
            };
            let by = opt(by(field)).parse_next(input)?.filter(|field| field != "thread");
            Measure::Latency { begin, end, by }
        }
        _ => {
            let field = field(input)?;
            let count = opt(preceded(token(","), cut_err(number))).parse_next(input)?.unwrap_or(KEPT);
            if name == "last" { Measure::Last { field, count } } else { Measure::Top { field, count } }
        }
    };
    token(")").parse_next(input)?;
    Ok(measure)
}

fn measure(input: &mut &str) -> Parsed<Measure> {
    let names = alt(("count", "rate", "hist", "latency", "last", "top"));
    let name = alpha1.and_then(names).context(wanted("count, rate, hist, latency, last or top")).parse_next(input)?;
    match name {
        "count" => Ok(Measure::Count),
        "rate" => Ok(Measure::Rate),
        name => cut_err(|input: &mut &str| arguments(name, input)).parse_next(input),
    }
}

impl FromStr for StatisticSpec {
    type Err = StatisticError;

    /// # Errors
    ///
    /// [`StatisticError::Unsupported`], with the position and the expected syntax.
    fn from_str(text: &str) -> std::result::Result<Self, StatisticError> {
        let fields = separated(1..=2, field, token(","));
        let most = opt(preceded((multispace1, "max", multispace1), cut_err(number)));
        let whole = (measure, opt((by(fields), most)).map(Option::unwrap_or_default));
        let (measure, (by, most)): (Measure, (Vec<String>, Option<usize>)) =
            delimited(multispace0, whole, multispace0).parse(text).map_err(|error| {
                let at = text.get(error.offset()..).unwrap_or_default();
                let place = if at.is_empty() { "at the end".to_owned() } else { format!("at `{at}`") };
                let expected = error.into_inner().to_string().replace('\n', "; ");
                let why = if expected.is_empty() {
                    format!("not understood {place}")
                } else {
                    format!("{place}: {expected}")
                };
                StatisticError::Unsupported { what: text.to_owned(), why }
            })?;
        let spec = Self::new(measure).by(by).max_groups(most.unwrap_or(DEFAULT_GROUPS));
        spec.check()?;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "count",
            "count by route",
            "count by route, status",
            "count by route max 1000",
            "hist(size)",
            "hist(size) by route",
            "latency(http:begin, http:end by id) by route",
            "latency(a:b, a:c by thread)",
            "rate",
            "last(name, 3)",
            "top(name, 3)",
        ] {
            assert_eq!(text.parse::<StatisticSpec>().unwrap().to_string(), text);
        }
        for (text, same) in [
            (" hist( size )  by a ,b ", "hist(size) by a, b"),
            ("latency(a:b,a:c)", "latency(a:b, a:c by thread)"),
            ("top(name)", "top(name, 10)"),
            ("latency( shop:request )", "latency(shop:request_begin, shop:request_end by span_id)"),
        ] {
            assert_eq!(text.parse::<StatisticSpec>().unwrap().to_string(), same);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, part) in [
            ("", "count, rate, hist"),
            ("sum(x)", "count, rate, hist"),
            ("hist", "at the end"),
            ("hist(", "the name of a field"),
            ("hist(size", "at the end"),
            ("hist(size) by", "at `by`"),
            ("hist(size) by a, b, c", "at `, c`"),
            ("hist(size) by a max x", "a number"),
            ("count by a max 0", "1 to 65536"),
            ("latency(a:b", "at the end"),
            ("latency(a:b, )", "at `)`"),
            ("top(x, 0)", "1 to 4096"),
            ("top(x, y)", "a number"),
            ("rate by x", "only count, hist and latency"),
        ] {
            let error = text.parse::<StatisticSpec>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
