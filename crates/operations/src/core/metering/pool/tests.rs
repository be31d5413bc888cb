use super::*;

const MONTH: Timestamp = Timestamp::from_micros(0);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_micros(millis * 1000)
}

fn terms(limit: Option<i64>) -> Terms {
    Terms { kind: PoolKind::Credits, period_start: MONTH, limit }
}

/// What a store with this much spent by others answers.
fn answer(ask: &Adjustment, others: i64) -> PoolState {
    let taken = ask.reads + ask.writes + ask.reserved;
    let most = ask.limit.map_or(i64::MAX, |limit| limit - others);
    let short = ask.needed > 0 && most < taken + ask.needed;
    let granted = if short { taken } else { most.min(taken + ask.needed + ask.ahead).max(taken) };
    PoolState {
        period_start: ask.period_start,
        granted,
        writes: ask.writes,
        spent_by_others: others,
        unspent_by_others: 0,
        short,
    }
}

fn ask(pool: &mut Pool, needed: Option<i64>, purpose: Purpose, now: Timestamp) -> Adjustment {
    let asked = pool.plan(needed, purpose, now).unwrap();
    pool.apply(&asked, &answer(&asked, 0));
    asked
}

#[test]
fn a_second_and_a_hundredth_bound_what_is_charged_ahead() {
    for (limit, calls, ahead) in [(1000, 3, 3), (1000, 50, 10), (40, 20, 1), (1_000_000, 500, 500)] {
        let mut pool = Pool::shared(PoolKind::Credits);
        let terms = terms(Some(limit));
        for call in 0..calls {
            let now = at(call);
            if matches!(pool.attempt(&terms, 1, now), Attempt::AskStore) {
                ask(&mut pool, Some(1), Purpose::Commit, now);
                assert!(matches!(pool.attempt(&terms, 1, now), Attempt::Reserved(_)));
            }
            pool.spend(1);
        }
        let asked = ask(&mut pool, None, Purpose::Commit, at(calls));
        assert_eq!(asked.ahead, ahead, "{limit} {calls}");
        assert_eq!(pool.granted - pool.drawn(), ahead.min(limit - calls));
        // After a pause little is charged ahead.
        pool.keep_changed();
        assert_eq!(ask(&mut pool, None, Purpose::Commit, at(5000)).ahead, 1);
    }
}

#[test]
fn what_is_returned_is_not_taken_any_more() {
    let mut pool = Pool::shared(PoolKind::Credits);
    let terms = terms(Some(1000));
    assert!(matches!(pool.attempt(&terms, 1, at(0)), Attempt::AskStore));
    ask(&mut pool, Some(1), Purpose::Commit, at(0));
    for purpose in [Purpose::Return, Purpose::Close] {
        assert!(pool.plan(None, purpose, at(1)).is_some());
        assert!(matches!(pool.attempt(&terms, 1, at(1)), Attempt::AskStore));
    }
    // The store could not be written.
    pool.keep_changed();
    assert!(!pool.is_closed());
}

#[test]
fn a_closed_pool_asks_before_anything_is_spent() {
    for limit in [Some(1000), None] {
        let mut pool = Pool::shared(PoolKind::Credits);
        let terms = terms(limit);
        pool.adopt(&terms);
        ask(&mut pool, Some(1), Purpose::Commit, at(0));
        assert!(matches!(pool.attempt(&terms, 1, at(0)), Attempt::Reserved(_)));
        assert!(!pool.plan(None, Purpose::Close, at(1)).unwrap().close, "a call is in flight");
        pool.spend(1);
        assert!(ask(&mut pool, None, Purpose::Close, at(1)).close);
        assert!(pool.is_closed());
        assert!(pool.plan(None, Purpose::Close, at(2)).is_none(), "once is enough");
        assert!(matches!(pool.attempt(&terms, 1, at(2)), Attempt::AskStore));
    }
}

#[test]
fn a_write_whose_commit_was_not_reported_counts() {
    let mut pool = Pool::shared(PoolKind::Credits);
    let terms = terms(Some(1000));
    pool.adopt(&terms);
    ask(&mut pool, Some(10), Purpose::Commit, at(0));
    assert!(matches!(pool.attempt(&terms, 10, at(0)), Attempt::Reserved(_)));
    // The commit went through, its answer did not arrive, and the caller got a failure.
    pool.refund(10);
    let asked = pool.plan(None, Purpose::Commit, at(1)).unwrap();
    pool.apply(&asked, &PoolState { writes: 10, granted: 11, ..answer(&asked, 0) });
    assert_eq!((pool.used(), pool.granted - pool.drawn()), (10, 1));
}

#[test]
fn a_window_of_a_sole_node_needs_no_store() {
    let minute = Timestamp::from_micros(60_000_000);
    let mut pool = Pool::window(PeriodSpend { period_start: minute, reads: 2 });
    let terms = Terms { kind: PoolKind::Requests, period_start: minute, limit: Some(3) };
    assert!(matches!(pool.attempt(&terms, 1, minute), Attempt::Reserved(_)));
    pool.spend(1);
    assert!(matches!(pool.attempt(&terms, 1, minute), Attempt::Refused));
    assert!(pool.plan(None, Purpose::Close, minute).is_none());
    let next = Terms { period_start: minute.plus_seconds(60), ..terms };
    assert!(matches!(pool.attempt(&next, 1, next.period_start), Attempt::Reserved(_)));
}

#[test]
fn an_answer_for_the_former_plan_is_not_spent() {
    let mut pool = Pool::shared(PoolKind::Credits);
    let larger = terms(Some(1000));
    assert!(matches!(pool.attempt(&larger, 1, at(0)), Attempt::AskStore));
    let asked = pool.plan(Some(1), Purpose::Commit, at(0)).unwrap();
    assert!(matches!(pool.attempt(&terms(Some(0)), 1, at(0)), Attempt::AskStore));
    pool.apply(&asked, &answer(&asked, 0));
    assert!(matches!(pool.attempt(&terms(Some(0)), 1, at(0)), Attempt::AskStore));
}
