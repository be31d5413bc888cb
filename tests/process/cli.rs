//! Commands that need no running server: accounts, keys, workspaces, payouts, the configuration, and their errors.

use serde_json::{Value, json};

use super::{Home, PASSWORD, text};

/// rules: CLI-5, CLI-6, CLI-7
#[test]
fn accounts_keys_and_workspaces_are_made_and_listed() {
    for home in Home::on_each_engine() {
        let created = home.admin(&[
            "account",
            "create",
            "--email",
            "Ada@Example.com",
            "--password-stdin",
            "--workspace-name",
            "Engines",
            "--plan",
            "developer",
        ]);
        let workspace = text(&created, "workspace_id");
        assert!(
            workspace.starts_with("ws_") && text(&created, "owner_address").starts_with("0x"),
            "{created}"
        );
        assert_eq!(created.as_object().unwrap().len(), 3, "{created}");
        let (id, key) = home.create_key(&workspace, &["--name", "one", "--role", "member"]);
        assert!(id.starts_with("key_") && key.len() > 40);
        // An account's address stands for its workspace.
        home.create_key("ada@example.com", &[]);
        let keys = home.admin(&["key", "list", "--workspace", "ada@example.com"]);
        let one = keys.as_array().unwrap().iter().find(|one| one["id"] == json!(id)).unwrap();
        assert_eq!(
            (keys.as_array().unwrap().len(), &one["name"], &one["role"]),
            (2, &json!("one"), &json!("member"))
        );
        assert!(!keys.to_string().contains(&key), "secrets are shown once");
        let listed = home.admin(&["workspace", "list"]);
        assert_eq!(listed.as_array().unwrap().len(), 1);
        assert_eq!(listed[0]["id"], json!(workspace));
        assert_eq!((&listed[0]["plan"], &listed[0]["name"]), (&json!("developer"), &json!("Engines")));
        assert_eq!(listed[0]["api_key_count"], json!(2));
        let moved = home.admin(&["workspace", "set-plan", &workspace, "enterprise"]);
        assert_eq!(moved, json!({ "workspace_id": workspace, "plan": "enterprise" }));
        assert_eq!(home.admin(&["key", "revoke", &id])["id"], json!(id));
        let listed = home.admin(&["workspace", "list"]);
        assert_eq!((&listed[0]["plan"], &listed[0]["api_key_count"]), (&json!("enterprise"), &json!(1)));
    }
}

/// rules: CLI-25
#[test]
fn a_key_is_narrowed_by_scopes_and_mailboxes() {
    for home in Home::on_each_engine() {
        let workspace = home.create_account("ada@example.com", "developer");
        let (_, key) = home.create_key(&workspace, &[]);
        let server = home.serve();
        let body = json!({ "name": "Box" });
        let mailbox = server.call(&key, "POST", "/api/v1/mailboxes", &body).json();
        let address = text(&mailbox, "email");
        let narrowing = ["--scope", "read", "--scope", "send", "--mailbox", &address];
        let (id, narrowed) = home.create_key(&workspace, &narrowing);
        let me = server.call(&narrowed, "GET", "/api/v1/me", &Value::Null).json();
        assert_eq!((&me["id"], &me["scopes"]), (&json!(id), &json!(["read", "send"])));
        assert_eq!((&me["mailbox_ids"], &me["role"]), (&json!([mailbox["id"]]), &json!("admin")));
        let full = server.call(&key, "GET", "/api/v1/me", &Value::Null).json();
        assert_eq!((&full["scopes"], &full["mailbox_ids"]), (&json!(null), &json!(null)));
        let keys = home.admin(&["key", "list", "--workspace", &workspace]);
        let listed = keys.as_array().unwrap().iter().find(|one| one["id"] == json!(id)).unwrap();
        assert_eq!((&listed["scopes"], &listed["mailbox_ids"]), (&me["scopes"], &me["mailbox_ids"]));
        let shown = home.run(&["admin", "key", "list", "--workspace", &workspace]);
        assert!(shown.stdout.contains("read,send, 1 mailbox"), "{}", shown.stdout);
        let start = ["admin", "key", "create", "--workspace", &workspace, "--json"];
        let unknown = home.run(&[&start[..], &["--mailbox", "nobody@agents.localhost"]].concat()).failed(1);
        assert_eq!(unknown.json()["code"], json!("validation_failed"));
        home.run(&[&start[..], &["--scope", "reed"]].concat()).failed(2);
    }
}

