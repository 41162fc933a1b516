//! Signs of life of a connection that nobody calls.

use std::{future::pending, sync::Arc};

use steadfast_classify::Class;
use tokio::time::{sleep, timeout};

use super::station::Station;
use crate::{Keepalive, Link, Lost};

/// Resolves when the server does not answer any more; never, where nobody asks it.
///
/// A server that works on a call may not answer a ping, and need not: the call has a limit
/// of its own. Nor is a server pinged that nobody holds.
pub(super) async fn silence(station: &Station, link: &Arc<dyn Link>) -> Lost {
    let Some(Keepalive { every, answer, .. }) = station.pool().settings().keepalive else {
        return pending().await;
    };
    loop {
        sleep(every).await;
        if !station.is_quiet() {
            continue;
        }
        let answered = match timeout(answer, Arc::clone(link).ping()).await {
            Ok(Ok(())) => true,
            Ok(Err(failure)) => lives(failure.class()),
            Err(_) => false,
        };
        // A call that began meanwhile may be what keeps the server from answering.
        if !answered && station.is_quiet() {
            return Lost::new("the server did not answer a ping");
        }
    }
}

/// An error is an answer, too.
const fn lives(class: Class) -> bool {
    !matches!(class, Class::NotSent | Class::Unknown | Class::Timeout)
}

// === impl Station ===

impl Station {
    /// Whether somebody holds it and no call runs.
    fn is_quiet(&self) -> bool {
        let state = self.state();
        state.machine.calls() == 0 && state.machine.seats() > 0
    }
}
