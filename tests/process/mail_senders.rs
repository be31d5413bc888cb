//! Senders that the service checks itself, with a name server that runs inside the test.

use std::{
    net::{SocketAddr, UdpSocket},
    thread,
};

use serde_json::json;

use super::{
    Home,
    mail::{Inbox, Smtp},
};

/// What the name server knows: a domain that sends from this machine, and one that sends from nowhere.
const RECORDS: &[(&str, &str)] = &[
    ("honest.test", "v=spf1 ip4:127.0.0.1 -all"),
    ("_dmarc.honest.test", "v=DMARC1; p=reject"),
    ("strict.test", "v=spf1 -all"),
    ("_dmarc.strict.test", "v=DMARC1; p=reject"),
];

const TXT: u16 = 16;

/// Answers questions for texts until the test ends.
fn serve_names() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok((length, client)) = socket.recv_from(&mut buffer) {
            socket.send_to(&answer(&buffer[..length]), client).unwrap();
        }
    });
    address
}

/// The answer to the only question of a packet.
fn answer(question: &[u8]) -> Vec<u8> {
    let (mut labels, mut at) = (Vec::new(), 12);
    while question[at] != 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..end]).to_ascii_lowercase());
        at = end;
    }
    let name = labels.join(".");
    let kind = u16::from_be_bytes([question[at + 1], question[at + 2]]);
    let known = RECORDS.iter().find(|(known, _)| *known == name);
    let found = known.filter(|_| kind == TXT);
    let code = if known.is_some() { 0 } else { 3 };
    let mut packet = question[..2].to_vec();
    packet.extend([0x85, 0x80 | code, 0, 1, 0, u8::from(found.is_some()), 0, 0, 0, 0]);
    packet.extend(&question[12..at + 5]);
    if let Some((_, text)) = found {
        let length = u8::try_from(text.len()).unwrap();
        packet.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, length + 1, length]);
        packet.extend(text.as_bytes());
    }
    packet
}

/// rules: RECV-19, RECV-24
#[test]
fn verdicts_are_our_own_and_forged_mail_is_spam() {
    let names = serve_names().to_string();
    for home in Home::on_each_engine() {
        let home = home.with("INBOUND__VERIFY_SENDERS", "true").with("INBOUND__DNS_SERVERS", &names);
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let send = |domain: &str, subject: &str| {
            let mut client = Smtp::connect(server.smtp);
            let raw = format!(
                "From: Ann <ann@{domain}>\r\nSubject: {subject}\r\nMessage-ID: <{subject}@{domain}>\r\n\
                 Authentication-Results: mx; spf=pass; dkim=pass; dmarc=pass\r\n\r\nHello\r\n"
            );
            assert_eq!(client.say(&format!("MAIL FROM:<ann@{domain}>")), 250);
            assert_eq!(client.say(&format!("RCPT TO:<{}>", inbox.address)), 250);
            assert_eq!(client.say("DATA"), 354);
            client.write(raw.as_bytes()).unwrap();
            assert_eq!(client.say("."), 250);
        };
        send("honest.test", "Honest");
        send("strict.test", "Forged");
        send("nobody.test", "Unknown");
        let verdict = |mail: &serde_json::Value| mail["sender_authentication"].clone();
        assert_eq!(
            verdict(&inbox.only(&server, "Honest")),
            json!({ "status": "pass", "spf": "pass", "dkim": "unknown", "dmarc": "pass",
                    "inbound_provider": "edge_routing" })
        );
        let unknown = verdict(&inbox.only(&server, "Unknown"));
        assert_eq!((&unknown["status"], &unknown["dmarc"]), (&json!("unknown"), &json!("unknown")));
        let spam = inbox.get(&server, "/emails?folder=spam");
        assert_eq!(spam["emails"][0]["subject"], "Forged", "{spam}");
        let forged = verdict(&spam["emails"][0]);
        assert_eq!(
            (&forged["status"], &forged["spf"], &forged["dmarc"]),
            (&json!("fail"), &json!("fail"), &json!("fail"))
        );
        assert!(forged.get("reason").is_none());
        server.stop();
    }
}
