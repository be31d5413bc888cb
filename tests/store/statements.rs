//! Reads the store's sources: every statement on a table of workspaces' data names the workspace, and none goes through
//! all mail of a mailbox or a workspace to find some of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Statements that name no workspace and are in no function that takes a `SystemTx`, by file and function or constant.
/// The list may only become shorter: an entry that is no longer needed fails the test.
const ALLOWED: &[(&str, &str)] = &[
    // Its counts belong to the workspace of the row it selects, which both users of the text name.
    ("workspaces.rs", "SELECT"),
    // The state of its domain: that of the mailbox's own workspace.
    ("mailboxes.rs", "COLUMNS"),
    // The index of SQLite has no workspace: every text in it carries its mailbox as a word that is unique on the
    // server, and a row of it is reached by way of an email alone.
    ("search/index.rs", "INSERT_TEXT"),
    ("search/index.rs", "DELETE_TEXT"),
    ("search/index.rs", "insert_before"),
    ("search/postings.rs", "postings"),
    ("search/terms.rs", "MATCHING_SQLITE"),
];

/// Tables that grow with the mail of a workspace.
const GROWING: &[&str] = &[
    "attachment",
    "content",
    "delivery",
    "draft",
    "email",
    "email_label",
    "event",
    "outbound",
    "thread",
    "thread_folder",
    "thread_reference",
];
/// Statements that go through such a table, by file and function: each ends early or is not made by a call.
const GOES_THROUGH: &[(&str, &str)] = &[
    // Stops at a bound.
    ("backlog.rs", "count"),
    // Stops at the first one.
    ("drafts.rs", "next_due"),
    ("emails.rs", "arrival_before"),
    ("system.rs", "unscanned"),
    // A bounded number, when a mailbox is deleted.
    ("emails/change.rs", "any_batch"),
    // Its mails are gone by then; the engine looks whether they are.
    ("mailboxes.rs", "delete"),
    // When the server starts.
    ("drafts.rs", "release_all"),
    // What the operator asks for.
    ("search/index.rs", "coverage"),
    ("workspaces.rs", "delete"),
    ("queue.rs", "summary"),
    ("trace.rs", "list_in_mailbox"),
    // The sweeper of blobs.
    ("contents.rs", "uses_blob"),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates")
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The tables that have a `workspace_id`, from the migrations.
fn tenant_tables() -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    for file in files(&crates().join("store/migrations"), "sql") {
        let text = fs::read_to_string(file).unwrap();
        for table in text.split("CREATE TABLE ").skip(1) {
            let (name, rest) = table.split_once(" (").unwrap();
            if rest.split(");").next().unwrap().contains("workspace_id TEXT") {
                tables.insert(name.to_owned());
            }
        }
    }
    tables
}

/// A text in a source, and where it stands.
#[derive(Debug, PartialEq)]
struct Literal {
    text: String,
    /// The function or constant.
    place: String,
    /// Whether that function takes a `SystemTx`.
    crosses: bool,
}

/// The string literals of a source with the items they stand in. Knows just enough of Rust for this repository.
fn literals(source: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    // Open functions: the depth of their braces, their name, whether they take a SystemTx.
    let mut functions: Vec<(usize, String, bool)> = Vec::new();
    let (mut depth, mut constant, mut pending): (usize, String, Option<(String, bool)>) =
        (0, String::new(), None);
    let mut rest = source;
    while let Some(character) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("fn ") || rest.starts_with("const ") {
            let (word, after) = rest.split_once(' ').unwrap();
            let name: String =
                after.chars().take_while(|next| next.is_alphanumeric() || *next == '_').collect();
            if word == "fn" {
                let header = after.split(['{', ';']).next().unwrap_or_default();
                pending = Some((name, header.contains("SystemTx")));
            } else {
                constant = name;
            }
            rest = after;
        } else if let Some(after) = rest
            .strip_prefix("'\"'")
            .or_else(|| rest.strip_prefix("'{'"))
            .or_else(|| rest.strip_prefix("'}'"))
        {
            rest = after;
        } else if character == '"' {
            let (text, after) = string(&rest[1..]);
            let place = functions.last().map_or((&constant, false), |(_, name, crosses)| (name, *crosses));
            found.push(Literal { text, place: place.0.clone(), crosses: place.1 });
            rest = after;
        } else {
            match character {
                '{' => {
                    depth += 1;
                    functions.extend(pending.take().map(|(name, crosses)| (depth, name, crosses)));
                }
                '}' => {
                    functions.pop_if(|(opened, _, _)| *opened == depth);
                    depth = depth.saturating_sub(1);
                }
                ';' => pending = None,
                _ => {}
            }
            // A whole word at a time, so that `async_fn ` is not taken for `fn `.
            let word = rest
                .chars()
                .take_while(|next| next.is_alphanumeric() || *next == '_')
                .map(char::len_utf8)
                .sum();
            rest = &rest[character.len_utf8().max(word)..];
        }
    }
    found
}

