//! One circuit, as all its handles share it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use steadfast_classify::{Class, Failure};
use tokio::{sync::watch, time::Instant};

use crate::{
    CircuitOpen, OpenCause, Settings, State, Transition,
    bits::{Bits, View},
    event,
    pass::Pass,
    state::Label,
    time::Time,
    window::Window,
    word::{Admission, Word},
};

/// One circuit. The word decides; everything else follows it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) word: Word,
    epoch: Instant,
    pub(crate) settings: Arc<Settings>,
    pub(crate) label: Label,
    pub(crate) window: Option<Mutex<Window>>,
    /// The state changes while this is locked, so that what is told is in the order in
    /// which it happened, and whoever sees a state in the word finds its reason here.
    pub(crate) told: watch::Sender<Transition>,
    pub(crate) observe_only: AtomicBool,
    pub(crate) rejected: AtomicU64,
    /// Used since the registry last looked for one to evict.
    pub(crate) touched: AtomicBool,
}

/// What becomes of a call.
pub(crate) enum Entry {
    /// It may pass, and has this to show when it ends.
    Pass(Pass),
    /// It is turned away.
    Away(Failure),
    /// Another circuit has to be asked.
    Retired,
}

/// Why the state changes.
#[derive(Clone, Copy)]
pub(crate) struct Why {
    cause: Option<OpenCause>,
    class: Option<Class>,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(label: Label, settings: Arc<Settings>) -> Self {
        let epoch = Instant::now();
        let closed = Transition {
            from: State::Closed,
            to: State::Closed,
            cause: None,
            class: None,
            trips: 0,
            open_for: None,
            at: epoch,
            generation: Bits::NEW.generation(),
        };
        Self {
            word: Word::new(),
            epoch,
            label,
            window: settings
                .has_rates()
                .then(|| Mutex::new(Window::new(settings.window))),
            told: watch::Sender::new(closed),
            observe_only: AtomicBool::new(settings.observe_only),
            rejected: AtomicU64::new(0),
            touched: AtomicBool::new(true),
            settings,
        }
    }

    /// Decides about a call in a closed circuit, if it is.
    #[inline]
    pub(crate) fn pass(&self) -> Option<Pass> {
        self.word.pass()
    }

    /// Decides about a call.
    pub(crate) fn admit(&self) -> Entry {
        loop {
            let admission = self.word.admit(
                || self.time(Instant::now()),
                self.settings.probe_lease,
                // Why it opened is why it is half open.
                |from, to| self.turn(from, to, Instant::now(), None),
            );
            match admission {
                Admission::Pass(pass) => return Entry::Pass(pass),
                Admission::Retired => return Entry::Retired,
                Admission::Probe { pass, took_over } => {
                    if took_over {
                        event::probe_lost(&self.label);
                    }
                    return Entry::Pass(pass);
                }
                Admission::Shut { by, left } => {
                    if let Some(verge) = self.turn_away(by, left) {
                        return verge;
                    }
                }
            }
        }
    }

    /// Turns a call away, or, if the circuit is only watched, lets it pass with something
    /// to show that counts for nothing. `None` if the circuit has moved on since `by`.
    fn turn_away(&self, by: Bits, left: Option<Duration>) -> Option<Entry> {
        let told = *self.told.borrow();
        if told.generation != by.generation() {
            return None;
        }
        self.rejected.fetch_add(1, Ordering::Relaxed);
        let observed = self.only_observes(told.to);
        event::rejected(&self.label, told.to, observed);
        Some(if observed {
            Entry::Pass(by.pass())
        } else {
            Entry::Away(CircuitOpen::new(&self.label, &told, left).into_failure())
        })
    }

    /// What somebody isolated by hand is closed to all, whoever else only watches.
    pub(crate) fn only_observes(&self, state: State) -> bool {
        self.observe_only.load(Ordering::Relaxed) && state != State::Isolated
    }

    /// Changes the state, unless another was faster, and tells everybody.
    pub(crate) fn turn(&self, from: Bits, to: Bits, at: Instant, why: Option<Why>) -> bool {
        let mut change = None;
        let turned = self.told.send_if_modified(|told| {
            if !self.word.swap(from, to) {
                return false;
            }
            let why = why.unwrap_or(Why {
                cause: told.cause,
                class: told.class,
            });
            *told = Transition {
                from: state_of(from),
                to: state_of(to),
                cause: why.cause,
                class: why.class,
                trips: to.trips(),
                open_for: self.open_for(to, at),
                at,
                generation: to.generation(),
            };
            change = Some(*told);
            true
        });
        if let Some(change) = change {
            event::turned(&self.label, &change);
        }
        turned
    }

    /// How long it stays open, to the millisecond in which that is kept.
    fn open_for(&self, to: Bits, at: Instant) -> Option<Duration> {
        let left = match to.view() {
            View::Open { .. } => to.shut_for(self.time(at))?,
            _ => return None,
        };
        Some(left - Duration::from_nanos(u64::from(left.subsec_nanos()) % 1_000_000))
    }

    pub(crate) fn time(&self, now: Instant) -> Time {
        Time::since_epoch(now.saturating_duration_since(self.epoch))
    }
}

// === impl Why ===

impl Why {
    pub(crate) const CLOSED: Self = Self {
        cause: None,
        class: None,
    };
    pub(crate) const ISOLATED: Self = Self {
        cause: Some(OpenCause::Isolated),
        class: None,
    };

    pub(crate) const fn opened(cause: OpenCause, class: Class) -> Self {
        Self {
            cause: Some(cause),
            class: Some(class),
        }
    }
}

pub(crate) fn state_of(bits: Bits) -> State {
    match bits.view() {
        // A retired one was closed when it went.
        View::Closed { .. } | View::Retired => State::Closed,
        View::Open { .. } => State::Open,
        View::HalfOpen { .. } => State::HalfOpen,
        View::Isolated => State::Isolated,
    }
}

/// A window is whole at every point at which a panic could end its update: there is none.
pub(crate) fn lock(window: &Mutex<Window>) -> MutexGuard<'_, Window> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}
