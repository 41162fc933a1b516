//! The layers in the recommended order.
//!
//! ```text
//!  call ─► fallback ─► deadline ─► budget ─► retry ─► breaker ─► timeout ─► your service
//! ```
//!
//! In one line:
//!
//! ```
//! # use steadfast::{Class, Failure, Stack, Call};
//! # use tower::{Layer, ServiceExt, service_fn};
//! # #[derive(Clone)] struct Ping;
//! # impl Call for Ping {}
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let stack = Stack::new("orders").build()?;
//! let service = stack.layer(service_fn(|_: Ping| async { Ok::<_, Failure>("pong") }));
//! assert_eq!(service.oneshot(Ping).await?.value, "pong");
//! # Ok(())
//! # }
//! ```
//!
//! And the same by hand, for whoever wants another order, or other layers in between:
//!
//! ```
//! # use std::{sync::Arc, time::Duration};
//! # use steadfast::{Call, Failure, budget::*, circuit_breaker::{self, CircuitBreakerLayer}};
//! # use steadfast::{fallback::FallbackLayer, retry::{self, RetryLayer}, stack::NoFallback};
//! # use steadfast::timeout::{DeadlineLayer, TimeoutLayer};
//! # use tower::{ServiceBuilder, ServiceExt, service_fn};
//! # #[derive(Clone)] struct Ping;
//! # impl Call for Ping {}
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let retries = Arc::new(RetryBudget::new(RetryBudgetSettings::new())?);
//! let service = ServiceBuilder::new()
//!     .layer(FallbackLayer::new(NoFallback))
//!     .layer(DeadlineLayer::default().stamp_only())
//!     .layer(BudgetLayer::new(Global::new(Limit::new("all", "100/s burst 20".parse()?))))
//!     .layer(RetryLayer::new(retry::Settings::new())?.with_budget(retries))
//!     .layer(CircuitBreakerLayer::new("orders", circuit_breaker::Settings::new())?)
//!     .layer(TimeoutLayer::default())
//!     .service(service_fn(|_: Ping| async { Ok::<_, Failure>("pong") }));
//! assert_eq!(service.oneshot(Ping).await?.value, "pong");
//! # Ok(())
//! # }
//! ```
//!
//! # Per call and per server
//!
//! What a call brings along goes before what the stack says: each of its
//! [`Limits`](steadfast_classify::Limits) replaces a time limit or the number of retries,
//! and its effect decides what may be repeated. A tool call that a lease made brings what
//! the configuration says of its server and its tool, and what is set on the call itself
//! goes before that.
//!
//! What counts or remembers is a stack's own: circuits, budgets, kept answers. A server
//! that needs other settings of these gets a stack of its own, and what the two are to
//! share is a handle that both are given:
//!
//! ```
//! # use std::time::Duration;
//! # use steadfast::{Call, Class, Failure, Stack, budget::{Global, Limit}};
//! # use steadfast::circuit_breaker::{OpenFor, Settings};
//! # use tower::{Layer, ServiceExt, service_fn};
//! # #[derive(Clone)] struct Ping;
//! # impl Call for Ping {}
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = service_fn(|_: Ping| async { Ok::<_, Failure>("pong") });
//! let all = Global::new(Limit::new("all calls", "1/h".parse()?));
//! let usual = Stack::new("shop").with_admission(all.clone()).build()?;
//! // This one takes five minutes to start.
//! let slow = Settings::new().with_open_for(OpenFor::fixed(Duration::from_secs(300)));
//! let batch = Stack::new("batch").with_breaker("batch", slow).with_admission(all).build()?;
//!
//! usual.layer(server).oneshot(Ping).await?;
//! let second = batch.layer(server).oneshot(Ping).await.unwrap_err();
//! assert_eq!(second.class(), Class::Rejected);
//! # Ok(())
//! # }
//! ```

use std::{fmt::Debug, hash::Hash, sync::Arc, time::Duration};

use steadfast_budget::{Global, RetryBudgetSettings};
use steadfast_circuit_breaker::{self as circuit_breaker, CircuitBreakerLayer, Keyed, Single};
use steadfast_retry::{self as retry, Budget as SpendRetries};
use steadfast_timeout as timeout;

pub use crate::built::{StackLayer, StackService};
pub use crate::invalid::InvalidStack;
pub use crate::no_fallback::NoFallback;
#[cfg(feature = "pool")]
pub use crate::tools::{ToolStack, ToolStackLayer, ToolStackService, by_server};

/// What bounds the retries of a stack.
pub type Retries = dyn SpendRetries + Send + Sync;

