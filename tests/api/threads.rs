//! Threads: which mails belong together, lists of threads, changing them whole.

use model::EmailId;
use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    email_counters::assert_counted,
    help::{assert_missing, assert_refuses_fields, encoded, keys},
    mails::{Inbox, dated, message, texts},
};

async fn thread_of(inbox: &Inbox, id: &EmailId) -> String {
    inbox.get(&format!("emails/{id}")).await["thread_id"].as_str().unwrap().to_owned()
}

// rules: RECV-17
#[both_engines]
async fn mails_join_by_references_and_then_by_subject(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let day = |day: usize| format!("Date: {day} Jul 2026 10:00:00 +0000");
    let receive = async |subject: &str, headers: String| {
        let raw = message(subject, &headers, "text\r\n");
        thread_of(&inbox, &server.receive(&inbox.address, raw).await).await
    };
    let first = receive("Plan", day(1)).await;
    assert_eq!(receive("Re: Plan", format!("{}\nIn-Reply-To: <Plan@remote.test>", day(2))).await, first);
    // By the References alone, under another subject.
    assert_eq!(
        receive("New title", format!("{}\nReferences: <x@y> <Plan@remote.test>", day(3))).await,
        first
    );
    // By what somebody before referred to, although that mail never came.
    let second = receive("Answer", format!("{}\nReferences: <unseen@remote.test>", day(3))).await;
    assert_ne!(second, first);
    let third = receive("Same root", format!("{}\nIn-Reply-To: <unseen@remote.test>", day(4))).await;
    assert_eq!(third, second);
    // By subject among the same people, within 30 days.
    assert_eq!(receive("Fwd: RE: plan", day(5)).await, first);
    let other_people = format!("{}\nFrom: Eve <eve@remote.test>", day(5));
    assert_ne!(receive("Re: Plan 2", other_people.clone()).await, first);
    assert_ne!(receive("RE: Plan", other_people).await, first);
    let old = receive("Old plan", "Date: 1 Jan 2026 10:00:00 +0000".to_owned()).await;
    assert_ne!(receive("Re: Old plan", day(6)).await, old);
    let empty = receive("", day(6)).await;
    assert_ne!(receive("Re:", day(6)).await, empty);
    // A reply joins whoever writes it, under any subject and however late, as one to a mail of ours must.
    server.clock.advance(60 * 86_400);
    let late = "From: Eve <eve@elsewhere.test>\nIn-Reply-To: <Plan@remote.test>";
    assert_eq!(receive("Something else", late.to_owned()).await, first);
    // What another mailbox got has nothing to do with it.
    let other = inbox.another().await;
    let raw = message("Re: Plan", "In-Reply-To: <Plan@remote.test>", "x");
    let elsewhere = server.receive(&other.address, raw).await;
    assert_ne!(thread_of(&other, &elsewhere).await, first);
}

/// A thread of three mails among others.
async fn conversation(server: &Server, inbox: &Inbox) -> Vec<EmailId> {
    let mut ids = vec![server.receive(&inbox.address, dated("Topic", "one", 3)).await];
    server.receive(&inbox.address, dated("Elsewhere", "else", 4)).await;
    for (subject, day) in [("Re: Topic", 6), ("Re: Re: Topic", 5)] {
        let headers = format!("In-Reply-To: <Topic@remote.test>\nDate: {day} Jul 2026 10:00 +0000");
        ids.push(server.receive(&inbox.address, message(subject, &headers, "more\r\n")).await);
    }
    ids
}

// rules: READ-18
#[both_engines]
async fn a_thread_is_an_array_oldest_first(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let ids = conversation(&server, &inbox).await;
    let thread = thread_of(&inbox, &ids[0]).await;
    let mails = inbox.get(&format!("threads/{thread}")).await;
    assert_eq!(texts(&mails, "subject"), ["Topic", "Re: Re: Topic", "Re: Topic"]);
    for mail in mails.as_array().unwrap() {
        let mut mail = mail.clone();
        assert_eq!(mail.as_object_mut().unwrap().shift_remove("thread_count"), Some(json!(3)));
        assert_eq!(&mail, &inbox.get(&format!("emails/{}", mail["id"].as_str().unwrap())).await);
    }
    let safe = inbox.get(&format!("threads/{thread}?agent_safe_content=true&max_body_chars=2")).await;
    assert_eq!((&safe[0]["body"], &safe[0]["content_truncated"]), (&json!("on"), &json!(true)));
    assert_missing(&inbox.try_get("threads/thr_none").await, "Thread");
    assert_refuses_fields(&inbox.try_get(&format!("threads/{thread}?limit=1")).await, &["limit"]);
    inbox.hold(&server, &ids[1], 60).await;
    assert_eq!(texts(&inbox.get(&format!("threads/{thread}")).await, "subject"), ["Topic", "Re: Re: Topic"]);
    let all = inbox.get(&format!("threads/{thread}?include_held=1")).await;
    assert_eq!(all.as_array().unwrap().len(), 3);
}

