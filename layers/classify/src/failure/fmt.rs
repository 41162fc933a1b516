//! How a failure is printed.

use std::fmt;

use super::Failure;
use crate::{Class, Phase};

/// Writes a foreign text without line breaks and other control characters.
struct OneLine<'a, 'b>(&'a mut fmt::Formatter<'b>);

// === impl Failure ===

/// One line: what happened where, and what to do about it. `{:#}` leaves out the latter.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write!(f, "{}: ", inner.origin)?;
        f.write_str(match inner.class {
            Class::NotSent => "not sent",
            Class::Overloaded => "refused by an overloaded server",
            Class::Timeout => "timed out",
            Class::Unknown => "outcome unknown",
            Class::Answered => "answered with an error",
            Class::Rejected => "rejected before sending",
            Class::Cancelled => "cancelled",
        })?;
        match inner.phase {
            Some(Phase::Held) => f.write_str(" (it waited for our own side)")?,
            Some(phase) => write!(f, " ({phase})")?,
            None => {}
        }
        if let Some(elapsed) = inner.elapsed {
            write!(f, " after {elapsed:.1?}")?;
        }
        if let Some(source) = &inner.source {
            use fmt::Write as _;
            f.write_str(": ")?;
            write!(OneLine(f), "{source}")?;
        }
        // Whoever shows `{:#}` gives the advice in words of their own.
        if f.alternate() {
            return Ok(());
        }
        write_advice(self, f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.debug_struct("Failure")
            .field("class", &inner.class)
            .field("phase", &inner.phase)
            .field("permanent", &inner.permanent)
            .field("circuit_open", &inner.circuit_open)
            .field("may_have_run", &inner.may_have_run)
            .field("attempts", &inner.attempts)
            .field("elapsed", &inner.elapsed)
            .field("retry_after", &inner.retry_after)
            .field("retry_in", &inner.retry_in)
            .field("origin", &inner.origin)
            // `Display`, since a foreign `Debug` may print what it was called with.
            .field("source", &inner.source.as_ref().map(ToString::to_string))
            .finish()
    }
}

fn write_advice(failure: &Failure, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let inner = &*failure.0;
    if inner.attempts > 1 {
        write!(f, " ({} attempts)", inner.attempts)?;
    }
    if inner.permanent {
        f.write_str("; it will fail again until this is changed")?;
    } else if let Some(after) = inner.retry_after {
        write!(f, "; the server asks to wait {after:?}")?;
    } else if let Some(wait) = inner.retry_in {
        write!(f, "; try again in {wait:.1?}")?;
    }
    if inner.may_have_run && inner.class != Class::Answered {
        f.write_str("; it may have run, check before repeating it")?;
    }
    Ok(())
}

// === impl OneLine ===

impl fmt::Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(char::is_control) {
            let clean = part.trim_end_matches(char::is_control);
            self.0.write_str(clean)?;
            if clean.len() < part.len() {
                self.0.write_str(" ")?;
            }
        }
        Ok(())
    }
}
