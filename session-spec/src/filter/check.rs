//! Type check and compilation of a filter for the fields of one event.

mod compare;

use super::error::FilterError;
use super::field::{FieldKind, FilterField, Label};
use super::number::Number;
use super::program::{MAX_STACK, Op, Program, Ranges, first_range};
use super::step::{Logic, Node, Step};
use crate::glob::Glob;
use std::ops::Range;
use tracepoint_core::internal::nearest_names;

/// The type of an operand.
#[derive(Clone, Copy)]
enum Kind<'a> {
    /// An integer or a boolean, with the labels of its values if it is an enumeration.
    Integer(&'a [Label<'a>]),
    Float,
    /// The text in the field with this index.
    TextField(u16),
    /// A text in the filter.
    Literal(&'a Glob),
    /// The field with this index, whose type differs between events. It is loaded as a number.
    Any(u16),
}

impl Kind<'_> {
    const TRUTH: Self = Self::Integer(&[]);
}

/// An operand and its place in the filter.
#[derive(Clone)]
struct Operand<'a> {
    kind: Kind<'a>,
    place: Range<usize>,
}

/// Compiles `steps`, which were read from `text`.
pub(super) fn check(text: &str, steps: &[Step], fields: &[FilterField<'_>]) -> Result<Program, FilterError> {
    let mut check = Check { text, fields, ..Check::default() };
    for Step { node, place } in steps {
        check.step(node, place.clone())?;
    }
    let last = check.pop(0..text.len())?;
    check.condition(&last)?;
    // A field that holds an enumeration has the values of its integers.
    let is_signed = |index: u16| match fields.get(usize::from(index))?.kind {
        FieldKind::Integer { signed } => Some(signed),
        FieldKind::Duration => Some(false),
        _ => None,
    };
    let first_range = first_range(&check.ops, &check.numbers, is_signed);
    Ok(Program {
        ops: check.ops.into(),
        numbers: check.numbers.into(),
        globs: check.globs.into(),
        sets: check.sets.into(),
        stack: check.most,
        first_range,
    })
}

#[derive(Default)]
struct Check<'a> {
    text: &'a str,
    fields: &'a [FilterField<'a>],
    operands: Vec<Operand<'a>>,
    /// The indices in `ops` of the jumps whose targets are not known yet.
    jumps: Vec<usize>,
    ops: Vec<Op>,
    numbers: Vec<Number>,
    globs: Vec<Glob>,
    sets: Vec<Ranges>,
    /// How many numbers are on the program's stack, now and at most.
    used: usize,
    most: usize,
}

impl<'a> Check<'a> {
    fn error(&self, place: Range<usize>, reason: impl Into<String>) -> FilterError {
        FilterError::new(self.text, place, reason)
    }

