//! Quotas and modes as text, read in one way wherever they are read.

use std::{fmt, num::NonZeroU32, str::FromStr};

use crate::{InvalidLimit, Mode, Quota, quota::Per};

// === impl Quota ===

impl FromStr for Quota {
    type Err = InvalidLimit;

    /// Reads `<count>/s`, `<count>/min` or `<count>/h`, with ` burst <count>` after it
    /// where the burst is not the count. Anything else, a stray space too, is refused.
    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let (rate, burst) = match text.split_once(" burst ") {
            Some((rate, burst)) => (rate, Some(burst)),
            None => (text, None),
        };
        let (count, per) = rate.split_once('/').ok_or(InvalidLimit::Quota)?;
        let quota = Self::new(number("count", count)?, per.parse()?);
        match burst {
            Some(burst) => quota.with_burst(number("burst", burst)?),
            None => Ok(quota),
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count(), self.per().as_str())?;
        if self.burst() != self.count() {
            write!(f, " burst {}", self.burst())?;
        }
        Ok(())
    }
}

/// A count in plain digits: no sign, no spaces, no fraction, no exponent.
fn number(field: &'static str, text: &str) -> Result<NonZeroU32, InvalidLimit> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    // `parse` alone would take "+2".
    let number = plain.then(|| text.parse().ok()).flatten();
    number.ok_or(InvalidLimit::Number { field })
}

// === impl Per ===

impl Per {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
        }
    }
}

impl FromStr for Per {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        [Self::Second, Self::Minute, Self::Hour]
            .into_iter()
            .find(|per| per.as_str() == text)
            .ok_or(InvalidLimit::Unit)
    }
}

// === impl Mode ===

impl FromStr for Mode {
    type Err = InvalidLimit;

    /// Reads `enforce` or `warn`.
    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        [Self::Enforce, Self::Warn]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or(InvalidLimit::Mode)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
