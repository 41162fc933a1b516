//! How many servers may run at once, by name.

use std::{
    collections::HashMap,
    error::Error,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tracing::warn;

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
    /// Tells when there are more than this, and refuses nothing.
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

/// The slots of one pool.
#[derive(Debug)]
pub(crate) struct Slots {
    mode: SlotMode,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: HashMap<Arc<str>, Weak<Slot>>,
    count: usize,
    armed: bool,
}

/// One name's slot, shared by everything of that name. Freed by its last owner.
#[derive(Debug)]
pub(crate) struct Slot {
    name: Arc<str>,
    slots: Weak<Slots>,
}

// === impl Slots ===

impl Slots {
    pub(crate) fn new(mode: SlotMode) -> Arc<Self> {
        Arc::new(Self {
            mode,
            state: Mutex::new(State {
                held: HashMap::new(),
                count: 0,
                armed: true,
            }),
        })
    }

    /// Takes part in the slot of `name`, or takes one for it.
    pub(crate) fn reserve(self: &Arc<Self>, name: &Arc<str>) -> Result<Arc<Slot>, SlotsFull> {
        let mut state = self.state();
        if let Some(slot) = state.held.get(name).and_then(Weak::upgrade) {
            return Ok(slot);
        }
        if let SlotMode::Enforce(limit) = self.mode
            && state.count >= limit
        {
            return Err(SlotsFull { limit });
        }
        let slot = Arc::new(Slot {
            name: Arc::clone(name),
            slots: Arc::downgrade(self),
        });
        state.held.insert(Arc::clone(name), Arc::downgrade(&slot));
        state.count += 1;
        self.judge(&mut state);
        Ok(slot)
    }

    /// How many names hold a slot.
    pub(crate) fn count(&self) -> usize {
        self.state().count
    }

    fn release(&self, slot: &Slot) {
        let mut state = self.state();
        state.count -= 1;
        // The name may have been taken anew between this slot's end and this line.
        let mine = state.held.get(&slot.name);
        if mine.is_some_and(|held| held.strong_count() == 0) {
            state.held.remove(&slot.name);
        }
        self.judge(&mut state);
    }

    /// Warns once at 75 % of the limit, and again only after it fell below 37.5 %.
    fn judge(&self, state: &mut State) {
        let (SlotMode::Warn(limit) | SlotMode::Enforce(limit)) = self.mode else {
            return;
        };
        let (count, eighths) = (state.count * 8, limit);
        if state.armed && count >= eighths * 6 {
            state.armed = false;
            warn!(
                count = state.count,
                limit, "servers take 75 % of their slots"
            );
        } else if !state.armed && count < eighths * 3 {
            state.armed = true;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.upgrade() {
            slots.release(self);
        }
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

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn enforce_refuses_beyond_the_limit_until_a_slot_is_freed() {
        let slots = Slots::new(SlotMode::Enforce(1));
        let a = slots.reserve(&name("a")).expect("the first");
        assert_eq!(
            slots.reserve(&name("b")).err(),
            Some(SlotsFull { limit: 1 })
        );

        drop(a);

        assert!(slots.reserve(&name("b")).is_ok());
    }

    #[test]
    fn race_6r1_one_name_is_one_slot_until_its_last_owner_goes() {
        let slots = Slots::new(SlotMode::Enforce(1));
        let first = slots.reserve(&name("a")).expect("the first");
        let second = slots.reserve(&name("a")).expect("the same name");
        assert_eq!(slots.count(), 1);

        drop(first);
        assert_eq!(slots.count(), 1, "the second still has it");

        drop(second);
        assert_eq!(slots.count(), 0);
    }

    #[test]
    fn warn_mode_counts_and_never_refuses() {
        let slots = Slots::new(SlotMode::Warn(1));
        let _a = slots.reserve(&name("a")).expect("within");
        let _b = slots.reserve(&name("b")).expect("beyond");
        assert_eq!(slots.count(), 2);
    }
}
