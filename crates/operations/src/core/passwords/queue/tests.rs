use std::{net::Ipv4Addr, sync::Condvar};

use tokio::task::JoinSet;

use super::*;

/// Work that waits until it is released, and records in which order it began.
#[derive(Default)]
struct Barrier {
    state: Mutex<(Vec<&'static str>, bool)>,
    changed: Condvar,
}

impl Barrier {
    fn pass(&self, name: &'static str) {
        let mut state = self.state.lock().unwrap();
        state.0.push(name);
        while !state.1 {
            state = self.changed.wait(state).unwrap();
        }
    }
    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
    fn begun(&self) -> Vec<&'static str> {
        self.state.lock().unwrap().0.clone()
    }
}

fn turn(purpose: Purpose, client: u8) -> Turn {
    Turn { purpose, client: Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, client))) }
}

type Outcomes = JoinSet<(&'static str, Result<()>)>;

/// Enqueues work, and waits until it has a slot or was refused.
async fn bring(calls: &mut Outcomes, queue: &Queue, barrier: &Arc<Barrier>, turn: Turn, name: &'static str) {
    let (queue, barrier) = (queue.clone(), barrier.clone());
    let work = move || {
        barrier.pass(name);
        Ok(())
    };
    calls.spawn(async move { (name, queue.run(turn, work).await) });
    tokio::task::yield_now().await;
}

async fn until_two_run(barrier: &Barrier) {
    while barrier.begun().len() < MAX_RUNNING {
        tokio::task::yield_now().await;
    }
}

fn refused(outcomes: &[(&'static str, Result<()>)]) -> Vec<&'static str> {
    let failed = outcomes.iter().filter_map(|(name, outcome)| outcome.as_ref().err().map(|e| (*name, e)));
    failed
        .map(|(name, error)| {
            assert_eq!((error.kind(), error.retry_after()), (ErrorKind::RateLimited, Some(1)));
            name
        })
        .collect()
}

/// rules: AUTH-15
#[tokio::test]
async fn two_run_twenty_wait_and_the_next_is_sent_away() {
    let (queue, barrier, mut calls) = (Queue::default(), Arc::new(Barrier::default()), JoinSet::new());
    for _ in 0..MAX_RUNNING + MAX_WAITING {
        bring(&mut calls, &queue, &barrier, turn(Purpose::LogIn, 1), "one").await;
    }
    until_two_run(&barrier).await;
    bring(&mut calls, &queue, &barrier, turn(Purpose::LogIn, 1), "late").await;
    assert_eq!(barrier.begun().len(), 2);
    barrier.open();
    assert_eq!(refused(&calls.join_all().await), ["late"]);
    assert!(queue.run(turn(Purpose::Other, 1), || Ok(true)).await.unwrap());
}

/// rules: AUTH-15
#[tokio::test]
async fn a_burst_of_sign_ups_refuses_and_delays_no_log_in() {
    let (queue, barrier, mut calls) = (Queue::default(), Arc::new(Barrier::default()), JoinSet::new());
    // From many clients, so that only the purpose distinguishes them.
    for client in 0..60 {
        bring(&mut calls, &queue, &barrier, turn(Purpose::SignUp, client), "sign-up").await;
    }
    until_two_run(&barrier).await;
    for client in 100..103 {
        bring(&mut calls, &queue, &barrier, turn(Purpose::LogIn, client), "log-in").await;
    }
    bring(&mut calls, &queue, &barrier, turn(Purpose::Other, 200), "reset").await;
    barrier.open();
    let outcomes = calls.join_all().await;
    assert_eq!(refused(&outcomes).len(), 60 - MAX_RUNNING - MAX_WAITING + 4);
    assert!(refused(&outcomes).iter().all(|name| *name == "sign-up"));
    // Every purpose in its turn, although the sign-ups came first.
    let begun = barrier.begun();
    assert!(begun[2..8].contains(&"reset"), "{begun:?}");
    assert!(begun[2..12].iter().filter(|name| **name == "log-in").count() == 3, "{begun:?}");
}

/// rules: AUTH-15
#[tokio::test]
async fn one_client_does_not_take_the_places_of_others() {
    let (queue, barrier, mut calls) = (Queue::default(), Arc::new(Barrier::default()), JoinSet::new());
    for _ in 0..60 {
        bring(&mut calls, &queue, &barrier, turn(Purpose::LogIn, 1), "greedy").await;
    }
    until_two_run(&barrier).await;
    for _ in 0..3 {
        bring(&mut calls, &queue, &barrier, turn(Purpose::LogIn, 2), "modest").await;
    }
    barrier.open();
    let outcomes = calls.join_all().await;
    assert!(refused(&outcomes).iter().all(|name| *name == "greedy"));
    let begun = barrier.begun();
    assert_eq!(begun[2..9].iter().filter(|name| **name == "modest").count(), 3, "{begun:?}");
}

/// rules: AUTH-15
#[tokio::test]
async fn a_caller_who_hangs_up_leaves_the_place_and_not_the_work() {
    let (queue, barrier, mut calls) = (Queue::default(), Arc::new(Barrier::default()), JoinSet::new());
    for _ in 0..MAX_RUNNING + MAX_WAITING {
        bring(&mut calls, &queue, &barrier, turn(Purpose::LogIn, 1), "gone").await;
    }
    until_two_run(&barrier).await;
    calls.shutdown().await;
    // Running work still takes up its two slots: nothing else begins before it ends.
    let mut calls = JoinSet::new();
    for _ in 0..MAX_WAITING {
        bring(&mut calls, &queue, &barrier, turn(Purpose::LogIn, 1), "next").await;
    }
    assert_eq!(barrier.begun(), ["gone", "gone"]);
    barrier.open();
    assert!(refused(&calls.join_all().await).is_empty());
    assert_eq!(barrier.begun().len(), MAX_RUNNING + MAX_WAITING);
}
