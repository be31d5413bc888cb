//! Winnowing: of every window of neighbouring hashes the least is kept, so that two texts with a common run keep the same.

/// The indexes of the hashes that are kept, in order: at most `max`, by the smallest window that does.
pub(super) fn winnow(hashes: &[Option<i64>], max: usize) -> Vec<usize> {
    // Of a window and one more about two are kept.
    let mut window = ((2 * hashes.len() / max.max(1)).saturating_sub(1) * 9 / 10).max(1);
    if hashes.len() <= max {
        window = 1;
    }
    loop {
        let kept = least_of_windows(hashes, window);
        if kept.len() <= max || window > hashes.len() {
            return kept.into_iter().take(max).collect();
        }
        window += window.div_ceil(16);
    }
}

/// The least hash of every window, the last of equals. A text shorter than a window is one.
fn least_of_windows(hashes: &[Option<i64>], window: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    // Indexes whose hashes grow, of which the first is the least of the current window.
    let mut rising = std::collections::VecDeque::new();
    for (index, hash) in hashes.iter().enumerate() {
        if rising.front().is_some_and(|first| index - first >= window) {
            rising.pop_front();
        }
        if hash.is_some() {
            while rising.back().is_some_and(|last: &usize| hashes[*last] >= *hash) {
                rising.pop_back();
            }
            rising.push_back(index);
        }
        let is_whole = index + 1 >= window.min(hashes.len());
        if let Some(least) = rising.front().filter(|least| is_whole && kept.last() != Some(*least)) {
            kept.push(*least);
        }
    }
    kept
}
