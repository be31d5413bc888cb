//! Holds the rules of `docs/spec` and the tests together: every rule of a built part is cited by a test, and every
//! citation names a rule. `docs/spec/README.md` says how both are written.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

/// The id of a rule, such as `IDEM-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RuleId {
    part: String,
    number: u32,
}

impl RuleId {
    /// Reads an id; `None` when it is not written exactly as one.
    fn parse(text: &str) -> Option<Self> {
        let (part, number) = text.split_once('-')?;
        let number_is_plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        if !is_part_name(part) || !number_is_plain {
            return None;
        }
        Some(Self { part: part.to_owned(), number: number.parse().ok()? })
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.part, self.number)
    }
}

fn is_part_name(text: &str) -> bool {
    (2..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// One file of rules.
struct Part {
    file: String,
    name: String,
    built: bool,
    rules: Vec<(RuleId, String)>,
}

/// Reads one file of rules, or tells what is wrong with it.
fn parse_part(file: &str, text: &str) -> Result<Part, Vec<String>> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut faults = Vec::new();
    if !lines.next().is_some_and(|line| line.len() > 2 && line.starts_with("# ")) {
        faults.push(format!("{file}: the first line must be \"# Title\""));
    }
    let heading = lines.next().and_then(parse_heading);
    let (name, built) = heading.unwrap_or_else(|| {
        faults.push(format!("{file}: \"Part: NAME · State: built\" or \"… later\" must follow the title"));
        (String::new(), false)
    });
    if [lines.next(), lines.next()] != [Some("| Id | Rule |"), Some("| --- | --- |")] {
        faults.push(format!("{file}: the table must begin with \"| Id | Rule |\" and \"| --- | --- |\""));
    }
    let mut rules = Vec::new();
    for line in lines {
        match parse_row(line) {
            Some((id, rule)) if id.part == name => rules.push((id, rule)),
            Some((id, _)) => faults.push(format!("{file}: {id} does not belong to part {name}")),
            None => faults.push(format!("{file}: not a row \"| {name}-1 | Sentence. |\": {line}")),
        }
    }
    if rules.is_empty() {
        faults.push(format!("{file}: no rules"));
    }
    if faults.is_empty() { Ok(Part { file: file.to_owned(), name, built, rules }) } else { Err(faults) }
}

fn parse_heading(line: &str) -> Option<(String, bool)> {
    let (name, state) = line.strip_prefix("Part: ")?.split_once(" · State: ")?;
    let built = match state {
        "built" => true,
        "later" => false,
        _ => return None,
    };
    is_part_name(name).then(|| (name.to_owned(), built))
}

fn parse_row(line: &str) -> Option<(RuleId, String)> {
    let (id, rule) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
    rule.ends_with('.').then(|| Some((RuleId::parse(id)?, rule.to_owned())))?
}

/// Reads all files of rules, or tells everything that is wrong with them.
fn load_parts() -> Result<Vec<Part>, Vec<String>> {
    let folder = repository().join("docs/spec");
    let (mut parts, mut faults) = (Vec::new(), Vec::new());
    for path in files_under(&folder) {
        let file = shown(&path);
        if file.ends_with("/README.md") || path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        match parse_part(&file, &read(&path)) {
            Ok(part) => parts.push(part),
            Err(found) => faults.extend(found),
        }
    }
    faults.extend(repetitions(&parts));
    if faults.is_empty() { Ok(parts) } else { Err(faults) }
}

/// Names of parts and ids of rules that appear more than once.
fn repetitions(parts: &[Part]) -> Vec<String> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut faults = Vec::new();
    for part in parts {
        let ids = part.rules.iter().map(|(id, _)| id.to_string());
        for name in std::iter::once(part.name.clone()).chain(ids) {
            if let Some(earlier) = seen.insert(name.clone(), &part.file) {
                faults.push(format!("{}: {name} stands already in {earlier}", part.file));
            }
        }
    }
    faults
}

/// What a comment line cites: each item as written, with its id where it is one. Empty for all other lines.
fn citations(line: &str) -> Vec<(&str, Option<RuleId>)> {
    let line = line.trim();
    let Some(comment) = line.strip_prefix("//").or_else(|| line.strip_prefix('#')) else { return Vec::new() };
    let comment = comment.trim_start_matches(['/', '!']).trim_start();
    let Some(list) = comment.strip_prefix("rules:") else { return Vec::new() };
    list.split(',').map(str::trim).map(|item| (item, RuleId::parse(item))).collect()
}

/// All citations in tests, sources and scripts: where, the item as written, its id.
fn load_citations() -> Vec<(String, String, Option<RuleId>)> {
    let root = repository();
    let mut found = Vec::new();
    for path in ["tests", "crates", "scripts"].iter().flat_map(|folder| files_under(&root.join(folder))) {
        let file = shown(&path);
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let is_source = file.split('/').nth(2) == Some("src");
        let counts = match file.split('/').next() {
            // Also those that run in a browser, but not what they bring along.
            Some("tests") => is_rust || (file.starts_with("tests/browser/") && file.ends_with(".test.mjs")),
            Some("crates") => is_rust && is_source,
            _ => true,
        };
        if !counts {
            continue;
        }
        for (index, line) in read(&path).lines().enumerate() {
            for (item, id) in citations(line) {
                found.push((format!("{file}:{}", index + 1), item.to_owned(), id));
            }
        }
    }
    found
}

