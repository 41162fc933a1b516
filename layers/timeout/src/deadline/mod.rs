//! One end for a whole logical call.

mod future;
mod layer;
mod service;

pub use future::DeadlineFuture;
pub use layer::DeadlineLayer;
pub use service::Deadline;
