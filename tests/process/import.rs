//! `import`: mbox files, Maildirs and single messages, with and without a server beside it.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use serde_json::json;

use super::{Finished, Home, Server, mail::Inbox, mail::message, text};

fn import(home: &Home, mailbox: &str, path: &Path) -> Finished {
    home.run(&["import", mailbox, path.to_str().unwrap()])
}

/// An mbox file as mail readers write it, with a line that had to be quoted in every message.
fn mbox(name: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut file, number| {
        let _ = write!(
            file,
            "From ann@remote.test Mon Jul 13 10:00:00 2026\nFrom: Ann <ann@remote.test>\nTo: you@agents.localhost\n\
             Subject: {name} {number}\nMessage-ID: <{name}.{number}@remote.test>\n\nLetter {number}\n>From here on\n\n"
        );
        file
    })
}

fn count(inbox: &Inbox, server: &Server) -> u64 {
    inbox.get(server, "/emails?limit=1")["totalCount"].as_u64().unwrap()
}

/// rules: RECV-25
#[test]
fn archives_come_in_beside_a_server_and_without_one() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let at = |name: &str| home.folder.path().join(name);
        fs::write(at("a.mbox"), mbox("alpha", 30)).unwrap();
        let done = import(&home, &inbox.address.to_uppercase(), &at("a.mbox")).succeeded();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("Imported 30 messages.\n", ""));
        let mail = inbox.only(&server, "alpha 7");
        assert_eq!(mail["body"], "Letter 7\nFrom here on\n", "{mail}");
        assert_eq!(mail["sender_authentication"]["inbound_provider"], json!(null));

        let single = message("One letter", "sealed");
        fs::write(at("one.eml"), &single).unwrap();
        let public_id = inbox.path.rsplit('/').next().unwrap();
        let done = import(&home, public_id, &at("one.eml")).succeeded();
        assert_eq!(done.stdout, "Imported 1 message.\n");
        let (other, path) = (message("Another letter", "told"), at("other.eml"));
        fs::write(&path, &other).unwrap();
        let told = home.run(&["import", public_id, path.to_str().unwrap(), "--json"]).succeeded().json();
        assert_eq!((&told["imported"], &told["bytes"]), (&json!(1), &json!(other.len())), "{told}");
        inbox.assert_readable(&server, "One letter", &single, "sealed");
        server.stop();

        for (folder, name) in [("cur", "1:2,S"), ("new", "2"), ("tmp", "3")] {
            fs::create_dir_all(at("Maildir").join(folder)).unwrap();
            fs::write(at("Maildir").join(folder).join(name), message(&format!("In {folder}"), "filed"))
                .unwrap();
        }
        fs::write(at("Maildir").join(".hidden"), "no mail").unwrap();
        let done = import(&home, &inbox.address, &at("Maildir")).succeeded();
        assert_eq!(done.stdout, "Imported 2 messages.\n", "what is in tmp is not finished");
        refusals(&home, &inbox);
        let server = home.serve();
        assert_eq!(count(&inbox, &server), 34);
        inbox.only(&server, "In cur");
        inbox.only(&server, "In new");
    }
}

fn refusals(home: &Home, inbox: &Inbox) {
    let at = |name: &str| home.folder.path().join(name);
    let said = import(home, &inbox.address, &at("missing.mbox")).failed(1).stderr;
    assert!(said.contains("missing.mbox") && said.contains("No such file"), "{said}");
    let said = import(home, "nobody-here@agents.localhost", &at("a.mbox")).failed(1).stderr;
    assert!(said.contains("Mailbox not found"), "{said}");
    fs::write(at("empty.mbox"), "").unwrap();
    let said = import(home, &inbox.address, &at("empty.mbox")).failed(1).stderr;
    assert!(said.contains("There are no messages"), "{said}");
    fs::write(at("program"), [0x7f, b'E', b'L', b'F', 2, 1, b':', b'\n']).unwrap();
    let said = import(home, &inbox.address, &at("program")).failed(1).stderr;
    assert!(said.contains("neither an mbox file nor a message"), "{said}");
    fs::create_dir_all(at("nothing")).unwrap();
    import(home, &inbox.address, &at("nothing")).failed(1);
}

/// rules: RECV-25
#[test]
fn a_large_archive_comes_in_while_others_read_and_write() {
    let home = Home::sqlite();
    let server = home.serve();
    let inbox = Inbox::new(&home, &server, "enterprise");
    let file = home.folder.path().join("large.mbox");
    fs::write(&file, mbox("large", 5000)).unwrap();
    std::thread::scope(|scope| {
        let importing = scope.spawn(|| import(&home, &inbox.address, &file).succeeded());
        let mut calls = 0;
        while !importing.is_finished() {
            let made = server.call(
                &inbox.key,
                "POST",
                &format!("{}/folders", inbox.path),
                &json!({ "name": format!("f{calls}") }),
            );
            assert_eq!(made.status, 201, "{}", made.body);
            calls += 1;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let done = importing.join().unwrap();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("Imported 5000 messages.\n", ""));
        assert!(calls > 3, "{calls}");
    });
    assert_eq!(count(&inbox, &server), 5000);
    let found = inbox.get(&server, "/search?query=subject:4711");
    assert_eq!(text(&found["emails"][0], "subject"), "large 4711");
    home.run(&["doctor"]);
}

/// A terminal sees how far it is; everything else gets the last line only.
#[test]
fn progress_is_for_terminals() {
    let home = Home::sqlite();
    let server = home.serve();
    let inbox = Inbox::new(&home, &server, "enterprise");
    let file = home.folder.path().join("few.mbox");
    fs::write(&file, mbox("few", 3)).unwrap();
    let command = home.command(&["import", &inbox.address, file.to_str().unwrap()]);
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    // It gives the command a terminal of its own.
    let mut script = Command::new("script");
    script.args(["-qec", &words.join(" "), "/dev/null"]).current_dir(home.folder.path());
    script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Ok(shown) = script.output() else {
        println!("skipped: no script(1)");
        return;
    };
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("] 100 %  3 messages"), "{shown:?}");
    assert!(shown.contains("Imported 3 messages."), "{shown:?}");
}
