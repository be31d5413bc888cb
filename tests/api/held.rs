//! Mail that is held while an answer is being drafted.

use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::assert_missing,
    mails::{Inbox, message, plain, texts},
};

// rules: READ-24
#[both_engines]
async fn held_mail_is_hidden_until_its_hold_ends(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let first = server.receive(&inbox.address, plain("Topic", "needle")).await;
    server.clock.advance(1);
    let reply = message("Re: Topic", "In-Reply-To: <Topic@remote.test>", "needle\r\n");
    let held = server.receive(&inbox.address, reply).await;
    inbox.hold(&server, &held, 300).await;
    let thread = inbox.get(&format!("emails/{first}")).await["thread_id"].as_str().unwrap().to_owned();
    let seen = async |options: &str| {
        let count = async |path: String, field: &str| {
            let list = inbox.get(&path).await;
            let all = if field.is_empty() { &list } else { &list[field] };
            (all.as_array().unwrap().len(), list["totalCount"].clone())
        };
        let context = inbox.get(&format!("emails/{first}/context?limit=50{options}")).await;
        let both = (
            context["thread"]["messages"].as_array().unwrap().len(),
            context["thread"]["total_count"].clone(),
        );
        vec![
            count(format!("emails?limit=9{options}"), "emails").await,
            count(format!("emails?folder=inbox{options}"), "emails").await,
            count(format!("emails?is_read=false{options}"), "emails").await,
            count(format!("emails?thread_id={thread}{options}"), "emails").await,
            count(format!("search?query=needle{options}"), "emails").await,
            count(format!("search?limit=9{options}"), "emails").await,
            both,
        ]
    };
    let all = |count: usize| vec![(count, json!(count)); 7];
    assert_eq!(seen("").await, all(1));
    assert_eq!(seen("&include_held=true").await, all(2));
    assert_eq!(seen("&include_held=false").await, all(1));
    for rest in ["", "/context"] {
        assert_missing(&inbox.try_get(&format!("emails/{held}{rest}")).await, "Email");
        inbox.get(&format!("emails/{held}{rest}?include_held=true")).await;
    }
    let mails = |value: &Value| value.as_array().unwrap().len();
    assert_eq!(mails(&inbox.get(&format!("threads/{thread}")).await), 1);
    assert_eq!(mails(&inbox.get(&format!("threads/{thread}?include_held=1")).await), 2);
    let threaded = inbox.get("emails?threaded=true").await;
    assert_eq!(
        (texts(&threaded["emails"], "subject"), &threaded["emails"][0]["thread_count"]),
        (vec!["Topic".to_owned()], &json!(1))
    );
    // To the moment.
    server.clock.advance(299);
    assert_eq!(seen("").await, all(1));
    server.clock.advance(1);
    assert_eq!(seen("").await, all(2));
}
