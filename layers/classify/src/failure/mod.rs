//! The one error of the whole stack.

mod fmt;

use std::{error::Error, sync::Arc, time::Duration};

use crate::{Class, Effect, Origin, Phase};

/// The one error of the whole stack: what happened to a call, and what may be done
/// about it.
///
/// One pointer wide and cheap to clone, so that everyone who waited for the same
/// connection can have the same failure. Its `Display` is one line to act on. Neither
/// `Display` nor `Debug` ever prints arguments, results or secrets of a call.
///
/// [`class`](Self::class) speaks of the last attempt, [`may_have_run`](Self::may_have_run)
/// of the whole logical call. Whoever wants to repeat a call asks the latter.
#[derive(Clone)]
pub struct Failure(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    class: Class,
    phase: Option<Phase>,
    permanent: bool,
    circuit_open: bool,
    may_have_run: bool,
    attempts: u32,
    elapsed: Option<Duration>,
    retry_after: Option<Duration>,
    retry_in: Option<Duration>,
    origin: Origin,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

// === impl Failure ===

impl Failure {
    /// A failure of this class, about which nothing else is known yet.
    ///
    /// Whether the call may have run follows from the class until
    /// [`with_may_have_run`](Self::with_may_have_run) says better.
    #[must_use]
    pub fn new(class: Class) -> Self {
        Self(Arc::new(Inner {
            class,
            phase: None,
            permanent: false,
            circuit_open: false,
            may_have_run: class.may_have_run(),
            attempts: 1,
            elapsed: None,
            retry_after: None,
            retry_in: None,
            origin: Origin::default(),
            source: None,
        }))
    }

    /// What happened to the last attempt.
    #[must_use]
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// The part of the call it happened in, if that is known.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        self.0.phase
    }

    /// Whether trying again is pointless until something is changed: no such program,
    /// a bad certificate, a wrong configuration, no common protocol version.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.0.permanent
    }

    /// Whether the circuit of this call is open, so that another attempt now would be
    /// turned away.
    #[must_use]
    pub fn is_circuit_open(&self) -> bool {
        self.0.circuit_open
    }

    /// Whether the logical call may have run, in its last attempt or in any before it.
    ///
    /// `false` is a proof, `true` is not: check before repeating such a call, unless
    /// repeating is harmless.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        self.0.may_have_run
    }

    /// Whether the last attempt may be followed by another, for a call with this effect.
    #[must_use]
    pub fn may_repeat(&self, effect: Effect) -> bool {
        !self.0.permanent && !self.0.circuit_open && self.0.class.may_repeat(effect)
    }

    /// How long the server asked to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// When our own side will let a call through again: an open circuit, an empty
    /// bucket, a pause before the next connection.
    #[must_use]
    pub fn retry_in(&self) -> Option<Duration> {
        self.0.retry_in
    }

    /// The longer of [`retry_after`](Self::retry_after) and [`retry_in`](Self::retry_in).
    #[must_use]
    pub fn retry_floor(&self) -> Option<Duration> {
        self.0.retry_after.max(self.0.retry_in)
    }

    /// How many attempts were made, this one included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// How long the last attempt, or the call, had run.
    #[must_use]
    pub fn elapsed(&self) -> Option<Duration> {
        self.0.elapsed
    }

    /// Where it came from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// The error underneath, as the type it has, wherever it is in the chain of sources.
    ///
    /// ```
    /// # use steadfast_classify::{Class, Failure};
    /// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    /// let failure = Failure::new(Class::NotSent).with_source(refused);
    /// assert!(failure.find_source::<std::io::Error>().is_some());
    /// ```
    #[must_use]
    pub fn find_source<E: Error + 'static>(&self) -> Option<&E> {
        let mut next = self.source();
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<E>() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Replaces the class, and with it what it says about whether the call may have run.
    #[must_use]
    pub fn with_class(mut self, class: Class) -> Self {
        let inner = self.inner();
        inner.class = class;
        inner.may_have_run = class.may_have_run();
        self
    }

    /// Says in which part of the call it happened.
    #[must_use]
    pub fn with_phase(mut self, phase: Phase) -> Self {
        self.inner().phase = Some(phase);
        self
    }

    /// Says that trying again is pointless until something is changed.
    #[must_use]
    pub fn with_permanent(mut self) -> Self {
        self.inner().permanent = true;
        self
    }

    /// Says whether the call may have run, where more is known than the class tells.
    #[must_use]
    pub fn with_may_have_run(mut self, may_have_run: bool) -> Self {
        self.inner().may_have_run = may_have_run;
        self
    }

    /// Says how long the server asked to be left alone.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.inner().retry_after = Some(after);
        self
    }

    /// Says when our own side will let a call through again.
    #[must_use]
    pub fn with_retry_in(mut self, wait: Duration) -> Self {
        self.inner().retry_in = Some(wait);
        self
    }

    /// Says how long the attempt, or the call, had run.
    #[must_use]
    pub fn with_elapsed(mut self, elapsed: Duration) -> Self {
        self.inner().elapsed = Some(elapsed);
        self
    }

    /// Says where it came from; what the failure already says of that stays.
    #[must_use]
    pub fn with_origin(mut self, origin: &Origin) -> Self {
        self.inner().origin.fill(origin);
        self
    }

    /// Names the layer that made it.
    #[must_use]
    pub fn with_layer(mut self, layer: &'static str) -> Self {
        self.inner().origin.layer = Some(layer);
        self
    }

    /// Keeps the error underneath, which stays downcastable.
    #[must_use]
    pub fn with_source<E>(mut self, source: E) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.inner().source = Some(Arc::from(source.into()));
        self
    }

    /// Notes how many attempts there were.
    pub fn set_attempts(&mut self, attempts: u32) {
        if self.0.attempts != attempts {
            self.inner().attempts = attempts;
        }
    }

    /// Notes that an attempt of this logical call may have run. It cannot be unsaid.
    pub fn mark_may_have_run(&mut self) {
        if !self.0.may_have_run {
            self.inner().may_have_run = true;
        }
    }

    /// Notes that the circuit of this call is open, and when it lets a call through.
    pub fn mark_circuit_open(&mut self, retry_in: Option<Duration>) {
        let inner = self.inner();
        inner.circuit_open = true;
        inner.retry_in = retry_in.or(inner.retry_in);
    }

    /// Only a failure that others hold too is copied.
    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}
