//! x

mod config;
mod key;
pub mod process;

pub use config::{
    CallSettings, ConfigError, ConfigErrors, ConfigFile, ConfigWarning, Endpoint, Family, Filter,
    IdempotencyPolicy, OAuth, Program, Remote, ServerConfig, ServerConfigBuilder, SharedFamilies,
    ToolHints,
};
pub use key::Key;