// rules: READ-18, READ-24
#[both_engines]
async fn threads_are_listed_newest_first(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let ids = conversation(&server, &inbox).await;
    let thread = thread_of(&inbox, &ids[0]).await;
    inbox.put(&format!("emails/{}", ids[0]), json!({ "read": true })).await.ok();
    let list = inbox.get("threads").await;
    assert_eq!(keys(&list), ["threads", "totalCount", "has_more", "next_cursor"]);
    let first = &list["threads"][0];
    assert_eq!((&first["id"], &first["subject"]), (&json!(thread), &json!("Re: Topic")));
    assert_eq!((&first["mail_count"], &first["unread_count"]), (&json!(3), &json!(2)));
    assert_eq!(
        (&first["newest_email_id"], &first["newest_at"]),
        (&json!(ids[1]), &json!("2026-07-06T10:00:00.000Z"))
    );
    assert_eq!(first["newest_email"]["id"], json!(ids[1]));
    assert_eq!(texts(&list["threads"], "subject"), ["Re: Topic", "Elsewhere"]);
    let page = inbox.get("threads?limit=1").await;
    assert_eq!((&page["has_more"], &page["totalCount"]), (&json!(true), &json!(2)));
    let next = encoded(page["next_cursor"].as_str().unwrap());
    let rest = inbox.get(&format!("threads?limit=1&cursor={next}")).await;
    assert_eq!(
        (texts(&rest["threads"], "subject"), &rest["next_cursor"]),
        (vec!["Elsewhere".to_owned()], &Value::Null)
    );
    for limit in ["0", "101"] {
        assert_refuses_fields(&inbox.try_get(&format!("threads?limit={limit}")).await, &["limit"]);
    }
    inbox.try_get("threads?folder=nowhere").await.expect(400, "folder_unknown");
    // A held mail is not shown, and a thread of held mails is not there.
    inbox.hold(&server, &ids[1], 60).await;
    let first = inbox.get("threads").await["threads"][0].clone();
    assert_eq!(
        (&first["newest_email_id"], &first["mail_count"], &first["unread_count"]),
        (&json!(ids[2]), &json!(2), &json!(1))
    );
    for id in [&ids[0], &ids[2]] {
        inbox.hold(&server, id, 60).await;
    }
    let list = inbox.get("threads?limit=1").await;
    assert_eq!(list["totalCount"], 1);
    let threaded = inbox.get("emails?threaded=true").await;
    assert_eq!(
        (texts(&threaded["emails"], "subject"), &threaded["totalCount"]),
        (vec!["Elsewhere".to_owned()], &json!(1))
    );
    assert_eq!(inbox.get("emails?threaded=true&include_held=true").await["totalCount"], 2);
    server.clock.advance(60);
    assert_eq!(inbox.get("threads").await["totalCount"], 2);
}

// rules: READ-18
#[both_engines]
async fn a_thread_is_read_and_moved_whole(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let ids = conversation(&server, &inbox).await;
    let thread = thread_of(&inbox, &ids[0]).await;
    inbox.put(&format!("emails/{}", ids[0]), json!({ "read": true })).await.ok();
    assert_eq!(inbox.post(&format!("threads/{thread}/read"), json!({})).await.ok(), json!({ "updated": 2 }));
    assert_eq!(inbox.get("threads").await["threads"][0]["unread_count"], 0);
    assert_eq!(inbox.get("emails?is_read=false").await["totalCount"], 1);
    let to = |folder: &str| json!({ "folderId": folder });
    let moved = inbox.post(&format!("threads/{thread}/move"), to("archive")).await.ok();
    assert_eq!(moved, json!({ "updated": 3 }));
    assert_eq!(
        texts(&inbox.get("threads?folder=archive").await["threads"], "id"),
        std::slice::from_ref(&thread)
    );
    assert_eq!(texts(&inbox.get("threads?folder=inbox").await["threads"], "subject"), ["Elsewhere"]);
    inbox.post(&format!("threads/{thread}/move"), to("trash")).await.ok();
    assert_eq!(inbox.get("threads").await["totalCount"], 1);
    inbox.post(&format!("threads/{thread}/move"), to("nowhere")).await.expect(400, "folder_unknown");
    assert_missing(&inbox.post("threads/thr_none/move", to("archive")).await, "Thread");
    assert_missing(&inbox.post("threads/thr_none/read", json!({})).await, "Thread");
    inbox.post("trash/empty", json!({})).await.ok();
    assert_missing(&inbox.try_get(&format!("threads/{thread}")).await, "Thread");
    // The ids that led to the thread have gone with it.
    let raw = message("Re: Topic", "In-Reply-To: <Topic@remote.test>", "late");
    let late = server.receive(&inbox.address, raw).await;
    assert_ne!(thread_of(&inbox, &late).await, thread);
}

