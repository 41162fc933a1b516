//! A circuit breaker for [tower](https://docs.rs/tower) services.
//!
//! A server that is down fails slowly: each call waits for its timeout, and an agent waits
//! with it. A circuit breaker notices after a few failures and turns calls away at once,
//! saying when to come back, until one call that it lets through as a probe has found the
//! server up again.
//!
//! ```text
//!                  5 failures in a row, or a rate
//!       +--------+ -----------------------------> +------+
//!       | Closed |                                | Open | <------+
//!       +--------+                                +------+        |
//!  calls pass  ^                        calls are    |  30 s      | probe failed:
//!              |                      turned away    v            | trips + 1
//!              |        probe succeeded          +----------+     |
//!              +-------------------------------- | HalfOpen | ----+
//!                                                +----------+
//!                                            one probe at a time passes
//! ```
//!
//! - Failures are judged by their [`Class`](steadfast_classify::Class): an error that the
//!   server *answered* with shows that it is alive, a refusal (429) opens nothing but fails
//!   a probe, a cancelled call says nothing, nor does one that waited for our own side
//!   ([`Phase::Held`](steadfast_classify::Phase::Held)). An error that is no
//!   [`Failure`](steadfast_classify::Failure) counts as one.
//! - State, trips and a generation are one atomic word: what was let through before the
//!   circuit opened cannot close it, and a success in a closed circuit costs one load.
//! - A probe has a lease: hung, it cannot keep the circuit half open, and dropped, it gives
//!   its place back at once.
//! - The failure that opens the circuit, and each that ends while it is open, is marked
//!   ([`is_circuit_open`](steadfast_classify::Failure::is_circuit_open)), so that whoever
//!   repeats calls stops; a call turned away gets class `Rejected` with [`CircuitOpen`] as
//!   its source.
//!
//! # Example
//!
//! ```
//! use steadfast_circuit_breaker::{CircuitBreakerLayer, CircuitOpen, Settings, State};
//! use steadfast_classify::{Class, Failure};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let layer = CircuitBreakerLayer::new("orders", Settings::new().with_consecutive_failures(1))?;
//! let down = service_fn(|_: &str| async { Err::<(), _>(Failure::new(Class::NotSent)) });
//! let service = ServiceBuilder::new().layer(layer.clone()).service(down);
//!
//! assert_eq!(service.clone().oneshot("42").await.unwrap_err().class(), Class::NotSent);
//! assert_eq!(layer.breaker().state(), State::Open);
//! let turned_away = service.oneshot("43").await.unwrap_err();
//! assert_eq!(turned_away.find_source::<CircuitOpen>().unwrap().name(), "orders");
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//!
//! It ends no call, so put a timeout under it: a call that hangs for ever is no failure, and
//! neither is one that its caller gave up. It repeats nothing and knows no other answer;
//! those belong above it. Its state is this process's own.
//!
//! It waits for the service under it to be ready even while the circuit is open, and a call
//! that is turned away leaves that service ready. Where being ready holds something that
//! others wait for, as in tower's `ConcurrencyLimit`, put that above the breaker.
//!
//! # Observation
//!
//! Each change is a `tracing` event: `circuit opened` (warn), `circuit half opened` (debug),
//! `circuit closed` (info); so are `circuit is not closed` for each call that meets it
//! (debug), `probe did not come back within its lease` (warn), and `no room for another
//! circuit, new keys share one` (warn).
//!
//! # Features
//!
//! - `metrics`: the counters `steadfast.circuit_breaker.transitions` (`circuit`, `to`, `cause`),
//!   `steadfast.circuit_breaker.rejected` (`circuit`, `observed`),
//!   `steadfast.circuit_breaker.probes_lost` (`circuit`) and
//!   `steadfast.circuit_breaker.overflows` (`circuit`), by the `metrics` crate.

mod bits;
mod breaker;
mod control;
mod error;
mod event;
mod future;
mod judge;
mod keyed;
mod layer;
mod open_for;
mod pass;
mod registry;
mod select;
mod service;
mod settings;
mod settle;
mod shared;
mod state;
mod sync;
mod ticket;
mod time;
mod window;
mod word;

pub use breaker::{Breaker, Transitions};
pub use error::{CircuitOpen, InvalidSettings};
pub use future::ResponseFuture;
pub use keyed::Keyed;
pub use layer::CircuitBreakerLayer;
pub use open_for::OpenFor;
pub use select::{Select, Single};
pub use service::CircuitBreaker;
pub use settings::Settings;
pub use state::{Counts, OpenCause, Snapshot, State, Transition};