/// The settings of a stack; [`build`](Self::build) checks them together.
///
/// `P` is the fallback, `A` the admission, `Sel` says which circuit a call goes by. Each
/// layer can be switched off; what it costs then is next to nothing.
#[derive(Clone, Debug)]
#[must_use = "a stack does nothing until it is built"]
pub struct Stack<P = NoFallback, A = Global, Sel = Single> {
    pub(crate) fallback: P,
    pub(crate) total: Duration,
    pub(crate) admission: Option<A>,
    pub(crate) max_wait: Duration,
    pub(crate) retry: retry::Settings,
    pub(crate) retry_budget: Option<RetryBudgetSettings>,
    pub(crate) breaker: Option<Breaking<Sel>>,
    pub(crate) timeout: timeout::Settings,
}

/// A circuit breaker with what has to fit the other layers.
#[derive(Clone, Debug)]
pub(crate) struct Breaking<Sel> {
    pub(crate) layer: Result<CircuitBreakerLayer<Sel>, circuit_breaker::InvalidSettings>,
    pub(crate) probe_lease: Duration,
}

// === impl Stack ===

impl Stack {
    /// The defaults of every layer, with one circuit of this name, no admission budget
    /// and no fallback.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::over(NoFallback).with_breaker(name, circuit_breaker::Settings::new())
    }
}

impl<P> Stack<P> {
    pub(crate) fn over(fallback: P) -> Self {
        Self {
            fallback,
            total: Duration::from_secs(300),
            admission: None,
            max_wait: Duration::ZERO,
            retry: retry::Settings::new(),
            retry_budget: Some(RetryBudgetSettings::new()),
            breaker: None,
            timeout: timeout::Settings::new(),
        }
    }
}

impl<P, A, Sel> Stack<P, A, Sel> {
    /// Sets the limits of one attempt: connect, read, and the whole of it.
    pub const fn with_timeout(mut self, timeout: timeout::Settings) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long a logical call may take, all attempts and waits together. Default
    /// 300 s; [`Duration::MAX`] for no limit. What a call brings along in its limits goes
    /// before this.
    pub const fn with_total(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    /// Sets how failed calls are repeated. No retries: `with_max_retries(0)`.
    pub const fn with_retry(mut self, retry: retry::Settings) -> Self {
        self.retry = retry;
        self
    }

    /// Sets how many retries there may be in relation to calls. Default: a fifth of them,
    /// with ten in reserve; `None` for no bound but the number of retries per call.
    pub fn with_retry_budget(mut self, budget: impl Into<Option<RetryBudgetSettings>>) -> Self {
        self.retry_budget = budget.into();
        self
    }

    /// Switches the circuit breaker off.
    pub fn without_breaker(mut self) -> Self {
        self.breaker = None;
        self
    }

    /// Goes by one circuit of this name.
    pub fn with_breaker(
        self,
        name: impl Into<Arc<str>>,
        settings: circuit_breaker::Settings,
    ) -> Stack<P, A, Single> {
        let probe_lease = settings.probe_lease;
        self.breaking(Breaking {
            layer: CircuitBreakerLayer::new(name, settings),
            probe_lease,
        })
    }

    /// Goes by a circuit for each key that `key` finds in a call.
    pub fn with_breaker_per<K, F, R>(
        self,
        name: impl Into<Arc<str>>,
        settings: circuit_breaker::Settings,
        key: F,
    ) -> Stack<P, A, Keyed<K, F>>
    where
        F: Fn(&R) -> K,
        K: Eq + Hash + Clone + Debug,
    {
        let probe_lease = settings.probe_lease;
        self.breaking(Breaking {
            layer: CircuitBreakerLayer::keyed(name, settings, key),
            probe_lease,
        })
    }

    /// Admits calls by a budget: a [`Global`] or keyed limit, a chain of them, or a policy
    /// of your own. Default: none.
    pub fn with_admission<B>(self, admission: B) -> Stack<P, B, Sel> {
        Stack {
            fallback: self.fallback,
            total: self.total,
            admission: Some(admission),
            max_wait: self.max_wait,
            retry: self.retry,
            retry_budget: self.retry_budget,
            breaker: self.breaker,
            timeout: self.timeout,
        }
    }

    /// Lets a call over its budget wait for its turn, for this long at most. Default:
    /// zero, which rejects it at once.
    pub const fn with_max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Answers failed calls by this policy. Default: none, a failure stays one.
    pub fn with_fallback<Q>(self, fallback: Q) -> Stack<Q, A, Sel> {
        Stack {
            fallback,
            total: self.total,
            admission: self.admission,
            max_wait: self.max_wait,
            retry: self.retry,
            retry_budget: self.retry_budget,
            breaker: self.breaker,
            timeout: self.timeout,
        }
    }

    fn breaking<T>(self, breaker: Breaking<T>) -> Stack<P, A, T> {
        Stack {
            fallback: self.fallback,
            total: self.total,
            admission: self.admission,
            max_wait: self.max_wait,
            retry: self.retry,
            retry_budget: self.retry_budget,
            breaker: Some(breaker),
            timeout: self.timeout,
        }
    }
}
