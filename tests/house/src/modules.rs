//! The modules of a crate that have files of their own, and the paths by which they refer to each other.
//!
//! A path is followed through re-exports (`pub use child::Item`), so that a file that names `crate::Item` depends on the file of
//! `child`. Paths in macros are found in their tokens. Items under `#[cfg(test)]` are left out.

use crate::rust_files;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// A path from the crate's root, which itself is not in it.
pub type Name = Vec<String>;

/// A module, and the content of its file.
#[derive(Default)]
struct Module {
    /// The target of each name that a `use` introduces here.
    imports: BTreeMap<String, Name>,
    /// Modules whose items are imported with `*`.
    globs: Vec<Name>,
    /// All paths that begin in this crate.
    paths: BTreeSet<Name>,
    /// Modules below this one that have files and are for tests only.
    tests: Vec<Name>,
}

/// The modules of one crate.
#[derive(Default)]
pub struct Modules(BTreeMap<Name, Module>);

/// Maximum number of re-exports that a path is followed through.
const REEXPORTS: usize = 8;

impl Modules {
    /// Reads all files below the source directory of a crate.
    ///
    /// # Panics
    ///
    /// If a file is not valid Rust.
    pub fn read(source: &Path) -> Self {
        let mut modules = Self::default();
        let files: Vec<_> = rust_files(source).into_iter().map(|path| (name_of(source, &path), path)).collect();
        let names: BTreeSet<_> = files.iter().map(|(name, _)| name.clone()).collect();
        for (name, path) in files {
            let text = std::fs::read_to_string(&path).expect("a file that was found");
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut found = Found { at: name.clone(), inline: 0, names: &names, module: Module::default() };
            found.visit_file(&file);
            modules.0.insert(name, found.module);
        }
        let tests: Vec<_> = modules.0.values_mut().flat_map(|module| std::mem::take(&mut module.tests)).collect();
        modules.0.retain(|name, _| !tests.iter().any(|test| name.starts_with(test)));
        modules
    }

    /// The file that defines the item of a path.
    fn file_of(&self, path: &[String]) -> Name {
        let mut path = path.to_vec();
        for _ in 0..REEXPORTS {
            let longest = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length])).unwrap_or(0);
            let module = path[..longest].to_vec();
            let Some(item) = path.get(longest) else { return module };
            let Some(target) = self.0.get(&module).and_then(|found| found.imports.get(item)) else { return module };
            let target = [target, &path[longest + 1..]].concat();
            if target == path {
                return module;
            }
            path = target;
        }
        path
    }

    /// For each file, the files it depends on, except its ancestors and descendants.
    pub fn edges(&self) -> BTreeMap<Name, BTreeSet<Name>> {
        let edges_of = |(name, module): (&Name, &Module)| {
            let is_aside = |other: &Name| !other.starts_with(name) && !name.starts_with(other);
            let paths = module.paths.iter().chain(&module.globs);
            let targets = paths.map(|path| self.file_of(path)).filter(is_aside).collect();
            (name.clone(), targets)
        };
        self.0.iter().map(edges_of).collect()
    }
}

/// `src/a/b.rs` is `a::b`, and so is `src/a/b/mod.rs`.
pub(crate) fn name_of(source: &Path, path: &Path) -> Name {
    let relative = path.strip_prefix(source).expect("below the source directory").with_extension("");
    let mut name: Name = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if name.last().is_some_and(|last| last == "mod") || matches!(&name[..], [only] if only == "lib" || only == "main") {
        name.pop();
    }
    name
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

struct Found<'a> {
    at: Name,
    /// The number of modules without a file around the visited item.
    inline: usize,
    names: &'a BTreeSet<Name>,
    module: Module,
}

impl Found<'_> {
    /// A path from the root for one that begins with `crate`, `self`, `super`, or a module below this one.
    fn resolve(&self, segments: &[String]) -> Option<Name> {
        let mut at = self.at.clone();
        let mut inline = self.inline;
        let mut rest = segments;
        match rest.first()?.as_str() {
            "crate" => (at, rest) = (Name::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|first| first == "super") {
                    rest = &rest[1..];
                    // The module without a file is in this one.
                    if inline > 0 {
                        inline -= 1;
                    } else {
                        at.pop();
                    }
                }
            }
            child => {
                at.push(child.to_owned());
                let is_child = self.names.contains(&at);
                at.pop();
                if !is_child {
                    return None;
                }
            }
        }
        Some([at.as_slice(), rest].concat())
    }

    fn path(&mut self, segments: &[String]) {
        let path = self.resolve(segments);
        self.module.paths.extend(path);
    }

    /// Each path of a `use`, with the name that it gives.
    fn imports(&mut self, tree: &UseTree, before: &mut Vec<String>, is_public: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.imports(&path.tree, before, is_public);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.imports(tree, before, is_public);
                }
            }
            UseTree::Glob(_) => {
                if let Some(path) = self.resolve(before) {
                    self.module.globs.push(path);
                }
            }
            UseTree::Name(name) => self.import(before, name.ident.to_string(), &name.ident.to_string(), is_public),
            UseTree::Rename(rename) => {
                self.import(before, rename.ident.to_string(), &rename.rename.to_string(), is_public);
            }
        }
    }

    fn import(&mut self, before: &[String], item: String, given: &str, is_public: bool) {
        let mut path = before.to_vec();
        if item != "self" {
            path.push(item);
        }
        self.path(&path);
        if is_public && let Some(path) = self.resolve(&path) {
            self.module.imports.insert(given.to_owned(), path);
        }
    }

    /// Paths that begin with `crate` or `super` in the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let mut path = Vec::new();
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if ident == "crate" || ident == "super" => path.push(ident.to_string()),
                _ => {}
            }
            at += 1;
            if path.is_empty() {
                continue;
            }
            let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
            while let [first, second, TokenTree::Ident(ident), ..] = &tokens[at..] {
                if !is_colon(first) || !is_colon(second) {
                    break;
                }
                path.push(ident.to_string());
                at += 3;
            }
            self.path(&path);
        }
    }
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        match item {
            _ if !is_test(attributes) => visit::visit_item(self, item),
            Item::Mod(item) if item.content.is_none() => {
                self.module.tests.push([&self.at[..], &[item.ident.to_string()]].concat());
            }
            _ => {}
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.inline += 1;
        visit::visit_item_mod(self, item);
        self.inline -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.imports(&item.tree, &mut Vec::new(), !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_none() && segments.len() > 1 {
            self.path(&segments);
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {
        // `pub(in crate::a)` names a module, and uses nothing of it.
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone());
    }
}
