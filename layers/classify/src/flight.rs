//! Proof of delivery of one attempt.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    Hold, Origin,
    sync::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

/// Proof of delivery of one attempt: whether its first byte left.
///
/// Made by the timeout layer, one per attempt, and carried to the wire in the
/// [`CallContext`](crate::CallContext). Stages only grow and each mark is one atomic
/// step:
///
/// ```text
/// New ──queued()──► Queued ──sending()──► Sent ──answered()──► Answered
///                      │                (progress…)
///                      └──withdraw()──► Withdrawn
/// ```
///
/// - A **wire** claims the flight with [`queued`](Self::queued) inside `Service::call`,
///   and asks [`sending`](Self::sending) just before the first byte. On `false` the
///   request was withdrawn and must not be sent.
/// - Whoever **gives up** calls [`withdraw`](Self::withdraw). Only its `true` proves
///   that nothing was sent; having read "queued" proves nothing, since the wire may
///   send a moment later.
/// - A wire that ignores flights leaves it `New`, which proves nothing either.
#[derive(Clone)]
pub struct Flight(Arc<Shared>);

struct Shared {
    /// `[stage: 3][nanoseconds from `made` to the last mark: 61]`, so that a later stage,
    /// and a later mark of the same stage, is the larger number.
    word: AtomicU64,
    made: Instant,
    /// Nanoseconds from `made` to the first `sending`; [`TIME`] for never. It means
    /// something only once the word says `Sent`: the request may be withdrawn instead.
    sent: AtomicU64,
    /// Milliseconds that a wire which has to start a server asked for; 0 for none.
    start_limit: AtomicU64,
    copied: AtomicBool,
    /// How many say that the silence is not the server's.
    holds: AtomicU32,
    origin: OnceLock<Origin>,
}

/// How far an attempt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// No wire has claimed it.
    New,
    /// Claimed by a wire, nothing sent yet.
    Queued,
    /// The first byte was handed to the connection.
    Sent,
    /// Its answer arrived.
    Answered,
    /// Taken back before the first byte: it was not and will not be sent.
    Withdrawn,
}

const SHIFT: u32 = 61;
const TIME: u64 = (1 << SHIFT) - 1;

// === impl Flight ===

