//! What a server is: read from JSON or made in code, checked once, then immutable.

mod bounds;
mod builder;
mod check;
mod draft;
mod effect;
mod endpoint;
mod error;
mod expand;
mod family;
mod fields;
mod file;
mod filter;
mod in_process;
mod json;
mod kinds;
mod oauth;
mod read;
mod report;
mod resolve;
mod server;
mod settings;
mod words;

pub use builder::ServerConfigBuilder;
pub use effect::ToolHints;
pub use endpoint::{Endpoint, Program, Remote};
pub use error::{ConfigError, ConfigErrors, ConfigWarning};
pub use family::{Family, SharedFamilies};
pub use file::ConfigFile;
pub use filter::Filter;
pub use in_process::InProcess;
pub use oauth::OAuth;
pub use server::ServerConfig;
pub use settings::{CallSettings, IdempotencyPolicy};

pub(crate) use server::{Identity, Parts, PerSession};