/// Reads a literal up to its closing quotation mark.
fn string(rest: &str) -> (String, &str) {
    let mut text = String::new();
    let mut characters = rest.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (text, &rest[at + 1..]),
            '\\' => text.extend(
                characters.next().filter(|(_, escaped)| *escaped != '\n').map(|(_, escaped)| escaped),
            ),
            other => text.push(other),
        }
    }
    (text, "")
}

/// The tenant tables that a statement touches, each as often as it does.
fn touched<'a>(sql: &'a str, tables: &BTreeSet<String>) -> Vec<&'a str> {
    let words: Vec<&str> =
        sql.split(|character: char| !character.is_alphanumeric() && character != '_').collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let after_verb = words.windows(2).filter(|pair| ["FROM", "JOIN", "INTO", "UPDATE"].contains(&pair[0]));
    after_verb.map(|pair| pair[1]).filter(|table| tables.contains(*table)).collect()
}

/// Whether a statement names the workspace for each tenant table it touches.
fn names_workspace(sql: &str, touched: &[&str]) -> bool {
    let plain = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let inserts =
        touched.iter().filter(|table| plain.contains(&format!("INTO {table} (workspace_id,"))).count();
    inserts + plain.matches("workspace_id = $1").count() >= touched.len()
}

/// The statements of a source that name no workspace where they should.
fn faults(source: &str, tables: &BTreeSet<String>) -> Vec<Literal> {
    let is_fault = |literal: &Literal| {
        let touched = touched(&literal.text, tables);
        !touched.is_empty() && !literal.crosses && !names_workspace(&literal.text, &touched)
    };
    literals(source).into_iter().filter(is_fault).collect()
}

/// rules: STORE-10
#[test]
fn every_statement_names_its_workspace() {
    let tables = tenant_tables();
    assert!(tables.len() >= 17, "{tables:?}");
    let (mut used, mut statements) = (BTreeSet::<&(&str, &str)>::new(), 0);
    let root = crates().join("store/src");
    for path in files(&root, "rs").into_iter().filter(|path| !path.ends_with("tests.rs")) {
        let file = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let source = fs::read_to_string(&path).unwrap();
        statements +=
            literals(&source).iter().filter(|literal| !touched(&literal.text, &tables).is_empty()).count();
        for fault in faults(&source, &tables) {
            let entry = ALLOWED.iter().find(|(allowed, place)| *allowed == file && *place == fault.place);
            assert!(entry.is_some(), "{file}, {}: no workspace in: {}", fault.place, fault.text);
            used.extend(entry);
        }
    }
    assert!(statements > 60, "the scanner finds only {statements} statements");
    assert_eq!(used.len(), ALLOWED.len(), "entries that are no longer needed: only {used:?} are");
}

/// SQL on these tables stands in the store alone.
/// rules: STORE-10
#[test]
fn no_other_part_has_statements_of_its_own() {
    let tables = tenant_tables();
    for path in files(&crates(), "rs") {
        if path.starts_with(crates().join("store")) {
            continue;
        }
        for literal in literals(&fs::read_to_string(&path).unwrap()) {
            assert!(touched(&literal.text, &tables).is_empty(), "{}: {}", path.display(), literal.text);
        }
    }
}