impl Flight {
    /// A flight that begins now.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Instant::now())
    }

    /// A flight that began at `now`.
    #[must_use]
    pub fn at(now: Instant) -> Self {
        Self(Arc::new(Shared {
            word: AtomicU64::new(0),
            made: now,
            sent: AtomicU64::new(TIME),
            start_limit: AtomicU64::new(0),
            copied: AtomicBool::new(false),
            holds: AtomicU32::new(0),
            origin: OnceLock::new(),
        }))
    }

    /// Claims the flight for a wire. `false` if it was withdrawn: do not send it.
    #[must_use = "on `false` the request was withdrawn and must not be sent"]
    pub fn queued(&self) -> bool {
        self.grow(Stage::Queued) != Stage::Withdrawn
    }

    /// Asks, just before the first byte, whether it may be sent. `true` means it now
    /// counts as sent; `false` means it was withdrawn and must not be sent.
    #[must_use = "on `false` the request must not be sent"]
    pub fn sending(&self) -> bool {
        let nanos = self.nanos();
        // Before the word, which publishes it: whoever reads `Sent` finds the time too.
        self.0.sent.fetch_min(nanos, Ordering::AcqRel);
        self.grow_at(Stage::Sent, nanos) != Stage::Withdrawn
    }

    /// Notes a sign of life of the running call. Without effect before the call was
    /// sent and after it was answered.
    pub fn progress(&self) {
        let word = self.0.word.load(Ordering::Acquire);
        if stage_of(word) == Stage::Sent {
            // The larger word wins: an answer in between stays.
            self.0
                .word
                .fetch_max(pack(Stage::Sent, self.nanos()), Ordering::AcqRel);
        }
    }

    /// Says that the silence from now on is not the server's. Until what this gives is
    /// dropped, the read limit does not run.
    pub fn hold(&self) -> Hold {
        Hold::new(self.clone())
    }

    /// Whether somebody says that the silence is not the server's.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.holds.load(Ordering::Acquire) > 0
    }

    pub(crate) fn add_hold(&self) {
        self.0.holds.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove_hold(&self) {
        self.0.holds.fetch_sub(1, Ordering::AcqRel);
    }

    /// Notes that the answer arrived.
    pub fn answered(&self) {
        self.grow(Stage::Answered);
    }

    /// How far the attempt came, and when it was last marked.
    #[must_use]
    pub fn stage(&self) -> (Stage, Instant) {
        let word = self.0.word.load(Ordering::Acquire);
        let at = self.0.made + Duration::from_nanos(word & TIME);
        (stage_of(word), at)
    }

    /// When its first byte was sent, whatever was marked since; `None` before that.
    #[must_use]
    pub fn sent_at(&self) -> Option<Instant> {
        let stage = stage_of(self.0.word.load(Ordering::Acquire));
        if !matches!(stage, Stage::Sent | Stage::Answered) {
            return None;
        }
        match self.0.sent.load(Ordering::Acquire) {
            // Answered, by a wire that never asked whether it may send.
            TIME => None,
            nanos => Some(self.0.made + Duration::from_nanos(nanos)),
        }
    }

    /// Takes the request back. Only `true` proves that nothing was and nothing will be
    /// sent: a wire had claimed it, and had not begun to send it.
    #[must_use = "only `true` proves that the request was not sent"]
    pub fn withdraw(&self) -> bool {
        let withdrawn = pack(Stage::Withdrawn, self.nanos());
        self.0
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                (stage_of(word) == Stage::Queued).then_some(withdrawn)
            })
            .is_ok()
    }

    /// Says that the wire has to start a server first, and how long that may take. The
    /// connect limit is raised to this where it is shorter.
    pub fn starting(&self, limit: Duration) {
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.0.start_limit.fetch_max(millis, Ordering::AcqRel);
    }

    /// How long the start of a server may take, if the wire has to start one.
    #[must_use]
    pub fn start_limit(&self) -> Option<Duration> {
        match self.0.start_limit.load(Ordering::Acquire) {
            0 => None,
            millis => Some(Duration::from_millis(millis)),
        }
    }

    /// Whether the request that carries it can be the only attempt that whoever made
    /// the flight waits for.
    ///
    /// `false` once that request, with the flight in its context, was cloned: a layer
    /// inside may then send the clone as another attempt, and the marks of the first
    /// prove nothing of that one.
    #[must_use]
    pub fn is_sole(&self) -> bool {
        !self.0.copied.load(Ordering::Acquire)
    }

    /// Notes that a context that carries it was cloned.
    pub(crate) fn note_copy(&self) {
        self.0.copied.store(true, Ordering::Release);
    }

    /// Names the server and the operation, so that whoever gives up can say what it
    /// gave up on. The first one counts.
    pub fn describe(&self, origin: Origin) {
        // Already described: a flight is of one attempt, and that has one target.
        let _ = self.0.origin.set(origin);
    }

    /// What the wire said this attempt is for.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.0.origin.get()
    }

    /// As [`grow_at`](Self::grow_at), now.
    fn grow(&self, stage: Stage) -> Stage {
        self.grow_at(stage, self.nanos())
    }

    /// Moves on to `stage`, unless it is further already; returns where it is then.
    fn grow_at(&self, stage: Stage, nanos: u64) -> Stage {
        let target = pack(stage, nanos);
        let updated = self
            .0
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                (stage_of(word) < stage).then_some(target)
            });
        match updated {
            Ok(_) => stage,
            Err(word) => stage_of(word),
        }
    }

    /// Nanoseconds since it was made.
    fn nanos(&self) -> u64 {
        let nanos = self.0.made.elapsed().as_nanos();
        u64::try_from(nanos).map_or(TIME, |nanos| nanos.min(TIME))
    }
}

impl Default for Flight {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stage, at) = self.stage();
        f.debug_struct("Flight")
            .field("stage", &stage)
            .field("after", &at.duration_since(self.0.made))
            .finish_non_exhaustive()
    }
}

const fn pack(stage: Stage, nanos: u64) -> u64 {
    (stage as u64) << SHIFT | nanos
}

/// The stage in a word. The word is only ever made from a [`Stage`].
const fn stage_of(word: u64) -> Stage {
    match word >> SHIFT {
        0 => Stage::New,
        1 => Stage::Queued,
        2 => Stage::Sent,
        3 => Stage::Answered,
        _ => Stage::Withdrawn,
    }
}
