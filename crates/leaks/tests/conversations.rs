//! Recall and precision of fingerprints: who may be told what in conversations that are made up, and in some written by
//! hand. `cargo test -p leaks --test conversations -- --nocapture` prints the figures.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "templates/mod.rs"]
#[expect(dead_code, reason = "only the numbers made by chance are needed here")]
mod templates;

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use leaks::fingerprints::{Fingerprinter, Run, addresses, runs};
use templates::Chance;

/// Text of so many unrelated senders is no secret of any of them.
const COMMON_SENDERS: usize = 3;

/// What the service will keep in its store: who knows the text behind a fingerprint.
#[derive(Default)]
struct Index {
    sources: HashMap<i64, Vec<usize>>,
    messages: Vec<Message>,
}

/// A received message.
#[derive(Clone)]
struct Message {
    sender: String,
    people: BTreeSet<String>,
    text: String,
}

fn domain(address: &str) -> &str {
    address.rsplit('@').next().unwrap()
}

impl Index {
    fn add(&mut self, fingerprinter: &Fingerprinter, message: Message) {
        for fingerprint in fingerprinter.of_received(&message.text) {
            self.sources.entry(fingerprint).or_default().push(self.messages.len());
        }
        self.messages.push(message);
    }

    /// Whether some recipient did not get what is behind a fingerprint, and it is not common.
    fn is_leak(&self, fingerprint: i64, recipients: &[String]) -> bool {
        let Some(sources) = self.sources.get(&fingerprint) else { return false };
        let sources = || sources.iter().map(|index| &self.messages[*index]);
        let senders: BTreeSet<&str> = sources().map(|message| domain(&message.sender)).collect();
        let is_known = |person: &String| sources().any(|message| message.people.contains(person));
        senders.len() < COMMON_SENDERS && !recipients.iter().all(is_known)
    }

    fn leaks(&self, fingerprinter: &Fingerprinter, text: &str, recipients: &[String]) -> Vec<Run> {
        let lookups = fingerprinter.of_outgoing(text);
        let leaking = lookups.into_iter().filter(|(fingerprint, _)| self.is_leak(*fingerprint, recipients));
        let ranges: Vec<Range<usize>> = leaking.map(|(_, range)| range).collect();
        runs(text, &ranges)
    }
}

/// Sentences as business mail has them; capital letters stand for lists of words.
const SENTENCES: &str = "The A N from P should V the N before the A N is R.|We would V your A N in P, but the N was never R D.|\
    My N told me D that the A N in P will V another N.|Could you V the N and the A N with somebody from P?|\
    If the N is R, I V the A N D and call P.|Nobody in P knows D why the A N and the N were R.|\
    The N of our A N costs less than the N in P, so let us V it D.|Since the N was R, they V every A N between P and the N.|\
    Please V the A N for P and keep the N D.|Her A N was R in P, which is why the N must V D.|\
    I had to V the N twice because a A N in P was R.|After the N in P, the A N looked R and we V it D.";
const NOUNS: &str = "contract|quote|pallet|budget|licence|lease|warranty|report|merger|server|turbine|discount|prototype|share|\
    warehouse|position|campaign|vaccine|roof|pump|permit|strike|deposit|invoice|audit|forklift|garden|catalogue|patent|engine|\
    kitchen|railway|harbour|survey|mortgage|clinic|orchard|battery|painting|novel|rehearsal|balcony|pension|tender|bridge";
const ADJECTIVES: &str = "new|second|former|cheap|damaged|late|secret|annual|foreign|wooden|blue|careful|temporary|legal|heavy|empty|\
    famous|narrow|digital|broken|generous|risky|local|northern|quiet|rusty|early|formal|modest|private|rapid|solid|vague|weekly";
const VERBS: &str = "postpone|renew|reject|replace|sell|cancel|approve|extend|measure|repair|announce|visit|insure|inspect|borrow|\
    deliver|describe|compare|finance|paint|rent|store|test|translate|upgrade|verify|weigh|split|defend|organise";
const ADVERBS: &str = "today|again|in March|without notice|by hand|next quarter|on Tuesday|with care|at night|for free|in writing|\
    very soon|since Easter|by Friday|at our cost|this winter|in advance|over lunch|off the record|in two steps";
const STATES: &str = "refused|signed|ready|lost|delayed|sold|checked|stolen|agreed|closed|copied|cleaned|hidden|shipped|counted|\
    overdue|restored|unknown|flooded|funded";
const TOWNS: &str = "Porto|Oslo|Lyon|Graz|Leeds|Turin|Ghent|Gdansk|Malaga|Bergen|Zurich|Cork|Tartu|Bremen|Nantes|Parma|Vigo|Brno";
const FOOTERS: [&str; 3] = [
    "This communication is meant for the addressee only; should it reach you by mistake, kindly tell us and erase every copy.",
    "Opinions in this letter are those of its writer; our general terms of delivery apply to all orders without exception.",
    "Our office hours have changed: from now on you reach us from eight to six, and on Saturdays until noon by phone.",
];
const GREETINGS: &str = "I hope this email finds you well.|Thank you very much for your message.|Hope you had a great weekend!|\
    Many thanks for getting back to us so quickly.";
