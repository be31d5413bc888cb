//! What changed between two texts, line by line.

/// The most pairs of lines that are compared; of longer texts everything between their common ends is shown as changed.
const MAX_PAIRS: usize = 250_000;
/// Unchanged lines that are shown beside changed ones.
const CONTEXT: usize = 2;

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Same,
    Removed,
    Added,
    /// Unchanged lines that are not shown.
    Gap,
}

/// A line of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiffLine {
    pub(super) kind: LineKind,
    pub(super) text: String,
}

impl DiffLine {
    fn new(kind: LineKind, text: &str) -> Self {
        Self { kind, text: text.to_owned() }
    }

    /// The class of its row.
    pub(super) const fn class(&self) -> &'static str {
        match self.kind {
            LineKind::Same => "same",
            LineKind::Removed => "removed",
            LineKind::Added => "added",
            LineKind::Gap => "gap",
        }
    }

    /// What a screen reader says before the line.
    pub(super) const fn said(&self) -> &'static str {
        match self.kind {
            LineKind::Same => "",
            LineKind::Removed => "Removed: ",
            LineKind::Added => "Added: ",
            LineKind::Gap => "Unchanged lines",
        }
    }
}

/// The lines of two texts: those that both have, and those that one of them has. Empty if nothing changed.
pub(super) fn compare(before: &str, after: &str) -> Vec<DiffLine> {
    let old: Vec<&str> = before.trim_end().lines().map(str::trim_end).collect();
    let new: Vec<&str> = after.trim_end().lines().map(str::trim_end).collect();
    if old == new {
        return Vec::new();
    }
    let start = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
    let end =
        old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let middle = |rest: &[&str]| rest.len() - end;
    let (old_middle, tail) = old_rest.split_at(middle(old_rest));
    let (new_middle, _) = new_rest.split_at(middle(new_rest));
    let mut lines: Vec<DiffLine> =
        old.iter().take(start).map(|text| DiffLine::new(LineKind::Same, text)).collect();
    lines.extend(changed(old_middle, new_middle));
    lines.extend(tail.iter().map(|text| DiffLine::new(LineKind::Same, text)));
    without_distant(lines)
}

/// The lines between the common ends, by their longest common subsequence.
fn changed(old: &[&str], new: &[&str]) -> Vec<DiffLine> {
    let removed = old.iter().map(|text| DiffLine::new(LineKind::Removed, text));
    let added = new.iter().map(|text| DiffLine::new(LineKind::Added, text));
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        return removed.chain(added).collect();
    }
    let width = new.len() + 1;
    // How many lines the rests from these places on have in common.
    let mut common = vec![0_usize; (old.len() + 1) * width];
    let at = |row: usize, column: usize| row * width + column;
    let get = |common: &[usize], place: usize| common.get(place).copied().unwrap_or(0);
    for (row, one) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            let length = if one == other {
                get(&common, at(row + 1, column + 1)) + 1
            } else {
                get(&common, at(row + 1, column)).max(get(&common, at(row, column + 1)))
            };
            if let Some(slot) = common.get_mut(at(row, column)) {
                *slot = length;
            }
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    loop {
        match (old.get(row), new.get(column)) {
            (Some(one), Some(other)) if one == other => {
                lines.push(DiffLine::new(LineKind::Same, one));
                (row, column) = (row + 1, column + 1);
            }
            (Some(one), other)
                if other.is_none()
                    || get(&common, at(row + 1, column)) >= get(&common, at(row, column + 1)) =>
            {
                lines.push(DiffLine::new(LineKind::Removed, one));
                row += 1;
            }
            (_, Some(other)) => {
                lines.push(DiffLine::new(LineKind::Added, other));
                column += 1;
            }
            _ => return lines,
        }
    }
}

/// Replaces unchanged lines that are not near a changed one with gaps.
fn without_distant(lines: Vec<DiffLine>) -> Vec<DiffLine> {
    let changes: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.kind != LineKind::Same)
        .map(|(index, _)| index)
        .collect();
    let is_near = |index: usize| {
        let next = changes.partition_point(|change| *change < index);
        let near = |change: Option<&usize>| change.is_some_and(|change| change.abs_diff(index) <= CONTEXT);
        near(changes.get(next)) || near(next.checked_sub(1).and_then(|before| changes.get(before)))
    };
    let mut shown: Vec<DiffLine> = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        if is_near(index) {
            shown.push(line);
        } else if shown.last().is_none_or(|last| last.kind != LineKind::Gap) {
            shown.push(DiffLine::new(LineKind::Gap, ""));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        let lines = compare(before, after).into_iter().map(|line| {
            let mark = match line.kind {
                LineKind::Same => ' ',
                LineKind::Removed => '-',
                LineKind::Added => '+',
                LineKind::Gap => '~',
            };
            format!("{mark}{}", line.text)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn lines_are_kept_added_and_removed() {
        assert_eq!(shown("a\nb\n", "a\r\nb"), "");
        assert_eq!(shown("a\nb\nc", "a\nx\nc"), " a\n-b\n+x\n c");
        assert_eq!(shown("", "a"), "+a");
        assert_eq!(shown("a", ""), "-a");
        assert_eq!(shown("a\nb", "b\na"), "-a\n b\n+a");
        assert_eq!(shown("1\n2\n3\n4\n5", "1\n2\n3\n4\nx"), "~\n 3\n 4\n-5\n+x");
    }

    #[test]
    fn long_texts_are_not_compared_line_by_line() {
        let text = |word: &str| (0..2000).map(|line| format!("{word} {line}")).collect::<Vec<_>>().join("\n");
        let lines = compare(&text("old"), &text("new"));
        assert_eq!(lines.len(), 4000);
        assert!(lines.iter().take(2000).all(|line| line.kind == LineKind::Removed));
    }
}
