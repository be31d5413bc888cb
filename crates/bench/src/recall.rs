//! Recall over many snippets, what their index costs a node, how much the index finds of what an exact search would, how
//! fast texts are embedded, how fast mail comes into memory, and the quality of the results on a public set of questions.

mod drawn;
mod indexes;
mod mail;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use embed::index::{Hit, Index, TERM_WEIGHT, VECTOR_WEIGHT, encode, encode_terms, fuse};
use model::search::words::{telling_words, words};

use self::drawn::{dot, drawn, normalised, of_json, request, seed};
use crate::{
    fill,
    load::{Connection, End, Load},
    measured_store::Engine,
    messages,
    options::Options,
    program::{self, Disk, RunningProgram},
    relay,
    report::{Figure, Target},
    stats::{as_float, median, spread},
    turns,
};

const THROUGHPUT: &str = "texts embedded : 62.5 /s";
const EXACTNESS: &str = "recall@10 of the index : exact search";
const DISTURBANCE: &str = "reads while a document is added : before";
/// Queries for which the index is compared with exact search.
const QUERIES: usize = 100;
/// Texts that are embedded to measure the speed, of about a hundred tokens each.
const EMBEDDED_TEXTS: usize = 200;
const TEXTS_PER_SECOND: f64 = 1000.0 / 16.0;
/// Words of the document that is added, 1 MB. Made-up words are several tokens each, and it would have more pieces than a
/// document may have.
const DOCUMENT_WORDS: usize = 165_000;
/// Connections that read while a document is added, and the duration of one sample.
const READERS: usize = 4;
const SAMPLE_DURATION: Duration = Duration::from_millis(500);
/// Candidates that are rescored with 32 bits, as the service does.
const CANDIDATES: usize = 64;

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    if options.wants(THROUGHPUT) {
        figures.push(throughput());
    }
    if options.wants(EXACTNESS) {
        figures.push(exactness(options));
    }
    if let Some(path) = &options.recall_set {
        figures.extend(quality(path));
    } else {
        eprintln!("no --recall-set: the quality of answers is not measured");
    }
    for engine in &options.engines {
        figures.extend(indexes::measure(*engine, options).await);
        if options.wants(DISTURBANCE) {
            figures.push(disturbance(*engine, options).await);
        }
        if options.wants(mail::WHAT) {
            figures.push(mail::measure(*engine, options).await);
        }
    }
    figures
}

/// How much reads slow down while the real program indexes a document of 1 MB with the embedded model.
async fn disturbance(engine: Engine, options: &Options) -> Figure {
    let (store, key, mailbox) = relay::prepare(engine).await;
    let running = RunningProgram::start(&program::path(options), &store, Disk::AsItIs).await;
    let read =
        |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {}\r\nX-API-Key: {key}\r\n\r\n", running.address);
    let folders = read(&format!("/api/v1/mailboxes/{mailbox}/folders"));
    let readers = Load::of_one(running.address, READERS, folders);
    readers.run(End::After(SAMPLE_DURATION)).await;
    let calm = readers.run(End::After(options.turn())).await;
    let text = mail::lines(DOCUMENT_WORDS, "", &mut 1);
    let body = serde_json::json!({ "name": "book", "type": "text", "text": text });
    let mut connection = Connection::open(running.address).await;
    let made =
        connection.ask(&request(running.address, &key, "/api/v1/rag/documents", &body.to_string())).await;
    let mut document = of_json(&made);
    let asked = read(&format!("/api/v1/rag/documents/{}", document["id"].as_str().unwrap_or_default()));
    let (started, mut busy, mut seen) = (Instant::now(), Vec::new(), Vec::new());
    while document["status"] == "indexing" && started.elapsed() < options.turn() * 10 {
        busy.push(readers.run(End::After(SAMPLE_DURATION)).await);
        document = of_json(&connection.ask(&asked).await);
        seen.push(document["chunks_done"].as_u64().unwrap_or_default());
    }
    assert_ne!(document["status"], "failed", "the document is indexed: {document}");
    running.stop();
    store.remove().await;
    let mut figure = turns::meanwhile(DISTURBANCE, engine, &calm, &busy);
    figure.notes.push(format!(
        "{READERS} readers without a pause; after {:.0} s {} of {} pieces were ready, seen to grow {} times",
        started.elapsed().as_secs_f64(),
        document["chunks_done"],
        document["chunk_count"],
        seen.windows(2).filter(|pair| pair[0] < pair[1]).count()
    ));
    figure
}