/// rules: AUDIT-7, AUDIT-10
#[test]
fn commands_leave_entries_that_are_listed() {
    for home in Home::on_each_engine() {
        let workspace = home.create_account("ada@example.com", "developer");
        let (id, key) = home.create_key(&workspace, &["--name", "one"]);
        home.admin(&["workspace", "set-plan", &workspace, "free"]);
        home.admin(&["key", "revoke", &id]);
        home.admin(&["dkim", "list"]);
        let listed = home.admin(&["audit", "--workspace", "ada@example.com"]);
        let entries = listed.as_array().unwrap();
        let names: Vec<&str> = entries.iter().map(|entry| entry["operation"].as_str().unwrap()).collect();
        assert_eq!(names, ["revokeApiKey", "setPlan", "createApiKey", "createAccount"]);
        let commands: Vec<&str> = entries.iter().map(|entry| entry["subject"].as_str().unwrap()).collect();
        let expected =
            ["admin key revoke", "admin workspace set-plan", "admin key create", "admin account create"];
        assert_eq!(commands, expected);
        for entry in entries {
            assert_eq!(entry["actor"]["kind"], "operator", "{entry}");
            let user = entry["address"].as_str().unwrap();
            assert!(!user.is_empty() && entry["actor"]["name"] == user, "{entry}");
        }
        assert!(!listed.to_string().contains(&key), "secrets are in no entry");
        let one = home.admin(&["audit", "--workspace", &workspace, "--limit", "1"]);
        assert_eq!(one.as_array().unwrap().len(), 1);
    }
}

/// rules: CLI-7
#[test]
fn payouts_are_noted() {
    let home = Home::sqlite();
    let workspace = home.create_account("ada@example.com", "free");
    let mut arguments = vec!["payout", "add", "--workspace", &workspace, "--amount-cents", "1250"];
    arguments.extend(["--currency", "usd", "--status", "paid", "--period-start", "2026-06-01T00:00:00Z"]);
    arguments.extend(["--period-end", "2026-07-01T00:00:00Z", "--reference", "transfer 7"]);
    let payout = home.admin(&arguments);
    assert_eq!((&payout["amount_cents"], &payout["currency"]), (&json!(1250), &json!("USD")));
    assert_eq!((&payout["status"], &payout["reference"]), (&json!("paid"), &json!("transfer 7")));
    assert_eq!(payout["period_end"], json!("2026-07-01T00:00:00.000Z"));
}

/// rules: CLI-6
#[test]
fn a_plan_limits_its_keys() {
    for home in Home::on_each_engine() {
        let workspace = home.create_account("ada@example.com", "free");
        home.create_key(&workspace, &[]);
        let arguments = ["admin", "key", "create", "--workspace", &workspace];
        let refused = home.run(&[arguments.as_slice(), &["--json"]].concat()).failed(1);
        assert_eq!(refused.json()["code"], json!("quota_exceeded"), "{}", refused.stdout);
        assert_eq!(refused.stderr, "");
        let refused = home.run(&arguments).failed(1);
        assert_eq!(refused.stdout, "");
        assert!(refused.stderr.contains("API keys"), "{}", refused.stderr);
    }
}

/// rules: CLI-9
#[test]
fn errors_say_what_is_wrong_and_end_with_1() {
    let home = Home::sqlite();
    home.create_account("ada@example.com", "free");
    let account = |email| ["admin", "account", "create", "--email", email, "--password-stdin", "--json"];
    let code = |arguments: &[&str], input: &str| -> Value {
        let finished = home.run_with_input(arguments, input).failed(1);
        assert!(finished.json()["error"].is_string(), "{}", finished.stdout);
        finished.json()["code"].clone()
    };
    assert_eq!(code(&account("ADA@example.com"), PASSWORD), json!("account_exists"));
    assert_eq!(code(&account("bob@example.com"), "short"), json!("validation_failed"));
    assert_eq!(code(&account("bob"), PASSWORD), json!("validation_failed"));
    assert_eq!(code(&account("bob@example.com"), ""), json!("failed"));
    let none = "ws_00000000000000000000000000";
    assert_eq!(code(&["admin", "key", "create", "--workspace", none, "--json"], ""), json!("not_found"));
    assert_eq!(
        code(&["admin", "key", "create", "--workspace", "x@example.com", "--json"], ""),
        json!("not_found")
    );
    assert_eq!(code(&["admin", "key", "revoke", "key_0", "--json"], ""), json!("not_found"));
    assert_eq!(code(&["admin", "workspace", "set-plan", none, "free", "--json"], ""), json!("not_found"));
}

