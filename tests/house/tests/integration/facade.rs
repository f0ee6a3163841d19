//! The exports of the facade match `facade.txt`: an addition to the API must be deliberate.

use std::collections::BTreeSet;
use syn::{Item, UseTree, Visibility};
use tracepoint_house::root;

/// The exported names below `items`, except hidden ones; those of an inline module with its name.
fn exported(items: &[Item], module: &str, names: &mut BTreeSet<String>) {
    for item in items {
        let attributes = match item {
            Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => &item.attrs,
            Item::Mod(item) if matches!(item.vis, Visibility::Public(_)) => &item.attrs,
            _ => continue,
        };
        let is_hidden = |attribute: &syn::Attribute| {
            attribute.path().is_ident("doc") && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
        };
        if attributes.iter().any(is_hidden) {
            continue;
        }
        match item {
            Item::Use(item) => leaves(&item.tree, module, names),
            Item::Mod(item) => {
                let (_, items) = item.content.as_ref().expect("the facade is one file");
                exported(items, &format!("{module}{}::", item.ident), names);
            }
            _ => {}
        }
    }
}

fn leaves(tree: &UseTree, module: &str, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, module, names),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, module, names)),
        UseTree::Name(name) => drop(names.insert(format!("{module}{}", name.ident))),
        UseTree::Rename(name) => drop(names.insert(format!("{module}{}", name.rename))),
        UseTree::Glob(_) => panic!("the facade lists what it exports, and has no `*`"),
    }
}

#[test]
fn the_facade_exports_what_is_listed() {
    let text = std::fs::read_to_string(root().join("tracepoint/src/lib.rs")).expect("the facade");
    let mut names = BTreeSet::new();
    exported(&syn::parse_file(&text).expect("Rust").items, "", &mut names);
    let list = root().join("tests/house/facade.txt");
    let listed = std::fs::read_to_string(&list).expect("the list");
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let [more, fewer] = [&names - &listed, &listed - &names];
    assert!(more.is_empty() && fewer.is_empty(), "not in {}: {more:?}; not exported: {fewer:?}", list.display());
}