const CLOSINGS: &str = "Please let me know if you have any questions or need anything else from me.|Kind regards|\
    I look forward to hearing from you soon.|Please do not hesitate to contact me if you have any questions.";

fn pick<'a>(chance: &mut Chance, list: &'a str) -> &'a str {
    let all: Vec<&str> = list.split('|').map(str::trim).collect();
    chance.pick(&all)
}

fn sentence(chance: &mut Chance) -> String {
    let fill = |chance: &mut Chance, word: &str| {
        let list = match word.trim_end_matches(['.', ',', '?']) {
            "N" => NOUNS,
            "A" => ADJECTIVES,
            "V" => VERBS,
            "D" => ADVERBS,
            "R" => STATES,
            "P" => TOWNS,
            _ => return word.to_owned(),
        };
        format!("{}{}", pick(chance, list), &word[1..])
    };
    let mut words = Vec::new();
    for word in pick(chance, SENTENCES).split(' ') {
        // Hardly two people build a sentence alike.
        if word.starts_with('N') && chance.below(3) == 0 {
            words.push(fill(chance, "A"));
        }
        words.push(fill(chance, word));
        if chance.below(5) == 0 {
            words.push(fill(chance, "D"));
        }
    }
    words.join(" ")
}

fn body(chance: &mut Chance, sentences: usize) -> String {
    let middle: Vec<String> = (0..sentences).map(|_| sentence(chance)).collect();
    format!("{}\n{}\n{}", pick(chance, GREETINGS), middle.join(" "), pick(chance, CLOSINGS))
}

fn person(chance: &mut Chance) -> String {
    format!("p{}@company{}.example", chance.below(4), chance.below(12))
}

/// As mail programs and people change what they quote: other line breaks, quote signs, case, signs.
fn requote(chance: &mut Chance, text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let width = 5 + chance.below(12);
    let lines: Vec<String> = words.chunks(width).map(|line| line.join(" ")).collect();
    match chance.below(4) {
        0 => format!("> {}", lines.join("\n> ")),
        1 => lines.join("\n").to_uppercase(),
        2 => lines.join("  \r\n").replace(['.', ','], " –"),
        _ => format!("“{}”", lines.join(" ")),
    }
}

fn received(chance: &mut Chance) -> Message {
    let sender = person(chance);
    let sentences = 2 + chance.below(3) * (1 + chance.below(6));
    let footer = FOOTERS[chance.below(3)];
    let mut people = BTreeSet::from([sender.clone()]);
    if chance.below(3) == 0 {
        people.insert(person(chance));
    }
    Message { text: format!("{}\n--\n{footer}", body(chance, sentences)), sender, people }
}

/// So many words of what the sender wrote, from anywhere.
fn excerpt(chance: &mut Chance, message: &Message, words: usize) -> String {
    let own = message.text.lines().nth(1).unwrap();
    let all: Vec<&str> = own.split_whitespace().collect();
    let start = chance.below(all.len().saturating_sub(words).max(1));
    all[start..(start + words).min(all.len())].join(" ")
}

struct Outgoing {
    what: &'static str,
    text: String,
    recipients: Vec<String>,
    is_leak: bool,
}

/// Messages of all sorts about one that was received.
fn outgoing(chance: &mut Chance, message: &Message) -> Vec<Outgoing> {
    let stranger = loop {
        let person = person(chance);
        if !message.people.contains(&person) {
            break person;
        }
    };
    let (all, third): (Vec<String>, _) = (message.people.iter().cloned().collect(), vec![stranger.clone()]);
    let new = |chance: &mut Chance| {
        let count = 2 + chance.below(6);
        body(chance, count)
    };
    let words = 12 + chance.below(14);
    let quote = excerpt(chance, message, words);
    let (whole, part) = (requote(chance, &message.text), requote(chance, &quote));
    let short = excerpt(chance, message, 5);
    let own = |text: String, recipients: &[String], what, is_leak| Outgoing {
        text,
        recipients: recipients.to_vec(),
        what,
        is_leak,
    };
    vec![
        own(format!("{}\n\n{whole}", new(chance)), &third, "forward", true),
        own(format!("{}\n{part}\n{}", new(chance), new(chance)), &third, "part", true),
        own(
            format!("{part}\n{}", new(chance)),
            &[all.clone(), third.clone()].concat(),
            "part to all and one more",
            true,
        ),
        own(format!("{}\n\n{whole}", new(chance)), &all, "reply", false),
        own(format!("{part}\n{}", new(chance)), &all, "reply with a part", false),
        own(format!("{}\n--\n{}", new(chance), FOOTERS[chance.below(3)]), &third, "new text", false),
        own(format!("About “{short}”: {}", new(chance)), &third, "a few words", false),
    ]
}