/// The files in a folder and its folders, sorted; none when there is no such folder.
fn files_under(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    paths.retain(|path| !path.ends_with("node_modules"));
    let within = |path: PathBuf| if path.is_dir() { files_under(&path) } else { vec![path] };
    paths.into_iter().flat_map(within).collect()
}

fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().map_or_else(|| panic!("{} has no parent", tests.display()), Path::to_path_buf)
}

/// A path as seen from the root of the repository.
fn shown(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).to_string_lossy().into_owned()
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn one_a_line<T: fmt::Display>(items: &[T]) -> String {
    items.iter().fold(String::new(), |mut text, item| {
        let _ = write!(text, "\n  {item}");
        text
    })
}

fn parts() -> Vec<Part> {
    load_parts().unwrap_or_else(|faults| panic!("the rules are not well written:{}", one_a_line(&faults)))
}

#[test]
fn the_list_of_parts_is_complete() {
    let readme = read(&repository().join("docs/spec/README.md"));
    let parts = parts();
    let is_listed = |part: &&Part| {
        let file = part.file.rsplit('/').next().unwrap_or_default();
        readme.lines().any(|line| {
            line.starts_with(&format!("| {} |", part.name)) && line.ends_with(&format!("]({file}) |"))
        })
    };
    let missing: Vec<&str> =
        parts.iter().filter(|part| !is_listed(part)).map(|part| part.file.as_str()).collect();
    assert!(missing.is_empty(), "docs/spec/README.md does not list:{}", one_a_line(&missing));
    assert!(parts.iter().any(|part| part.built), "no part is built");
}

#[test]
fn every_rule_of_a_built_part_is_cited_by_a_test() {
    let cited: Vec<RuleId> = load_citations().into_iter().filter_map(|(_, _, id)| id).collect();
    let built = parts().into_iter().filter(|part| part.built);
    let uncited: Vec<String> = built
        .flat_map(|part| part.rules)
        .filter(|(id, _)| !cited.contains(id))
        .map(|(id, rule)| format!("{id}: {rule}"))
        .collect();
    assert!(uncited.is_empty(), "{} rules are cited by no test:{}", uncited.len(), one_a_line(&uncited));
}

#[test]
fn every_citation_names_a_rule() {
    let known: Vec<RuleId> = parts().into_iter().flat_map(|part| part.rules).map(|(id, _)| id).collect();
    let faults: Vec<String> = load_citations()
        .into_iter()
        .filter(|(_, _, id)| !id.as_ref().is_some_and(|id| known.contains(id)))
        .map(|(place, item, id)| match id {
            Some(_) => format!("{place}: there is no rule {item}"),
            None => format!("{place}: {item:?} is not the id of a rule"),
        })
        .collect();
    assert!(faults.is_empty(), "wrong citations:{}", one_a_line(&faults));
}

#[test]
fn citations_are_comment_lines_that_begin_with_rules() {
    let ids = |line: &str| -> Vec<Option<String>> {
        citations(line).into_iter().map(|(_, id)| id.map(|id| id.to_string())).collect()
    };
    let both = [Some("META-3".to_owned()), Some("META-17".to_owned())];
    assert_eq!(ids("    // rules: META-3, META-17"), both);
    assert_eq!(ids("/// rules: META-3,META-17 "), both);
    assert_eq!(ids("//! rules: META-3, META-17"), both);
    assert_eq!(ids("# rules: META-3, META-17"), both);
    for none in ["rules: String,", "// The rules: META-3", "run(); // rules: META-3", "#[test]", ""] {
        assert!(ids(none).is_empty(), "{none}");
    }
    for wrong in
        ["META-1..META-3", "META-1 to META-3", "META-1-3", "meta-1", "META-01", "META-", "META-1.", ""]
    {
        assert_eq!(ids(&format!("// rules: {wrong}")), [None], "{wrong}");
    }
}

#[test]
fn faulty_parts_are_told() {
    let good = "# Title\n\nPart: META · State: built\n\n| Id | Rule |\n| --- | --- |\n| META-1 | Works. |\n";
    let part = parse_part("a.md", good).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert!(part.built && part.rules.len() == 1);
    assert_eq!(repetitions(&[part]), Vec::<String>::new());
    for (from, to) in [
        ("# Title", "Title"),
        ("State: built", "State: soon"),
        ("META ·", "Meta ·"),
        (" · State: built", ""),
        ("| Id | Rule |", "| Rule | Id |"),
        ("| META-1 |", "| META-one |"),
        ("| META-1 |", "| OTHER-1 |"),
        ("Works.", ""),
        ("| META-1 | Works. |\n", ""),
    ] {
        assert!(parse_part("a.md", &good.replace(from, to)).is_err(), "{from} as {to}");
    }
    let twice: Vec<Part> = ["a.md", "b.md"].iter().filter_map(|file| parse_part(file, good).ok()).collect();
    assert_eq!(repetitions(&twice).len(), 2);
}