/// rules: STORE-10
#[test]
fn a_statement_without_a_workspace_is_found() {
    let tables = tenant_tables();
    let faults = |source: &str| faults(source, &tables).len();
    let within =
        |sql: &str| format!("pub async fn f(tx: &mut Tx) -> Result<()> {{ tx.run(\"{sql}\", &[]).await }}");
    for wrong in [
        "SELECT id FROM mailbox",
        "SELECT id FROM mailbox WHERE id = $2",
        "UPDATE label SET name = $2 WHERE id = $3",
        "DELETE FROM api_key",
        "INSERT INTO folder (id, workspace_id) VALUES ($2, $1)",
        "SELECT 1 FROM member m JOIN invite i ON i.email = m.role WHERE m.workspace_id = $1",
        "SELECT (SELECT count(*) FROM audit) FROM payout WHERE workspace_id = $1",
    ] {
        assert_eq!(faults(&within(wrong)), 1, "{wrong}");
        let system = within(wrong).replace("&mut Tx", "&mut SystemTx");
        assert_eq!(faults(&system), 0, "{wrong}");
        assert_eq!(faults(&format!("const TEXT: &str = \"{wrong}\";")), 1, "{wrong}");
    }
    for right in [
        "SELECT id FROM mailbox WHERE workspace_id = $1 AND id = $2",
        "INSERT INTO folder (workspace_id, id) VALUES ($1, $2) ON CONFLICT (workspace_id, id) DO UPDATE SET id = $2",
        "SELECT id FROM account",
    ] {
        assert_eq!(faults(&within(right)), 0, "{right}");
    }
    // A function that crosses workspaces does not excuse its neighbours.
    let both = format!("fn s(tx: &mut SystemTx) {{ f(\"x\"); }}\n{}", within("DELETE FROM audit"));
    assert_eq!(faults(&both), 1);
}

/// A statement that selects everything where the columns of a record stand in it.
fn with_all_columns(sql: &str) -> String {
    let mut parts = sql.split("SELECT {");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str("SELECT *");
        all.push_str(part.split_once('}').unwrap().1);
    }
    all
}

/// The tables that SQLite goes through for a statement: from end to end, or all rows of a workspace or a mailbox.
fn goes_through(db: &rusqlite::Connection, sql: &str) -> Option<Vec<String>> {
    let sql = with_all_columns(sql).replace('$', "?");
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).ok()?;
    let mut rows = statement.raw_query();
    let mut tables = Vec::new();
    while let Ok(Some(row)) = rows.next() {
        let step: String = row.get(3).unwrap();
        let mut words = step.split(' ');
        let (kind, table) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let unguided =
            ["", " AND mailbox_id=?", " AND mailbox_id=? AND listed=?", " AND mailbox_id=? AND read=?"];
        if kind == "SCAN" || unguided.iter().any(|more| step.ends_with(&format!("(workspace_id=?{more})"))) {
            tables.push(table.to_owned());
        }
    }
    Some(tables)
}

/// rules: STORE-10
#[tokio::test]
async fn no_statement_goes_through_all_mail() {
    let server = testkit::Server::start(testkit::Engine::Sqlite).await;
    let db = rusqlite::Connection::open(server.folder().join("test.db")).unwrap();
    let (mut used, mut planned, mut faults) = (BTreeSet::<&(&str, &str)>::new(), 0, Vec::new());
    let root = crates().join("store/src");
    for path in files(&root, "rs").into_iter().filter(|path| !path.ends_with("tests.rs")) {
        let file = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        for literal in literals(&fs::read_to_string(&path).unwrap()) {
            let Some(tables) = goes_through(&db, &literal.text) else { continue };
            planned += 1;
            let Some(table) = tables.iter().find(|table| GROWING.contains(&table.as_str())) else { continue };
            let entry =
                GOES_THROUGH.iter().find(|(allowed, place)| *allowed == file && *place == literal.place);
            if entry.is_none() {
                faults.push(format!("{file}, {}: goes through {table}: {}", literal.place, literal.text));
            }
            used.extend(entry);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(planned > 150, "only {planned} statements were planned");
    assert_eq!(used.len(), GOES_THROUGH.len(), "entries that are no longer needed: only {used:?} are");
}
