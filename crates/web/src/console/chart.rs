//! Charts as SVG, drawn on the server: stacked bars, one per day, once for a screen and once for a phone.

use std::fmt::Write as _;

use super::time::number;

/// Parts of the scale: every tick is a whole number, because its top is a multiple of this.
const TICKS: i64 = 4;
const BOTTOM: i64 = 24;
const TOP: i64 = 8;

/// The measures of a chart. Text is not scaled, so a phone needs a drawing of its own.
#[derive(Clone, Copy)]
struct Frame {
    class: &'static str,
    width: i64,
    height: i64,
    left: i64,
    /// Days that are named below the bars, at most.
    days: i64,
}

const WIDE: Frame = Frame { class: "chart wide", width: 960, height: 220, left: 46, days: 10 };
const NARROW: Frame = Frame { class: "chart narrow", width: 330, height: 200, left: 40, days: 5 };

/// A day: its date, and a figure for each series.
pub(super) type Bar = (String, Vec<i64>);

/// A chart of stacked bars. Labels are constants and figures are numbers, so nothing needs escaping.
pub(super) fn stacked(label: &str, names: &[&str], bars: &[Bar]) -> String {
    let highest = bars.iter().map(|(_, values)| values.iter().sum::<i64>()).max().unwrap_or(0);
    let top = ceiling(highest);
    [WIDE, NARROW].into_iter().map(|frame| draw(frame, label, names, bars, top)).collect()
}

fn draw(frame: Frame, label: &str, names: &[&str], bars: &[Bar], top: i64) -> String {
    let Frame { class, width, height, left, days } = frame;
    let mut svg = format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">"
    );
    let tall = height - BOTTOM - TOP;
    for part in 0..=TICKS {
        let y = TOP + tall - tall * part / TICKS;
        let _ = write!(svg, "<line class=\"grid\" x1=\"{left}\" y1=\"{y}\" x2=\"{width}\" y2=\"{y}\"/>");
        let text = number(top / TICKS * part);
        let _ = write!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{text}</text>", left - 8, y + 4);
    }
    let count = i64::try_from(bars.len()).unwrap_or(1).max(1);
    let step = (width - left) * 10 / count;
    for (index, (day, values)) in (0_i64..).zip(bars) {
        let x = left * 10 + step * index + step / 6;
        let wide = step * 2 / 3;
        draw_bar(&mut svg, names, (day, values), (x, wide), (tall, top));
        let every = (count + days - 1) / days;
        if index % every == 0 {
            let middle = ((x + wide / 2) / 10).max(left + 14);
            let short = day.get(5..).unwrap_or(day);
            let _ = write!(
                svg,
                "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{short}</text>",
                height - 6
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// One day. Widths are in tenths, so that many thin bars stay apart.
fn draw_bar(
    svg: &mut String,
    names: &[&str],
    (day, values): (&str, &[i64]),
    (x, width): (i64, i64),
    (height, top): (i64, i64),
) {
    let mut title = day.to_owned();
    for (name, value) in names.iter().zip(values) {
        let _ = write!(title, ", {name} {}", number(*value));
    }
    let _ = write!(svg, "<g class=\"bar\"><title>{title}</title>");
    let mut base = TOP + height;
    for (series, value) in (1..).zip(values) {
        let tall = if *value > 0 { (value * height / top.max(1)).max(2) } else { 0 };
        base -= tall;
        if tall > 0 {
            let (left, wide) = (tenths(x), tenths(width));
            let _ = write!(
                svg,
                "<rect class=\"s{series}\" x=\"{left}\" y=\"{base}\" width=\"{wide}\" height=\"{tall}\" rx=\"1.5\"/>"
            );
        }
    }
    svg.push_str("</g>");
}

fn tenths(value: i64) -> String {
    format!("{}.{}", value / 10, value % 10)
}

/// The next round number that has whole quarters.
fn ceiling(highest: i64) -> i64 {
    let mut scale = 1_i64;
    loop {
        for step in [4, 8, 12, 20, 40, 60, 80] {
            let top = scale.saturating_mul(step);
            if top >= highest {
                return top;
            }
        }
        scale = scale.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_each_other() {
        let bars = vec![("2026-07-13".to_owned(), vec![2, 1]), ("2026-07-14".to_owned(), vec![0, 0])];
        let svg = stacked("Emails", &["in", "out"], &bars);
        assert_eq!(svg.matches("<rect").count(), 4, "two in each drawing: {svg}");
        assert!(svg.contains("2026-07-13, in 2, out 1"));
    }

    #[test]
    fn ticks_are_whole_numbers() {
        assert_eq!((ceiling(0), ceiling(5), ceiling(37), ceiling(41)), (4, 8, 40, 60));
        for highest in (0..2000).chain([123_456, i64::from(u32::MAX)]) {
            let top = ceiling(highest);
            assert!(top >= highest && top % TICKS == 0, "{highest}: {top}");
            assert!(top <= 4.max(highest * 2), "{highest}: {top}");
        }
    }
}
