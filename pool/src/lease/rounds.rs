//! Calls that the server answers with a question.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::try_join_all;
use rmcp::model::{
    CallToolResponse, CallToolResult, InputRequest, InputRequests, InputRequiredResult,
    InputResponses,
};
use serde_json::Value;
use steadfast_classify::{Class, Failure, Flight};
use tokio::time::sleep;

use super::Lease;
use crate::{
    Round, ToolCall, Unanswered,
    ask::{MOST_OPEN, Owner, Question},
    entry::Use,
};

/// How often a server may answer one call with a question.
const MOST: u32 = 10;

/// How long to wait before a call is made again that the server only put off; doubled each
/// time.
const PUT_OFF: Duration = Duration::from_millis(100);

// === impl Lease ===

impl Lease {
    /// Answers what the server asks, until it has no more questions. Each answer is a new
    /// request, on whatever connection there is, and goes nowhere but to this server.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, nobody is asked any more, and a request that is on its way is
    /// cancelled on the wire.
    pub(super) async fn rounds(
        &self,
        first: InputRequiredResult,
        call: &ToolCall,
        flight: &Flight,
    ) -> Result<CallToolResult, Failure> {
        let mut asked = first;
        for round in 0..MOST {
            let questions = asked.input_requests.unwrap_or_default();
            if questions.is_empty() {
                let _hold = flight.hold();
                sleep(PUT_OFF * 2_u32.saturating_pow(round)).await;
            }
            let answers = self.answers(questions, call, flight).await?;
            let next = call.in_round(Round::new(answers, asked.request_state), flight);
            match self.again(&next, flight).await? {
                CallToolResponse::Complete(result) => return Ok(result),
                CallToolResponse::Task(task) => return self.follow(task, &next, flight).await,
                CallToolResponse::InputRequired(more) => asked = more,
                _ => {
                    return Err(Failure::new(Class::Unknown)
                        .with_source("the answer to tools/call is no tool result"));
                }
            }
        }
        Err(unanswered(Unanswered::Endless))
    }

    /// One more request of a call that the server has begun.
    async fn again(&self, call: &ToolCall, first: &Flight) -> Result<CallToolResponse, Failure> {
        let flight = Flight::new();
        // Claimed: if it is withdrawn, this one was not sent.
        let _ = flight.queued();
        let connection = {
            // The server waits for us until then.
            let _hold = first.hold();
            self.checkout(&flight, Use::GoesOn).await?
        };
        let sent = flight.clone();
        connection.call(&flight, |link| link.call(call, sent)).await
    }

    /// What this session answers to each of these questions.
    pub(super) async fn answers(
        &self,
        questions: InputRequests,
        call: &ToolCall,
        flight: &Flight,
    ) -> Result<InputResponses, Failure> {
        if questions.len() > MOST_OPEN {
            return Err(unanswered(Unanswered::TooMuch));
        }
        // Whoever is asked takes their time, and that is not the server's.
        let _hold = flight.hold();
        let owner = call.ties().and_then(|ties| ties.owner.as_ref());
        let asked = questions.into_iter().map(async |(key, question)| {
            let answer = self.answer(question, owner).await?;
            Ok((key, answer))
        });
        let answers = try_join_all(asked).await.map_err(unanswered)?;
        Ok(BTreeMap::from_iter(answers))
    }

    async fn answer(
        &self,
        question: InputRequest,
        owner: Option<&Arc<Owner>>,
    ) -> Result<Value, Unanswered> {
        let question = match question {
            InputRequest::Elicitation(request) => Question::Elicit(request.params),
            InputRequest::CreateMessage(request) => Question::Sample(Box::new(request.params)),
            InputRequest::ListRoots(_) => {
                let roots = self.seat.station().host().roots();
                let roots = roots.and_then(|roots| serde_json::to_value(roots).ok());
                return roots.ok_or(Unanswered::Nobody);
            }
            _ => return Err(Unanswered::Nobody),
        };
        let owner = owner.ok_or(Unanswered::Nobody)?;
        let handler = Arc::clone(owner.handler());
        let reply = question.put_to(handler, owner.asking().clone()).await;
        let reply = reply.map_err(|error| Unanswered::Refused(error.code.0))?;
        reply.into_value().map_err(|_| Unanswered::Nobody)
    }
}

/// A call that ended because nobody answered the server.
pub(super) fn unanswered(why: Unanswered) -> Failure {
    Failure::new(Class::Answered).with_source(why)
}
