//! Whose question it is.

use std::{future::Future, sync::Arc, time::Duration};

use futures::future::join_all;
use rmcp::model::{ErrorCode, ErrorData};
use tokio::time::sleep;

use super::{AskHandler, Asking, Host, Owner, Question, Reply};
use crate::{seat::Scope, wire::Trace};

/// How long a question may take that is about no call: a call's own limits bound the others.
const ALONE: Duration = Duration::from_secs(300);

/// Whom to ask, by proof.
struct Route {
    scope: Arc<Scope>,
    handler: Arc<dyn AskHandler>,
    asking: Asking,
    /// The calls that it may be about.
    calls: Vec<Arc<Owner>>,
}

// === impl Host ===

impl Host {
    /// Puts a question of the server to the session that it is for: that of the request in
    /// whose answers it came (`within`), that of the call which is this `task`, or the only
    /// one that there is. Without such a proof it is refused.
    ///
    /// Whoever is asked is left alone again once the call, the session, or what it was asked
    /// over (`ended`) has ended.
    pub(crate) async fn ask(
        &self,
        question: Question,
        within: Option<&Trace>,
        task: Option<&str>,
        ended: impl Future<Output = ()>,
    ) -> Result<Reply, ErrorData> {
        let route = self.whose(within, task)?;
        let Some(_open) = self.open() else {
            return Err(refused("there are too many open questions"));
        };
        // Whoever is asked takes their time, and that is not the server's.
        let _holds: Vec<_> = route.calls.iter().map(|call| call.flight.hold()).collect();
        let calls = route.calls.iter().map(|call| call.over.cancelled());
        let over = async {
            if route.calls.is_empty() {
                sleep(ALONE).await;
            } else {
                join_all(calls).await;
            }
        };
        tokio::select! {
            biased;
            () = ended => Err(refused("the connection is over")),
            () = route.scope.closed() => Err(refused("the session is closed")),
            () = over => Err(refused("nobody waits for this any more")),
            reply = question.put_to(route.handler, route.asking) => reply,
        }
    }

    fn whose(&self, within: Option<&Trace>, task: Option<&str>) -> Result<Route, ErrorData> {
        if let Some(trace) = within {
            return match trace.owner() {
                Some(owner) => Ok(Route::call(owner)),
                None => Err(nobody("the session of this call answers no questions")),
            };
        }
        if let Some(owner) = task.and_then(|task| self.call_of(task)) {
            return Ok(Route::call(&owner));
        }
        let Some(scope) = self.sole() else {
            return Err(nobody(
                "the connection is shared, and nothing proves whose question this is; \
                 \"steadfast\": {\"shared\": false} gives each session its own",
            ));
        };
        let Some(handler) = scope.handler() else {
            return Err(nobody("the session answers no questions"));
        };
        let calls = self.calls();
        let tool = match &calls[..] {
            [call] => call.asking.tool.clone(),
            _ => None,
        };
        Ok(Route {
            asking: Asking {
                session: Arc::clone(scope.id()),
                server: Arc::clone(self.server()),
                tool,
            },
            scope: Arc::clone(scope),
            handler,
            calls,
        })
    }
}

// === impl Route ===

impl Route {
    fn call(owner: &Arc<Owner>) -> Self {
        Self {
            scope: Arc::clone(&owner.scope),
            handler: Arc::clone(&owner.handler),
            asking: owner.asking.clone(),
            calls: vec![Arc::clone(owner)],
        }
    }
}

/// A question that can be answered, and is not any more.
fn refused(why: &'static str) -> ErrorData {
    ErrorData::invalid_request(why, None)
}

/// A question that nobody said could be answered.
fn nobody(why: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
}
