//! Policies as files, their records, and how long they are remembered.

use std::sync::Arc;
use std::sync::Mutex;

use super::{Fetch, MAX_DOMAINS, Mode, MtaSts, Policy, PolicyError, record_id};
use crate::dns::Dns;
use crate::dns::name_server::NameServer;

const ENFORCE: &str =
    "version: STSv1\r\nmode: enforce\r\nmx: mail.x.test\r\nmx: *.Backup.test\r\nmax_age: 1000\r\n";

#[test]
fn policies_are_read() {
    let policy = Policy::parse(ENFORCE.as_bytes()).unwrap();
    assert_eq!(policy.mode, Mode::Enforce);
    assert_eq!(policy.mx, ["mail.x.test", "*.backup.test"]);
    assert_eq!(policy.max_age, 1000);
    let plain = ENFORCE.replace("\r\n", "\n").replace("mode:", "extra: 1\nmode  : ");
    assert_eq!(Policy::parse(plain.as_bytes()).unwrap(), policy);
    let twice = format!("{ENFORCE}mode: none\n");
    assert_eq!(Policy::parse(twice.as_bytes()).unwrap().mode, Mode::Enforce);
    let none = Policy::parse(b"version: STSv1\nmode: none\nmax_age: 99999999").unwrap();
    assert_eq!((none.mode, none.max_age), (Mode::None, 31_557_600));
}

#[test]
fn what_is_no_policy_is_refused() {
    let changed = |from: &str, to: &str| Policy::parse(ENFORCE.replace(from, to).as_bytes()).unwrap_err();
    assert_eq!(changed("STSv1", "STSv2"), PolicyError::Version);
    assert_eq!(changed("mode: enforce", ""), PolicyError::Mode);
    assert_eq!(changed("enforce", "force"), PolicyError::Mode);
    assert_eq!(changed("max_age: 1000", ""), PolicyError::Age);
    assert_eq!(changed("1000", "-1"), PolicyError::Age);
    assert_eq!(changed("1000", "+1"), PolicyError::Age);
    assert_eq!(changed("mx: ", "my: "), PolicyError::Servers);
    assert_eq!(Policy::parse(&[0xff]).unwrap_err(), PolicyError::Text);
    assert_eq!(Policy::parse(&b"x".repeat(70_000)).unwrap_err(), PolicyError::Text);
    assert_eq!(Policy::parse(b"<html>not found</html>").unwrap_err(), PolicyError::Version);
}

#[test]
fn servers_match_by_name() {
    let policy = Policy::parse(ENFORCE.as_bytes()).unwrap();
    for host in ["mail.x.test", "MAIL.X.TEST.", "a.backup.test"] {
        assert!(policy.matches(host), "{host}");
    }
    for host in
        ["x.test", "evil.mail.x.test", "backup.test", "a.b.backup.test", ".backup.test", "mail.x.test.evil"]
    {
        assert!(!policy.matches(host), "{host}");
    }
}

#[tokio::test]
async fn records_name_the_version() {
    let zone = "
        _mta-sts.a.test TXT v=STSv1; id=20260101T000000;
        _mta-sts.b.test TXT v=STSv1; id=1
        _mta-sts.b.test TXT v=STSv1; id=2
        _mta-sts.c.test TXT v=STSv1; id=not-alphanumeric
        _mta-sts.d.test TXT v=STSv1
        _mta-sts.e.test TXT something else
        _mta-sts.e.test TXT v=STSv1;id=7;
        _mta-sts.f.test SERVFAIL";
    let server = NameServer::start(zone).await;
    let dns = Dns::with_servers(&[server.address()]).unwrap();
    let id = async |domain: &str| record_id(&dns, domain).await.unwrap();
    assert_eq!(id("a.test").await.as_deref(), Some("20260101T000000"));
    assert_eq!(id("e.test").await.as_deref(), Some("7"));
    for domain in ["b.test", "c.test", "d.test", "nothing.test"] {
        assert_eq!(id(domain).await, None, "{domain}");
    }
    assert!(record_id(&dns, "f.test").await.is_err());
}

