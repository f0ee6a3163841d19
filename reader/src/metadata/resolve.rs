//! Resolves the path of each sequence and variant to an earlier integer, and gives that integer a slot, where a decoder keeps its value.
//!
//! A path is looked up among the earlier members of its structure, then in the enclosing ones. A path that begins with the name of a root
//! (`stream.event.header`, `event.fields`, …) is looked up there. Types are shared between uses, and a path may resolve to a different
//! integer at each use, so a type is copied before it is changed.

use std::collections::HashMap;
use std::sync::Arc;

use super::types::{Choice, EnumType, Field, Length, Mapping, Reference, Slot, StructType, Type};

/// Maximum number of members searched before the metadata is refused: far above real metadata, and reached within a second.
const MAX_STEPS: u64 = 1 << 24;
/// Maximum number of members copied because their paths resolve to different integers at different uses.
const MAX_COPIES: usize = 1 << 20;

/// The parts of a packet and an event that paths can name, in the order of decoding.
pub(super) const ROOTS: [&str; 6] = [
    "trace.packet.header",
    "stream.packet.context",
    "stream.event.header",
    "stream.event.context",
    "event.context",
    "event.fields",
];
/// The first root whose slots are numbered per event class.
const FIRST_OF_EVENT: usize = 4;

/// One type for each of [`ROOTS`].
pub(super) type Roots<'a> = [&'a mut Option<Arc<StructType>>; 6];

/// Assigns slots, and limits the work.
#[derive(Default)]
pub(super) struct Resolver {
    steps: u64,
    copies: usize,
    pub(super) shared: u32,
    pub(super) event: u32,
    /// The largest number of slots of any event class.
    pub(super) most_event: u32,
}

/// The reason why a path in a type cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ResolveError(String);

/// A structure that encloses a path: its place, and the number of its members before the path.
struct EnclosingStruct {
    place: Vec<usize>,
    before: usize,
}

impl Resolver {
    /// Resolves the paths in `roots[which]`.
    pub(super) fn resolve(&mut self, roots: &mut Roots<'_>, which: usize) -> Result<(), ResolveError> {
        let Some(ty) = roots[which].clone() else {
            return Ok(());
        };
        if ty.dynamic {
            let mut enclosing = Vec::new();
            self.walk(roots, which, &Type::Struct(ty), &mut Vec::new(), &mut enclosing).map_err(ResolveError)?;
        }
        self.most_event = self.most_event.max(self.event);
        Ok(())
    }

    fn step(&mut self, count: usize) -> Result<(), String> {
        self.steps += count as u64;
        if self.steps > MAX_STEPS {
            return Err("types refer to each other more often than this reader follows".to_owned());
        }
        Ok(())
    }

