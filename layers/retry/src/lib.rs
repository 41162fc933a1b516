//! Retries that are safe to turn on.
//!
//! A retry helps when a server hiccups and harms when it repeats what already ran, when
//! every client comes back at the same moment, or when it keeps a caller waiting for an
//! answer that cannot come in time. This layer repeats a call only if
//!
//! - **nothing can have run, or repeating is harmless**: [`Class`](steadfast_classify::Class)
//!   × [`Effect`](steadfast_classify::Effect) decide, and an error nobody classified counts
//!   as one that may have run;
//! - **the wait is worth it**: not longer than [`Settings::max_wait`], not past the deadline
//!   in the call's context, and never while the circuit is open;
//! - **there is something left to spend**: [`Settings::max_retries`], and a [`Budget`] shared
//!   with other calls, if one is given.
//!
//! ```text
//!              ┌──────────── error ───────────┐
//! call ──► attempt ── ok ──► response         ▼
//!              ▲                         may it be repeated, in time, within
//!              │                         the budget?  ── no ──► the last error
//!           ready?                            │ yes: drop the attempt and its error
//!              └───────── wait ◄──────────────┘
//! ```
//!
//! `NotSent` and `Overloaded` are thus repeated for every call, `Timeout` and `Unknown` only
//! for those that are read only or idempotent, and what the server answered never is.
//!
//! Attempts never overlap: the future of one is dropped, and with it whatever it held and
//! the cancel it sends, before the wait for the next begins. The error that comes out is
//! that of the last attempt, and says how many there were and whether *any* of them may
//! have run.
//!
//! It does not time anything: an attempt that hangs is a timeout layer's to end, inside
//! this one. It does not judge errors either; that is done next to the wire.
//!
//! # Example
//!
//! ```
//! use steadfast_classify::{Call, Class, Effect, Failure};
//! use steadfast_retry::RetryLayer;
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! #[derive(Clone)]
//! struct GetPrice;
//! impl Call for GetPrice {
//!     fn effect(&self) -> Effect { Effect::ReadOnly }
//! }
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! # let answers = [Err(Failure::new(Class::Unknown)), Ok(42)].into_iter();
//! # let answers = std::sync::Arc::new(std::sync::Mutex::new(answers));
//! # let server = service_fn(move |_: GetPrice| {
//! #     let answer = answers.lock().unwrap().next();
//! #     async move { answer.unwrap() }
//! # });
//! // The link to this server breaks once, then it answers.
//! let service = ServiceBuilder::new().layer(RetryLayer::default()).service(server);
//! assert_eq!(service.oneshot(GetPrice).await.unwrap(), 42);
//! # }
//! ```
//!
//! # Readiness
//!
//! `Pending` of the inner service is passed on. A readiness *error* is not: the service
//! reports ready and the error comes out of the next `call`, where it is an attempt like
//! any other. Between attempts readiness is driven inside the response future, and an
//! error of it is an attempt too.
//!
//! # What is observed
//!
//! Events of [`tracing`] under `steadfast_retry`: `retrying` (debug), `recovered` (debug),
//! `gave up` (warn when the retries or the budget ran out, else debug). With feature
//! `metrics` also counters of the [`metrics`](https://docs.rs/metrics) crate:
//!
//! | counter | label | counts |
//! |---|---|---|
//! | `steadfast.retry.retries` | `class` | attempts repeated, by the class that caused it |
//! | `steadfast.retry.recovered` | | calls that succeeded after at least one retry |
//! | `steadfast.retry.gave_up` | `reason` | calls that could have been repeated but were not |

mod attempts;
mod backoff;
mod budget;
mod error;
mod future;
mod handle;
mod layer;
mod observe;
mod random;
mod service;
mod settings;
mod verdict;

pub use backoff::{Backoff, Jitter};
pub use budget::NoBudget;
pub use error::{InvalidBackoff, InvalidSettings};
pub use future::ResponseFuture;
pub use layer::RetryLayer;
pub use service::Retry;
pub use settings::Settings;
pub use tower::retry::budget::Budget;
