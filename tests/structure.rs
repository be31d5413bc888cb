//! Which file of a crate imports which, so that no two import each other, directly or in a circle.
//!
//! A parent that declares or re-exports its own children imports nothing. What a path names counts, not where it was
//! re-exported: `crate::App` is an import of the file that defines `App`.

mod circles;
mod imports;
mod modules;

use std::{fmt::Write as _, path::Path};

use self::{circles::circles, imports::imports, modules::Crate};

/// How many files of a crate are part of a circle. The numbers only ever become smaller.
const IN_CIRCLES: [(&str, usize); 13] = [
    ("bench", 0),
    ("embed", 2),
    ("mail", 40),
    ("mcp", 5),
    ("model", 4),
    ("operations", 98),
    ("operations-macros", 0),
    ("pay", 0),
    ("server", 19),
    ("store", 23),
    ("testkit", 6),
    ("testkit-macros", 0),
    ("web", 85),
];

/// The files that form circles, and the names that tie them.
fn describe(source: &Crate) -> (usize, String) {
    let imports = imports(source);
    let (mut files, mut text) = (0, String::new());
    for circle in circles(&imports) {
        files += circle.len();
        writeln!(text, "  a circle of {}:", circle.len()).unwrap();
        for from in &circle {
            for (to, names) in imports[*from].iter().filter(|(to, _)| circle.contains(to)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                writeln!(text, "    {} -> {}: {}", source.files[*from], source.files[*to], names.join(", "))
                    .unwrap();
            }
        }
    }
    (files, text)
}

#[test]
fn no_more_files_import_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut seen = Vec::new();
    for (name, most) in IN_CIRCLES {
        let (files, text) = describe(&Crate::read(&crates.join(name).join("src")));
        seen.push((name, files));
        assert!(files <= most, "{name}: {files} files are in circles, {most} were before:\n{text}");
    }
    let mut all: Vec<String> = std::fs::read_dir(&crates)
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    assert_eq!(IN_CIRCLES.map(|(name, _)| name.to_owned()).as_slice(), all, "every crate is looked at");
    assert_eq!(seen, IN_CIRCLES, "fewer than before: lower the numbers in {}", file!());
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
