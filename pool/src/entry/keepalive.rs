//! Signs of life of a connection that nobody calls.

use std::{future::pending, sync::Arc, time::Duration};

use steadfast_classify::Class;
use tokio::time::{sleep, timeout};

use super::station::Station;
use crate::{Keepalive, Link, Lost, observe};

/// Resolves when the server does not answer any more; never, where nobody asks it.
///
/// A server that works on a call may not answer a ping, and need not: the call has a limit
/// of its own. Nor is a server pinged that nobody holds.
pub(super) async fn silence(station: &Station, link: &Arc<dyn Link>) -> Lost {
    let Some(Keepalive { every, answer, .. }) = station.pool().settings().keepalive else {
        return pending().await;
    };
    let mut knows_pings = false;
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
        knows_pings |= answered;
        if answered {
            continue;
        }
        // It may never have heard of pings: what it answered once already tells.
        let lists = !knows_pings && lists(link, answer).await;
        // A call that began meanwhile may be what keeps the server from answering.
        if !station.is_quiet() {
            continue;
        }
        if !lists {
            return Lost::new("the server did not answer a ping");
        }
        observe::ignores_pings(station.name());
        return pending().await;
    }
}

/// Whether the server answers what every server with tools has to answer. Asked once in the
/// life of a connection at most: a list may be long.
async fn lists(link: &Arc<dyn Link>, within: Duration) -> bool {
    match timeout(within, Arc::clone(link).list_tools()).await {
        Ok(Ok(_)) => true,
        Ok(Err(failure)) => lives(failure.class()),
        Err(_) => false,
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
