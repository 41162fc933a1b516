#![doc = include_str!("../README.md")]

#[cfg(all(
    feature = "timeout",
    feature = "retry",
    feature = "circuit-breaker",
    feature = "fallback",
    feature = "budget"
))]
mod built;
#[cfg(all(
    feature = "timeout",
    feature = "retry",
    feature = "circuit-breaker",
    feature = "fallback",
    feature = "budget"
))]
mod invalid;
#[cfg(all(
    feature = "timeout",
    feature = "retry",
    feature = "circuit-breaker",
    feature = "fallback",
    feature = "budget"
))]
mod no_fallback;
#[cfg(all(
    feature = "timeout",
    feature = "retry",
    feature = "circuit-breaker",
    feature = "fallback",
    feature = "budget"
))]
pub mod stack;
#[cfg(all(
    feature = "timeout",
    feature = "retry",
    feature = "circuit-breaker",
    feature = "fallback",
    feature = "budget",
    feature = "pool"
))]
mod tools;

#[cfg(feature = "pool")]
pub use rmcp;
#[cfg(feature = "budget")]
pub use steadfast_budget as budget;
#[cfg(feature = "circuit-breaker")]
pub use steadfast_circuit_breaker as circuit_breaker;
pub use steadfast_classify as classify;
#[cfg(feature = "fallback")]
pub use steadfast_fallback as fallback;
#[cfg(feature = "pool")]
pub use steadfast_pool as pool;
#[cfg(feature = "retry")]
pub use steadfast_retry as retry;
#[cfg(feature = "timeout")]
pub use steadfast_timeout as timeout;

pub use steadfast_classify::{
    Call, CallContext, Cause, Class, Classified, ClassifyLayer, Effect, Failure, Limits, Phase,
    Source,
};

#[cfg(feature = "fallback")]
pub use steadfast_fallback::Sourced;
#[cfg(feature = "pool")]
pub use steadfast_pool::{
    ConfigFile, Lease, Pool, PoolSettings, ServerConfig, Session, Snapshot, ToolCall,
};

#[cfg(all(
    feature = "timeout",
    feature = "retry",
    feature = "circuit-breaker",
    feature = "fallback",
    feature = "budget"
))]
pub use stack::Stack;
