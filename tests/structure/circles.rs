//! Circles: sets of files each of which imports, by way of others, every other.

use super::imports::Imports;

/// The circles, each with its files in order.
pub(super) fn circles(imports: &Imports) -> Vec<Vec<usize>> {
    let reached: Vec<Vec<bool>> = (0..imports.len()).map(|from| reachable(imports, from)).collect();
    let mut circles: Vec<Vec<usize>> = Vec::new();
    for (file, from_here) in reached.iter().enumerate() {
        if from_here[file] && !circles.iter().any(|circle| circle.contains(&file)) {
            let both_ways = |other: &usize| from_here[*other] && reached[*other][file];
            circles.push((0..imports.len()).filter(both_ways).collect());
        }
    }
    circles
}

fn reachable(imports: &Imports, from: usize) -> Vec<bool> {
    let mut reached = vec![false; imports.len()];
    let mut open: Vec<usize> = imports[from].keys().copied().collect();
    while let Some(file) = open.pop() {
        if !std::mem::replace(&mut reached[file], true) {
            open.extend(imports[file].keys());
        }
    }
    reached
}