    /// The text at a place.
    fn word(&self, place: &Range<usize>) -> &'a str {
        self.text.get(place.clone()).unwrap_or("")
    }

    /// Returns the text at a place for messages: on one line, cut off after 40 characters.
    fn quoted(&self, place: &Range<usize>) -> String {
        const MAX: usize = 40;
        let word = self.word(place);
        let mut quoted: String = word.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX).collect();
        if word.chars().nth(MAX).is_some() {
            quoted.push('…');
        }
        quoted
    }

    /// Takes the topmost operand. The grammar puts operands before operators; a bug there becomes an error, not a panic.
    fn pop(&mut self, place: Range<usize>) -> Result<Operand<'a>, FilterError> {
        self.operands.pop().ok_or_else(|| self.error(place, "an operand is missing"))
    }

    fn push(&mut self, kind: Kind<'a>, place: Range<usize>) {
        self.operands.push(Operand { kind, place });
    }

    /// Adds an operation that pops `taken` numbers and pushes one.
    fn op(&mut self, op: Op, taken: usize, place: &Range<usize>) -> Result<(), FilterError> {
        self.ops.push(op);
        self.used = self.used.saturating_sub(taken) + 1;
        self.most = self.most.max(self.used);
        if self.most > MAX_STACK {
            let reason = format!("more than {MAX_STACK} operands wait for their operators here");
            return Err(self.error(place.clone(), reason));
        }
        Ok(())
    }

    fn step(&mut self, node: &'a Node, place: Range<usize>) -> Result<(), FilterError> {
        match node {
            Node::Number(number) => {
                let kind = if let Number::Float(_) = number { Kind::Float } else { Kind::Integer(&[]) };
                self.constant(*number, kind, place)
            }
            Node::Truth(truth) => self.constant((*truth).into(), Kind::TRUTH, place),
            Node::Text(glob) => {
                self.push(Kind::Literal(glob), place);
                Ok(())
            }
            Node::Field => self.field(place),
            Node::Negate => {
                let operand = self.pop(place.clone())?;
                let kind = match operand.kind {
                    Kind::Integer(_) => Kind::Integer(&[]),
                    Kind::Float | Kind::Any(_) => Kind::Float,
                    _ => return Err(self.error(operand.place, "a text cannot be negated")),
                };
                self.unary(Op::Negate, kind, place, &operand)
            }
            Node::Complement => {
                let operand = self.pop(place.clone())?;
                self.integer(&operand)?;
                self.unary(Op::Complement, Kind::Integer(&[]), place, &operand)
            }
            Node::Not => {
                let operand = self.pop(place.clone())?;
                self.condition(&operand)?;
                self.unary(Op::Not, Kind::TRUTH, place, &operand)
            }
            Node::Bitwise(operator) => {
                let (right, left) = (self.pop(place.clone())?, self.pop(place)?);
                self.integer(&left)?;
                self.integer(&right)?;
                let place = left.place.start..right.place.end;
                self.op(Op::Bitwise(*operator), 2, &place)?;
                self.push(Kind::Integer(&[]), place);
                Ok(())
            }
            Node::Compare(comparison) => self.compare(*comparison, place),
            Node::Between(logic) => {
                let operand = self.operands.last().cloned();
                self.condition(&operand.ok_or_else(|| self.error(place, "an operand is missing"))?)?;
                self.jumps.push(self.ops.len());
                // `behind` fills in the target.
                self.ops.push(Op::SkipIf(*logic == Logic::Or, 0));
                self.used = self.used.saturating_sub(1);
                Ok(())
            }
            Node::Behind(_) => self.behind(place),
        }
    }

    fn behind(&mut self, place: Range<usize>) -> Result<(), FilterError> {
        let (right, left) = (self.pop(place.clone())?, self.pop(place)?);
        self.condition(&right)?;
        let place = left.place.start..right.place.end;
        self.op(Op::Truth, 1, &place)?;
        let end = self.index(self.ops.len(), &place)?;
        if let Some(Op::SkipIf(_, to)) = self.jumps.pop().and_then(|jump| self.ops.get_mut(jump)) {
            *to = end;
        }
        self.push(Kind::TRUTH, place);
        Ok(())
    }

    fn unary(&mut self, op: Op, kind: Kind<'a>, place: Range<usize>, operand: &Operand<'_>) -> Result<(), FilterError> {
        self.op(op, 1, &place)?;
        self.push(kind, place.start..operand.place.end);
        Ok(())
    }

    fn index(&self, index: usize, place: &Range<usize>) -> Result<u16, FilterError> {
        u16::try_from(index).map_err(|_| self.error(place.clone(), "the filter is too long"))
    }

    fn constant(&mut self, number: Number, kind: Kind<'a>, place: Range<usize>) -> Result<(), FilterError> {
        let index = self.index(self.numbers.len(), &place)?;
        self.numbers.push(number);
        self.op(Op::Push(index), 0, &place)?;
        self.push(kind, place);
        Ok(())
    }

    fn field(&mut self, place: Range<usize>) -> Result<(), FilterError> {
        let name = self.word(&place);
        let Some(index) = self.fields.iter().position(|field| field.name == name) else {
            let nearest = nearest_names(name, self.fields.iter().map(|field| field.name));
            let reason = format!("no field is called `{}`", self.quoted(&place));
            return Err(self.error(place, reason).suggesting(&nearest));
        };
        let number = self.index(index, &place)?;
        let field = &self.fields[index];
        let kind = match &field.kind {
            FieldKind::Integer { .. } | FieldKind::Duration | FieldKind::Truth => Kind::Integer(&[]),
            FieldKind::Enum(labels) => Kind::Integer(labels),
            FieldKind::Float => Kind::Float,
            FieldKind::Text => Kind::TextField(number),
            FieldKind::Any => Kind::Any(number),
            FieldKind::Other => {
                let reason = format!("`{name}` is {}; filters cannot use fields of this type", field.ty);
                return Err(self.error(place, reason));
            }
        };
        match kind {
            Kind::TextField(_) => {}
            Kind::Any(_) => self.op(Op::LoadAny(number), 0, &place)?,
            _ => self.op(Op::Load(number), 0, &place)?,
        }
        self.push(kind, place);
        Ok(())
    }

    /// Describes an operand in messages.
    fn what(&self, operand: &Operand<'_>) -> String {
        let word = self.word(&operand.place);
        if let Some(field) = self.fields.iter().find(|field| field.name == word) {
            return format!("`{word}` is {}", field.ty);
        }
        let kind = match operand.kind {
            Kind::Integer(_) => "an integer",
            Kind::Float => "a floating-point number",
            Kind::TextField(_) | Kind::Literal(_) => "a text",
            Kind::Any(_) => "a value of any type",
        };
        format!("`{}` is {kind}", self.quoted(&operand.place))
    }

    fn condition(&self, operand: &Operand<'_>) -> Result<(), FilterError> {
        if let Kind::Integer(_) | Kind::Any(_) = operand.kind {
            return Ok(());
        }
        let reason = format!("{}, which is neither true nor false; compare it with a value", self.what(operand));
        Err(self.error(operand.place.clone(), reason))
    }

    fn integer(&self, operand: &Operand<'_>) -> Result<(), FilterError> {
        if let Kind::Integer(_) | Kind::Any(_) = operand.kind {
            return Ok(());
        }
        let reason = format!("{}; bit operators take integers only", self.what(operand));
        Err(self.error(operand.place.clone(), reason))
    }
}
