//! Charts as SVG, drawn on the server: stacked bars, one per day.

use std::fmt::Write as _;

use super::time::number;

const WIDTH: i64 = 960;
const HEIGHT: i64 = 220;
const LEFT: i64 = 46;
const BOTTOM: i64 = 24;
const TOP: i64 = 8;

/// A day: its date, and a figure for each series.
pub(super) type Bar = (String, Vec<i64>);

/// A chart of stacked bars. Labels are constants and figures are numbers, so nothing needs escaping.
pub(super) fn stacked(label: &str, names: &[&str], bars: &[Bar]) -> String {
    let highest = bars.iter().map(|(_, values)| values.iter().sum::<i64>()).max().unwrap_or(0);
    let top = ceiling(highest);
    let mut svg =
        format!("<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">");
    let height = HEIGHT - BOTTOM - TOP;
    for part in 0..=4 {
        let y = TOP + height - height * part / 4;
        let _ = write!(svg, "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y}\" x2=\"{WIDTH}\" y2=\"{y}\"/>");
        if part == 0 || top >= 4 {
            let text = number(top * part / 4);
            let _ = write!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{text}</text>", LEFT - 8, y + 4);
        }
    }
    let count = i64::try_from(bars.len()).unwrap_or(1).max(1);
    let step = (WIDTH - LEFT) * 10 / count;
    for (index, (day, values)) in (0_i64..).zip(bars) {
        let x = LEFT * 10 + step * index + step / 6;
        let width = step * 2 / 3;
        draw_bar(&mut svg, names, (day, values), (x, width), (height, top));
        let every = (count + 9) / 10;
        if index % every == 0 {
            let middle = (x + width / 2) / 10;
            let short = day.get(5..).unwrap_or(day);
            let _ = write!(
                svg,
                "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{short}</text>",
                HEIGHT - 6
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

/// The next round number: 1, 2 or 5 followed by zeros, and at least 4.
fn ceiling(highest: i64) -> i64 {
    let mut scale = 1;
    loop {
        for step in [4, 8, 10, 20, 40] {
            if step * scale >= highest {
                return step * scale;
            }
        }
        scale *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_each_other() {
        let bars = vec![("2026-07-13".to_owned(), vec![2, 1]), ("2026-07-14".to_owned(), vec![0, 0])];
        let svg = stacked("Mails", &["in", "out"], &bars);
        assert_eq!(svg.matches("<rect").count(), 2, "{svg}");
        assert!(svg.contains("2026-07-13, in 2, out 1"));
        assert_eq!((ceiling(0), ceiling(5), ceiling(37), ceiling(41)), (4, 8, 40, 80));
    }
}
