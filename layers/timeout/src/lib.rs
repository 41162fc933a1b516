//! Time limits for tower services, one for each phase of a call.
//!
//! One number cannot say when a call has taken too long. A server that cannot be reached
//! should be given up after seconds, one that works may need minutes, and a caller waits
//! only so long for all of it. So there are four limits, and the failure names the one
//! that ran out:
//!
//! ```text
//!  deadline ├──────────────────── total, 300 s ──────────────────────────────┤
//!   attempt      ├──────────── none by default ──────────────┤  ├── the next one
//!   connect      ├─ 5 s ─┤
//!      read              ├─ 60 s ──── ┤
//!                                ├─ 60 s ────── ┤     progress starts it anew
//!              call    sent   progress       answer
//! ```
//!
//! [`TimeoutLayer`] keeps connect, read and attempt; [`DeadlineLayer`] gives the whole
//! logical call its end, which the timeout layer then keeps for each attempt too. The
//! order is
//!
//! ```text
//! +--- deadline ---+   one logical call
//! |  +-- retry --+ |   (or whatever repeats it)
//! |  | timeout   | |   one attempt
//! |  |  service  | |
//! ```
//!
//! When a limit runs out, what is dropped is the inner future, at once and before the
//! failure is returned: cancelling on the wire is the job of that future's `Drop`. Where
//! a wire marks the [`Flight`](steadfast_classify::Flight) of a tracked call, the
//! failure also *proves* whether the call was sent.
//!
//! It does not repeat anything, it cannot stop a server that ignores a cancel, and a
//! future that blocks its thread is not interrupted. Outside of a layer that repeats
//! calls, [`Timeout`] sees no more than a call that takes long: it proves nothing, and
//! its read limit runs from the call. That is the place of [`Deadline`].
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use steadfast_classify::{Call, Failure, Phase};
//! use steadfast_timeout::{DeadlineLayer, Settings, TimeoutLayer};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! struct Ping;
//! impl Call for Ping {}
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), steadfast_timeout::InvalidSettings> {
//! let service = ServiceBuilder::new()
//!     .layer(DeadlineLayer::default())
//!     .layer(TimeoutLayer::new(Settings::new().with_read(Duration::from_secs(10)))?)
//!     .service(service_fn(|_: Ping| std::future::pending::<Result<(), Failure>>()));
//! let failure = service.oneshot(Ping).await.unwrap_err();
//! assert_eq!(failure.phase(), Some(Phase::Read));
//! # Ok(())
//! # }
//! ```
//!
//! # Observation
//!
//! Each limit that runs out is a `tracing` event of level `debug` with the fields
//! `class`, `phase`, `limit`, `elapsed`, `server` and `operation`. With feature `metrics`
//! there are the counters `steadfast.timeout.elapsed` (labels `phase`, `class`) and
//! `steadfast.deadline.elapsed` (label `class`).
//!
//! The phase there is the one whose limit it was. The failure says
//! [`Phase::Held`](steadfast_classify::Phase::Held) instead where it passed while our own
//! side kept the call waiting.

mod attempt;
mod clock;
mod deadline;
mod error;
mod future;
mod give_up;
mod layer;
mod long_task;
mod observe;
mod service;
mod settings;
mod timer;

pub use deadline::{Deadline, DeadlineFuture, DeadlineLayer};
pub use error::{Elapsed, InvalidSettings};
pub use future::ResponseFuture;
pub use layer::TimeoutLayer;
pub use long_task::long_task;
pub use service::Timeout;
pub use settings::Settings;
