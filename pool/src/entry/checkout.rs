//! Calls on a connection.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::future::BoxFuture;
use steadfast_classify::{Class, Failure, Flight, Phase as CallPhase};
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit, time::timeout};
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};

use super::{
    phase::{Era, Phase},
    ready::Patience,
    state::Connection,
    station::Station,
};
use crate::{
    Link, Lost, ServerConfig,
    error::{Refused, no_runtime, refused},
};

/// How long a connection that has ended may take to say what became of a call on it.
const VERDICT: Duration = Duration::from_secs(2);

/// A connection, for one call. It counts as running until this is dropped.
#[derive(Debug)]
pub(crate) struct Checkout {
    running: Running,
    link: Arc<dyn Link>,
    gone: CancellationToken,
    _counted: TaskTrackerToken,
    _place: Option<OwnedSemaphorePermit>,
}

/// A call that runs, whatever it is doing: an end of the connection that waits for calls
/// waits for this one.
#[derive(Debug)]
pub(crate) struct Running(UnderWay);

/// What a connection is needed for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use<'a> {
    /// A call to a tool. One that the server surely does not have is refused.
    Tool(&'a str),
    /// A request that is no call to a tool.
    Other,
    /// The next request of a call that runs. It may be made until the call's time is up,
    /// although nobody new is let in.
    GoesOn,
    /// The same for a question about a task. It takes no place: it is soon answered, and a
    /// task must not be lost because calls have taken all of them.
    Task,
}

/// A call that is under way, be it that it waits.
#[derive(Debug)]
struct UnderWay(Arc<Station>);

// === impl Station ===

impl Station {
    /// A connection for one call: the one there is, or the one that is being made, or a
    /// new one. Where it has to be waited for, `flight` is told how long that may take.
    ///
    /// # Cancel safety
    ///
    /// As [`ready`](Self::ready).
    pub(crate) async fn checkout(
        self: &Arc<Self>,
        era: Era,
        config: &ServerConfig,
        flight: &Flight,
        what: Use<'_>,
    ) -> Result<Checkout, Failure> {
        // What ends a call with its connection has a limit, and that needs a clock.
        if Handle::try_current().is_err() {
            return Err(no_runtime());
        }
        let under_way = UnderWay::new(self);
        // First the server, so that nobody waits for a place before they wait for a start.
        self.usable(era, config, flight, what).await?;
        let place = match what {
            Use::Task => None,
            Use::Tool(_) | Use::Other | Use::GoesOn => self.place(flight).await,
        };
        // The connection only now: the one there was may have ended meanwhile.
        loop {
            if let Some((Connection { link, gone, .. }, counted)) = self.begin_call(era, what)? {
                return Ok(Checkout {
                    running: Running(under_way),
                    link,
                    gone,
                    _counted: counted,
                    _place: place,
                });
            }
            self.usable(era, config, flight, what).await?;
        }
    }

    async fn usable(
        self: &Arc<Self>,
        era: Era,
        config: &ServerConfig,
        flight: &Flight,
        what: Use<'_>,
    ) -> Result<(), Failure> {
        if what.may_use(self.phase()) {
            return Ok(());
        }
        // Starting is not connecting: it has a limit of its own.
        flight.starting(self.start_limit(config));
        self.ready(era, config, Patience::Call(flight)).await
    }

    /// One of the places on the connection, if their number is limited.
    async fn place(&self, flight: &Flight) -> Option<OwnedSemaphorePermit> {
        let places = Arc::clone(self.places()?);
        // It is our limit that it waits for: that is no fault of the server's.
        let _hold = flight.hold();
        // Never closed, so there is no error.
        places.acquire_owned().await.ok()
    }

    /// The connection, with one more call on it; `None` where there is none.
    fn begin_call(
        &self,
        era: Era,
        what: Use<'_>,
    ) -> Result<Option<(Connection, TaskTrackerToken)>, Failure> {
        let mut state = self.state();
        let phase = state.machine.phase();
        let last = matches!(phase, Phase::Leaving { .. }) && what.may_use(phase);
        if let Some(never) = state.machine.never(era).filter(|_| !last) {
            return Err(self.never(never));
        }
        if !what.may_use(phase) {
            return Ok(None);
        }
        let Some(connection) = state.connection.clone() else {
            return Ok(None);
        };
        if let Use::Tool(tool) = what
            && state.lacks(tool)
        {
            return Err(refused(Refused::NoSuchTool));
        }
        state.machine.begin_call();
        // Counted under the lock, so that whoever ends the connection sees it.
        let counted = connection.calls.token();
        Ok(Some((connection, counted)))
    }
}

// === impl Use ===

impl Use<'_> {
    const fn may_use(self, phase: Phase) -> bool {
        match phase {
            Phase::Active { .. } => true,
            Phase::Leaving { .. } => matches!(self, Use::GoesOn | Use::Task),
            Phase::Vacant | Phase::Starting | Phase::Closing(_) => false,
        }
    }
}

// === impl Checkout ===

impl Checkout {
    /// Gives the connection back, and runs on without.
    pub(crate) fn into_running(self) -> Running {
        self.running
    }

    /// Makes a call by `make`. However the connection ends, the call ends: the connection
    /// is given a moment to say what became of it, then its flight says so.
    pub(crate) async fn call<T>(
        &self,
        flight: &Flight,
        make: impl FnOnce(Arc<dyn Link>) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut call = make(Arc::clone(&self.link));
        tokio::select! {
            biased;
            result = &mut call => result,
            () = self.gone.cancelled() => {
                let verdict = timeout(VERDICT, call).await;
                verdict.unwrap_or_else(|_| Err(severed(flight)))
            }
        }
    }
}

// === impl Running ===

impl Drop for Running {
    fn drop(&mut self) {
        let station = &self.0.0;
        let last = station.state().machine.end_call();
        if last {
            station.nudge();
        }
    }
}

// === impl UnderWay ===

impl UnderWay {
    fn new(station: &Arc<Station>) -> Self {
        station.under_way().fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(station))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way().fetch_sub(1, Ordering::Relaxed);
    }
}

fn severed(flight: &Flight) -> Failure {
    let failure = if flight.withdraw() {
        Failure::new(Class::NotSent).with_phase(CallPhase::Connect)
    } else {
        Failure::new(Class::Unknown)
    };
    failure.with_source(Lost::new("the connection was closed"))
}