/// Texts per second of the embedded model, on one core.
fn throughput() -> Figure {
    let texts: Vec<String> = (0..EMBEDDED_TEXTS).map(|number| messages::prose(number, 240)).collect();
    let tokens: usize = texts.iter().map(|text| embed::count_tokens(text, 1000)).sum();
    embed::embed("The first text loads the model.");
    let mut speeds = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        for text in &texts {
            drop(std::hint::black_box(embed::embed(text)));
        }
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        speeds.push(EMBEDDED_TEXTS as f64 / started.elapsed().as_secs_f64());
    }
    let (least, most) = spread(&speeds);
    Figure {
        what: THROUGHPUT,
        engine: "–",
        unit: "/s",
        value: median(&speeds),
        yardstick: TEXTS_PER_SECOND,
        ratio: median(&speeds) / TEXTS_PER_SECOND,
        spread: (least / TEXTS_PER_SECOND, most / TEXTS_PER_SECOND),
        target: None,
        notes: vec![format!("{} tokens a text on average, one processor", tokens / EMBEDDED_TEXTS)],
    }
}

/// How many of the ten nearest by a 32-bit search are among the ten that the index and rescoring return. The
/// vectors are real ones and neighbours of them, as passages of the same books are.
fn exactness(options: &Options) -> Figure {
    let real: Vec<Vec<f32>> = (0..500).map(|number| embed::embed(&messages::prose(number, 300))).collect();
    let mut state = 7;
    let mut near = |vector: &[f32]| {
        let noise = drawn(fill::next_random(&mut state));
        normalised(vector.iter().zip(&noise).map(|(x, y)| x + 0.35 * y).collect())
    };
    let vectors: Vec<Vec<f32>> = (0..options.snippets()).map(|at| near(&real[at % real.len()])).collect();
    let mut index = Index::new(embed::DIMENSION);
    for (number, vector) in (0..).zip(&vectors) {
        index.insert(number, 0, Some(&encode(vector)), &[]);
    }
    let exact = |query: &[f32], numbers: &mut dyn Iterator<Item = i64>| {
        let at = |number: i64| usize::try_from(number).unwrap_or_default();
        let mut hits: Vec<Hit> =
            numbers.map(|number| Hit { number, score: dot(query, &vectors[at(number)]) }).collect();
        hits.sort_by(|one, other| other.cmp(one));
        hits.into_iter().take(10).map(|hit| hit.number).collect::<Vec<i64>>()
    };
    let (mut found, mut scanned) = (0.0, Vec::new());
    for one in real.iter().take(QUERIES) {
        let query = near(one);
        let started = Instant::now();
        let candidates = index.nearest(&query, CANDIDATES, |_| true);
        scanned.push(started.elapsed().as_secs_f64() * 1000.0);
        let ours = exact(&query, &mut candidates.iter().map(|hit| hit.number));
        let wanted = exact(&query, &mut (0..i64::try_from(vectors.len()).unwrap_or_default()));
        #[expect(clippy::cast_precision_loss, reason = "at most ten")]
        let share = wanted.iter().filter(|number| ours.contains(number)).count() as f64 / 10.0;
        found += share;
    }
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let value = found / QUERIES as f64;
    Figure {
        what: EXACTNESS,
        engine: "–",
        unit: "",
        value,
        yardstick: 1.0,
        ratio: value,
        spread: (value, value),
        target: Some(Target::AtLeast(0.95)),
        notes: vec![format!("{} vectors; one scan takes {:.1} ms", vectors.len(), median(&scanned))],
    }
}

