//! Takes the steps, and holds what a session would hold.

use std::{collections::BTreeMap, time::Duration};

use futures::future::join_all;
use proptest::{prelude::*, test_runner::TestCaseError};
use rmcp::model::{CallToolResult, JsonObject};
use steadfast_classify::{Class, Failure};
use steadfast_pool::{Lease, Pool, PoolSettings, ServerConfig, Session, SlotMode};
use tokio::{
    runtime::Builder,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tower::ServiceExt as _;

use super::{
    book::{Model, Seat},
    step::{Server, Start, Step},
};
use crate::support::{
    Connecting, Listing, World, keyed, pool_with, secs, server, settle, unpooled,
};

/// Longer than anybody may wait for a connection: for the calls of a retired one, its
/// end, a pause and a start.
const PATIENCE: Duration = Duration::from_secs(80);

/// The same for a call, which works for some time, too.
const CALL_PATIENCE: Duration = Duration::from_secs(125);

/// Whoever holds a seat.
enum Holder {
    Lease(Lease),
    Waits(Instant, JoinHandle<Result<Lease, Failure>>),
    Calls(Call),
}

struct Call {
    tag: u64,
    begun: Instant,
    /// Whether nobody may get anything out of it.
    over: bool,
    task: JoinHandle<Result<CallToolResult, Failure>>,
}

struct Driver {
    pool: Pool,
    world: World,
    model: Model,
    sessions: Vec<(u64, Session)>,
    next: u64,
    seats: BTreeMap<u64, Seat>,
    /// Each with the number of the seat it holds.
    holders: Vec<(u64, Holder)>,
    /// Restarts and drains, and when they have to be done.
    others: Vec<(Instant, JoinHandle<()>)>,
}

pub(crate) fn run(slots: SlotMode, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| TestCaseError::fail(error.to_string()))?;
    runtime.block_on(async {
        let mut driver = Driver::new(slots);
        for step in steps {
            driver.take(step).await?;
            driver.look().await?;
        }
        driver.end().await
    })
}

// === impl Driver ===

impl Driver {
    fn new(slots: SlotMode) -> Self {
        let (pool, world) = pool_with(PoolSettings::default().with_slots(slots));
        let sessions = (0..3).map(|n| (n, pool.session(n.to_string()))).collect();
        Self {
            pool,
            world,
            model: Model::new(slots),
            sessions,
            next: 3,
            seats: BTreeMap::new(),
            holders: Vec::new(),
            others: Vec::new(),
        }
    }