/// A thread longer than an answer shows its end, says how long it is, and is read backwards to its beginning.
// rules: READ-18
#[both_engines]
async fn a_long_thread_is_read_from_its_end(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let mut ids = Vec::new();
    for number in 0..503 {
        server.clock.advance(1);
        let raw = message("Topic", "References: <root@remote.test>", &format!("number {number}\r\n"));
        ids.push(server.receive(&inbox.address, raw).await);
    }
    let thread = thread_of(&inbox, &ids[0]).await;
    let shown = |mails: &Value| texts(mails, "id");
    let named = |ids: &[EmailId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    let end = inbox.get(&format!("threads/{thread}?max_body_chars=10")).await;
    assert_eq!(shown(&end), named(&ids[3..]));
    assert!(end.as_array().unwrap().iter().all(|mail| mail["thread_count"] == 503));
    let first = end[0]["id"].as_str().unwrap();
    let rest = inbox.get(&format!("threads/{thread}?before={first}")).await;
    assert_eq!(shown(&rest), named(&ids[..3]));
    assert!(rest.as_array().unwrap().iter().all(|mail| mail["thread_count"] == 503));
    assert_eq!(inbox.get(&format!("threads/{thread}?before={}", ids[0])).await, json!([]));
    // Only an email of this thread can be the end.
    let other = server.receive(&inbox.address, dated("Elsewhere", "x", 4)).await;
    for wrong in [other.to_string(), "eml_none".to_owned()] {
        assert_missing(&inbox.try_get(&format!("threads/{thread}?before={wrong}")).await, "Email");
    }
}

/// A message of one subject, with the date, its number and further header lines.
fn numbered(subject: &str, date: &str, number: usize, headers: &str) -> String {
    format!(
        "From: Ann <ann@remote.test>\r\nTo: Me <me@agents.test>\r\nSubject: {subject}\r\n\
         Message-ID: <number.{number}@remote.test>\r\nDate: {date} 2026 10:00:00 +0000\r\n{headers}\r\ntext {number}\r\n"
    )
}

/// Messages of one file are looked up together and written together, and join the same threads as one by one.
// rules: RECV-17
#[both_engines]
async fn messages_that_are_stored_together_join_the_same_threads(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    // So that none of the dates lies in the future.
    server.clock.advance(60 * 86_400);
    let older = server.receive(&inbox.address, numbered("Topic", "5 Jun", 1, "")).await;
    let newer = server.receive(&inbox.address, numbered("Topic", "10 Jul", 2, "")).await;
    let (older, newer) = (thread_of(&inbox, &older).await, thread_of(&inbox, &newer).await);
    assert_ne!(older, newer, "more than 30 days lie between them");
    let messages = [
        // Makes the newer thread so new that the next one can join the older one only.
        numbered("Else", "20 Aug", 3, "In-Reply-To: <number.2@remote.test>\r\n"),
        numbered("Re: Topic", "28 Jun", 4, ""),
        numbered("Re: Topic", "25 Jul", 5, ""),
        numbered("Fresh", "1 Jul", 6, ""),
        numbered("Re: Fresh", "2 Jul", 7, ""),
        numbered("Elsewhere", "3 Jul", 8, "References: <number.6@remote.test>\r\n"),
        numbered("Unseen", "3 Jul", 9, "References: <unseen@remote.test>\r\n"),
        numbered("Sibling", "3 Jul", 10, "References: <unseen@remote.test>\r\n"),
    ];
    let from = |message: &String| format!("From ann@remote.test Mon Jul 13 10:00:00 2026\r\n{message}\r\n");
    let file: String = messages.iter().map(from).collect();
    let imported = inbox.import("application/mbox", file).await.ok();
    let mut threads = Vec::new();
    for id in imported["ids"].as_array().unwrap() {
        threads.push(thread_of(&inbox, &EmailId::from(id.as_str().unwrap())).await);
    }
    let fresh = threads[3].clone();
    assert!(fresh != newer && fresh != older && threads[6] != fresh);
    let unseen = threads[6].clone();
    assert_eq!(
        threads,
        [newer.clone(), older.clone(), newer, fresh.clone(), fresh.clone(), fresh, unseen.clone(), unseen,]
    );
    assert_counted(&server, &inbox.workspace, "after an import").await;
}
