//! Which file of a crate imports which, so that no two import each other, directly or in a circle.
//!
//! A parent that declares or re-exports its own children imports nothing. What a path names counts, not where it was
//! re-exported: `crate::App` is an import of the file that defines `App`.

mod circles;
mod imports;
mod modules;

use std::{fmt::Write as _, path::Path};

use self::{circles::circles, imports::imports, modules::Crate};

/// The files of a crate that form circles, and the names that tie them.
fn describe_circles(source: &Crate) -> String {
    let imports = imports(source);
    let mut text = String::new();
    for circle in circles(&imports) {
        writeln!(text, "  a circle of {}:", circle.len()).unwrap();
        for from in &circle {
            for (to, names) in imports[*from].iter().filter(|(to, _)| circle.contains(to)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                writeln!(text, "    {} -> {}: {}", source.files[*from], source.files[*to], names.join(", "))
                    .unwrap();
            }
        }
    }
    text
}

#[test]
fn no_two_files_of_a_crate_import_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut count = 0;
    for folder in std::fs::read_dir(&crates).unwrap() {
        let folder = folder.unwrap();
        let found = describe_circles(&Crate::read(&folder.path().join("src")));
        assert!(found.is_empty(), "files of {} import each other:\n{found}", folder.file_name().display());
        count += 1;
    }
    assert!(count > 10, "only {count} crates were looked at");
}

/// The wings of `operations`, from the ground floor up, and what puts them together: each imports those before it only.
const WINGS: [&str; 13] = [
    "core", "mailbox", "inbox", "outbox", "account", "recall", "notify", "agent", "payments", "upkeep",
    "assembly", "catalog", "workers",
];

/// How far up a file stands; nothing for `lib.rs`, which holds them all.
fn floor(file: &str) -> Option<usize> {
    let wing = file.split(['/', '.']).next().unwrap_or_default();
    if wing == "lib" {
        return None;
    }
    Some(WINGS.iter().position(|known| *known == wing).unwrap_or_else(|| panic!("{file} stands in no wing")))
}

#[test]
fn no_wing_imports_one_above_it() {
    let source = Crate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/operations/src"));
    let mut upward = String::new();
    for (from, imported) in imports(&source).iter().enumerate() {
        let Some(floor_from) = floor(&source.files[from]) else {
            assert!(imported.is_empty(), "lib.rs only declares and re-exports");
            continue;
        };
        for (to, names) in imported {
            if floor(&source.files[*to]).is_some_and(|floor_to| floor_to > floor_from) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                writeln!(upward, "  {} -> {}: {}", source.files[from], source.files[*to], names.join(", "))
                    .unwrap();
            }
        }
    }
    assert!(upward.is_empty(), "arrows that run up:\n{upward}");
}

/// The rules by which imports are found, on a crate that a test writes.
#[test]
fn imports_are_found_wherever_they_stand() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod c; mod d; pub use a::Thing; pub use c::*;");
    // In an expression, by a re-export, and in a macro.
    write("a.rs", "pub struct Thing; fn f() { crate::b::make(); } #[cfg(test)] mod tests { use crate::d; }");
    write("b/mod.rs", "mod inner; pub use inner::make; use self::inner::Other;");
    write("b/inner.rs", "use crate::Thing; pub fn make() -> Thing { Thing } pub struct Other;");
    write("c.rs", "pub fn see() { println!(\"{}\", super::d::NUMBER); }");
    write("d.rs", "use crate::c; pub const NUMBER: u8 = 1; fn g() { c::see() }");
    let source = Crate::read(folder.path());
    let found = imports(&source);
    let mut edges = Vec::new();
    for (from, to) in found.iter().enumerate() {
        edges.extend(to.keys().map(|to| format!("{} -> {}", source.files[from], source.files[*to])));
    }
    edges.sort();
    let wanted = [
        "a.rs -> b/inner.rs",
        "b/inner.rs -> a.rs",
        "b/mod.rs -> b/inner.rs",
        "c.rs -> d.rs",
        "d.rs -> c.rs",
    ];
    assert_eq!(edges, wanted);
    assert_eq!(circles(&found).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
}
