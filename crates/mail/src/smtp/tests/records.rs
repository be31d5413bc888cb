//! Records of transactions: each is reported once, however it ends, within bounds.

use tokio::{io::AsyncWriteExt, sync::watch};

use super::{reception::Memory, *};

/// Plays a client to a reception that remembers, with the connection lost at the end.
async fn told(protocol: Protocol, said: &str) -> Vec<(TransactionRecord, Option<usize>, Duration)> {
    let memory = Arc::new(Memory::default());
    let (mut ours, theirs) = tokio::io::duplex(1 << 20);
    let client = Client::new(SocketAddr::from(([192, 0, 2, 1], 4321)), protocol);
    let (_stop, stopping) = watch::channel(false);
    let mut conversation = Conversation::new(settings(), client, memory.clone(), stopping);
    let server = tokio::spawn(async move {
        let mut theirs = theirs;
        conversation.run(&mut theirs).await
    });
    for line in said.split_inclusive('\n') {
        // The paused clock moves on when the other side waits, so the greeting and each reply come before the next
        // line.
        tokio::time::sleep(Duration::from_millis(1)).await;
        ours.write_all(line.as_bytes()).await.unwrap();
    }
    ours.shutdown().await.unwrap();
    drop(ours);
    let _ = server.await.unwrap();
    memory.ended()
}

fn recipients(record: &TransactionRecord) -> Vec<String> {
    record.recipients.iter().map(|named| format!("{} {}", named.address, named.reply)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_is_told_of_with_what_became_of_it_for_each_recipient() {
    let said = "EHLO me\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<bob@agents.example>\r\nRCPT TO:<x@other.example>\r\n\
                RCPT TO:<a%b@agents.example>\r\nDATA\r\nhi\r\n.\r\nQUIT\r\n";
    let told = told(Protocol::Smtp, said).await;
    let [(record, note, took)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        (record.from.as_str(), record.end, record.size),
        ("a@b.example", TransactionEnd::Stored, Some(4))
    );
    assert_eq!((*note, record.accepted), (Some(4), 1));
    assert_eq!(
        recipients(record),
        [
            "bob@agents.example 250 2.0.0 Kept for bob@agents.example",
            "x@other.example 550 5.7.1 We do not relay",
            "a%b@agents.example 550 5.7.1 We do not relay",
        ]
    );
    // That of the reception has no word of its own.
    assert_eq!(record.refused.clone().into_iter().collect::<Vec<_>>(), [("protocol", 1), ("relay", 1)]);
    assert_eq!(
        record.reply.as_ref().unwrap().to_string(),
        "250 2.0.0 Kept for bob@agents.example",
        "the reply to the message"
    );
    assert!(*took >= Duration::from_millis(5), "from MAIL to the last reply: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn every_end_has_its_name() {
    let begun = "EHLO me\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<bob@agents.example>\r\n";
    let refused = "EHLO me\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<x@other.example>\r\n";
    let large = format!("{begun}DATA\r\n{}.\r\nQUIT\r\n", "0123456789abcdef\r\n".repeat(6000));
    for (said, end, reply) in [
        (format!("{begun}RSET\r\nQUIT\r\n"), TransactionEnd::Reset, ""),
        (format!("{begun}EHLO again\r\nQUIT\r\n"), TransactionEnd::Reset, ""),
        (format!("{begun}QUIT\r\n"), TransactionEnd::Quit, ""),
        (begun.to_owned(), TransactionEnd::Lost, ""),
        (format!("{begun}DATA\r\nhalf of it\r\n"), TransactionEnd::Lost, ""),
        (format!("{begun}DATA\r\nbare\nline\r\n.\r\n"), TransactionEnd::Closed, "550 5.6.0"),
        (format!("{refused}DATA\r\nQUIT\r\n"), TransactionEnd::Quit, "554 5.5.1"),
        (large, TransactionEnd::Refused, "552 5.3.4"),
        (
            "EHLO me\r\nMAIL FROM:<a@blocked.example>\r\nQUIT\r\n".to_owned(),
            TransactionEnd::Refused,
            "550 5.7.1",
        ),
        (
            "EHLO me\r\nMAIL FROM:<a@b.example> SIZE=99999999\r\nQUIT\r\n".to_owned(),
            TransactionEnd::Refused,
            "552 5.3.4",
        ),
        (
            "EHLO me\r\nMAIL FROM:<a@b.example> AUTH=secret\r\nQUIT\r\n".to_owned(),
            TransactionEnd::Refused,
            "555 5.5.4",
        ),
        ("MAIL FROM:<a@b.example>\r\nQUIT\r\n".to_owned(), TransactionEnd::Refused, "503 5.5.1"),
    ] {
        let told = told(Protocol::Smtp, &said).await;
        let short = said.get(..said.len().min(200)).unwrap();
        let [(record, None, _)] = told.as_slice() else { panic!("{short:?}: {told:?}") };
        let given = record.reply.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!(record.end, end, "{short:?}: {given}");
        assert!(given.starts_with(reply) && given.is_empty() == reply.is_empty(), "{short:?}: {given}");
        assert!(!record.from.contains("secret"), "parameters are nobody's address: {}", record.from);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_too_long_is_told_of() {
    let memory = Arc::new(Memory::default());
    let (mut ours, mut theirs) = tokio::io::duplex(1 << 20);
    let client = Client::new(SocketAddr::from(([192, 0, 2, 1], 4321)), Protocol::Smtp);
    let (_stop, stopping) = watch::channel(false);
    let mut conversation = Conversation::new(settings(), client, memory.clone(), stopping);
    let server = tokio::spawn(async move { conversation.run(&mut theirs).await });
    for line in ["EHLO me\r\n", "MAIL FROM:<>\r\n"] {
        tokio::time::sleep(Duration::from_millis(1)).await;
        ours.write_all(line.as_bytes()).await.unwrap();
    }
    server.await.unwrap().unwrap();
    let told = memory.ended();
    let [(record, None, took)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((record.end, record.from.as_str()), (TransactionEnd::Closed, ""));
    assert_eq!(record.reply.as_ref().unwrap().to_string(), "421 4.4.2 You took too long");
    assert!(*took >= Duration::from_mins(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn lmtp_tells_what_each_recipient_was_told() {
    let said = "LHLO me\r\nMAIL FROM:<>\r\nRCPT TO:<bob@agents.example>\r\nRCPT TO:<amy@agents.example>\r\n\
                DATA\r\nhi\r\n.\r\nQUIT\r\n";
    let told = told(Protocol::Lmtp, said).await;
    let [(record, ..)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        recipients(record),
        [
            "bob@agents.example 250 2.0.0 Kept for bob@agents.example",
            "amy@agents.example 250 2.0.0 Kept for amy@agents.example",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_recipients_is_bounded() {
    let named = (0..150).map(|number| format!("RCPT TO:<bob{number}@agents.example>\r\n"));
    let (named, long) = (named.collect::<String>(), "x".repeat(1900));
    let said = format!("EHLO me\r\nMAIL FROM:<>\r\n{named}RCPT TO:<{long}>\r\nQUIT\r\n");
    let told = told(Protocol::Smtp, &said).await;
    let [(record, ..)] = told.as_slice() else { panic!("{}", told.len()) };
    assert_eq!((record.recipients.len(), record.accepted, record.refusals()), (100, 150, 1));
    assert_eq!(record.unlisted(), 51);
}
