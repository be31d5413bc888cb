//! README.md and every page of docs/, executed: commands run in a fresh folder against the real program, in the order
//! in which a reader meets them, and configuration is checked by the program.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Home, Server, program};

/// Blocks that cannot be executed here, by page and first line. The list may only shrink.
const NOT_EXECUTED: &[(&str, &str, &str)] = &[
    ("README.md", "cargo run --release", "the program is built already; the test starts it"),
    ("README.md", "./scripts/test ", "runs this test"),
    ("docs/benchmarks.md", "./scripts/bench ", "takes an hour"),
    ("docs/mcp.md", "claude mcp add", "needs a client of somebody else"),
    ("docs/mcp.md", "import httpx2", "scripts/mcp-clients runs the same with the real package"),
    ("docs/operating.md", "$ grep -F", "the log is where the operator put it"),
    ("docs/operating.md", "[telemetry]", "needs a program that was built with OpenTelemetry"),
    ("docs/paying.md", "import { x402Client", "scripts/payment-clients runs the same with the real package"),
    ("docs/paying.md", "# pip install", "scripts/payment-clients runs the same with the real package"),
    ("docs/telegram.md", "curl -X POST", "needs a bot at Telegram"),
    (
        "docs/webhooks.md",
        "from standardwebhooks",
        "scripts/standardwebhooks runs the same with the real package",
    ),
];

/// A fenced block of a page.
#[derive(Debug)]
struct Block {
    page: String,
    line: usize,
    language: String,
    /// The file that the rest of the page knows it by, after the language.
    file: Option<String>,
    text: String,
}

impl Block {
    fn matches(&self, entry: &(&str, &str, &str)) -> bool {
        self.page == entry.0 && self.text.starts_with(entry.1)
    }

    fn is_excused(&self) -> bool {
        NOT_EXECUTED.iter().any(|entry| self.matches(entry))
    }
}

fn blocks(root: &Path, page: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let mut words = info.split_whitespace().map(ToOwned::to_owned);
                open = Some(Block {
                    page: page.to_owned(),
                    line: index + 1,
                    language: words.next().unwrap_or_default(),
                    file: words.next(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block does not end");
    blocks
}

/// README.md, which sets the variables, and then the pages.
fn all_blocks() -> Vec<Block> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut pages = vec!["README.md".to_owned()];
    let mut docs: Vec<String> = std::fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .map(|path| format!("docs/{}", path.file_name().unwrap().to_string_lossy()))
        .collect();
    docs.sort();
    pages.extend(docs);
    pages.iter().flat_map(|page| blocks(root, page)).collect()
}

/// A shell script that runs the blocks as somebody who pastes them, and ends at the first that fails.
fn script(blocks: &[&Block], server: &Server) -> String {
    // curl says with its status when a server refuses something.
    let mut script =
        "set -euo pipefail\ncurl() { command curl --fail-with-body --silent --show-error \"$@\"; }\n"
            .to_owned();
    for block in blocks {
        let _ = writeln!(script, "printf '\\n@@ {}:{}\\n'", block.page, block.line);
        match (block.language.as_str(), &block.file) {
            ("console", _) => {
                let commands = block.text.lines().filter_map(|line| line.strip_prefix("$ "));
                for command in commands {
                    let _ = writeln!(script, "{command}");
                }
            }
            (_, Some(file)) => {
                let _ = write!(script, "cat > {file} <<'END-OF-BLOCK'\n{}END-OF-BLOCK\n", block.text);
            }
            _ => script.push_str(&block.text),
        }
    }
    script
        .replace("127.0.0.1:8080", &server.address.to_string())
        .replace("127.0.0.1:2525", &server.smtp.to_string())
}

/// A folder as after `cargo run --release`, with the program on the path too.
fn install(folder: &Path) -> String {
    let bin = folder.join("target/release");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(program(), bin.join("agent-mailbox")).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// Whether a block is something to run, and not something that is shown.
fn is_command(block: &Block) -> bool {
    match block.language.as_str() {
        "sh" | "console" | "python" | "js" => true,
        "toml" | "json" | "yaml" | "text" => false,
        other => panic!("{}:{}: the language “{other}” of a block is not known here", block.page, block.line),
    }
}

#[test]
fn every_block_can_be_executed_or_stands_in_the_list() {
    let blocks = all_blocks();
    for entry in NOT_EXECUTED {
        let found = blocks.iter().filter(|block| block.matches(entry)).count();
        assert_eq!(found, 1, "{entry:?} excuses {found} blocks: keep the list as short as it can be");
    }
    for block in blocks.iter().filter(|block| block.language == "json") {
        serde_json::from_str::<serde_json::Value>(&block.text)
            .unwrap_or_else(|error| panic!("{}:{}: {error}", block.page, block.line));
    }
}

#[test]
fn commands_of_readme_and_docs_work_as_printed() {
    let blocks = all_blocks();
    let commands: Vec<&Block> =
        blocks.iter().filter(|block| is_command(block) && !block.is_excused()).collect();
    // No name server is asked for the domain and the webhook that the pages add.
    let home = Home::sqlite()
        .with("INBOUND__HTTP_SECRET", "a-secret-of-the-hook")
        .with("INBOUND__DNS_SERVERS", "127.0.0.1:9");
    let path = install(home.folder.path());
    let server = home.serve();
    let mut shell = Command::new("bash");
    for (name, value) in home.command(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell
        .env("PATH", path)
        .env("INBOUND_SECRET", "a-secret-of-the-hook")
        .env("NO_PROXY", "*")
        .current_dir(home.folder.path())
        .arg("-c")
        .arg(format!("exec 2>&1\n{}", script(&commands, &server)))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "a documented command failed ({}):\n{shown}", output.status);
    assert!(
        shown.contains("Your sign-in code is 482913."),
        "README's agent did not read its message:\n{shown}"
    );
    println!("{} blocks of commands were executed", commands.len());
}

#[test]
fn documented_configuration_passes_the_check() {
    let home = Home::sqlite();
    for block in all_blocks().iter().filter(|block| block.language == "toml" && !block.is_excused()) {
        let file: PathBuf = home.folder.path().join("documented.toml");
        std::fs::write(&file, &block.text).unwrap();
        let mut command = Command::new(program());
        command.current_dir(home.folder.path()).arg("--config").arg(&file).args(["config", "check"]);
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}:{}: {}{}",
            block.page,
            block.line,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
