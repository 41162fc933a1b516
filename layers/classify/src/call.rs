//! What a layer may ask of a request.

use crate::{CallContext, Effect};

/// What a layer may ask of a request.
///
/// Everything has a default, and the defaults are the safe ones, so this is enough to
/// send a request through every layer:
///
/// ```
/// # use steadfast_classify::{Call, Effect};
/// struct PlaceOrder;
/// impl Call for PlaceOrder {}
/// assert_eq!(PlaceOrder.effect(), Effect::NonIdempotent);
/// ```
///
/// A field of type [`CallContext`] and the two context methods add limits per call, a
/// deadline that inner layers can see, and proof of delivery.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what the layers may ask of a request",
    note = "`impl Call for {Self} {{}}` is enough, and safe",
    note = "a request type of another crate goes into a struct of your own"
)]
pub trait Call {
    /// What running this call does, and so whether repeating it is harmless.
    /// Default: [`Effect::NonIdempotent`].
    fn effect(&self) -> Effect {
        Effect::NonIdempotent
    }

    /// What the layers wrote into this request. Default: nothing.
    fn context(&self) -> Option<&CallContext> {
        None
    }

    /// Where the layers may write. Default: nowhere.
    fn context_mut(&mut self) -> Option<&mut CallContext> {
        None
    }
}
