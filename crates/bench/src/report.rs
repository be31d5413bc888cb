//! The figures: a table for people and a JSON file for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::{
    machine,
    measured_store::{Engine, FOLDER},
    options::Measurement,
    stats::{median, spread},
};

/// The target of a ratio.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// One measured ratio.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) what: &'static str,
    /// On what.
    pub(crate) engine: &'static str,
    /// The unit of value and yardstick.
    pub(crate) unit: &'static str,
    /// The median of what was measured.
    pub(crate) value: f64,
    /// The median of the baseline.
    pub(crate) yardstick: f64,
    /// The median of the ratios of the single rounds.
    pub(crate) ratio: f64,
    /// The smallest and the largest of these ratios.
    pub(crate) spread: (f64, f64),
    /// The target; `None` when the figure only explains another one.
    pub(crate) target: Option<Target>,
    /// Further observations.
    pub(crate) notes: Vec<String>,
}

impl Figure {
    /// Rates against those of a yardstick in the same rounds.
    pub(crate) fn of_rates(
        what: &'static str,
        engine: Engine,
        (own, others): (&[f64], &[f64]),
        target: Option<Target>,
    ) -> Self {
        let ratios: Vec<f64> = own.iter().zip(others).map(|(own, other)| own / other).collect();
        Self {
            what,
            engine: engine.name(),
            unit: "/s",
            value: median(own),
            yardstick: median(others),
            ratio: median(&ratios),
            spread: spread(&ratios),
            target,
            notes: Vec::new(),
        }
    }

    /// One value on PostgreSQL against another one, such as a limit.
    pub(crate) fn single(
        what: &'static str,
        (unit, value, yardstick): (&'static str, f64, f64),
        target: Option<Target>,
    ) -> Self {
        let ratio = value / yardstick;
        let engine = Engine::Postgres.name();
        Self {
            what,
            engine,
            unit,
            value,
            yardstick,
            ratio,
            spread: (ratio, ratio),
            target,
            notes: Vec::new(),
        }
    }

    /// Milliseconds against a limit.
    pub(crate) fn within(what: &'static str, engine: Engine, milliseconds: &[f64], limit: f64) -> Self {
        let (least, most) = spread(milliseconds);
        Self {
            what,
            engine: engine.name(),
            unit: "ms",
            value: median(milliseconds),
            yardstick: limit,
            ratio: median(milliseconds) / limit,
            spread: (least / limit, most / limit),
            target: Some(Target::AtMost(1.0)),
            notes: Vec::new(),
        }
    }

    pub(crate) fn passed(&self) -> bool {
        match self.target {
            Some(Target::AtLeast(least)) => self.ratio >= least,
            Some(Target::AtMost(most)) => self.ratio <= most,
            None => true,
        }
    }
}

/// Writes the figures of a measurement to a file of its own.
pub(crate) fn save(measurement: Measurement, figures: &[Figure]) {
    let passed = figures.iter().all(Figure::passed);
    let all = serde_json::json!({
        "measurement": measurement.name(),
        "machine": machine::description(),
        "passed": passed,
        "figures": figures,
    });
    std::fs::create_dir_all(FOLDER).expect("the folder for results can be made");
    let text = serde_json::to_string_pretty(&all).expect("figures are JSON") + "\n";
    let path = format!("{FOLDER}/{}.json", measurement.name());
    std::fs::write(path, text).expect("the results can be written");
}

/// All figures as a table, with the notes below.
pub(crate) fn table(figures: &[Figure]) -> String {
    let header = ["what", "engine", "measured", "yardstick", "ratio", "spread", "target", ""];
    let mut rows = vec![header.map(ToOwned::to_owned)];
    rows.extend(figures.iter().map(row));
    let widths: Vec<usize> = (0..header.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = format!("\n{}\n\n", machine::description());
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Names left-aligned, numbers right-aligned.
            let _ =
                if column < 2 { write!(text, "{cell:<width$}  ") } else { write!(text, "{cell:>width$}  ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text.push('\n');
    for figure in figures {
        for note in &figure.notes {
            let _ = writeln!(text, "{}, {}: {note}", figure.what, figure.engine);
        }
    }
    text
}

fn row(figure: &Figure) -> [String; 8] {
    let unit = figure.unit;
    let result = if figure.passed() { "pass" } else { "MISS" };
    let (target, result) = match figure.target {
        Some(Target::AtLeast(least)) => (format!("≥ {least:.2}"), result),
        Some(Target::AtMost(most)) => (format!("≤ {most:.2}"), result),
        None => ("none".to_owned(), ""),
    };
    [
        figure.what.to_owned(),
        figure.engine.to_owned(),
        format!("{} {unit}", number(figure.value)),
        format!("{} {unit}", number(figure.yardstick)),
        format!("{:.2}", figure.ratio),
        format!("{:.2}–{:.2}", figure.spread.0, figure.spread.1),
        target,
        result.to_owned(),
    ]
}

/// Large numbers without decimals, small ones with one.
fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_tells_hits_from_misses() {
        let figure = |ratio, target| Figure {
            what: "reads",
            engine: "SQLite",
            unit: "/s",
            value: 1234.5,
            yardstick: 12.0,
            ratio,
            spread: (0.5, 0.75),
            target,
            notes: vec!["hello".to_owned()],
        };
        let text = table(&[
            figure(0.71, Some(Target::AtLeast(0.7))),
            figure(1.6, Some(Target::AtMost(1.5))),
            figure(9.0, None),
        ]);
        assert!(text.contains("0.71  0.50–0.75  ≥ 0.70  pass"), "{text}");
        assert!(text.contains("1.60  0.50–0.75  ≤ 1.50  MISS"), "{text}");
        assert!(text.contains("9.00  0.50–0.75    none\n"), "{text}");
        assert!(text.contains("reads, SQLite: hello"), "{text}");
    }
}
