//! What a pool should be like, in the simplest words: who holds what.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::{prelude::*, test_runner::TestCaseError};
use steadfast_classify::{Class, Failure};
use steadfast_pool::{EntrySnapshot, Pool, Refused, SlotMode, SlotsFull, Status};

use super::step::Server;
use crate::support::World;

/// One seat; how many hold it is the driver's business.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) server: Server,
    pub(crate) session: u64,
    era: u64,
}

#[derive(Debug)]
pub(crate) struct Model {
    slots: SlotMode,
    eras: HashMap<&'static str, u64>,
    closed: BTreeSet<u64>,
    drained: bool,
    /// The names of servers to which something bad happened.
    troubled: BTreeSet<&'static str>,
}

// === impl Model ===

impl Model {
    pub(crate) fn new(slots: SlotMode) -> Self {
        Self {
            slots,
            eras: HashMap::new(),
            closed: BTreeSet::new(),
            drained: false,
            troubled: BTreeSet::new(),
        }
    }

    pub(crate) fn seat(&self, server: Server, session: u64) -> Seat {
        let era = self.era(server.name());
        Seat {
            server,
            session,
            era,
        }
    }

    pub(crate) fn close(&mut self, session: u64) {
        self.closed.insert(session);
    }

    pub(crate) fn retire(&mut self, name: &'static str) {
        // What calls still run on goes on until they are done, and whoever asks anew waits
        // for that within a bound of its own.
        self.troubled.insert(name);
        *self.eras.entry(name).or_default() += 1;
    }

    pub(crate) fn drain(&mut self) {
        self.drained = true;
    }

    pub(crate) const fn is_drained(&self) -> bool {
        self.drained
    }

    pub(crate) fn trouble(&mut self, name: &'static str) {
        self.troubled.insert(name);
    }

    fn era(&self, name: &'static str) -> u64 {
        self.eras.get(name).copied().unwrap_or(0)
    }

    /// Whether the seat has nothing to ask for any more, and never will have.
    pub(crate) fn is_over(&self, seat: &Seat) -> bool {
        self.drained || !self.counts(seat)
    }

    /// Whether the seat counts as a reference.
    fn counts(&self, seat: &Seat) -> bool {
        !self.closed.contains(&seat.session) && seat.era == self.era(seat.server.name())
    }

    /// What must be true at any moment. `held` are the seats that somebody holds.
    pub(crate) fn check(
        &self,
        pool: &Pool,
        world: &World,
        held: &[Seat],
    ) -> Result<(), TestCaseError> {
        prop_assert_eq!(world.violations(), Vec::<String>::new());
        let snapshot = pool.snapshot();
        let mut running = BTreeSet::new();
        for (name, server) in &snapshot.servers {
            let entries = &server.entry_summary;
            let want = self.references(name, held);
            let mut refs: Vec<_> = entries.iter().map(|entry| entry.refs).collect();
            refs.retain(|refs| *refs > 0);
            refs.sort_unstable();
            prop_assert_eq!(refs, want, "references of {}: {:?}", name, entries);
            let indices: Vec<_> = entries
                .iter()
                .filter_map(|entry| entry.entry_index)
                .collect();
            let distinct: BTreeSet<_> = indices.iter().collect();
            prop_assert_eq!(distinct.len(), indices.len(), "indices of {}", name);
            for entry in entries {
                check_entry(entry)?;
                if !matches!(entry.status, Status::Idle | Status::Failed) {
                    running.insert(name.clone());
                }
            }
        }
        self.check_slots(pool, world, &running)
    }

    /// The references of each entry of a name, in order.
    fn references(&self, name: &str, held: &[Seat]) -> Vec<usize> {
        let mut references: BTreeMap<(Server, u64), usize> = BTreeMap::new();
        let counted = held.iter().filter(|seat| self.counts(seat));
        for seat in counted.filter(|seat| seat.server.name() == name) {
            // What is not shared is the session's own.
            let owner = if seat.server == Server::Own {
                seat.session
            } else {
                0
            };
            *references.entry((seat.server, owner)).or_default() += 1;
        }
        let mut references: Vec<_> = references.into_values().collect();
        references.sort_unstable();
        references
    }

    fn check_slots(
        &self,
        pool: &Pool,
        world: &World,
        running: &BTreeSet<String>,
    ) -> Result<(), TestCaseError> {
        let alive = world.alive_names();
        prop_assert!(
            alive.is_subset(running),
            "{:?} live, {:?} known",
            alive,
            running
        );
        let held: BTreeSet<_> = pool.slots().held.iter().map(ToString::to_string).collect();
        match self.slots {
            SlotMode::Off => prop_assert!(held.is_empty()),
            SlotMode::Enforce(limit) => {
                prop_assert!(held.len() <= limit);
                prop_assert_eq!(&held, running);
            }
            _ => prop_assert_eq!(&held, running),
        }
        Ok(())
    }

    /// Why an acquire may fail.
    pub(crate) fn check_refusal(
        &self,
        seat: &Seat,
        failure: &Failure,
    ) -> Result<(), TestCaseError> {
        let name = seat.server.name();
        match failure.class() {
            Class::Rejected if failure.find_source::<SlotsFull>().is_some() => {
                prop_assert!(matches!(self.slots, SlotMode::Enforce(_)), "{}", failure);
            }
            Class::Rejected => prop_assert!(self.is_over(seat), "{}: {}", name, failure),
            _ => prop_assert!(self.troubled.contains(name), "{}: {}", name, failure),
        }
        Ok(())
    }

    /// What may have become of a call.
    pub(crate) fn check_result(
        &self,
        seat: &Seat,
        executed: usize,
        result: Result<(), &Failure>,
    ) -> Result<(), TestCaseError> {
        let Err(failure) = result else {
            prop_assert_eq!(executed, 1);
            return Ok(());
        };
        match failure.class() {
            Class::NotSent => prop_assert_eq!(executed, 0, "{}", failure),
            Class::Rejected => {
                prop_assert_eq!(executed, 0, "{}", failure);
                if failure.find_source::<Refused>().is_some() {
                    prop_assert!(self.is_over(seat), "{}", failure);
                }
            }
            Class::Unknown | Class::Cancelled => prop_assert!(executed <= 1, "{}", failure),
            // The list of the start that the call had to wait for.
            Class::Answered => prop_assert!(self.troubled.contains(seat.server.name())),
            class => prop_assert!(false, "{:?}: {}", class, failure),
        }
        prop_assert!(executed == 0 || failure.may_have_run(), "{}", failure);
        Ok(())
    }
}

/// A connection has a deadline if and only if nobody holds it.
fn check_entry(entry: &EntrySnapshot) -> Result<(), TestCaseError> {
    let idle = entry.status == Status::Connected && entry.refs == 0;
    prop_assert_eq!(entry.closes_in.is_some(), idle, "{:?}", entry);
    Ok(())
}
