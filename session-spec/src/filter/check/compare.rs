//! Type check and compilation of comparisons.

use super::{Check, Kind, Operand};
use crate::filter::error::FilterError;
use crate::filter::field::Label;
use crate::filter::number::Comparison;
use crate::filter::program::Op;
use crate::glob::Glob;
use std::ops::Range;
use tracepoint_core::internal::nearest_names;

impl Check<'_> {
    /// Compiles a comparison of the two topmost operands: two numbers, two texts, or an enumeration and a text.
    pub(super) fn compare(&mut self, comparison: Comparison, operator: Range<usize>) -> Result<(), FilterError> {
        let (right, left) = (self.pop(operator.clone())?, self.pop(operator.clone())?);
        let place = left.place.start..right.place.end;
        let wanted = comparison == Comparison::Equal;
        let is_equality = wanted || comparison == Comparison::NotEqual;
        let is_text = |operand: &Operand<'_>| matches!(operand.kind, Kind::TextField(_) | Kind::Literal(_));
        if (is_text(&left) || is_text(&right)) && !is_equality {
            return Err(self.error(operator, "texts can be compared with `==` and `!=` only"));
        }
        match (left.kind, right.kind) {
            (Kind::Integer(_) | Kind::Float | Kind::Any(_), Kind::Integer(_) | Kind::Float | Kind::Any(_)) => {
                self.numbers(comparison, &place)?;
            }
            (Kind::Any(field), Kind::Literal(glob)) | (Kind::Literal(glob), Kind::Any(field)) => {
                let index = self.index(self.globs.len(), &place)?;
                self.globs.push(glob.clone());
                // Replaces the load of the number: the literal has no operation.
                self.ops.pop();
                self.op(Op::MatchesAny(wanted, field, index), 1, &place)?;
            }
            (Kind::TextField(field), Kind::Literal(glob)) | (Kind::Literal(glob), Kind::TextField(field)) => {
                let index = self.index(self.globs.len(), &place)?;
                self.globs.push(glob.clone());
                self.op(Op::Matches(wanted, field, index), 0, &place)?;
            }
            (Kind::TextField(one), Kind::TextField(other)) => self.op(Op::Same(wanted, one, other), 0, &place)?,
            (Kind::Integer(labels @ [_, ..]), Kind::Literal(glob)) => {
                self.labels(wanted, labels, glob, &right.place, &place)?;
            }
            (Kind::Literal(glob), Kind::Integer(labels @ [_, ..])) => {
                self.labels(wanted, labels, glob, &left.place, &place)?;
            }
            (Kind::Literal(_), Kind::Literal(_)) => {
                return Err(self.error(place, "both sides are constants; one has to be a field"));
            }
            _ => {
                let reason = format!("{} and {}; they cannot be compared", self.what(&left), self.what(&right));
                return Err(self.error(place, reason));
            }
        }
        self.push(Kind::TRUTH, place);
        Ok(())
    }

    /// Compiles a comparison of two numbers: one operation if one is a field and the other a constant.
    fn numbers(&mut self, comparison: Comparison, place: &Range<usize>) -> Result<(), FilterError> {
        let fused = match self.ops[..] {
            [.., Op::Load(field), Op::Push(constant)] => Op::CompareField(comparison, field, constant),
            [.., Op::Push(constant), Op::Load(field)] => Op::CompareField(comparison.turned(), field, constant),
            _ => return self.op(Op::Compare(comparison), 2, place),
        };
        self.ops.truncate(self.ops.len() - 2);
        self.op(fused, 2, place)
    }

    /// Compiles a comparison of an enumeration with a text, which tests whether the value is one of those whose labels match.
    fn labels(
        &mut self,
        wanted: bool,
        labels: &[Label<'_>],
        glob: &Glob,
        literal: &Range<usize>,
        place: &Range<usize>,
    ) -> Result<(), FilterError> {
        let matching = labels.iter().filter(|label| glob.matches_str(label.name));
        let mut set: Vec<(i128, i128)> = matching.map(|label| (label.first, label.last)).collect();
        if set.is_empty() {
            let word = self.word(literal);
            let nearest = nearest_names(word.trim_matches('"'), labels.iter().map(|label| label.name));
            let reason = format!("no value of this enumeration is called {}", self.quoted(literal));
            return Err(self.error(literal.clone(), reason).suggesting(&nearest));
        }
        set.sort_unstable();
        // Merges overlapping ranges.
        set.dedup_by(|next, known| {
            let overlap = next.0 <= known.1;
            known.1 = if overlap { known.1.max(next.1) } else { known.1 };
            overlap
        });
        let index = self.index(self.sets.len(), place)?;
        self.sets.push(set.into());
        self.op(Op::OneOf(wanted, index), 1, place)
    }
}
