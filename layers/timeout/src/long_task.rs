//! Limits for a call that takes long and says so.

use std::time::Duration;

use steadfast_classify::Limits;

use crate::Settings;

/// The limits of a long-running call: it may take `total`, must show a sign of life
/// once a minute, and is never repeated.
///
/// The minute is the default read limit, or `total` where that is shorter. It is
/// extended by progress unless the layer was told otherwise
/// ([`Settings::reset_on_progress`]), so this is for calls whose server reports
/// progress. A limit on one attempt does not cut them short.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use steadfast_classify::CallContext;
/// let mut context = CallContext::tracked();
/// context.set_limits(Arc::new(steadfast_timeout::long_task(Duration::from_secs(3600))));
/// ```
#[must_use]
pub fn long_task(total: Duration) -> Limits {
    Limits::new()
        .with_read(Settings::new().read.min(total))
        .with_attempt(total)
        .with_total(total)
        .with_max_retries(0)
}