/// A folder that is mistyped does not become a store: only the server creates one, and an account in an empty folder.
/// rules: CLI-19
#[test]
fn a_wrong_folder_does_not_become_a_store() {
    for home in Home::on_each_engine() {
        let refuse_all = |reason: &str| {
            for arguments in [
                ["admin", "workspace", "list"].as_slice(),
                &["admin", "account", "create", "--email", "ada@example.com", "--password-stdin"],
                &["admin", "key", "create", "--workspace", "ada@example.com"],
                &["admin", "dkim", "list"],
                &["admin", "payments", "totals"],
                &["admin", "trace", "eml_1"],
                &["import", "ada@agents.localhost", "Cargo.toml"],
                &["backup", "saved"],
                &["reindex"],
            ] {
                let refused = home.run_with_input(arguments, PASSWORD).failed(1);
                assert_eq!(refused.stdout, "", "{arguments:?}");
                let folder = home.data();
                for part in [reason, folder.to_str().unwrap(), "no Agent Mailbox store", "--data-dir"] {
                    assert!(refused.stderr.contains(part), "{arguments:?}: {part}: {}", refused.stderr);
                }
                let told = home.run_with_input(&[arguments, &["--json"]].concat(), PASSWORD).failed(1);
                assert_eq!(
                    (&told.json()["code"], told.stderr.as_str()),
                    (&json!("no_store"), ""),
                    "{arguments:?}"
                );
                assert!(told.json()["fix"].is_string());
            }
        };
        refuse_all("");
        assert!(!home.data().exists() && !home.folder.path().join("saved").exists());
        // A folder of something else stays as it is.
        home.make_folder();
        std::fs::write(home.data().join("notes.txt"), "mine").unwrap();
        refuse_all("");
        assert_eq!(std::fs::read_dir(home.data()).unwrap().count(), 1);
        let looked = home.run(&["doctor"]);
        assert!(
            looked.stdout.contains("is empty") || looked.stdout.contains("does not exist yet"),
            "{}",
            looked.stdout
        );
        // An empty one that somebody made is meant.
        std::fs::remove_file(home.data().join("notes.txt")).unwrap();
        home.create_account("ada@example.com", "free");
        assert_eq!(home.admin(&["workspace", "list"]).as_array().unwrap().len(), 1);
    }
}

/// rules: CLI-21
#[test]
fn every_command_speaks_json() {
    let home = Home::sqlite();
    home.create_account("ada@example.com", "free");
    let json = |arguments: &[&str]| home.run(&[arguments, &["--json"]].concat()).succeeded().json();
    assert_eq!(json(&["config", "check"]), json!({ "ok": true }));
    let shown = json(&["config", "show"]);
    assert_eq!(shown["smtp.listen"]["source"], "AGENT_MAILBOX__SMTP__LISTEN");
    assert_eq!(shown["log.level"], json!({ "value": "info", "source": "default" }));
    assert_eq!(json(&["reindex"]), json!({ "indexed": 0 }));
    let saved = json(&["backup", "saved"]);
    assert!(
        saved["rows"].as_u64().unwrap() > 0 && saved["dir"].as_str().unwrap().ends_with("/saved"),
        "{saved}"
    );
    for empty in [["admin", "payments", "list"], ["admin", "payments", "totals"]] {
        assert_eq!(json(&empty), json!([]));
    }
    let pages = json(&["man", "--dir", "pages"]);
    assert!(pages["files"].as_array().unwrap().len() > 20, "{pages}");
    let other = Home::sqlite();
    other.make_folder();
    std::fs::copy(home.data().join("master.key"), other.data().join("master.key")).unwrap();
    let from = home.folder.path().join("saved");
    let restored = other.run(&["restore", from.to_str().unwrap(), "--json"]).succeeded().json();
    assert_eq!(restored["rows"], saved["rows"], "{restored}");
    // Mistakes on the command line are no exception.
    let refused = home.run(&["docter", "--json"]).failed(2);
    assert_eq!((&refused.json()["code"], refused.stderr.as_str()), (&json!("usage"), ""));
    assert!(refused.json()["fix"].as_str().unwrap().contains("doctor"), "{}", refused.stdout);
    let refused = home.run(&["import", "nobody@agents.localhost", "saved", "--json"]).failed(1);
    assert_eq!(refused.json()["code"], json!("not_found"));
}

/// rules: CLI-2, CLI-9
#[test]
fn wrong_usage_ends_with_2() {
    let home = Home::sqlite();
    for arguments in [
        ["admin", "account", "create", "--email", "ada@example.com"].as_slice(),
        &["admin", "workspace", "set-plan", "ws_0", "gold"],
        &["admin", "key", "create", "--workspace", "ws_0", "--expires-in", "soon"],
        &["admin", "payments", "list", "--state", "zzz"],
        &["serve", "--roles", "imap"],
        &["fly"],
        &["--colour"],
    ] {
        let refused = home.run(arguments).failed(2);
        assert!(refused.stderr.contains("error:"), "{arguments:?}: {}", refused.stderr);
        assert!(!home.data().exists(), "{arguments:?}: nothing is made");
    }
}

