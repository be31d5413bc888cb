//! The imports of each file: every path that it names, in `use` lines, expressions, types, attributes and macros.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{ItemMod, ItemUse, Macro, visit::Visit};

use super::modules::{Crate, Leaf, Name, Target, is_for_tests, is_passed_on, leaves};

/// For each file those that it imports, with the names that it takes from them.
pub(super) type Imports = Vec<BTreeMap<usize, BTreeSet<String>>>;

pub(super) fn imports(source: &Crate) -> Imports {
    let mut found: Imports = vec![BTreeMap::new(); source.files.len()];
    for (file, (module, text)) in source.texts.iter().enumerate() {
        let mut visitor = Visitor { source, file, module: module.clone(), found: &mut found[file] };
        visitor.visit_file(text);
    }
    found
}

struct Visitor<'a> {
    source: &'a Crate,
    file: usize,
    module: Name,
    found: &'a mut BTreeMap<usize, BTreeSet<String>>,
}

impl Visitor<'_> {
    fn note(&mut self, path: &[String]) {
        if let Some(Target::File(to)) = self.source.resolve(&self.module, path)
            && to != self.file
        {
            self.found.entry(to).or_default().insert(path.last().cloned().unwrap_or_default());
        }
    }

    /// Whether a path leads to something below this module.
    fn is_own_child(&self, path: &[String]) -> bool {
        let Some(Target::File(to)) = self.source.resolve(&self.module, path) else { return true };
        let (of, _) = &self.source.texts[to];
        of.len() > self.module.len() && of.starts_with(&self.module)
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(one) if one.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.end(&mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut path);
    }

    /// A name alone is a word of the macro, or was imported by a `use`.
    fn end(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.note(path);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if is_for_tests(&item.attrs) || item.content.is_none() {
            return;
        }
        self.module.push(item.ident.to_string());
        syn::visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for (path, leaf) in leaves(&[], &item.tree) {
            if is_passed_on(&item.vis) && self.is_own_child(&path) {
                continue;
            }
            match leaf {
                Leaf::Named(_) => self.note(&path),
                Leaf::All => {
                    if let Some(Target::Module(from)) = self.source.resolve(&self.module, &path) {
                        let to = self.source.modules[&from].file;
                        if to != self.file {
                            self.found.entry(to).or_default().insert("*".to_owned());
                        }
                    }
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names: Vec<String> = path.segments.iter().map(|one| one.ident.to_string()).collect();
            self.note(&names);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }
}