/// A question and its answer.
#[derive(serde::Deserialize)]
struct Question {
    question: String,
    passages: Vec<String>,
}

/// How often the right answer is among the first five, and its rank: by terms, by vectors and by both.
fn quality(path: &Path) -> Vec<Figure> {
    let lines = std::fs::read_to_string(path).expect("the set can be read");
    let set: Vec<Question> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of the set is JSON")).collect();
    let hashed = |words: Vec<String>| -> Vec<u32> {
        words.iter().map(|word| u32::try_from(seed(word) & 0xffff_ffff).unwrap_or_default()).collect()
    };
    let mut index = Index::new(embed::DIMENSION);
    let mut answers = Vec::new();
    for (number, asked) in set.iter().enumerate() {
        for passage in &asked.passages {
            let position = i64::try_from(answers.len()).unwrap_or_default();
            index.insert(
                position,
                0,
                Some(&encode(&embed::embed(passage))),
                &encode_terms(&hashed(words(passage, 1000))),
            );
            answers.push(number);
        }
    }
    let mut ranks: [Vec<usize>; 3] = Default::default();
    for (number, asked) in set.iter().enumerate() {
        let numbers = |hits: Vec<Hit>| hits.into_iter().map(|hit| hit.number).collect::<Vec<i64>>();
        let near = numbers(index.nearest(&embed::embed(&asked.question), CANDIDATES, |_| true));
        let fitting = numbers(index.matching(&hashed(words(&asked.question, 1000)), CANDIDATES, |_| true));
        let telling = hashed(telling_words(&asked.question, 1000));
        let telling = numbers(index.matching(&telling, CANDIDATES, |_| true));
        let both: Vec<i64> = fuse(&[(VECTOR_WEIGHT, &near), (TERM_WEIGHT, &telling)])
            .into_iter()
            .map(|(found, _)| found)
            .collect();
        for (list, ranks) in [&fitting, &near, &both].into_iter().zip(&mut ranks) {
            ranks.push(rank(list, &answers, number));
        }
    }
    let passages = answers.len();
    let names = ["words alone: recall@5", "meaning alone: recall@5", "both fused: recall@5"];
    let [by_words, ..] = &ranks;
    let baseline = recall_at(by_words, 5);
    let figures = names.into_iter().zip(&ranks).map(|(what, ranks)| {
        let value = recall_at(ranks, 5);
        Figure {
            what,
            engine: "–",
            unit: "",
            value,
            yardstick: baseline,
            ratio: value / baseline,
            spread: (value / baseline, value / baseline),
            target: what.starts_with("both").then_some(Target::AtLeast(1.0)),
            notes: vec![format!(
                "{} questions, {passages} passages; MRR {:.3}, recall@1 {:.3}, recall@10 {:.3}",
                ranks.len(),
                mean(ranks.iter().map(|rank| if *rank == 0 { 0.0 } else { 1.0 / as_float(*rank) })),
                recall_at(ranks, 1),
                recall_at(ranks, 10)
            )],
        }
    });
    figures.collect()
}

/// The rank of the right answer's first passage, counted from 1; 0 when there is none.
fn rank(found: &[i64], answers: &[usize], wanted: usize) -> usize {
    let mut seen: Vec<usize> = Vec::new();
    for answer in found.iter().filter_map(|position| answers.get(usize::try_from(*position).ok()?)) {
        if !seen.contains(answer) {
            seen.push(*answer);
        }
        if *answer == wanted {
            return seen.len();
        }
    }
    0
}

fn recall_at(ranks: &[usize], limit: usize) -> f64 {
    mean(ranks.iter().map(|rank| if (1..=limit).contains(rank) { 1.0 } else { 0.0 }))
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = as_float(numbers.len());
    numbers.sum::<f64>() / count
}
