//! Fallback for tower services: what to answer when the call failed, and where each
//! answer came from.
//!
//! An answer from a cache that looks like a live one is worse than an error: whoever
//! acts on it cannot know. So the response of this layer is a [`Sourced`] value, and the
//! source is in the result, in the log and in a counter. The standard chain:
//!
//! ```text
//!  call ──► inner service ──ok──────────────────────────────► Live
//!                │ failed (and the class allows a fallback)
//!                ▼
//!       last good answer to the same question, by the same
//!       caller, of the same generation, young enough? ──yes──► Cache { age }
//!                │ no
//!                ▼
//!       the default this call brought along? ────────────yes──► Degraded
//!                │ no
//!                ▼
//!       can the response type say "unavailable"? ────────yes──► Degraded
//!                │ no, or explicit mode
//!                ▼
//!           the failure, as it is
//! ```
//!
//! Which failures ([`covers`]):
//!
//! ```text
//!  NotSent  Overloaded  Timeout  Unknown    yes
//!  Rejected                                 yes, unless permanent: an excluded tool or
//!                                           a closed session stays a plain no
//!  Answered  Cancelled                      no: the caller must see it
//! ```
//!
//! **What is kept**: live answers that report no error, of calls that are
//! [`ReadOnly`](steadfast_classify::Effect::ReadOnly), and of others only where
//! [`Recoverable::cacheable`] says that an old answer is acceptable. **When it ends**:
//! after [`Settings::with_max_stale`]; and each call that is neither and may have run
//! raises the *generation* of its server, so that nothing from before a write is given
//! out after it.
//!
//! It does not retry, time out, or watch the server; it does not make a failed write
//! succeed, and it never answers from the cache in place of a call that succeeds. A
//! write made by somebody else is not seen: that is what the age in the answer is for.
//!
//! # Example
//!
//! ```
//! use steadfast_classify::{Class, Failure, Source};
//! use steadfast_fallback::FallbackLayer;
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Failure> {
//! let service = ServiceBuilder::new()
//!     .layer(FallbackLayer::new(|_: &Failure| Some("no forecast today".to_owned())))
//!     .service(service_fn(|_city: &'static str| async {
//!         Err::<String, _>(Failure::new(Class::NotSent))
//!     }));
//! let answer = service.oneshot("Bern").await?;
//! assert_eq!(answer.source, Source::Degraded);
//! # Ok(())
//! # }
//! ```
//!
//! The last good answer needs to know what a call asks; see [`Recoverable`].
//!
//! # Events and counters
//!
//! Events: a `debug` one for each live answer and for each failure that is passed on, an
//! `info` one for each answer from the cache, a `warn` one for each degraded answer; the
//! field `steadfast.source` is recorded on the current span where it declares it.
//!
//! With feature `metrics`:
//!
//! - `steadfast.fallback.answers`, labels `source` (`live`, `cache`, `degraded`, or
//!   `none` for a failure passed on) and, but for `live`, `class`.
//! - `steadfast.fallback.store_timeouts`: lookups given up because the store was slow.
//! - `steadfast.fallback.unkept`: answers larger than the whole store.

mod bounds;
mod chain;
mod error;
mod event;
mod future;
mod generations;
mod handle;
mod key;
mod layer;
mod mark;
mod memory;
mod recover;
mod recovery;
mod refusal;
mod rules;
mod service;
mod settings;
mod sourced;
mod store;
mod ticket;

pub use bounds::Bounds;
pub use chain::Chain;
pub use error::{InvalidBounds, InvalidSettings};
pub use future::ResponseFuture;
pub use generations::Generations;
pub use key::Key;
pub use layer::FallbackLayer;
pub use mark::{Mark, Tagged, Untagged};
pub use memory::Memory;
pub use recover::{Answer, Recover, Ticket};
pub use recovery::Recovering;
pub use rules::covers;
pub use service::Fallback;
pub use settings::Settings;
pub use sourced::Sourced;
pub use steadfast_classify::{Caller, Question, Recoverable};
pub use store::{Kept, NoStore, Store};
pub use ticket::ChainTicket;
