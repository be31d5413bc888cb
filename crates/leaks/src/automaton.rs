//! Many patterns in one automaton, each tried where a search expects it.
//!
//! Its states are made when a text first needs them and are kept for the next text. It looks at every byte once, so no
//! text makes it slow.

use std::{
    ops::Range,
    panic::{RefUnwindSafe, UnwindSafe},
};

use regex_automata::{
    Anchored, Input, MatchKind, PatternID, PatternSet,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson,
    util::{pool::Pool, syntax},
};

type NewCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// What the states of one search at a time may take.
const CACHE_BYTES: usize = 4 << 20;

pub(crate) struct Automaton {
    dfa: DFA,
    caches: Pool<Cache, NewCache>,
    patterns: usize,
}

impl Automaton {
    /// Nothing if a pattern is wrong, which a test rules out.
    pub(crate) fn new(patterns: impl Iterator<Item = &'static str>) -> Option<Self> {
        let patterns: Vec<&str> = patterns.collect();
        let nfa = thompson::Config::new().which_captures(thompson::WhichCaptures::None).utf8(false);
        let dfa = DFA::builder()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(nfa)
            .configure(
                DFA::config()
                    .starts_for_each_pattern(true)
                    .match_kind(MatchKind::All)
                    .cache_capacity(CACHE_BYTES)
                    .skip_cache_capacity_check(true),
            )
            .build_many(&patterns)
            .ok()?;
        let for_caches = dfa.clone();
        let caches = Pool::new(Box::new(move || for_caches.create_cache()) as NewCache);
        Some(Self { dfa, caches, patterns: patterns.len() })
    }

    /// Where the longest match of one pattern ends that begins where the range does.
    pub(crate) fn end(&self, text: &str, pattern: usize, range: Range<usize>) -> Option<usize> {
        let id = PatternID::new(pattern).ok()?;
        let input = Input::new(text).range(range).anchored(Anchored::Pattern(id));
        let end = self.dfa.try_search_fwd(&mut self.caches.get(), &input).ok()??;
        Some(end.offset())
    }

    /// The patterns that match where the range begins.
    pub(crate) fn matching(&self, text: &str, range: Range<usize>) -> PatternSet {
        let mut matching = PatternSet::new(self.patterns);
        let input = Input::new(text).range(range).anchored(Anchored::Yes);
        // Without a match the set stays empty, and no configured byte makes the search give up.
        let _ = self.dfa.try_which_overlapping_matches(&mut self.caches.get(), &input, &mut matching);
        matching
    }
}
