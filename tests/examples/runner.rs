//! Runs examples: shell commands in a shell, the other languages in a process that takes one after the other.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

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
    driver: Option<Driver>,
}

/// A process that runs one example after the other.
struct Driver {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Driver {
    fn run(&mut self, job: &Value) -> Value {
        self.input.write_all(format!("{job}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).expect("the driver answers")
    }
}

impl Runner {
    /// `None`, with a line that says so, if the language is not installed.
    pub(super) fn start(language: Language) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // With errors shown: curl succeeds with every status otherwise.
        let settings = "silent\nshow-error\nfail-with-body\nnoproxy = \"*\"\n";
        std::fs::write(folder.path().join(".curlrc"), settings).unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let mut command = match language {
            Language::Shell => return Some(Self { language, folder, driver: None }),
            Language::Python => {
                let Some(python) = python() else {
                    println!("SKIPPED: Python has no requests here (scripts/requests installs it)");
                    return None;
                };
                Command::new(python)
            }
            Language::TypeScript => Command::new("node"),
        };
        command.arg(here.join(if language == Language::Python { "driver.py" } else { "driver.mjs" }));
        surround(&mut command, &folder);
        let Ok(mut child) = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn() else {
            println!("SKIPPED: there is no interpreter for the examples in {}", language.name());
            return None;
        };
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Some(Self { language, folder, driver: Some(Driver { child, input, output }) })
    }

    /// Runs an example, and returns what it printed or how it failed. The server answers on this runtime meanwhile.
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
        let process = self.process(code, variables);
        if id == "streamEvents" {
            return blocking(|| first_line(process)).await;
        }
        let Some(mut driver) = self.driver.take() else {
            return blocking(|| output(process)).await;
        };
        let variables: serde_json::Map<String, Value> =
            variables.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        let job = json!({ "id": id, "code": code, "env": variables });
        let (driver, answer) = blocking(move || {
            let answer = driver.run(&job);
            (driver, answer)
        })
        .await;
        self.driver = Some(driver);
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["printed"].as_str().unwrap().to_owned()),
        }
    }

    /// A process of its own for an example.
    fn process(&self, code: &str, variables: &[(String, String)]) -> Command {
        let (program, arguments): (String, &[&str]) = match self.language {
            Language::Shell => ("sh".to_owned(), &["-c"]),
            Language::Python => (python().unwrap(), &["-c"]),
            Language::TypeScript => ("node".to_owned(), &["--input-type=module", "--eval"]),
        };
        let mut command = Command::new(program);
        command.args(arguments).arg(code).envs(variables.iter().cloned());
        surround(&mut command, &self.folder);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn output(mut command: Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(printed) } else { Err(format!("{printed}\n{failed}")) }
}

/// Runs an example without an end until it prints something.
fn first_line(mut command: Command) -> Result<String, String> {
    let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    if line.is_empty() { Err("it ended".to_owned()) } else { Ok(line) }
}

/// The interpreter that has `requests`: the one that `scripts/requests` made, or that of the system.
fn python() -> Option<String> {
    let python = std::env::var("AGENT_MAILBOX_REQUESTS").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import requests"]).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success()).then_some(python)
}

/// Keeps an example's files in the folder, and its calls on this machine.
fn surround(command: &mut Command, folder: &TempDir) {
    command.current_dir(folder.path()).env("CURL_HOME", folder.path()).env("NO_PROXY", "*");
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdout(Stdio::piped());
}
