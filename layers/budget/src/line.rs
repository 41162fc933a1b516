//! Those who wait for a bucket, in the order in which they came.

use std::{collections::VecDeque, task::Waker, time::Duration};

use tokio::time::Instant;

use crate::clock::later;

/// When an empty bucket regains a call, and how long it takes for each one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refill {
    pub(crate) at: Instant,
    pub(crate) interval: Duration,
}

/// Those who wait for a bucket, first come, first served.
///
/// Whoever looks at the line gives what the bucket has to those in front, in their
/// order, before it takes anything for itself. So a waiter that is not polled keeps its
/// place, but holds nobody up. Each waiter has a timer of its own, set to its turn; only
/// the first one's has to be right, the others' may be late, since a turn that is left
/// out moves all behind it up.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// In the order of their numbers; the first `granted` may go.
    entries: VecDeque<Entry>,
    granted: usize,
    next: u64,
    wakes: Vec<Waker>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// When its timer ends.
    armed: Instant,
    waker: Option<Waker>,
}

/// Where a waiter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has its call, and was taken out of the line.
    Granted,
    /// So many wait before it.
    Behind(usize),
}

// === impl Refill ===

impl Refill {
    /// The turn of a call with `ahead` others before it.
    pub(crate) fn turn(self, ahead: usize) -> Instant {
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        later(self.at, self.interval.saturating_mul(ahead))
    }
}

// === impl Line ===

impl Line {
    /// How many wait and have not been granted their call.
    pub(crate) fn waiting(&self) -> usize {
        self.entries.len() - self.granted
    }

    /// Gives what `take` yields to those in front. Returns when there will be more, if
    /// somebody still waits for it.
    pub(crate) fn settle(&mut self, take: impl Fn() -> Result<(), Refill>) -> Option<Refill> {
        while self.waiting() > 0 {
            if let Err(refill) = take() {
                self.hurry(refill.at);
                return Some(refill);
            }
            self.grant();
        }
        None
    }

    /// Joins the line at its end, with a timer that ends at `armed`.
    pub(crate) fn join(&mut self, armed: Instant, waker: Option<Waker>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.entries.push_back(Entry {
            number,
            armed,
            waker,
        });
        number
    }

    /// Notes that the waiter is awake, and needs no waking until it waits again.
    pub(crate) fn awake(&mut self, number: u64) -> Option<Waker> {
        let index = self.index(number)?;
        self.entries[index].waker.take()
    }

    /// Where the waiter stands; one that was granted its call is taken out.
    pub(crate) fn stand(&mut self, number: u64) -> Standing {
        match self.index(number) {
            Some(index) if index >= self.granted => Standing::Behind(index - self.granted),
            Some(index) => {
                self.entries.remove(index);
                self.granted -= 1;
                Standing::Granted
            }
            None => Standing::Granted,
        }
    }

    /// Waits on, with a timer that ends at `armed`.
    pub(crate) fn stay(&mut self, number: u64, armed: Instant, waker: Option<Waker>) {
        if let Some(index) = self.index(number) {
            let entry = &mut self.entries[index];
            entry.armed = armed;
            entry.waker = waker;
        }
    }

    /// Leaves the line. A call that was granted and not used goes to the next one.
    pub(crate) fn leave(&mut self, number: u64) -> Option<Waker> {
        let index = self.index(number)?;
        let entry = self.entries.remove(index)?;
        if index < self.granted {
            self.granted -= 1;
            self.grant();
        } else if index == self.granted {
            // The new first one's timer was set for a turn later.
            self.wake_first();
        }
        entry.waker
    }

    /// Those who are to be woken, by the caller, once it has let go of the line.
    pub(crate) fn take_wakes(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakes)
    }

    fn grant(&mut self) {
        if let Some(entry) = self.entries.get_mut(self.granted) {
            self.granted += 1;
            self.wakes.extend(entry.waker.take());
        }
    }

    /// Wakes the first one if its timer ends after its turn.
    fn hurry(&mut self, turn: Instant) {
        let late = |first: &Entry| first.armed > turn;
        if self.entries.get(self.granted).is_some_and(late) {
            self.wake_first();
        }
    }

    fn wake_first(&mut self) {
        if let Some(first) = self.entries.get_mut(self.granted) {
            self.wakes.extend(first.waker.take());
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        self.entries
            .binary_search_by_key(&number, |entry| entry.number)
            .ok()
    }
}

#[cfg(test)]
mod tests;
