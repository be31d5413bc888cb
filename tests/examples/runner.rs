//! Runs examples: shell commands in a shell, the other languages in a process that takes one after the other.

use std::{path::Path, process::Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// A language of the examples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Shell,
    Python,
    TypeScript,
}

impl Language {
    /// Its name in the classes of code blocks.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shell => "sh",
            Self::Python => "python",
            Self::TypeScript => "typescript",
        }
    }
}

/// A folder to run examples in.
pub(super) struct Runner {
    language: Language,
    folder: TempDir,
    /// The process that runs one example after the other.
    driver: Option<(Child, ChildStdin, Lines<BufReader<ChildStdout>>)>,
}

impl Runner {
    /// `None`, with a line that says so, if the language is not installed.
    pub(super) fn start(language: Language) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // As a person would, with errors shown: curl succeeds with every status otherwise.
        std::fs::write(
            folder.path().join(".curlrc"),
            "silent\nshow-error\nfail-with-body\nnoproxy = \"*\"\n",
        )
        .unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let driver = match language {
            Language::Shell => return Some(Self { language, folder, driver: None }),
            Language::Python => command(&folder, "python3", &[], &here.join("driver.py")),
            Language::TypeScript => command(&folder, "node", &["--no-warnings"], &here.join("driver.mjs")),
        };
        let Ok(mut child) = driver else {
            println!("SKIPPED: there is no interpreter for the examples in {}", language.name());
            return None;
        };
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Some(Self { language, folder, driver: Some((child, input, BufReader::new(output).lines())) })
    }

    /// Runs an example, and returns what it printed or how it failed.
    pub(super) async fn run(
        &mut self,
        id: &str,
        code: &str,
        variables: &[(String, String)],
    ) -> Result<String, String> {
        let cookie = variables.iter().find(|(name, _)| name == "AGENT_MAILBOX_COOKIE");
        if let Some((name, value)) = cookie.and_then(|(_, cookie)| cookie.split_once('=')) {
            let line = format!("127.0.0.1\tFALSE\t/\tFALSE\t0\t{name}\t{value}\n");
            std::fs::write(self.folder.path().join("cookies.txt"), line).unwrap();
        }
        if id == "streamEvents" {
            return self.first_line(code, variables).await;
        }
        let Some((_, input, output)) = &mut self.driver else {
            let output = self.process(code, variables).output().await.unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let failed = String::from_utf8_lossy(&output.stderr).into_owned();
            return if output.status.success() { Ok(printed) } else { Err(format!("{printed}\n{failed}")) };
        };
        let variables: serde_json::Map<String, Value> =
            variables.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        let job = json!({ "id": id, "code": code, "env": variables });
        input.write_all(format!("{job}\n").as_bytes()).await.unwrap();
        let answer = output.next_line().await.unwrap().expect("the driver answers");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["printed"].as_str().unwrap().to_owned()),
        }
    }

    /// Runs an example without an end until it prints something.
    async fn first_line(&self, code: &str, variables: &[(String, String)]) -> Result<String, String> {
        let mut child = self.process(code, variables).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next_line().await.unwrap();
        child.kill().await.unwrap();
        first.ok_or_else(|| "it ended".to_owned())
    }

    /// A process of its own for an example.
    fn process(&self, code: &str, variables: &[(String, String)]) -> Command {
        let (program, arguments): (_, &[&str]) = match self.language {
            Language::Shell => ("sh", &["-c"]),
            Language::Python => ("python3", &["-c"]),
            Language::TypeScript => ("node", &["--input-type=module", "--eval"]),
        };
        let mut command = Command::new(program);
        command.args(arguments).arg(code).envs(variables.iter().cloned());
        surround(&mut command, &self.folder);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

fn command(folder: &TempDir, program: &str, options: &[&str], driver: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.args(options).arg(driver).stdin(Stdio::piped()).stderr(Stdio::inherit());
    surround(&mut command, folder);
    command.spawn()
}

/// The folder, and the stand-in for `requests`: it is found before the package, so that every machine runs the same.
fn surround(command: &mut Command, folder: &TempDir) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    command.current_dir(folder.path()).env("CURL_HOME", folder.path()).env("PYTHONPATH", here);
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdout(Stdio::piped()).kill_on_drop(true);
}