#[test]
fn recall_and_precision_reach_their_aims() {
    let fingerprinter = Fingerprinter::new(&[9; 32]);
    let mut chance = Chance::new("conversations");
    let mut index = Index::default();
    for _ in 0..300 {
        let message = received(&mut chance);
        index.add(&fingerprinter, message);
    }
    let (mut right, mut missed, mut wrong, mut count) = (0_u32, 0_u32, 0_u32, 0_u32);
    let mut failures: HashMap<&str, u32> = HashMap::new();
    for message in index.messages.clone() {
        for sent in outgoing(&mut chance, &message) {
            let found = !index.leaks(&fingerprinter, &sent.text, &sent.recipients).is_empty();
            count += 1;
            match (found, sent.is_leak) {
                (true, true) => right += 1,
                (false, true) => missed += 1,
                (true, false) => wrong += 1,
                (false, false) => {}
            }
            if found != sent.is_leak {
                *failures.entry(sent.what).or_default() += 1;
            }
        }
    }
    let (recall, precision) =
        (f64::from(right) / f64::from(right + missed), f64::from(right) / f64::from(right + wrong));
    println!("{count} messages: recall {recall:.3}, precision {precision:.3}; failures {failures:?}");
    assert!(recall >= 0.9 && precision >= 0.98, "recall {recall:.3}, precision {precision:.3}: {failures:?}");
}

fn hand_written(fingerprinter: &Fingerprinter) -> Index {
    let mut index = Index::default();
    for (sender, text) in [
        (
            "claire@avocats.example",
            "Entre nous : le vendeur acceptera 410 000 euros si nous signons avant le 15, mais il ne faut pas que l'agence l'apprenne.",
        ),
        (
            "ben@supplier.example",
            "We lost the Hamburg order, so I can give you the 2,000 valves at 11.40 each instead of 13.90, but please keep that price between us.",
        ),
        (
            "mori@kaisha.example",
            "来期の組織変更により、東京支店は九月末で閉鎖される予定です。正式発表までは社外秘でお願いいたします。",
        ),
        (
            "dr.weiss@praxis.example",
            "Die Laborwerte von Herrn Kern sind leider deutlich schlechter als im Januar, wir sollten die Therapie noch diese Woche umstellen.",
        ),
    ] {
        let people = BTreeSet::from([sender.to_owned()]);
        index.add(fingerprinter, Message { sender: sender.to_owned(), people, text: text.to_owned() });
    }
    index
}

#[test]
fn conversations_written_by_hand() {
    let fingerprinter = Fingerprinter::new(&[9; 32]);
    let index = hand_written(&fingerprinter);
    let told = |text: &str, to: &str| !index.leaks(&fingerprinter, text, &[to.to_owned()]).is_empty();
    let french = "Bonjour,\n> le vendeur acceptera 410 000 euros si nous\n> signons avant le 15, mais il ne faut pas que l’agence\nQu'en pensez-vous ?";
    assert!(told(french, "agence@immo.example"));
    assert!(!told(french, "claire@avocats.example"));
    let english = "FYI, Ben says: I CAN GIVE YOU THE 2,000 VALVES AT 11.40 EACH instead of 13.90 but please keep that price quiet";
    assert!(told(english, "anna@rival.example"));
    assert!(!told("We can offer 2,000 valves at 12.10 each, delivery in May.", "anna@rival.example"));
    assert!(told(
        "聞いたところ、東京支店は九月末で閉鎖される予定です。正式発表まではとのこと。",
        "press@news.example"
    ));
    assert!(!told("東京支店は九月に移転します。よろしくお願いいたします。", "press@news.example"));
    let german = "Herr Kern, Dr. Weiss schreibt, die Laborwerte von Herrn Kern sind leider deutlich\nschlechter als im Januar, wir sollten die Therapie umstellen.";
    assert!(told(german, "kern@home.example"));
    assert!(!told("Die Laborwerte kommen am Montag, bitte rufen Sie die Praxis an.", "kern@home.example"));
}

#[test]
fn addresses_and_files_are_recognised() {
    let fingerprinter = Fingerprinter::new(&[9; 32]);
    let received = "Please write to my private address Eva.Lind@Home.Example from now on.";
    let known: Vec<i64> =
        addresses(received).into_iter().map(|range| fingerprinter.of_address(&received[range])).collect();
    let sent = "You can reach her at <eva.lind@home.example>.";
    let found =
        addresses(sent).into_iter().any(|range| known.contains(&fingerprinter.of_address(&sent[range])));
    assert!(found);
    assert!(!known.contains(&fingerprinter.of_address("eva.lund@home.example")));
}
