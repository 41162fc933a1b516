//! What servers ask of their client, and who answers.

mod handler;
mod host;
mod owner;
mod question;
mod roots;
mod route;

pub use handler::{AskHandler, Asking, Offers};
pub use host::Host;
pub(crate) use host::offering;
pub(crate) use owner::{Owned, Owner};
pub use question::Unanswered;
pub(crate) use question::{MOST_OPEN, Question, Reply};
pub use roots::Root;
