//! A login in an address.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderValue;
use url::Url;

/// Name and password of an address, which is logged and repeated in many places, as what
/// belongs in a header.
pub(crate) struct Login(HeaderValue);

// === impl Login ===

impl Login {
    /// Takes it out of the address, if there is one.
    pub(crate) fn take(url: &mut Url) -> Option<Self> {
        if url.username().is_empty() && url.password().is_none() {
            return None;
        }
        let login = format!(
            "{}:{}",
            unescape(url.username()),
            unescape(url.password().unwrap_or_default())
        );
        let basic = format!("Basic {}", BASE64_STANDARD.encode(login));
        // An address that has a login can also be without.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        let mut value = HeaderValue::try_from(basic).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(crate) fn into_header(self) -> HeaderValue {
        self.0
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// Undoes `%41` and the like.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_of_an_address_is_unescaped() {
        for (escaped, plain) in [("a%40b", "a@b"), ("100%", "100%"), ("%zz", "%zz"), ("", "")] {
            assert_eq!(unescape(escaped), plain);
        }
    }

    #[test]
    fn login_is_taken_out_of_the_address() {
        let mut url = Url::parse("ws://us%40er:pass@h/path").unwrap();

        let login = Login::take(&mut url).unwrap();

        assert_eq!(login.into_header(), "Basic dXNAZXI6cGFzcw==");
        assert_eq!(url.as_str(), "ws://h/path");
        assert!(Login::take(&mut url).is_none());
    }
}
