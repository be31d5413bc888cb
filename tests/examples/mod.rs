//! Every example of the pages, as printed, against a server that listens: in curl, Python and TypeScript. Only the
//! variables that the documentation names are set.

mod runner;
mod stage;

use std::collections::BTreeSet;

use serde_json::Value;
use testkit::{Engine, both_engines};

use self::{
    runner::{Language, Runner},
    stage::Stage,
};

/// The code blocks of a page in a language, with the id of the article around them; empty outside.
fn blocks(page: &str, language: Language) -> Vec<(String, String)> {
    let start = format!("<code class=\"language-{}\">", language.name());
    let mut found = Vec::new();
    for (index, article) in page.split("<article class=\"operation\" id=\"").enumerate() {
        let id = if index == 0 { "" } else { article.split('"').next().unwrap() };
        for block in article.split(&start).skip(1) {
            found.push((id.to_owned(), unescaped(block.split("</code>").next().unwrap())));
        }
    }
    found
}

fn unescaped(html: &str) -> String {
    let mut text = html.to_owned();
    for (entity, character) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
    {
        text = text.replace(entity, character);
    }
    text
}

/// The fenced blocks of a text in a language.
fn fenced(text: &str, language: Language) -> Vec<String> {
    let start = format!("```{}\n", language.name());
    text.split(&start).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// Runs the example of each operation, in the order of the page.
async fn run_all(engine: Engine, language: Language) {
    let Some(mut runner) = Runner::start(language) else { return };
    let stage = Stage::start(engine).await;
    let page = stage.server.anonymous().get("/docs").await.text();
    let document = web::document();
    let paths = document["paths"].as_object().unwrap().values();
    let mut missing: BTreeSet<&str> = paths
        .flat_map(|methods| methods.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let mut failures = Vec::new();
    let mut world = stage.world().await;
    for (id, code) in blocks(&page, language).iter().filter(|(id, _)| !id.is_empty()) {
        assert!(missing.remove(id.as_str()), "{id} is not an operation, or there twice");
        stage.prepare(id, &mut world).await;
        if let Err(error) = runner.run(id, code, world.variables()).await {
            failures.push(format!("{id}\n{code}\n{error}"));
        }
        if stage::consumes(id) {
            world = stage.world().await;
        }
    }
    assert!(failures.is_empty(), "{} examples fail:\n\n{}", failures.len(), failures.join("\n\n"));
    assert!(missing.is_empty(), "no example in {} for {missing:?}", language.name());
}

/// rules: API-11
#[both_engines]
async fn every_example_with_curl_works_as_printed(engine: Engine) {
    run_all(engine, Language::Shell).await;
}

/// rules: API-11
#[tokio::test]
async fn every_example_in_python_works_as_printed() {
    run_all(Engine::Sqlite, Language::Python).await;
}

/// rules: API-11
#[tokio::test]
async fn every_example_in_typescript_works_as_printed() {
    run_all(Engine::Sqlite, Language::TypeScript).await;
}

/// The first page leads a stranger to a mailbox; each step needs what the one before answered.
/// rules: API-11
#[both_engines]
async fn the_first_page_leads_to_a_mailbox(engine: Engine) {
    let stage = Stage::start(engine).await;
    let mut runner = Runner::start(Language::Shell).unwrap();
    let page = stage.server.anonymous().get("/").await.text();
    let steps = blocks(&page, Language::Shell);
    assert_eq!(steps.len(), 3, "{page}");
    let mut variables = Vec::new();
    let mut last = Value::Null;
    for (_, code) in &steps {
        let printed = runner.run("step", code, &variables).await.unwrap();
        last = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{code}\n{printed}"));
        for (variable, field) in [("WORKSPACE_ID", "workspace_id"), ("AGENT_MAILBOX_API_KEY", "key")] {
            if let Some(value) = last[field].as_str() {
                variables.push((variable.to_owned(), value.to_owned()));
            }
        }
    }
    assert!(last["email"].as_str().is_some_and(|email| email.ends_with("@agents.test")), "{last}");
}

/// The commands of `llms.txt` and of the documentation's introduction, and the code that verifies deliveries.
/// rules: API-11
#[both_engines]
async fn the_examples_of_the_introductions_work_as_printed(engine: Engine) {
    let stage = Stage::start(engine).await;
    let world = stage.world().await;
    let text = stage.server.anonymous().get("/llms.txt").await.text();
    let page = stage.server.anonymous().get("/docs").await.text();
    let mut shell = Runner::start(Language::Shell).unwrap();
    let mut commands = fenced(&text, Language::Shell);
    assert_eq!(commands.len(), 3);
    let own = blocks(&page, Language::Shell);
    commands.extend(own.into_iter().filter(|(id, _)| id.is_empty()).map(|(_, code)| code));
    assert_eq!(commands.len(), 4);
    for command in &commands {
        let printed = shell.run("introduction", command, world.variables()).await;
        assert!(printed.is_ok(), "{command}\n{printed:?}");
    }
    let variables = stage.signed_delivery().await;
    for (language, call) in [
        (
            Language::Python,
            "import os\nenv = os.environ\nheaders = {n: env[n.upper().replace('-', '_')] for n in \
             ('webhook-id', 'webhook-timestamp', 'webhook-signature')}\nbody = env['BODY'].encode()\n\
             verify(env['WEBHOOK_SECRET'], headers, body)\ntry:\n    verify(env['WEBHOOK_SECRET'], headers, body + b' ')\n\
             except ValueError:\n    print('refused')",
        ),
        (
            Language::TypeScript,
            "const env = process.env;\nconst headers = Object.fromEntries(['webhook-id', 'webhook-timestamp', \
             'webhook-signature'].map((name) => [name, env[name.toUpperCase().replaceAll('-', '_')]]));\n\
             verify(env.WEBHOOK_SECRET, headers, env.BODY);\ntry {\n  verify(env.WEBHOOK_SECRET, headers, `${env.BODY} `);\n\
             } catch {\n  console.log('refused');\n}",
        ),
    ] {
        let Some(mut runner) = Runner::start(language) else { continue };
        let own = blocks(&page, language).into_iter().find(|(id, _)| id.is_empty()).unwrap().1;
        let given = fenced(&text, language);
        assert_eq!(given, [own], "both pages show the same code");
        let printed = runner.run("verify", &format!("{}\n{call}", given[0]), &variables).await.unwrap();
        assert_eq!(printed.trim(), "refused");
    }
}
