//! Restarting a connection on purpose.

use std::sync::Arc;

use steadfast_classify::Failure;

use super::{
    phase::{Phase, Restarting},
    ready::{Patience, Waiter},
    station::Station,
};

impl Station {
    /// Ends the connection and gets a new one, at once. `None`: there is nothing to
    /// restart.
    ///
    /// # Cancel safety
    ///
    /// The old connection ends all the same; the new one is made if somebody else waits
    /// for it, and else with the next call.
    pub(crate) async fn restart(self: &Arc<Self>) -> Option<Result<(), Failure>> {
        // Its slot stays taken in between, or another name could get it.
        let _slot = self.pool().slots().hold(self.name());
        let waiter = match self.begin_restart()? {
            Ok(waiter) => waiter,
            Err(failure) => return Some(Err(failure)),
        };
        self.turned();
        let ready = waiter.ready().await;
        // Usable are tools that were listed by the new connection.
        let stale = self.state().catalog.tools.stale.clone();
        Some(ready.and(stale.map_or(Ok(()), Err)))
    }

    fn begin_restart(self: &Arc<Self>) -> Option<Result<Waiter<'_>, Failure>> {
        let mut state = self.state();
        let era = state.machine.era();
        if let Some(never) = state.machine.never(era) {
            return Some(Err(self.never(never)));
        }
        let untried = state.index.is_none() && state.last_error.is_none();
        if untried && state.machine.phase() == Phase::Vacant {
            return None;
        }
        match state.machine.restart() {
            Restarting::Nothing => return None,
            Restarting::Joins => {}
            Restarting::Begins => {
                state.restarting = true;
                state.restarts += 1;
            }
        }
        // Waits from the same moment on: nobody can take its place in between.
        let config = self.config();
        Some(Ok(Waiter::new(
            self,
            &mut state,
            era,
            config,
            Patience::Acquire,
        )))
    }
}
