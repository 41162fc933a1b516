//! The knobs as they are now, and which fault a request has.

use std::sync::Mutex;

use super::super::knobs::{At, HttpFault, HttpKnobs};
use super::super::server::lock;

/// Knobs that can be turned while the probe runs.
#[derive(Debug)]
pub(crate) struct Rules {
    live: Mutex<Live>,
}

#[derive(Debug)]
struct Live {
    knobs: HttpKnobs,
    /// How many requests fitted each fault.
    fitted: Vec<u64>,
}

// === impl Rules ===

impl Rules {
    pub(crate) fn new(knobs: HttpKnobs) -> Self {
        let live = Live {
            fitted: vec![0; knobs.faults.len()],
            knobs,
        };
        Self {
            live: Mutex::new(live),
        }
    }

    /// Turns knobs; the faults begin to count anew.
    pub(crate) fn change(&self, turn: impl FnOnce(&mut HttpKnobs)) {
        let mut live = lock(&self.live);
        turn(&mut live.knobs);
        live.fitted = vec![0; live.knobs.faults.len()];
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&HttpKnobs) -> T) -> T {
        look(&lock(&self.live).knobs)
    }

    /// The fault of a request that goes by these names.
    pub(crate) fn fault(&self, names: &[&str]) -> Option<HttpFault> {
        self.find(names, |fault| fault.at != At::Unread)
    }

    /// The same before its body has been read.
    pub(crate) fn unread(&self, names: &[&str]) -> Option<HttpFault> {
        self.find(names, |fault| fault.at == At::Unread)
    }

    fn find(&self, names: &[&str], kind: impl Fn(&HttpFault) -> bool) -> Option<HttpFault> {
        let Live { knobs, fitted } = &mut *lock(&self.live);
        for (fault, fitted) in knobs.faults.iter().zip(fitted) {
            if !kind(fault) || !fault.fits(names) {
                continue;
            }
            let earlier = *fitted;
            *fitted += 1;
            let spared = earlier < fault.skip;
            let over = fault
                .times
                .is_some_and(|times| earlier >= fault.skip + times);
            if !spared && !over {
                return Some(fault.clone());
            }
        }
        None
    }
}
