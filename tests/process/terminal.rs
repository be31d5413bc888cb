//! What the command line does with pipes, terminals and colours.

use std::{
    fs::File,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::{Home, free_port};

/// A reader that goes away early, as in `agent-mailbox --help | head -1`, is no failure.
/// rules: CLI-22
#[test]
fn a_closed_pipe_is_no_failure() {
    let home = Home::sqlite();
    home.create_account("ada@example.com", "free");
    for arguments in [
        ["--help"].as_slice(),
        &["admin", "--help"],
        &["config", "show"],
        &["openapi"],
        &["completions", "bash"],
        &["man"],
        &["doctor"],
        &["admin", "workspace", "list"],
        &["admin", "workspace", "list", "--json"],
    ] {
        let mut child = home.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*said), (Some(0), ""), "{arguments:?}");
    }
    // With standard error closed too, there is nowhere to complain.
    let mut child = home.command(&["admin", "key", "revoke", "key_0"]).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(1));
    // Output that is lost otherwise is a failure.
    let Ok(full) = File::create("/dev/full") else { return };
    let ended = home.command(&["openapi"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output"), "{said}");
}

/// A server whose log nobody reads any more goes on.
/// rules: CLI-22
#[test]
fn a_server_survives_the_end_of_its_log() {
    let listen = format!("127.0.0.1:{}", free_port());
    let home = Home::sqlite().with("HTTP__LISTEN", &listen);
    let mut child = home.command(&["serve"]).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    let begun = Instant::now();
    // Its start writes lines, and so does its end.
    while std::net::TcpStream::connect(&listen).is_err() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        assert!(begun.elapsed() < Duration::from_mins(1), "it does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// rules: CLI-23
#[test]
fn colours_are_for_terminals() {
    let home = Home::sqlite();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.command(arguments);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let done = command.envs(variables.iter().copied()).output().unwrap();
        String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).contains('\x1b')
    };
    for arguments in [["doctor"].as_slice(), &["--help"], &["docter"], &["admin", "key", "revoke", "key_0"]] {
        assert!(!run(arguments, &[]), "{arguments:?}: a pipe gets none");
        assert!(run(arguments, &[("CLICOLOR_FORCE", "1")]), "{arguments:?}");
        assert!(run(&[&["--color", "always"], arguments].concat(), &[("NO_COLOR", "1")]), "{arguments:?}");
        assert!(!run(&[&["--color=never"], arguments].concat(), &[("CLICOLOR_FORCE", "1")]), "{arguments:?}");
        assert!(!run(arguments, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), "{arguments:?}");
    }
    assert!(!run(&["doctor", "--json", "--color", "always"], &[]), "JSON has none");
}

/// rules: CLI-24
#[test]
fn every_command_has_a_manual_page() {
    let home = Home::sqlite();
    let page = home.run(&["man"]).succeeded().stdout;
    assert!(page.contains(".TH agent-mailbox 1") && page.contains("Run the server"), "{page}");
    let done = home.run(&["man", "--dir", "pages/man1"]).succeeded();
    let folder = home.folder.path().join("pages/man1");
    let count = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(done.stdout, format!("Wrote {count} manual pages to pages/man1.\n"));
    for name in ["agent-mailbox", "agent-mailbox-doctor", "agent-mailbox-admin-key-create"] {
        let page = folder.join(format!("{name}.1"));
        assert!(page.exists(), "{name}");
        let checked = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .arg(&page)
            .stdin(Stdio::null())
            .output();
        let Ok(checked) = checked else { continue };
        assert_eq!(String::from_utf8_lossy(&checked.stderr), "", "{name}");
    }
    assert!(!home.data().exists());
    let refused = home.run(&["man", "--dir", "/proc/nowhere"]).failed(1).stderr;
    assert!(refused.contains("/proc/nowhere"), "{refused}");
}
