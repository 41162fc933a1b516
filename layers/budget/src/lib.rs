//! Admission and retry budgets: how many calls may go, and how many may be repeated.
//!
//! One session of an agent can send a hundred tool calls in a second, and a server that
//! many sessions share then serves nobody. [`BudgetLayer`] lets calls through as far as
//! their limits allow: first the limits of whoever makes the call (its session, server,
//! tool: any key of the request), then the one for all. A call that is over a limit is
//! rejected at once with the time at which it may come again, or waits for its turn.
//! [`RetryBudget`] is for the retry layer: it keeps retries to a share of the calls.
//!
//! ```text
//!          +-- Keyed "session" --+   +--- Keyed "tool" ---+   +-- Global "all" --+
//! call --> | a bucket per session| ->| a bucket per tool  | ->|   one bucket     | --> inner
//!          +---------|-----------+   +---------|----------+   +-------|----------+
//!                    v  over: wait in line, or be rejected with `retry_in`, or be told of
//! ```
//!
//! The order matters: what a call paid to one limit is not given back when the next one
//! rejects it, so the limit that one caller alone can exhaust has to come first. The
//! types see to it that nothing follows the global one.
//!
//! # Waiting
//!
//! By default nothing waits. With [`BudgetLayer::with_max_wait`] a call waits for its
//! turn, first come, first served, for at most that time over all its limits, and less
//! than to its deadline. If its turn comes later than that, it is rejected at once, since
//! to wait would be in vain. While it waits it holds nothing: its place is in no one's
//! way, not even if its future is not polled.
//!
//! Turns are kept to the timer's millisecond. Where a limit has hundreds of calls per
//! second, a burst of a few more than one makes up for that.
//!
//! # What it does not do
//!
//! It counts calls in this process, not bytes, tokens or money, and not over several
//! machines (an [`Admit`] of your own can). It does not limit how many calls run at the
//! same time. It gives nothing back: not for a call that a later limit rejects, that
//! fails, or that is dropped.
//!
//! # Example
//!
//! ```
//! # use std::num::NonZeroU32;
//! # use steadfast_budget::{BudgetLayer, Global, Keyed, Limit, OverBudget, Quota};
//! # use steadfast_classify::{Call, Failure};
//! # use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//! struct ToolCall { session: u64 }
//! impl Call for ToolCall {}
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limits = Keyed::new(Limit::new("session", "2/s".parse()?), |call: &ToolCall| call.session)
//!     .then(Global::new(Limit::new("all calls", "100/s burst 20".parse()?)));
//! let mut service = ServiceBuilder::new()
//!     .layer(BudgetLayer::new(limits))
//!     .service(service_fn(|_: ToolCall| async { Ok::<_, Failure>("done") }));
//! for _ in 0..2 {
//!     service.ready().await?.call(ToolCall { session: 7 }).await?;
//! }
//! let failure = service.ready().await?.call(ToolCall { session: 7 }).await.unwrap_err();
//! assert_eq!(failure.find_source::<OverBudget>().unwrap().limit(), "session");
//! # Ok(())
//! # }
//! ```
//!
//! # Events and counters
//!
//! Events (`tracing`) name the limit, never a request, and a key only if it may be shown
//! ([`Keyed::with_shown_keys`]). The first refusal of a run is a warning, the others are
//! debug events; a run ends when nothing was refused for 30 s.
//!
//! With the feature `metrics`, counters (`metrics`), all but the last with the label
//! `limit`:
//!
//! | counter | one for each |
//! |---|---|
//! | `steadfast.budget.rejected` | call that was rejected |
//! | `steadfast.budget.warned` | call that [`Mode::Warn`] let through |
//! | `steadfast.budget.waited` | call that had to wait, at each limit where it did |
//! | `steadfast.budget.overflowed` | call whose key had no room |
//! | `steadfast.budget.retry_refused` | retry that [`RetryBudget`] refused |

mod admit;
mod bucket;
mod clock;
mod episode;
mod error;
mod future;
mod gate;
mod global;
mod keyed;
mod keys;
mod layer;
mod limit;
mod line;
mod meter;
mod observe;
mod quota;
mod retry_budget;
mod service;
mod tally;
mod text;
mod then;

pub use admit::{Admit, Patience, Verdict};
pub use bucket::Place;
pub use error::{InvalidLimit, InvalidRetryBudget, OverBudget};
pub use future::ResponseFuture;
pub use global::Global;
pub use keyed::Keyed;
pub use layer::BudgetLayer;
pub use limit::{Limit, Mode};
pub use quota::Quota;
pub use retry_budget::{RetryBudget, RetryBudgetSettings};
pub use service::Budget;
pub use then::{Progress, Then};
