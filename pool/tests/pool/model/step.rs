//! What can happen.

use std::time::Duration;

use proptest::prelude::*;
use steadfast_pool::SlotMode;

/// A server's key: two of one name, one of another, and one that is not shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Server {
    Ax,
    Ay,
    B,
    Own,
}

/// One step. Sessions, leases and calls are named by a number, taken modulo of how many
/// there are.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Acquire(usize, Server),
    Lease(usize, Server),
    Clone(usize),
    Release(usize),
    CloseSession(usize),
    Call(usize, u64),
    CancelCall(usize),
    CancelAcquire(usize),
    Crash(Server),
    ChangeList(Server),
    Start(Server, Start),
    SlowClose(Server, bool),
    Restart(&'static str, bool),
    Retire(&'static str),
    Drain(u64),
    Wait(Duration),
}

/// How the next start of a server goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Slow,
    Fails,
    Missing,
    Hangs,
    Panics,
    CannotList,
    DiesListing,
    /// From then on.
    ListsSlowly,
}

// === impl Server ===

impl Server {
    pub(crate) const ALL: [Self; 4] = [Self::Ax, Self::Ay, Self::B, Self::Own];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ax | Self::Ay => "a",
            Self::B => "b",
            Self::Own => "own",
        }
    }
}

pub(crate) fn slots() -> impl Strategy<Value = SlotMode> {
    prop_oneof![
        Just(SlotMode::Off),
        Just(SlotMode::Enforce(1)),
        Just(SlotMode::Enforce(2)),
        Just(SlotMode::Warn(1)),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let n = || 0_usize..8;
    let start = prop::sample::select(vec![
        Start::Slow,
        Start::Fails,
        Start::Missing,
        Start::Hangs,
        Start::Panics,
        Start::CannotList,
        Start::DiesListing,
        Start::ListsSlowly,
    ]);
    let name = || prop::sample::select(vec!["a", "b", "own"]);
    prop_oneof![
        6 => (n(), server()).prop_map(|(session, server)| Step::Acquire(session, server)),
        3 => (n(), server()).prop_map(|(session, server)| Step::Lease(session, server)),
        1 => n().prop_map(Step::Clone),
        4 => n().prop_map(Step::Release),
        2 => n().prop_map(Step::CloseSession),
        6 => (n(), prop::sample::select(vec![0, 700, 40_000]))
            .prop_map(|(lease, ms)| Step::Call(lease, ms)),
        1 => n().prop_map(Step::CancelCall),
        1 => n().prop_map(Step::CancelAcquire),
        3 => server().prop_map(Step::Crash),
        1 => server().prop_map(Step::ChangeList),
        4 => (server(), start).prop_map(|(server, start)| Step::Start(server, start)),
        1 => (server(), any::<bool>()).prop_map(|(server, slow)| Step::SlowClose(server, slow)),
        2 => (name(), any::<bool>()).prop_map(|(name, wait)| Step::Restart(name, wait)),
        1 => name().prop_map(Step::Retire),
        1 => prop::sample::select(vec![0, 1_000, 10_000]).prop_map(Step::Drain),
        6 => wait().prop_map(Step::Wait),
    ]
}

fn server() -> impl Strategy<Value = Server> {
    prop::sample::select(Server::ALL.to_vec())
}

/// Around each of the bounds there are, and far beyond all of them.
fn wait() -> impl Strategy<Value = Duration> {
    let millis = vec![
        1, 150, 999, 2_500, 5_000, 7_500, 29_998, 31_000, 61_000, 301_000,
    ];
    prop::sample::select(millis).prop_map(Duration::from_millis)
}
