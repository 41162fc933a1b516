//! One vocabulary for failed calls.
//!
//! A caller that gets an error wants to know one thing before it does anything
//! else: *may the call have run?* This crate names the seven things that can have
//! happened ([`Class`]), the one error that says so ([`Failure`]), what a layer may
//! ask of a request ([`Call`]), and the proof that a request left or did not leave
//! ([`Flight`]). Every other `steadfast` layer speaks it, and none needs another.
//!
//! ```text
//!            class        may it have run?   may it be repeated?
//!            NotSent      no                 yes, unless permanent
//!            Overloaded   no                 yes, not before `retry_after`
//!            Timeout      yes                only if repeating is harmless
//!            Unknown      yes                only if repeating is harmless
//!            Answered     it was answered    no
//!            Rejected     no                 no: one of our own layers said so
//!            Cancelled    perhaps            no
//! ```
//!
//! It does not retry, time out or cache anything, and it never guesses: what is not
//! proven to be unsent may have run.
//!
//! # Example
//!
//! ```
//! use steadfast_classify::{Class, ClassifyLayer, Failure};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let service = ServiceBuilder::new()
//!     .layer(ClassifyLayer::new(|result: Result<&'static str, std::io::Error>| {
//!         result.map_err(|error| Failure::new(Class::Unknown).with_source(error))
//!     }))
//!     .service(service_fn(|_: ()| async { Err(std::io::Error::other("link broke")) }));
//! let failure = service.oneshot(()).await.unwrap_err();
//! assert!(failure.may_have_run());
//! # }
//! ```
//!
//! # Observation
//!
//! Where a failure is judged, [`ClassifyLayer`] records `error.type` (the class),
//! `steadfast.phase` and `steadfast.origin` on the current `tracing` span, as far as that
//! declares them.
//!
//! # Features
//!
//! - `http`: [`Call`] for `http::Request`, and a classification of responses.
//! - `rmcp`: what the errors and results of the `rmcp` crate mean.

mod call;
mod class;
mod classified;
mod context;
mod effect;
mod failure;
mod flight;
mod future;
mod hold;
mod layer;
mod limits;
mod origin;
mod question;
mod recoverable;
mod service;
mod sync;
mod tag;

#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "rmcp")]
pub mod mcp;

pub use call::Call;
pub use class::{Class, Phase};
pub use classified::{BoxError, Classified, Classify};
pub use context::{CallContext, IdempotencyKey};
pub use effect::Effect;
pub use failure::Failure;
pub use flight::{Flight, Stage};
pub use future::ResponseFuture;
pub use hold::Hold;
pub use layer::ClassifyLayer;
pub use limits::Limits;
pub use origin::Origin;
pub use question::{Caller, Question};
pub use recoverable::Recoverable;
pub use service::ClassifyService;
pub use tag::{Cause, Source, Tag};
