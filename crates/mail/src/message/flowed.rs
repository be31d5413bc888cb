//! Line ends, and the soft line breaks of `format=flowed` (RFC 3676).

/// One kind of line end.
pub(super) fn unix_lines(text: String) -> String {
    let Some(first) = memchr::memchr(b'\r', text.as_bytes()) else { return text };
    let mut lines = String::with_capacity(text.len());
    let (mut start, mut found) = (0, Some(first));
    while let Some(end) = found {
        lines.push_str(text.get(start..end).unwrap_or_default());
        lines.push('\n');
        start = end + 1;
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        start += usize::from(rest.first() == Some(&b'\n'));
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        found = memchr::memchr(b'\r', rest).map(|place| start + place);
    }
    lines.push_str(text.get(start..).unwrap_or_default());
    lines
}

/// Joins soft-wrapped lines.
pub(super) fn unflow(text: &str, delete_space: bool) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut open_depth = None;
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let depth = content.len() - content.trim_start_matches('>').len();
        let unquoted = content.get(depth..).unwrap_or_default();
        let unstuffed = unquoted.strip_prefix(' ').unwrap_or(unquoted);
        let is_signature = unstuffed == "-- ";
        let continues = open_depth == Some(depth) && !is_signature;
        if open_depth.is_some() && !continues {
            joined.push('\n');
        }
        if !continues && depth > 0 {
            joined.push_str(content.get(..depth).unwrap_or_default());
            joined.push(' ');
        }
        let is_flowed = unstuffed.ends_with(' ') && !is_signature;
        let shown = if is_flowed && delete_space {
            unstuffed.strip_suffix(' ').unwrap_or(unstuffed)
        } else {
            unstuffed
        };
        joined.push_str(shown);
        open_depth = is_flowed.then_some(depth);
        if !is_flowed && line.ends_with('\n') {
            joined.push('\n');
        }
    }
    joined
}
