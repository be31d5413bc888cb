//! The modules of a crate as its files declare them, and what a path within it names.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Item, UseTree, Visibility};

/// A module by the names that lead to it from the root.
pub(super) type Name = Vec<String>;

/// What a name in a module stands for.
#[derive(Clone)]
enum Meaning {
    /// Something that is written down there.
    Defined,
    Module(Name),
    /// Another path, seen from that module.
    Alias(Vec<String>),
}

#[derive(Default)]
pub(super) struct Module {
    /// Its place in [`Crate::files`].
    pub(super) file: usize,
    names: HashMap<String, Vec<Meaning>>,
    /// Modules all names of which stand here too.
    globs: Vec<Vec<String>>,
}

pub(super) struct Crate {
    /// Paths within `src`.
    pub(super) files: Vec<String>,
    pub(super) modules: HashMap<Name, Module>,
    /// The parsed text of each file, with the module that it is.
    pub(super) texts: Vec<(Name, syn::File)>,
}

/// What a path leads to.
#[derive(Debug, PartialEq)]
pub(super) enum Target {
    Module(Name),
    /// Something that is defined in this file.
    File(usize),
}

impl Crate {
    pub(super) fn read(folder: &Path) -> Self {
        let root = ["lib.rs", "main.rs"].map(|name| folder.join(name)).into_iter().find(|path| path.exists());
        let mut source = Self { files: Vec::new(), modules: HashMap::new(), texts: Vec::new() };
        source.read_file(folder, &root.unwrap(), Vec::new());
        source
    }

    fn read_file(&mut self, folder: &Path, path: &Path, name: Name) {
        let text = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
        let file = self.files.len();
        self.files.push(path.strip_prefix(folder).unwrap().display().to_string());
        self.texts.push((name.clone(), text.clone()));
        // `mod.rs`, `lib.rs` and `main.rs` have their children beside them, `a.rs` in the folder `a`.
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let beside = matches!(stem, "mod" | "lib" | "main");
        let children = if beside { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        self.read_items(folder, &children, (name, file), &text.items);
    }

    fn read_items(&mut self, folder: &Path, children: &Path, (name, file): (Name, usize), items: &[Item]) {
        self.modules.insert(name.clone(), Module { file, ..Module::default() });
        for item in items {
            match item {
                Item::Mod(module) if is_for_tests(&module.attrs) => {}
                Item::Mod(module) => {
                    let child = extend(&name, &module.ident.to_string());
                    self.add(&name, module.ident.to_string(), Meaning::Module(child.clone()));
                    let below = children.join(module.ident.to_string());
                    if let Some((_, items)) = &module.content {
                        self.read_items(folder, &below, (child, file), items);
                    } else {
                        self.read_file(folder, &file_of(&below), child);
                    }
                }
                Item::Use(item) => self.add_use(&name, &item.tree),
                other => {
                    if let Some(defined) = defined_by(other) {
                        self.add(&name, defined.to_string(), Meaning::Defined);
                    }
                }
            }
        }
    }

    fn add(&mut self, module: &Name, name: String, meaning: Meaning) {
        self.modules.get_mut(module).unwrap().names.entry(name).or_default().push(meaning);
    }

    fn add_use(&mut self, module: &Name, tree: &UseTree) {
        for (path, leaf) in leaves(&[], tree) {
            match leaf {
                Leaf::All => self.modules.get_mut(module).unwrap().globs.push(path),
                Leaf::Named(name) => self.add(module, name, Meaning::Alias(path)),
            }
        }
    }

    /// What a path names where it stands in a module; nothing when it leads out of the crate.
    pub(super) fn resolve(&self, module: &Name, path: &[String]) -> Option<Target> {
        self.resolve_within(module, path, 16)
    }

    fn resolve_within(&self, module: &Name, path: &[String], steps: u8) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Some(Target::Module(Vec::new())),
            "self" => Some(Target::Module(module.clone())),
            "super" => Some(Target::Module(module[..module.len().checked_sub(1)?].to_vec())),
            name => self.look_up(module, name, steps),
        };
        let mut reached = start?;
        for (index, name) in rest.iter().enumerate() {
            let Target::Module(inside) = &reached else { break };
            if name == "super" {
                return self.resolve_within(inside, &rest[index..], steps);
            }
            // A name that nothing in sight defines comes from a macro of that module.
            let here = Target::File(self.modules[inside].file);
            reached = self.look_up(inside, name, steps).unwrap_or(here);
        }
        Some(reached)
    }

    fn look_up(&self, module: &Name, name: &str, steps: u8) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let here = &self.modules[module];
        let meanings = here.names.get(name).into_iter().flatten();
        let of = |meaning: &Meaning| match meaning {
            Meaning::Defined => Some(Target::File(here.file)),
            Meaning::Module(child) => Some(Target::Module(child.clone())),
            // `use name::…` of another crate of the same name would lead here again.
            Meaning::Alias(path) if path.len() == 1 && path[0] == name => None,
            Meaning::Alias(path) => self.resolve_within(module, path, steps),
        };
        let mut found: Vec<Target> = meanings.filter_map(of).collect();
        // A module and a function may have one name: what is defined tells more.
        found.sort_by_key(|target| matches!(target, Target::Module(_)));
        found.into_iter().next().or_else(|| {
            here.globs.iter().find_map(|path| match self.resolve_within(module, path, steps)? {
                Target::Module(from) if from != *module => self.look_up(&from, name, steps),
                _ => None,
            })
        })
    }
}

fn extend(name: &Name, child: &str) -> Name {
    name.iter().cloned().chain([child.to_owned()]).collect()
}

fn file_of(below: &Path) -> PathBuf {
    let beside = below.with_extension("rs");
    if beside.exists() { beside } else { below.join("mod.rs") }
}

pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |one: &Attribute| {
        let condition = one.meta.require_list();
        one.path().is_ident("cfg") && condition.is_ok_and(|list| list.tokens.to_string().contains("test"))
    };
    attributes.iter().any(is_test)
}

/// How a leaf of a `use` is called.
pub(super) enum Leaf {
    Named(String),
    All,
}

/// Every path that a `use` names.
pub(super) fn leaves(prefix: &[String], tree: &UseTree) -> Vec<(Vec<String>, Leaf)> {
    let with =
        |name: &syn::Ident| -> Vec<String> { prefix.iter().cloned().chain([name.to_string()]).collect() };
    match tree {
        UseTree::Path(path) => leaves(&with(&path.ident), &path.tree),
        UseTree::Group(group) => group.items.iter().flat_map(|tree| leaves(prefix, tree)).collect(),
        UseTree::Glob(_) => vec![(prefix.to_vec(), Leaf::All)],
        // `a::{self}` is `a`.
        UseTree::Name(name) if name.ident == "self" => {
            vec![(prefix.to_vec(), Leaf::Named(prefix.last().cloned().unwrap_or_default()))]
        }
        UseTree::Name(name) => vec![(with(&name.ident), Leaf::Named(name.ident.to_string()))],
        UseTree::Rename(renamed) if renamed.ident == "self" => {
            vec![(prefix.to_vec(), Leaf::Named(renamed.rename.to_string()))]
        }
        UseTree::Rename(renamed) => vec![(with(&renamed.ident), Leaf::Named(renamed.rename.to_string()))],
    }
}

/// Whether what is imported is passed on to others.
pub(super) fn is_passed_on(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

/// The name that an item defines.
fn defined_by(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::TraitAlias(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}
