//! The public API of the facade: the exported names, and the public methods, fields and variants of each type.
//!
//! Names are followed through the re-exports of the crates to the module that defines them, because several types have the same name. Hidden items,
//! and methods in macros, are left out.

use crate::modules::name_of;
use crate::{root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, ImplItem, Item, TraitItem, Type, UseTree, Visibility};

/// The facade, and the crates whose items it re-exports.
const CRATES: [&str; 13] = [
    "tracepoint",
    "core",
    "ring",
    "session",
    "session-spec",
    "session-io",
    "run-dir",
    "controller",
    "sinks",
    "probes",
    "reader",
    "datatrace",
    "wire",
];

/// Maximum number of imports through which a name is followed.
const MAX_IMPORTS: usize = 16;

/// A module: the folder of its crate, and its path from the crate's root.
type Place = (&'static str, Vec<String>);

/// The content of a module.
#[derive(Default)]
struct Module {
    items: Vec<Item>,
    /// The path of each name that a `use` introduces.
    imports: BTreeMap<String, Vec<String>>,
    /// The paths that are imported with `*`.
    globs: Vec<Vec<String>>,
    /// The members of the public types that it defines.
    types: BTreeMap<String, BTreeSet<String>>,
}

/// The exported names, with the members of each type.
#[derive(Default)]
pub struct Api {
    /// Members by the path of the type, or of another item, within the facade.
    pub names: BTreeMap<String, BTreeSet<String>>,
}

impl Api {
    /// Reads the facade.
    ///
    /// # Panics
    ///
    /// If a source cannot be read.
    pub fn read() -> Self {
        let mut sources = Sources::default();
        for folder in CRATES {
            let source = root().join(folder).join("src");
            for path in rust_files(&source) {
                let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                sources.add((folder, name_of(&source, &path)), syn::parse_file(&text).expect("Rust").items);
            }
        }
        sources.add_methods();
        let mut api = Self::default();
        api.exports(&sources, &("tracepoint", Vec::new()), "");
        api
    }

    /// Adds the exports of a module.
    fn exports(&mut self, sources: &Sources, place: &Place, prefix: &str) {
        for item in &sources.0[place].items {
            let (vis, attributes, name) = match item {
                Item::Use(item) => {
                    if is_public(&item.vis, &item.attrs) {
                        for (name, path) in leaves(&item.tree) {
                            let name =
                                name.expect("the facade and the modules that it exports list their names, without `*`");
                            self.name(sources, place, &path, &format!("{prefix}{name}"));
                        }
                    }
                    continue;
                }
                Item::Struct(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Enum(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Trait(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Mod(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident),
                Item::Const(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Type(item) => (&item.vis, &item.attrs, &item.ident),
                _ => continue,
            };
            if is_public(vis, attributes) {
                self.name(sources, place, &[name.to_string()], &format!("{prefix}{name}"));
            }
        }
    }

    /// Adds the item at `path`, seen from `place`, as `exported`, with its members.
    fn name(&mut self, sources: &Sources, place: &Place, path: &[String], exported: &str) {
        let members = self.names.entry(exported.to_owned()).or_default();
        match sources.find(place, path, MAX_IMPORTS) {
            Some((place, Some(name))) => members.extend(sources.0[&place].types[&name].iter().cloned()),
            Some((place, None)) if sources.is_exported(&place) => {
                self.exports(sources, &place, &format!("{exported}::"));
            }
            // A function, a constant, or a macro.
            _ => {
                let name = exported.rsplit("::").next().unwrap_or(exported);
                let is_type = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
                assert!(!is_type, "{exported} is not found");
            }
        }
    }
}

/// The modules of all crates.
#[derive(Default)]
struct Sources(BTreeMap<Place, Module>);

impl Sources {
    /// Adds a module, and those without files of their own in it.
    fn add(&mut self, place: Place, items: Vec<Item>) {
        let mut module = Module::default();
        for item in &items {
            match item {
                Item::Use(item) => {
                    for (name, path) in leaves(&item.tree) {
                        match name {
                            Some(name) => drop(module.imports.insert(name, path)),
                            None => module.globs.push(path),
                        }
                    }
                }
                Item::Mod(item) => {
                    if let Some((_, items)) = &item.content {
                        let inner = [&place.1[..], &[item.ident.to_string()]].concat();
                        self.add((place.0, inner), items.clone());
                    }
                }
                _ => module.types.extend(type_of(item)),
            }
        }
        module.items = items;
        self.0.insert(place, module);
    }

    /// Adds the methods to the types for which they are implemented.
    fn add_methods(&mut self) {
        let mut found = Vec::new();
        for (place, module) in &self.0 {
            for item in &module.items {
                let Item::Impl(item) = item else { continue };
                let Type::Path(ty) = &*item.self_ty else { continue };
                if item.trait_.is_some() || is_hidden(&item.attrs) {
                    continue;
                }
                let path: Vec<_> = ty.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                match self.find(place, &path, MAX_IMPORTS) {
                    Some((place, Some(name))) => found.push((place, name, methods(&item.items))),
                    // A type that a macro declares in this module; or a private one, which is not exported.
                    _ if path.len() == 1 => found.push((place.clone(), path[0].clone(), methods(&item.items))),
                    _ => {}
                }
            }
        }
        for (place, name, methods) in found {
            self.0.get_mut(&place).expect("a module").types.entry(name).or_default().extend(methods);
        }
    }

    /// Whether a module is the root of a crate or public: a private one can have the name of a function.
    fn is_exported(&self, (folder, names): &Place) -> bool {
        let Some((last, parents)) = names.split_last() else { return true };
        let is_it =
            |item: &Item| matches!(item, Item::Mod(item) if item.ident == last && is_public(&item.vis, &item.attrs));
        self.0.get(&(*folder, parents.to_vec())).is_some_and(|module| module.items.iter().any(is_it))
    }

    /// The module that a path names, or the module and the name of a type.
    fn find(&self, place: &Place, path: &[String], imports: usize) -> Option<(Place, Option<String>)> {
        let module = self.0.get(place)?;
        let Some((first, rest)) = path.split_first() else { return Some((place.clone(), None)) };
        let (folder, names) = place;
        match first.as_str() {
            "crate" => return self.find(&(folder, Vec::new()), rest, imports),
            "self" => return self.find(place, rest, imports),
            "super" => return self.find(&(folder, names.split_last()?.1.to_vec()), rest, imports),
            _ => {}
        }
        if rest.is_empty() && module.types.contains_key(first) {
            return Some((place.clone(), Some(first.clone())));
        }
        let child = (*folder, [&names[..], std::slice::from_ref(first)].concat());
        if self.0.contains_key(&child) {
            return self.find(&child, rest, imports);
        }
        let imports = imports.checked_sub(1)?;
        if let Some(target) = module.imports.get(first).filter(|target| target[..] != path[..1]) {
            return self.find(place, &[target, rest].concat(), imports);
        }
        let package = first.strip_prefix("tracepoint_").unwrap_or(first).replace('_', "-");
        let is_package = first.starts_with("tracepoint_") || first == "datatrace";
        if let Some(folder) = CRATES.into_iter().find(|folder| is_package && *folder == package) {
            return self.find(&(folder, Vec::new()), rest, imports);
        }
        let globs = module.globs.iter().filter_map(|glob| self.find(place, glob, imports));
        globs.filter(|(_, name)| name.is_none()).find_map(|(place, _)| self.find(&place, path, imports))
    }
}

/// Each path of a `use`, with the name that it introduces; `None` for `*`.
fn leaves(tree: &UseTree) -> Vec<(Option<String>, Vec<String>)> {
    let leaf = |name: &syn::Ident, item: &syn::Ident| vec![(Some(name.to_string()), vec![item.to_string()])];
    match tree {
        UseTree::Path(tree) => {
            let first = tree.ident.to_string();
            let with_first = |(name, rest): (Option<String>, Vec<String>)| match &rest[..] {
                [last] if last == "self" => {
                    (name.filter(|name| name != "self").or(Some(first.clone())), vec![first.clone()])
                }
                _ => (name, [std::slice::from_ref(&first), &rest[..]].concat()),
            };
            leaves(&tree.tree).into_iter().map(with_first).collect()
        }
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Name(tree) => leaf(&tree.ident, &tree.ident),
        UseTree::Rename(tree) => leaf(&tree.rename, &tree.ident),
        UseTree::Glob(_) => vec![(None, Vec::new())],
    }
}

/// The name and the members of a public type.
fn type_of(item: &Item) -> Option<(String, BTreeSet<String>)> {
    match item {
        Item::Struct(item) if is_public(&item.vis, &item.attrs) => {
            let fields = item.fields.iter().filter(|field| is_public(&field.vis, &field.attrs));
            Some((item.ident.to_string(), fields.filter_map(|field| Some(field.ident.as_ref()?.to_string())).collect()))
        }
        Item::Enum(item) if is_public(&item.vis, &item.attrs) => {
            let variants = item.variants.iter().filter(|variant| !is_hidden(&variant.attrs));
            Some((item.ident.to_string(), variants.map(|variant| variant.ident.to_string()).collect()))
        }
        Item::Trait(item) if is_public(&item.vis, &item.attrs) => {
            let methods = item.items.iter().filter_map(|item| match item {
                TraitItem::Fn(item) if !is_hidden(&item.attrs) => Some(format!("{}()", item.sig.ident)),
                _ => None,
            });
            Some((item.ident.to_string(), methods.collect()))
        }
        Item::Type(item) if is_public(&item.vis, &item.attrs) => Some((item.ident.to_string(), BTreeSet::new())),
        _ => None,
    }
}

/// The public methods and constants of an implementation.
fn methods(items: &[ImplItem]) -> Vec<String> {
    let methods = items.iter().filter_map(|item| match item {
        ImplItem::Fn(item) if is_public(&item.vis, &item.attrs) => Some(format!("{}()", item.sig.ident)),
        ImplItem::Const(item) if is_public(&item.vis, &item.attrs) => Some(item.ident.to_string()),
        _ => None,
    });
    methods.collect()
}

fn is_public(vis: &Visibility, attributes: &[Attribute]) -> bool {
    matches!(vis, Visibility::Public(_)) && !is_hidden(attributes)
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc") && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
    })
}
