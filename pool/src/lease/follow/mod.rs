//! Calls that the server runs as tasks.
//!
//! A task is asked about on whatever connection there is: it outlives the one it was begun
//! on, and a question that was lost can be asked again. The call itself is never made again.

mod news;

use std::{collections::HashMap, time::Duration};

use futures::future::BoxFuture;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, GetTaskParams, InputRequests, Task,
    UpdateTaskParams,
};
use serde_json::Value;
use steadfast_classify::{Call as _, Class, Failure, Flight, Phase};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Lease, span::Request};
use crate::{
    Link, Progress, TaskEnded, ToolCall,
    entry::{Station, Use},
    task::Followed,
};
use news::{News, Over, answered, ended, heed, lost, may_ask_again};

/// How long the server may not be there to be asked, where the call does not say.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call that is a task by now.
struct Following<'a> {
    lease: &'a Lease,
    call: &'a ToolCall,
    flight: &'a Flight,
    task: &'a str,
    followed: Followed,
    /// What it said last of itself.
    said: Option<String>,
    /// What it asked for, and whether it was told the answer. Nobody is asked twice.
    answers: HashMap<String, (Value, bool)>,
}

/// Tells the server that nobody waits for a task any more, unless it has ended.
struct Waiting<'a> {
    station: &'a Station,
    task: &'a str,
    ended: bool,
}

// === impl Lease ===

impl Lease {
    /// Waits for the end of a task that a call began.
    ///
    /// # Cancel safety
    ///
    /// Dropped early it tells the server that nobody waits for the task any more.
    pub(super) async fn follow(
        &self,
        created: CreateTaskResult,
        call: &ToolCall,
        flight: &Flight,
    ) -> Result<CallToolResult, Failure> {
        let Task { task_id, .. } = &created.task;
        let station = self.seat.station();
        let owner = call.ties().and_then(|ties| ties.owner.as_ref());
        let _routed = owner.map(|owner| station.host().route(task_id, owner));
        let mut waiting = Waiting::new(station, task_id);
        let mut following = Following {
            lease: self,
            call,
            flight,
            task: task_id,
            followed: Followed::new(&created.task, self.patience(call), Instant::now()),
            said: None,
            answers: HashMap::new(),
        };
        let result = match following.until_over().await {
            Over::Ended(result) => {
                waiting.ended = true;
                result
            }
            Over::GivenUp(failure) => Err(failure),
        };
        // Whatever became of it: it was begun.
        result.map_err(|failure| failure.with_may_have_run(true))
    }

    /// How long the server of a call may not be there to be asked.
    fn patience(&self, call: &ToolCall) -> Duration {
        let limits = call.context().and_then(|context| context.limits());
        let read = limits.and_then(|limits| limits.read);
        read.or(self.config().timeout()).unwrap_or(PATIENCE)
    }
}

// === impl Following ===

impl Following<'_> {
    async fn until_over(&mut self) -> Over {
        loop {
            {
                // The server said when to ask: until then the silence is not its.
                let _hold = self.followed.is_well().then(|| self.flight.hold());
                sleep_until(self.followed.next()).await;
            }
            let asked = Instant::now();
            let expired = self.followed.is_expired(asked);
            let news = match self.ask(asked).await {
                News::Asks(questions) if !expired => self.answer(questions).await,
                news => news,
            };
            match news {
                News::Over(over) => return over.by(expired),
                News::Working | News::Asks(_) if expired => {
                    return Over::GivenUp(ended(Class::Answered, TaskEnded::Expired));
                }
                News::Working | News::Asks(_) => {}
            }
        }
    }

    /// Asks how the task is, once.
    async fn ask(&mut self, asked: Instant) -> News {
        let params = GetTaskParams::new(self.task);
        let told = self.request("tasks/get", asked, |link, flight| {
            link.get_task(params, flight)
        });
        match told.await {
            Ok(told) => {
                self.flight.progress();
                self.followed.heed(&told.task, Instant::now());
                self.report(&told);
                heed(told)
            }
            Err(failure) => self.lose(failure, asked),
        }
    }

    /// Gives the task what it asks for. What it was told already it is not told again.
    async fn answer(&mut self, mut questions: InputRequests) -> News {
        let asked: Vec<_> = questions.keys().cloned().collect();
        questions.retain(|key, _| !self.answers.contains_key(key));
        match self.lease.answers(questions, self.call, self.flight).await {
            Ok(answers) => {
                let untold = answers
                    .into_iter()
                    .map(|(key, value)| (key, (value, false)));
                self.answers.extend(untold);
            }
            Err(failure) => return News::Over(Over::GivenUp(failure)),
        }
        let untold = asked.iter().filter_map(|key| match self.answers.get(key) {
            Some((value, false)) => Some((key.clone(), value.clone())),
            _ => None,
        });
        let params = UpdateTaskParams::new(self.task, untold.collect());
        if params.input_responses.is_empty() {
            return News::Working;
        }
        let now = Instant::now();
        let told = self.request("tasks/update", now, |link, flight| {
            link.update_task(params, flight)
        });
        match told.await {
            Ok(()) => {
                let told = self.answers.values_mut();
                told.for_each(|(_, told)| *told = true);
                News::Working
            }
            // If it came to nothing, it is asked for again.
            Err(failure) => self.lose(failure, now),
        }
    }

    /// One request about the task, on whatever connection there is.
    async fn request<T>(
        &self,
        method: &'static str,
        now: Instant,
        make: impl FnOnce(std::sync::Arc<dyn Link>, Flight) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let flight = Flight::new();
        // Claimed: if it is withdrawn, it was not sent.
        let _ = flight.queued();
        let request = async {
            let connection = self.lease.checkout(&flight, Use::Task).await?;
            let sent = flight.clone();
            connection.call(&flight, |link| make(link, sent)).await
        };
        let limit = self.followed.answer_limit(now);
        let request = async {
            let answer = timeout(limit, request).await;
            answer.unwrap_or_else(|_| Err(Failure::new(Class::Timeout).with_phase(Phase::Read)))
        };
        let span = Request::other(self.lease, method, None, &flight);
        span.around(|_| None, request).await
    }

    /// A request that came to nothing is made again for as long as that makes sense.
    fn lose(&mut self, failure: Failure, asked: Instant) -> News {
        if !may_ask_again(&failure) {
            return News::Over(answered(failure));
        }
        if self.followed.lose(&failure, asked, Instant::now()) {
            return News::Working;
        }
        News::Over(Over::GivenUp(lost(failure)))
    }

    /// Passes on what the task says of itself, if that is something else than before.
    fn report(&mut self, told: &DetailedTask) {
        let message = &told.task.status_message;
        if message.is_none() || *message == self.said {
            return;
        }
        self.said.clone_from(message);
        if let Some(ties) = self.call.ties() {
            ties.report(Progress::said(message.clone()));
        }
    }
}

// === impl Waiting ===

impl<'a> Waiting<'a> {
    fn new(station: &'a Station, task: &'a str) -> Self {
        station.follow_task(task);
        Self {
            station,
            task,
            ended: false,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.station.leave_task(self.task, self.ended);
    }
}