    async fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Acquire(session, server) => self.attach(session, server, true)?,
            Step::Lease(session, server) => self.attach(session, server, false)?,
            Step::Clone(n) => {
                if let Some((seat, lease)) = self.lease(n) {
                    self.holders.push((seat, Holder::Lease(lease)));
                }
            }
            Step::Release(n) => self.remove(n, |holder| matches!(holder, Holder::Lease(_))),
            Step::CloseSession(n) => self.close(n),
            Step::Call(n, ms) => self.call(n, ms),
            Step::CancelCall(n) => self.remove(n, |holder| matches!(holder, Holder::Calls(_))),
            Step::CancelAcquire(n) => self.remove(n, |holder| matches!(holder, Holder::Waits(..))),
            Step::Crash(server) => {
                self.model.trouble(server.name());
                if let Some(link) = self.world.links(server.name()).last() {
                    link.crash();
                }
            }
            Step::ChangeList(server) => {
                if let Some(link) = self.world.links(server.name()).last() {
                    link.change();
                }
            }
            Step::Start(server, start) => self.plan(server, start),
            Step::SlowClose(server, slow) => self.world.plan(server.name(), |plan| {
                plan.close = if slow { secs(3) } else { secs(0) };
            }),
            Step::Restart(name, wait) => self.restart(name, wait).await,
            Step::Retire(name) => {
                self.pool.retire(name);
                self.model.retire(name);
            }
            Step::Drain(ms) => self.drain(Duration::from_millis(ms)),
            Step::Wait(time) => sleep(time).await,
        }
        Ok(())
    }

    /// Takes a seat, and waits for its server if `wait`.
    fn attach(&mut self, session: usize, server: Server, wait: bool) -> Result<(), TestCaseError> {
        let (number, session) = &self.sessions[session % self.sessions.len()];
        let lease = match session.lease(&config(server)) {
            Ok(lease) => lease,
            Err(failure) => {
                prop_assert!(self.model.is_drained(), "{}", failure);
                return Ok(());
            }
        };
        prop_assert!(!self.model.is_drained());
        let seat = self.next;
        self.next += 1;
        self.seats.insert(seat, self.model.seat(server, *number));
        let holder = if wait {
            let ready = async move { lease.ready().await.map(|()| lease) };
            Holder::Waits(Instant::now(), tokio::spawn(ready))
        } else {
            Holder::Lease(lease)
        };
        self.holders.push((seat, holder));
        Ok(())
    }

    fn lease(&self, n: usize) -> Option<(u64, Lease)> {
        let leases = self
            .holders
            .iter()
            .filter_map(|(seat, holder)| match holder {
                Holder::Lease(lease) => Some((*seat, lease)),
                Holder::Waits(..) | Holder::Calls(_) => None,
            });
        let leases: Vec<_> = leases.collect();
        let (seat, lease) = leases.get(n % leases.len().max(1))?;
        Some((*seat, (*lease).clone()))
    }

    /// Drops one of the holders of a kind; a task is aborted.
    fn remove(&mut self, n: usize, kind: impl Fn(&Holder) -> bool) {
        let holders = self.holders.iter().enumerate();
        let kind: Vec<_> = holders
            .filter(|(_, (_, holder))| kind(holder))
            .map(|(index, _)| index)
            .collect();
        if let Some(index) = kind.get(n % kind.len().max(1)) {
            match self.holders.remove(*index).1 {
                Holder::Lease(lease) => drop(lease),
                Holder::Waits(_, task) => task.abort(),
                Holder::Calls(call) => call.task.abort(),
            }
        }
    }

    fn close(&mut self, n: usize) {
        let index = n % self.sessions.len();
        let number = self.next;
        self.next += 1;
        let new = (number, self.pool.session(number.to_string()));
        let (closed, session) = std::mem::replace(&mut self.sessions[index], new);
        drop(session);
        self.model.close(closed);
    }

    fn call(&mut self, n: usize, ms: u64) {
        let Some((seat, lease)) = self.lease(n) else {
            return;
        };
        let tag = self.next;
        self.next += 1;
        let arguments = [("ms".to_owned(), ms.into()), ("tag".to_owned(), tag.into())];
        let call = lease
            .tool("w")
            .with_arguments(JsonObject::from_iter(arguments));
        let call = Call {
            tag,
            begun: Instant::now(),
            over: self.model.is_over(&self.seats[&seat]),
            task: tokio::spawn(lease.oneshot(call)),
        };
        self.holders.push((seat, Holder::Calls(call)));
    }

    fn plan(&mut self, server: Server, start: Start) {
        if !matches!(start, Start::Slow | Start::ListsSlowly) {
            self.model.trouble(server.name());
        }
        self.world.plan(server.name(), |plan| {
            let next = match start {
                Start::Slow => Connecting::Slow(secs(3)),
                Start::Fails => Connecting::fails(),
                Start::Missing => Connecting::missing(),
                Start::Hangs => Connecting::Hangs,
                Start::Panics => Connecting::Panics,
                Start::CannotList | Start::DiesListing | Start::ListsSlowly => Connecting::Good,
            };
            plan.starts.push_back(next);
            match start {
                Start::CannotList => plan.lists = [Listing::Fails, Listing::default()].into(),
                Start::DiesListing => plan.lists = [Listing::Dies, Listing::default()].into(),
                Start::ListsSlowly => plan.list = secs(1),
                _ => {}
            }
        });
    }

    /// Restarts a server; unless `wait`, whoever asked leaves a moment later.
    async fn restart(&mut self, name: &'static str, wait: bool) {
        let pool = self.pool.clone();
        let restart = tokio::spawn(async move { drop(pool.restart(name, None).await) });
        self.model.trouble(name);
        if !wait {
            settle().await;
            restart.abort();
        }
        self.others.push((Instant::now() + PATIENCE, restart));
    }

    fn drain(&mut self, deadline: Duration) {
        let first = !self.model.is_drained();
        self.model.drain();
        let pool = self.pool.clone();
        let drain = tokio::spawn(async move { drop(pool.drain_all(deadline).await) });
        // Later ones get the first one's end.
        let bound = if first { deadline } else { secs(10) };
        self.others.push((Instant::now() + bound + secs(1), drain));
    }

    /// Sees what became of everybody, and compares the pool with its model.
    async fn look(&mut self) -> Result<(), TestCaseError> {
        settle().await;
        for (seat, holder) in std::mem::take(&mut self.holders) {
            let about = self.seats[&seat];
            if let Some(holder) = self.reap(&about, holder).await? {
                self.holders.push((seat, holder));
            }
        }
        let now = Instant::now();
        self.others.retain(|(_, task)| !task.is_finished());
        prop_assert!(
            self.others.iter().all(|(bound, _)| *bound >= now),
            "too late"
        );
        // What the tasks held is given up only now.
        let holders = self.holders.iter().map(|(seat, _)| *seat);
        let mut held: Vec<_> = holders.collect();
        held.sort_unstable();
        held.dedup();
        let held: Vec<_> = held.iter().map(|seat| self.seats[seat]).collect();
        self.model.check(&self.pool, &self.world, &held)
    }

    /// What is left of a holder after it was looked at.
    async fn reap(&self, seat: &Seat, holder: Holder) -> Result<Option<Holder>, TestCaseError> {
        match holder {
            Holder::Waits(begun, task) if task.is_finished() => match task.await {
                Ok(Ok(lease)) => Ok(Some(Holder::Lease(lease))),
                Ok(Err(failure)) => {
                    self.model.check_refusal(seat, &failure)?;
                    prop_assert!(begun.elapsed() <= PATIENCE + secs(302));
                    Ok(None)
                }
                Err(error) => Err(TestCaseError::fail(error.to_string())),
            },
            Holder::Waits(begun, _) if begun.elapsed() > PATIENCE => {
                Err(TestCaseError::fail(format!("{seat:?} waits for ever")))
            }
            Holder::Calls(call) if call.task.is_finished() => {
                let result = call.task.await;
                let result = result.map_err(|error| TestCaseError::fail(error.to_string()))?;
                let result = result.as_ref().map(drop);
                if call.over {
                    prop_assert_eq!(result.map_err(Failure::class), Err(Class::Rejected));
                }
                let executed = self.world.executed(call.tag);
                self.model.check_result(seat, executed, result)?;
                Ok(None)
            }
            Holder::Calls(call) if call.begun.elapsed() > CALL_PATIENCE => {
                Err(TestCaseError::fail(format!("a call on {seat:?} hangs")))
            }
            holder => Ok(Some(holder)),
        }
    }

    /// Drains, and sees that nothing is left.
    async fn end(mut self) -> Result<(), TestCaseError> {
        self.drain(secs(10));
        sleep(secs(12)).await;
        self.look().await?;
        let busy = self
            .holders
            .iter()
            .any(|(_, holder)| !matches!(holder, Holder::Lease(_)));
        prop_assert!(!busy, "somebody still waits");
        prop_assert!(self.others.is_empty());
        prop_assert_eq!(self.world.alive(), 0);
        prop_assert_eq!(self.pool.snapshot().total, 0);
        let leases: Vec<_> = (0..self.holders.len())
            .filter_map(|n| self.lease(n))
            .collect();
        let calls = leases.into_iter().map(|(_, lease)| {
            let call = lease.tool("w");
            lease.oneshot(call)
        });
        for called in join_all(calls).await {
            prop_assert_eq!(
                called.map_err(|failure| failure.class()),
                Err(Class::Rejected)
            );
        }
        self.world.forget();
        Ok(())
    }
}

fn config(server_: Server) -> ServerConfig {
    match server_ {
        Server::Ax => keyed("a", "x"),
        Server::Ay => keyed("a", "y"),
        Server::B => server("b"),
        Server::Own => unpooled("own"),
    }
}
