//! The public API of the facade: the exported names, and the public methods, fields and variants of each type.
//!
//! Types are found by their names in the sources of the crates that the facade re-exports. Hidden items are left out.

use crate::{root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::{Attribute, ImplItem, Item, TraitItem, Type, UseTree, Visibility};

/// The crates whose items the facade re-exports.
const CRATES: [&str; 10] =
    ["core", "ring", "session", "session-spec", "session-io", "run-dir", "controller", "sinks", "probes", "reader"];

/// The exported names, with the members of each type.
#[derive(Default)]
pub struct Api {
    /// Members by the path of the type, or of another item, within the facade.
    pub names: BTreeMap<String, BTreeSet<String>>,
    /// The public types of all crates, by folder and name.
    types: BTreeMap<(&'static str, String), Members>,
    /// The modules that are files of their own and exported by the root of their crate.
    modules: BTreeSet<PathBuf>,
}

/// The members of the types of one name.
#[derive(Default)]
struct Members {
    is_public: bool,
    names: BTreeSet<String>,
}

impl Api {
    /// Reads the facade.
    ///
    /// # Panics
    ///
    /// If a source cannot be read.
    pub fn read() -> Self {
        let mut api = Self::default();
        for folder in CRATES {
            for path in rust_files(&root().join(folder).join("src")) {
                let file = parse(&std::fs::read_to_string(&path).expect("a source"));
                if path.ends_with("src/lib.rs") {
                    let modules = file.items.iter().filter_map(|item| match item {
                        Item::Mod(item) if is_public(&item.vis, &item.attrs) && item.content.is_none() => {
                            Some(file_of(&path, &item.ident.to_string()))
                        }
                        _ => None,
                    });
                    api.modules.extend(modules);
                }
                api.add_types(folder, &file.items);
            }
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
        let first = CRATES.into_iter().find(|other| folder.as_deref() == Some(other));
        let crates = || first.into_iter().chain(CRATES);
        let is_type = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        let members = is_type.then(|| crates().find_map(|folder| self.members(folder, name))).flatten().cloned();
        let full_name = format!("{prefix}{exported}");
        self.names.entry(full_name.clone()).or_default().extend(members.unwrap_or_default());
        // A module of another crate is a list of names as well; a crate is one by its root.
        let source = |folder: &str| root().join(folder).join("src");
        let file = match name.strip_prefix("tracepoint_") {
            Some(folder) => Some(source(folder).join("lib.rs")),
            None => crates()
                .map(|folder| source(folder).join(format!("{name}.rs")))
                .find(|file| self.modules.contains(file)),
        };
        if let Some(file) = file {
            self.module(&file, &format!("{full_name}::"));
        }
    }

    /// The members of the public types of that name in a crate; `None` if it has none.
    fn members(&self, folder: &'static str, name: &str) -> Option<&BTreeSet<String>> {
        self.types.get(&(folder, name.to_owned())).filter(|members| members.is_public).map(|members| &members.names)
    }

    /// Adds the public types that a module of a crate defines, and the methods that it implements.
    fn add_types(&mut self, folder: &'static str, items: &[Item]) {
        let mut add = |name: String, is_public: bool, names: Vec<String>| {
            let members = self.types.entry((folder, name)).or_default();
            members.is_public |= is_public;
            members.names.extend(names);
        };
        for item in items {
            match item {
                Item::Struct(item) if is_public(&item.vis, &item.attrs) => {
                    let fields = item.fields.iter().filter(|field| is_public(&field.vis, &field.attrs));
                    let names = fields.filter_map(|field| Some(field.ident.as_ref()?.to_string()));
                    add(item.ident.to_string(), true, names.collect());
                }
                Item::Enum(item) if is_public(&item.vis, &item.attrs) => {
                    let variants = item.variants.iter().filter(|variant| !is_hidden(&variant.attrs));
                    add(item.ident.to_string(), true, variants.map(|variant| variant.ident.to_string()).collect());
                }
                Item::Trait(item) if is_public(&item.vis, &item.attrs) => {
                    let methods = item.items.iter().filter_map(|item| match item {
                        TraitItem::Fn(item) if !is_hidden(&item.attrs) => Some(format!("{}()", item.sig.ident)),
                        _ => None,
                    });
                    add(item.ident.to_string(), true, methods.collect());
                }
                Item::Impl(item) if item.trait_.is_none() && !is_hidden(&item.attrs) => {
                    let Type::Path(ty) = &*item.self_ty else { continue };
                    let Some(ty) = ty.path.segments.last() else { continue };
                    let methods = item.items.iter().filter_map(|item| match item {
                        ImplItem::Fn(item) if is_public(&item.vis, &item.attrs) => {
                            Some(format!("{}()", item.sig.ident))
                        }
                        ImplItem::Const(item) if is_public(&item.vis, &item.attrs) => Some(item.ident.to_string()),
                        _ => None,
                    });
                    add(ty.ident.to_string(), false, methods.collect());
                }
                _ => {}
            }
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

fn is_public(vis: &Visibility, attributes: &[Attribute]) -> bool {
    matches!(vis, Visibility::Public(_)) && !is_hidden(attributes)
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc") && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
    })
}
