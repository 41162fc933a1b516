//! How many servers may run at once, by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{events::Events, observe, snapshot::SlotsSnapshot};

/// Whether the number of servers that run at once is limited.
///
/// A slot is one server *name*: two connections to one name, for two users say, take one
/// slot. It is free again when the last process of the name is proven dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotMode {
    /// No limit, nothing is counted. The default.
    #[default]
    Off,
    /// Tells when there are nearly this many, and refuses nothing.
    Warn(usize),
    /// Refuses a name beyond this many.
    Enforce(usize),
}

/// All slots are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotsFull {
    /// The limit.
    pub limit: usize,
}

/// Who has the slots of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotsView {
    /// Whether their number is limited, and by what.
    pub mode: SlotMode,
    /// The names that hold one. Empty where slots are not counted.
    pub held: Vec<Arc<str>>,
    /// The names that were refused one and did not get one since.
    pub refused: Vec<Arc<str>>,
}

/// The slots of one pool.
#[derive(Debug)]
pub(crate) struct Slots {
    mode: SlotMode,
    events: Events,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How many parts each name's slot has been given out in.
    held: BTreeMap<Arc<str>, usize>,
    refused: BTreeSet<Arc<str>>,
    armed: bool,
}

/// A part in one name's slot. It is free when the last part of it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    name: Arc<str>,
    slots: Arc<Slots>,
}

/// How many names there are, where that is worth a warning.
struct Crowded {
    held: usize,
    limit: usize,
}

// === impl Slots ===

impl Slots {
    pub(crate) fn new(mode: SlotMode, events: Events) -> Arc<Self> {
        Arc::new(Self {
            mode,
            events,
            state: Mutex::new(State {
                held: BTreeMap::new(),
                refused: BTreeSet::new(),
                armed: true,
            }),
        })
    }

    /// Takes part in the slot of `name`, or takes one for it.
    pub(crate) fn reserve(self: &Arc<Self>, name: &Arc<str>) -> Result<Slot, SlotsFull> {
        let mut state = self.state();
        if let SlotMode::Enforce(limit) = self.mode
            && state.held.len() >= limit
            && !state.held.contains_key(name)
        {
            state.refused.insert(Arc::clone(name));
            return Err(SlotsFull { limit });
        }
        state.refused.remove(name);
        if self.mode != SlotMode::Off {
            *state.held.entry(Arc::clone(name)).or_default() += 1;
        }
        let crowded = state.judge(self.mode);
        drop(state);
        self.tell(crowded.as_ref());
        Ok(Slot {
            name: Arc::clone(name),
            slots: Arc::clone(self),
        })
    }

    /// Takes part in the slot of `name`, if it has one.
    pub(crate) fn hold(self: &Arc<Self>, name: &Arc<str>) -> Option<Slot> {
        let mut state = self.state();
        *state.held.get_mut(name)? += 1;
        Some(Slot {
            name: Arc::clone(name),
            slots: Arc::clone(self),
        })
    }

    pub(crate) fn snapshot(&self) -> SlotsSnapshot {
        let (mode, limit) = match self.mode {
            SlotMode::Off => ("off", None),
            SlotMode::Warn(limit) => ("warn", Some(limit)),
            SlotMode::Enforce(limit) => ("enforce", Some(limit)),
        };
        SlotsSnapshot {
            mode,
            limit,
            used: self.state().held.len(),
        }
    }

    pub(crate) fn view(&self) -> SlotsView {
        let state = self.state();
        SlotsView {
            mode: self.mode,
            held: state.held.keys().cloned().collect(),
            refused: state.refused.iter().cloned().collect(),
        }
    }

    fn release(&self, name: &Arc<str>) {
        let mut state = self.state();
        let Some(parts) = state.held.get_mut(name) else {
            return;
        };
        *parts -= 1;
        if *parts == 0 {
            state.held.remove(name);
        }
        let crowded = state.judge(self.mode);
        drop(state);
        self.tell(crowded.as_ref());
    }

    fn tell(&self, crowded: Option<&Crowded>) {
        if let Some(&Crowded { held, limit }) = crowded {
            observe::slots_warning(&self.events, held, limit);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    /// Worth a warning once at 75 % of the limit, and again only after it fell below
    /// 37.5 %.
    fn judge(&mut self, mode: SlotMode) -> Option<Crowded> {
        let (SlotMode::Warn(limit) | SlotMode::Enforce(limit)) = mode else {
            return None;
        };
        let held = self.held.len();
        // In eighths, without a product that could overflow.
        let share = held as f64 / limit as f64;
        if self.armed && share >= 0.75 {
            self.armed = false;
            return Some(Crowded { held, limit });
        }
        self.armed |= share < 0.375;
        None
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.release(&self.name);
    }
}

// === impl SlotsFull ===

impl fmt::Display for SlotsFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "all {} server slots are taken; close another server or raise the limit",
            self.limit
        )
    }
}

impl Error for SlotsFull {}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(mode: SlotMode) -> Arc<Slots> {
        Slots::new(mode, Events::new())
    }

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn enforce_refuses_beyond_the_limit_until_a_slot_is_freed() {
        let slots = slots(SlotMode::Enforce(1));
        let a = slots.reserve(&name("a")).expect("the first");
        let refused = slots.reserve(&name("b")).err();
        assert_eq!(refused, Some(SlotsFull { limit: 1 }));
        assert_eq!(slots.view().refused, [name("b")]);

        drop(a);

        let _b = slots.reserve(&name("b")).expect("there is room");
        assert_eq!(slots.view().held, [name("b")]);
        assert!(slots.view().refused.is_empty(), "it has one now");
    }

    #[test]
    fn warn_mode_counts_and_never_refuses() {
        let slots = slots(SlotMode::Warn(1));
        let _a = slots.reserve(&name("a")).expect("within");
        let _b = slots.reserve(&name("b")).expect("beyond");
        assert_eq!(slots.snapshot().used, 2);
    }

    #[test]
    fn off_counts_nothing() {
        let slots = slots(SlotMode::Off);
        let _a = slots.reserve(&name("a")).expect("no limit");
        assert_eq!(slots.snapshot().used, 0);
    }

    #[test]
    fn hold_takes_part_in_a_slot_and_never_takes_one() {
        let slots = slots(SlotMode::Enforce(1));
        assert!(slots.hold(&name("a")).is_none());
        let a = slots.reserve(&name("a")).expect("the first");
        let part = slots.hold(&name("a"));

        drop(a);
        assert!(slots.reserve(&name("b")).is_err(), "still held");
        drop(part);
        assert!(slots.reserve(&name("b")).is_ok());
    }

    #[test]
    fn warns_at_three_quarters_and_again_only_after_three_eighths() {
        let slots = slots(SlotMode::Warn(8));
        let mut events = slots.events.subscribe();
        let mut warned = || {
            let mut count = 0;
            while events.try_recv().is_ok() {
                count += 1;
            }
            count
        };
        let mut held: Vec<_> = (0..5)
            .map(|n| slots.reserve(&name(&n.to_string())))
            .collect();
        assert_eq!(warned(), 0, "5 of 8");
        held.push(slots.reserve(&name("six")));
        assert_eq!(warned(), 1, "6 of 8");
        held.push(slots.reserve(&name("seven")));
        held.truncate(3);
        held.extend((0..4).map(|n| slots.reserve(&name(&format!("again-{n}")))));
        assert_eq!(warned(), 0, "it fell to 3 of 8 only");
        held.truncate(2);
        held.extend((0..4).map(|n| slots.reserve(&name(&format!("anew-{n}")))));
        assert_eq!(warned(), 1, "it fell to 2 of 8");
    }
}
