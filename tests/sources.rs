//! What must be true of the sources, because nothing else would notice.

use std::{fs, path::Path};

/// Every file of a folder and of those within it, with its name.
fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// A public async function that is not boxed is compiled again by every crate that calls it; ARCHITECTURE.md says more.
#[test]
fn operations_are_compiled_once() {
    let mut sources = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/operations/src"), &mut sources);
    let mut boxed = 0;
    for (name, source) in sources {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        for (place, line) in lines.iter().enumerate() {
            let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
            let is_generic = rest.split('(').next().unwrap().contains('<') || rest.contains(": impl ");
            let has_attribute = lines[..place].iter().rev().take_while(|line| line.starts_with("#["));
            let is_boxed = has_attribute.into_iter().any(|line| *line == "#[crate::boxed]");
            assert!(is_generic || is_boxed, "{name}:{}: give it #[crate::boxed]", place + 1);
            boxed += usize::from(is_boxed);
        }
    }
    assert!(boxed > 200, "{boxed}");
}
