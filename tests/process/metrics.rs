//! The dashboard and the alerts against what a running service gives: each metric in their expressions is there, with the
//! labels that they use.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    Home,
    mail::{Inbox, Smtp, message},
};

/// What Prometheus adds to every series, and the metric that it makes itself.
const ADDED: [&str; 2] = ["job", "instance"];
const MADE_BY_PROMETHEUS: [&str; 1] = ["up"];
/// Words of the language that are no metrics.
const WORDS: [&str; 10] =
    ["by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless", "bool"];
/// Those after which labels are listed.
const LISTS_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// The endings of a histogram's series.
const OF_HISTOGRAM: [&str; 3] = ["_bucket", "_sum", "_count"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs")
}

/// A condition on a label: its name, the operator, the value.
type Matcher = (String, String, String);

/// What an expression for Prometheus asks for.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    /// The metrics, each with the conditions on its labels.
    metrics: Vec<(String, Vec<Matcher>)>,
    /// The labels that results are grouped by.
    labels: BTreeSet<String>,
}

/// Reads an expression, as far as is needed to find the names in it.
fn asked(expression: &str) -> Asked {
    let mut asked = Asked::default();
    let mut rest = expression;
    let mut lists_labels = false;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|next: char| !next.is_ascii_alphanumeric() && next != '_' && next != ':');
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after.trim_start();
            if WORDS.contains(&word) {
                lists_labels = LISTS_LABELS.contains(&word);
            } else if !is_function(rest) {
                let (matchers, after) = matchers(rest);
                rest = after;
                asked.metrics.push((word.to_owned(), matchers));
            }
        } else if lists_labels && first == '(' {
            let (names, after) = rest[1..].split_once(')').unwrap();
            asked.labels.extend(names.split(',').map(|name| name.trim().to_owned()));
            (rest, lists_labels) = (after, false);
        } else if first == '[' {
            rest = rest.split_once(']').unwrap().1;
        } else if first.is_ascii_digit() {
            rest = rest.trim_start_matches(|next: char| next.is_ascii_alphanumeric() || next == '.');
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    asked
}

/// Whether a name is a function's, by what stands behind it: arguments, or what they are grouped by.
fn is_function(behind: &str) -> bool {
    ["(", "by (", "without ("].iter().any(|word| behind.starts_with(word))
}

/// The conditions in braces at the beginning of a text, and what comes behind them.
fn matchers(text: &str) -> (Vec<Matcher>, &str) {
    let Some(mut rest) = text.strip_prefix('{') else { return (Vec::new(), text) };
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            return (found, after);
        }
        let (name, after) = rest.split_at(rest.find(['=', '!']).unwrap());
        let (operator, after) = after.split_once('"').unwrap();
        let (value, after) = after.split_once('"').unwrap();
        found.push((name.trim().to_owned(), operator.trim().to_owned(), value.to_owned()));
        rest = after;
    }
}

#[test]
fn names_are_found_in_expressions() {
    let found =
        asked(r#"sum by (le, x) (rate(a_bucket{b="c",d=~"$e|f"}[5m])) / max(g) > 0.5 and h_total == 1"#);
    let text = |words: [&str; 3]| words.map(ToOwned::to_owned).into();
    let expected = Asked {
        metrics: vec![
            ("a_bucket".to_owned(), vec![text(["b", "=", "c"]), text(["d", "=~", "$e|f"])]),
            ("g".to_owned(), Vec::new()),
            ("h_total".to_owned(), Vec::new()),
        ],
        labels: ["le", "x"].map(ToOwned::to_owned).into(),
    };
    assert_eq!(found, expected);
}

/// The series of a service: for each name, the labels of each.
type Series = BTreeMap<String, Vec<BTreeMap<String, String>>>;

fn series(text: &str) -> Series {
    let mut found = Series::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (name, labels) = match line.split_once('{') {
            Some((name, _)) => (name, matchers(&line[name.len()..]).0),
            None => (line.split(' ').next().unwrap(), Vec::new()),
        };
        let labels = labels.into_iter().map(|(name, _, value)| (name, value)).collect();
        found.entry(name.to_owned()).or_default().push(labels);
    }
    found
}

/// The expressions of all panels.
fn dashboard() -> Vec<String> {
    let text = std::fs::read_to_string(docs().join("grafana/agent-mailbox.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The expressions of all alerts, each of which stands on a line of its own.
fn alerts() -> Vec<String> {
    let text = std::fs::read_to_string(docs().join("prometheus/alerts.yml")).unwrap();
    let found: Vec<String> =
        text.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(ToOwned::to_owned).collect();
    assert_eq!(found.len(), text.matches("- alert: ").count());
    found
}

/// What an expression asks for and the service does not give.
fn missing(expression: &str, series: &Series) -> Option<String> {
    let asked = asked(expression);
    let mut known: BTreeSet<&str> = ADDED.into();
    for (name, matchers) in &asked.metrics {
        if MADE_BY_PROMETHEUS.contains(&name.as_str()) {
            continue;
        }
        let Some(of_name) = series.get(name) else { return Some(format!("no {name}")) };
        known.extend(of_name.iter().flat_map(BTreeMap::keys).map(String::as_str));
        for (label, operator, value) in matchers.iter().filter(|(label, ..)| !ADDED.contains(&label.as_str()))
        {
            let has =
                |wanted: &str| of_name.iter().any(|labels| labels.get(label).is_some_and(|it| it == wanted));
            let is_there = match operator.as_str() {
                "=" => has(value),
                "=~" => value.split('|').all(has),
                _ => of_name.iter().any(|labels| labels.contains_key(label)),
            };
            if !is_there {
                return Some(format!("no {name} with {label}{operator}{value:?}"));
            }
        }
    }
    let unknown = asked.labels.iter().find(|label| !known.contains(label.as_str()));
    unknown.map(|label| format!("no label {label}"))
}

// rules: OBS-1
#[test]
fn dashboard_and_alerts_ask_for_what_is_there() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let sent = Smtp::connect(server.smtp).send(&inbox.address, &message("Counted", "Text"));
        assert_eq!(sent.unwrap().0, 250);
        inbox.only(&server, "Counted");
        let started = Instant::now();
        // Figures about the machine are looked up now and then.
        let text = loop {
            let text = server.get("/metrics", &[]).body;
            if text.contains("disk_free_bytes{") || started.elapsed() > Duration::from_secs(30) {
                break text;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let series = series(&text);
        let expressions = [dashboard(), alerts()].concat();
        assert!(expressions.len() > 50);
        let missing: Vec<String> = expressions
            .iter()
            .filter_map(|expression| Some(format!("{} in {expression}", missing(expression, &series)?)))
            .collect();
        assert!(missing.is_empty(), "{}\n{text}", missing.join("\n"));
        for (name, of_name) in &series {
            let described = |name: &str| text.contains(&format!("# HELP {name} "));
            let stem = OF_HISTOGRAM.iter().find_map(|ending| name.strip_suffix(ending));
            assert!(described(name) || stem.is_some_and(described), "{name} is not described: {of_name:?}");
        }
        let counted = |name: &str| text.contains(&format!("\n{name} 1\n"));
        assert!(counted("messages_received_total") && !counted("messages_refused_total"), "{text}");
        server.stop();
    }
}
