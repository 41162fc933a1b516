//! An MCP server over stdin and stdout that misbehaves as it is told, to see how an MCP client
//! takes it.
//!
//! ```text
//! cargo run --example probe -- --knobs '{"ledger": "/tmp/ledger", "call": {"stall": true}}'
//! ```
//!
//! Or as an entry of `mcpServers`, with the knobs in its environment:
//!
//! ```json
//! { "command": "target/debug/examples/probe", "env": { "STEADFAST_PROBE": "{\"start\": {\"delay_ms\": 4000}}" } }
//! ```
//!
//! A tool's arguments are knobs too, for one call: ask the client to call `w` with
//! `{"exit_after": 1}` and it has executed, but nobody answers. Then count the lines of the
//! ledger: more than one means that the client repeated a call that may not be repeated. An
//! unknown knob is answered with the list of those that exist.

fn main() {
    steadfast_tests::probe::run(std::env::args().skip(1))
}