#[test]
fn people_get_lines_instead_of_json() {
    let home = Home::sqlite();
    home.make_folder();
    let arguments = ["admin", "account", "create", "--email", "ada@example.com", "--password-stdin"];
    let created = home.run_with_input(&arguments, &format!("{PASSWORD}\r\n")).succeeded();
    assert!(created.stdout.contains("Workspace  ws_"), "{}", created.stdout);
    assert!(!created.stdout.contains(PASSWORD));
    let key = home
        .run(&["admin", "key", "create", "--workspace", "ada@example.com", "--expires-in", "1d"])
        .succeeded();
    assert!(
        key.stdout.contains("Expires  ") && key.stdout.contains("curl -H 'x-api-key: "),
        "{}",
        key.stdout
    );
    let listed = home.run(&["admin", "workspace", "list"]).succeeded();
    assert!(listed.stdout.ends_with("1 workspace\n"), "{}", listed.stdout);
    for what in ["list", "totals"] {
        let nothing = home.run(&["admin", "payments", what]).succeeded();
        assert_eq!(nothing.stdout, "No payments.\n", "{what}");
    }
    let refused = home.run(&["admin", "payments", "list", "--state", "zzz"]).failed(2);
    assert!(refused.stderr.contains("expected one of settling, "), "{}", refused.stderr);
}

/// rules: CLI-4
#[test]
fn the_configuration_is_checked_as_a_whole() {
    let home = Home::sqlite();
    let fine = home.run(&["config", "check"]).succeeded();
    assert_eq!(fine.stdout, "The configuration is fine.\n");
    let file = home.folder.path().join("agent-mailbox.toml");
    std::fs::write(&file, "sign_up = 'maybe'\n[http]\nlisen = 1\n[plans.free]\nrpm = -1\n").unwrap();
    let home = home.with("DATABASE__URL", "mysql://me:hush@db/x");
    for arguments in [["config", "check"].as_slice(), &["serve"], &["admin", "workspace", "list"]] {
        let refused = home.run(arguments).failed(1);
        for part in
            ["sign_up: ", "http.lisen: ", "did you mean http.listen?", "database.url: ", "plans.free.rpm: "]
        {
            assert!(refused.stderr.contains(part), "{part} is missing: {}", refused.stderr);
        }
        assert!(!refused.stderr.contains("hush"), "{}", refused.stderr);
    }
    let refused = home.run(&["admin", "workspace", "list", "--json"]).failed(1);
    assert_eq!(refused.json()["code"], json!("configuration_invalid"));
    assert_eq!(refused.json()["details"].as_array().unwrap().len(), 4, "{}", refused.stdout);
    let missing = home.run(&["--config", "other.toml", "config", "check"]).failed(1);
    assert!(missing.stderr.contains("other.toml"), "{}", missing.stderr);
}

/// rules: CLI-10
#[test]
fn the_configuration_is_shown_without_secrets() {
    let key = "0123456789abcdef".repeat(4);
    let home =
        Home::sqlite().with("VAULT__MASTER_KEY", &key).with("DATABASE__URL", "postgres://me:hush@db/x");
    let shown = home.run(&["config", "show"]).succeeded().stdout;
    assert!(!shown.contains(&key) && !shown.contains("hush"), "{shown}");
    assert!(shown.contains("url = \"postgres://me:***@db/x\"  # AGENT_MAILBOX__DATABASE__URL"), "{shown}");
    assert!(shown.contains("[plans.enterprise]"), "{shown}");
}

#[test]
fn documents_are_printed() {
    let home = Home::sqlite();
    let document = home.run(&["openapi"]).succeeded();
    assert_eq!(document.json()["openapi"], json!("3.1.0"));
    assert!(document.stdout.ends_with("}\n"));
    for shell in ["bash", "zsh", "fish"] {
        let completions = home.run(&["completions", shell]).succeeded().stdout;
        assert!(completions.contains("set-plan"), "{shell}");
    }
    let help = home.run(&["--help"]).succeeded().stdout;
    for command in
        ["serve", "admin", "doctor", "config", "openapi", "completions", "backup", "restore", "man"]
    {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
    }
    assert!(help.contains("Examples:") && help.contains("Global options:"), "{help}");
    let mistyped = home.run(&["docter"]).failed(2).stderr;
    assert!(mistyped.contains("'doctor'"), "{mistyped}");
    let mistyped = home.run(&["serve", "--data-dri", "x"]).failed(2).stderr;
    assert!(mistyped.contains("'--data-dir'"), "{mistyped}");
    assert!(home.run(&["--version"]).succeeded().stdout.starts_with("agent-mailbox "));
    assert!(!home.data().exists(), "none of these touches the data");
}
