//! The public API of the facade: the exported names, and the public methods, fields and variants of each type.
//!
//! Types are found by their names in the sources of the crates that the facade re-exports. Hidden items are left out.

use crate::{root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Type, UseTree, Visibility};

/// The crates whose items the facade re-exports.
const CRATES: [&str; 11] = [
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
    "wire",
];

/// The exported names, with the members of each type.
#[derive(Default)]
pub struct Api {
    /// Members by the path of the type, or of another item, within the facade.
    pub names: BTreeMap<String, BTreeSet<String>>,
    files: BTreeMap<PathBuf, String>,
}

impl Api {
    /// Reads the facade.
    ///
    /// # Panics
    ///
    /// If a source cannot be read.
    pub fn read() -> Self {
        let mut api = Self::default();
        for path in CRATES.iter().flat_map(|folder| rust_files(&root().join(folder).join("src"))) {
            let text = std::fs::read_to_string(&path).expect("a source");
            api.files.insert(path, text);
        }
        api.module(&root().join("tracepoint/src/lib.rs"), "");
        api
    }

    /// Adds the exports of a module's file.
    fn module(&mut self, file: &Path, prefix: &str) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.items(&parse(&text).items, file, prefix);
    }

    fn items(&mut self, items: &[Item], file: &Path, prefix: &str) {
        for item in items {
            let (vis, attributes, name) = match item {
                Item::Use(item) if is_public(&item.vis, &item.attrs) => {
                    self.leaves(&item.tree, &mut Vec::new(), prefix);
                    continue;
                }
                Item::Mod(item) if is_public(&item.vis, &item.attrs) => {
                    let (name, inner) = (item.ident.to_string(), format!("{prefix}{}::", item.ident));
                    self.names.entry(format!("{prefix}{name}")).or_default();
                    match &item.content {
                        Some((_, items)) => self.items(items, file, &inner),
                        None => self.module(&file_of(file, &name), &inner),
                    }
                    continue;
                }
                Item::Struct(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Enum(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Trait(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident),
                Item::Const(item) => (&item.vis, &item.attrs, &item.ident),
                Item::Type(item) => (&item.vis, &item.attrs, &item.ident),
                _ => continue,
            };
            if is_public(vis, attributes) {
                self.name(&[], &name.to_string(), &name.to_string(), prefix);
            }
        }
    }

    fn leaves(&mut self, tree: &UseTree, path: &mut Vec<String>, prefix: &str) {
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.leaves(&tree.tree, path, prefix);
                path.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.leaves(tree, path, prefix)),
            UseTree::Name(tree) => self.name(path, &tree.ident.to_string(), &tree.ident.to_string(), prefix),
            UseTree::Rename(tree) => self.name(path, &tree.ident.to_string(), &tree.rename.to_string(), prefix),
            UseTree::Glob(_) => panic!("the facade lists its exports, and has no `*`"),
        }
    }

    /// Adds the item `name` of a crate, exported as `exported`, with its members.
    fn name(&mut self, path: &[String], name: &str, exported: &str, prefix: &str) {
        let folder = path.first().and_then(|package| package.strip_prefix("tracepoint_"));
        let folder = folder.map(|folder| folder.replace('_', "-"));
        let first = folder.as_deref().filter(|folder| CRATES.contains(folder));
        let crates = || first.into_iter().chain(CRATES);
        let members = match name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase) {
            true => crates().find_map(|folder| self.members(folder, name)).unwrap_or_default(),
            false => BTreeSet::new(),
        };
        let full_name = format!("{prefix}{exported}");
        self.names.entry(full_name.clone()).or_default().extend(members);
        // A module of another crate is a list of names as well; a crate is one by its root.
        let source = |folder: &str| root().join(folder).join("src");
        let file = match name.strip_prefix("tracepoint_") {
            Some(folder) => Some(source(folder).join("lib.rs")),
            None => crates().map(|folder| source(folder).join(format!("{name}.rs"))).find(|file| self.is_module(file)),
        };
        if let Some(file) = file {
            self.module(&file, &format!("{full_name}::"));
        }
    }

    /// Whether a file is a module that its crate exports.
    fn is_module(&self, file: &Path) -> bool {
        let root = file.with_file_name("lib.rs");
        let declaration = format!("pub mod {};", file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default());
        self.files.contains_key(file) && self.files.get(&root).is_some_and(|text| text.contains(&declaration))
    }

    /// The members of the public types of that name in a crate; `None` if it has none.
    fn members(&self, folder: &str, name: &str) -> Option<BTreeSet<String>> {
        let source = root().join(folder).join("src");
        let mut members = BTreeSet::new();
        let mut is_defined = false;
        for (_, text) in self.files.range(source.clone()..).take_while(|(path, _)| path.starts_with(&source)) {
            if text.contains(name) {
                of_items(&parse(text).items, name, &mut is_defined, &mut members);
            }
        }
        is_defined.then_some(members)
    }
}

/// Adds the members of a type that a module defines or implements.
fn of_items(items: &[Item], name: &str, is_defined: &mut bool, members: &mut BTreeSet<String>) {
    let fields = |fields: &Fields, members: &mut BTreeSet<String>| {
        let public = fields.iter().filter(|field| is_public(&field.vis, &field.attrs));
        members.extend(public.filter_map(|field| Some(field.ident.as_ref()?.to_string())));
    };
    for item in items {
        match item {
            Item::Struct(item) if item.ident == name && is_public(&item.vis, &item.attrs) => {
                *is_defined = true;
                fields(&item.fields, members);
            }
            Item::Enum(item) if item.ident == name && is_public(&item.vis, &item.attrs) => {
                *is_defined = true;
                members.extend(item.variants.iter().filter(|v| !is_hidden(&v.attrs)).map(|v| v.ident.to_string()));
            }
            Item::Trait(item) if item.ident == name && is_public(&item.vis, &item.attrs) => {
                *is_defined = true;
                members.extend(item.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(item) if !is_hidden(&item.attrs) => Some(format!("{}()", item.sig.ident)),
                    _ => None,
                }));
            }
            Item::Impl(item) if item.trait_.is_none() && is_of(&item.self_ty, name) && !is_hidden(&item.attrs) => {
                members.extend(item.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(item) if is_public(&item.vis, &item.attrs) => Some(format!("{}()", item.sig.ident)),
                    ImplItem::Const(item) if is_public(&item.vis, &item.attrs) => Some(item.ident.to_string()),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
}

fn parse(text: &str) -> syn::File {
    syn::parse_file(text).expect("Rust")
}

/// The file of a module that another file declares.
fn file_of(parent: &Path, name: &str) -> PathBuf {
    let directory = match parent.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib") => parent.with_file_name(""),
        _ => parent.with_extension(""),
    };
    directory.join(format!("{name}.rs"))
}

fn is_of(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(ty) if ty.path.segments.last().is_some_and(|segment| segment.ident == name))
}

fn is_public(vis: &Visibility, attributes: &[Attribute]) -> bool {
    matches!(vis, Visibility::Public(_)) && !is_hidden(attributes)
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc") && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
    })
}
