//! What the errors and results of `rmcp` mean.
//!
//! `rmcp` alone cannot say whether a request left: its `TransportClosed` means "never
//! sent", "sent, outcome unknown" and "answer lost". Whoever makes the call knows in
//! which of its two steps the error came ([`Delivery`]), and a
//! [`Flight`](crate::Flight) withdrawn in time proves the rest.

mod error;
#[cfg(feature = "rmcp-http")]
mod http;
mod tag;

pub use error::{Delivery, ServerError, initialize_failure, server_failure, service_failure};
#[cfg(feature = "rmcp-http")]
pub use http::http_failure;
pub use tag::SOURCE_META_KEY;