    /// Resolves the paths in `ty`, the unchanged copy of the type at `place` under the root.
    fn walk(
        &mut self,
        roots: &mut Roots<'_>,
        which: usize,
        ty: &Type,
        place: &mut Vec<usize>,
        enclosing: &mut Vec<EnclosingStruct>,
    ) -> Result<(), String> {
        self.step(1)?;
        if !ty.is_dynamic() {
            return Ok(());
        }
        match ty {
            Type::Struct(ty) => {
                enclosing.push(EnclosingStruct { place: place.clone(), before: 0 });
                for (index, field) in ty.fields.iter().enumerate() {
                    if let Some(innermost) = enclosing.last_mut() {
                        innermost.before = index;
                    }
                    place.push(index);
                    self.walk(roots, which, &field.ty, place, enclosing)?;
                    place.pop();
                }
                enclosing.pop();
            }
            Type::Array(array) => {
                if let Length::Field(reference) = &array.length {
                    let (slot, target) = self.find(roots, which, reference, enclosing)?;
                    if !matches!(target, Type::Integer(integer) if !integer.signed) {
                        return Err(format!("the length `{}` is not an unsigned integer", reference.path.join(".")));
                    }
                    self.change(roots, which, place, |ty| {
                        if let Type::Array(array) = ty {
                            let array = Arc::make_mut(array);
                            if let Length::Field(reference) = &mut array.length {
                                reference.slot = Some(slot);
                            }
                        }
                    })?;
                }
                place.push(0);
                self.walk(roots, which, &array.element, place, enclosing)?;
                place.pop();
            }
            Type::Variant(variant) => {
                if variant.tag.path.is_empty() {
                    return Err("a variant has no tag: name an enumeration, as in `variant <tag>`".to_owned());
                }
                let (slot, target) = self.find(roots, which, &variant.tag, enclosing)?;
                let Type::Enum(_, labels) = target else {
                    return Err(format!("the tag `{}` is not an enumeration", variant.tag.path.join(".")));
                };
                self.step(variant.options.len() + labels.mappings.len())?;
                let choices = choices(&labels, &variant.options);
                self.copy(choices.len())?;
                self.change(roots, which, place, |ty| {
                    if let Type::Variant(variant) = ty {
                        let variant = Arc::make_mut(variant);
                        variant.tag.slot = Some(slot);
                        variant.choices = choices;
                    }
                })?;
                for (index, option) in variant.options.iter().enumerate() {
                    place.push(index);
                    self.walk(roots, which, &option.ty, place, enclosing)?;
                    place.pop();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The slot and type of the integer that a path resolves to. The slot is assigned now if it had none.
    fn find(
        &mut self,
        roots: &mut Roots<'_>,
        which: usize,
        reference: &Reference,
        enclosing: &[EnclosingStruct],
    ) -> Result<(Slot, Type), String> {
        let (root, place) = self
            .locate(roots, which, &reference.path, enclosing)?
            .ok_or_else(|| format!("`{}` names no field that comes before its use", reference.path.join(".")))?;
        let (mut shared, mut event) = (self.shared, self.event);
        let mut found = None;
        self.change(roots, root, &place, |ty| {
            let (Type::Integer(integer) | Type::Enum(integer, _)) = ty else {
                return;
            };
            let slot = *integer.slot.get_or_insert_with(|| {
                let (counter, slot): (_, fn(u32) -> Slot) =
                    if root < FIRST_OF_EVENT { (&mut shared, Slot::Shared) } else { (&mut event, Slot::Event) };
                *counter += 1;
                slot(*counter - 1)
            });
            found = Some((slot, ty.clone()));
        })?;
        (self.shared, self.event) = (shared, event);
        found.ok_or_else(|| format!("`{}` is not an integer", reference.path.join(".")))
    }

    /// Counts copied members.
    fn copy(&mut self, members: usize) -> Result<(), String> {
        self.copies += members;
        if self.copies > MAX_COPIES {
            return Err("types refer to each other in more ways than this reader keeps".to_owned());
        }
        Ok(())
    }

    /// Changes the type at `place` under a root. Types that are shared with other uses are copied first.
    fn change(
        &mut self,
        roots: &mut Roots<'_>,
        root: usize,
        place: &[usize],
        edit: impl FnOnce(&mut Type),
    ) -> Result<(), String> {
        let (Some(structure), Some((&first, rest))) = (roots[root].as_mut(), place.split_first()) else {
            return Ok(());
        };
        if Arc::strong_count(structure) > 1 {
            self.copy(structure.fields.len())?;
        }
        let mut next = Arc::make_mut(structure).fields.get_mut(first).map(|f| &mut f.ty);
        for &index in rest {
            let Some(ty) = next else {
                return Ok(());
            };
            next = match ty {
                Type::Struct(structure) => {
                    if Arc::strong_count(structure) > 1 {
                        self.copy(structure.fields.len())?;
                    }
                    Arc::make_mut(structure).fields.get_mut(index).map(|f| &mut f.ty)
                }
                Type::Array(array) => {
                    self.copy(usize::from(Arc::strong_count(array) > 1))?;
                    Some(&mut Arc::make_mut(array).element)
                }
                Type::Variant(variant) => {
                    if Arc::strong_count(variant) > 1 {
                        self.copy(variant.options.len())?;
                    }
                    Arc::make_mut(variant).options.get_mut(index).map(|f| &mut f.ty)
                }
                _ => None,
            };
        }
        if let Some(ty) = next {
            edit(ty);
        }
        Ok(())
    }

    fn locate(
        &mut self,
        roots: &Roots<'_>,
        which: usize,
        path: &[String],
        enclosing: &[EnclosingStruct],
    ) -> Result<Option<(usize, Vec<usize>)>, String> {
        for outer in enclosing.iter().rev() {
            let Some(Type::Struct(ty)) = at(roots[which].as_ref(), &outer.place) else {
                continue;
            };
            self.step(outer.before)?;
            let members = &ty.fields[..outer.before.min(ty.fields.len())];
            if let Some(index) = members.iter().rposition(|f| matches(&f.raw_name, &path[0])) {
                let mut place = outer.place.clone();
                place.push(index);
                let found = self.descend(&members[index].ty, &path[1..], place)?;
                return Ok(found.map(|place| (which, place)));
            }
        }
        for (root, name) in ROOTS.iter().enumerate().take(which + 1) {
            let names: Vec<&str> = name.split('.').collect();
            let absolute = path.len() > names.len() && path.iter().zip(&names).all(|(a, b)| a == b);
            let Some(ty) = roots[root].as_ref().filter(|_| absolute) else {
                continue;
            };
            let found = self.descend(&Type::Struct(Arc::clone(ty)), &path[names.len()..], Vec::new())?;
            return Ok(found.map(|place| (root, place)));
        }
        Ok(None)
    }

    /// Follows the rest of a path through structures.
    fn descend(&mut self, ty: &Type, path: &[String], mut place: Vec<usize>) -> Result<Option<Vec<usize>>, String> {
        let mut ty = ty.clone();
        for name in path {
            let Type::Struct(structure) = &ty else {
                return Ok(None);
            };
            self.step(structure.fields.len())?;
            let Some(index) = structure.fields.iter().position(|f| matches(&f.raw_name, name)) else {
                return Ok(None);
            };
            place.push(index);
            ty = structure.fields[index].ty.clone();
        }
        Ok(Some(place))
    }
}

/// True if a component of a path names a field, by its exact or by its displayed name.
fn matches(field: &str, component: &str) -> bool {
    field == component || field.strip_prefix('_') == Some(component)
}

/// The type at `place` under a root.
fn at(root: Option<&Arc<StructType>>, place: &[usize]) -> Option<Type> {
    let mut ty = Type::Struct(Arc::clone(root?));
    for &index in place {
        ty = match &ty {
            Type::Struct(structure) => structure.fields.get(index)?.ty.clone(),
            Type::Array(array) => array.element.clone(),
            Type::Variant(variant) => variant.options.get(index)?.ty.clone(),
            _ => return None,
        };
    }
    Some(ty)
}

/// The options selected by name by the labels of a tag.
fn choices(labels: &EnumType, options: &[Field]) -> Arc<[Choice]> {
    let mut by_name = HashMap::new();
    for (index, option) in options.iter().enumerate() {
        by_name.entry(option.name()).or_insert(index);
        by_name.entry(&*option.raw_name).or_insert(index);
    }
    let choice = |mapping: &Mapping| {
        let option = *by_name.get(mapping.label.as_str())?;
        Some(Choice { first: mapping.first, last: mapping.last, option })
    };
    labels.mappings.iter().filter_map(choice).collect()
}