/// A web server that has a file, or not, and counts how often it is asked.
#[derive(Clone, Default)]
struct Web(Arc<Mutex<(Option<String>, Vec<String>)>>);

impl Web {
    fn put(&self, file: Option<&str>) {
        self.0.lock().unwrap().0 = file.map(str::to_owned);
    }

    fn asked(&self) -> usize {
        self.0.lock().unwrap().1.len()
    }
}

impl Fetch for Web {
    async fn fetch(&self, url: &str) -> Option<Vec<u8>> {
        let mut state = self.0.lock().unwrap();
        state.1.push(url.to_owned());
        state.0.clone().map(String::into_bytes)
    }
}

async fn known(zone: &str) -> (NameServer, Web, MtaSts<Web>) {
    let server = NameServer::start(zone).await;
    let dns = Dns::with_servers(&[server.address()]).unwrap();
    let web = Web::default();
    (server, web.clone(), MtaSts::new(dns, web))
}

#[tokio::test]
async fn a_policy_is_fetched_once_and_holds_for_its_time() {
    let (_server, web, sts) = known("_mta-sts.x.test TXT v=STSv1; id=1;").await;
    web.put(Some(ENFORCE));
    assert!(sts.policy("X.test.", 0).await.unwrap().enforces());
    assert!(sts.policy("x.test", 999).await.unwrap().enforces());
    assert_eq!(web.asked(), 1);
    assert_eq!(web.0.lock().unwrap().1[0], "https://mta-sts.x.test/.well-known/mta-sts.txt");
    // When it is over it is fetched again, and when that fails there is none.
    web.put(None);
    assert_eq!(sts.policy("x.test", 1000).await, None);
    assert_eq!(sts.policy("x.test", 1001).await, None);
    assert_eq!(web.asked(), 2);
    web.put(Some(ENFORCE));
    assert_eq!(sts.policy("x.test", 1299).await, None);
    assert!(sts.policy("x.test", 1300).await.is_some());
    assert_eq!(web.asked(), 3);
}

#[tokio::test]
async fn a_policy_outlives_its_record_and_its_file() {
    let (_server, web, sts) = known("_mta-sts.x.test TXT v=STSv1; id=1;").await;
    web.put(Some(ENFORCE));
    assert!(sts.policy("x.test", 0).await.is_some());
    let (_other, web, later) = known("").await;
    *later.known.lock().unwrap() = sts.known.lock().unwrap().clone();
    assert!(later.policy("x.test", 500).await.is_some(), "the record is gone");
    assert_eq!(later.policy("x.test", 1500).await, None);
    let (_third, new_web, changed) = known("_mta-sts.x.test TXT v=STSv1; id=2;").await;
    *changed.known.lock().unwrap() = sts.known.lock().unwrap().clone();
    assert!(changed.policy("x.test", 500).await.is_some(), "a new version that cannot be fetched");
    new_web.put(Some("version: STSv1\nmode: none\nmax_age: 10"));
    assert_eq!(changed.policy("x.test", 501).await.unwrap().mode, Mode::None);
    assert_eq!((web.asked(), new_web.asked()), (0, 2));
}

#[tokio::test]
async fn domains_without_a_record_are_not_asked() {
    let (_server, web, sts) = known("").await;
    web.put(Some(ENFORCE));
    assert_eq!(sts.policy("x.test", 0).await, None);
    assert_eq!(web.asked(), 0);
}

#[tokio::test]
async fn the_memory_is_bounded() {
    let (_server, _web, sts) = known("").await;
    for number in 0..MAX_DOMAINS + 50 {
        let until = i64::try_from(number).unwrap() + 10;
        let known = super::CachedPolicy { id: "1".to_owned(), policy: None, until };
        sts.cache(format!("{number}.test"), known, 0);
    }
    let known = sts.known.lock().unwrap();
    assert_eq!(known.len(), MAX_DOMAINS);
    assert!(!known.contains_key("0.test") && known.contains_key("10049.test"));
}
