//! Ranges, and whatever else code can get wrong as well as JSON.

use std::{num::NonZeroU32, time::Duration};

use steadfast_classify::Limits;
use steadfast_pool::{CallSettings, ConfigFile, OAuth, ServerConfig, SharedFamilies};

const LIMIT: &str = "a whole number of milliseconds, 1 to 604800000";
const DISCOVERY: &str = "a whole number of milliseconds, 100 to 300000";
const RETRIES: &str = "a whole number, 0 to 100";
const IN_FLIGHT: &str = "a whole number, 1 to 65535";

/// Every setting that is a whole number: where it is, as JSON, and what is allowed.
const NUMBERS: &[(&str, &str, &str)] = &[
    ("timeout", r#""timeout": @"#, LIMIT),
    (
        "discoveryTimeoutMs",
        r#""discoveryTimeoutMs": @"#,
        DISCOVERY,
    ),
    (
        "steadfast.limits.connect_ms",
        r#""steadfast": {"limits": {"connect_ms": @}}"#,
        LIMIT,
    ),
    (
        "steadfast.limits.read_ms",
        r#""steadfast": {"limits": {"read_ms": @}}"#,
        LIMIT,
    ),
    (
        "steadfast.limits.attempt_ms",
        r#""steadfast": {"limits": {"attempt_ms": @}}"#,
        LIMIT,
    ),
    (
        "steadfast.tools.t.limits.total_ms",
        r#""steadfast": {"tools": {"t": {"limits": {"total_ms": @}}}}"#,
        LIMIT,
    ),
    (
        "steadfast.limits.max_retries",
        r#""steadfast": {"limits": {"max_retries": @}}"#,
        RETRIES,
    ),
    (
        "steadfast.max_in_flight",
        r#""steadfast": {"max_in_flight": @}"#,
        IN_FLIGHT,
    ),
];

#[test]
fn race_w9_w24_whole_numbers_are_read_by_one_strict_reader() {
    for (value, problem) in [
        (r#""30000ms""#, "found a string"),
        (r#""1e2""#, "found a string"),
        (r#""300""#, "found a string"),
        (r#""${V:-300}""#, "found a string"),
        ("2.5", "not a whole number of 0 or more"),
        ("1e2", "not a whole number of 0 or more"),
        ("300.0", "not a whole number of 0 or more"),
        ("-1", "not a whole number of 0 or more"),
        ("604800001", "out of range"),
        ("99999999999999999999", "not a whole number of 0 or more"),
        ("true", "found true or false"),
    ] {
        for (field, template, allowed) in NUMBERS {
            let entry = template.replace('@', value);

            let line = parse(&entry).into_servers().unwrap_err().to_string();

            let want = format!("server \"s\": {field}: {problem}; allowed: {allowed}");
            assert_eq!(line, want, "{entry}");
        }
    }
}

#[test]
fn a_range_ends_where_it_says() {
    for (entry, allowed) in [
        (r#""timeout": 0"#, false),
        (r#""timeout": 1"#, true),
        (r#""timeout": 604800000"#, true),
        (r#""timeout": 604800001"#, false),
        (r#""discoveryTimeoutMs": 99"#, false),
        (r#""discoveryTimeoutMs": 100"#, true),
        (r#""discoveryTimeoutMs": 300000"#, true),
        (r#""discoveryTimeoutMs": 300001"#, false),
        (r#""steadfast": {"limits": {"max_retries": 0}}"#, true),
        (r#""steadfast": {"limits": {"max_retries": 100}}"#, true),
        (r#""steadfast": {"limits": {"max_retries": 101}}"#, false),
        (r#""steadfast": {"max_in_flight": 0}"#, false),
        (r#""steadfast": {"max_in_flight": 1}"#, true),
        (r#""steadfast": {"max_in_flight": 65536}"#, false),
    ] {
        assert_eq!(parse(entry).errors().is_empty(), allowed, "{entry}");
    }
}

#[test]
fn limits_said_in_code_have_the_same_ranges() {
    let zero = || Limits::new().with_read(Duration::ZERO);
    let tool = CallSettings::new().with_limits(zero());
    let code = || ServerConfig::stdio("s", "c");
    for (builder, field, allowed) in [
        (code().timeout(Duration::ZERO), "timeout", LIMIT),
        (
            code().discovery_timeout(Duration::MAX),
            "discoveryTimeoutMs",
            DISCOVERY,
        ),
        (code().limits(zero()), "steadfast.limits.read_ms", LIMIT),
        (
            code().tool("t", tool),
            "steadfast.tools.t.limits.read_ms",
            LIMIT,
        ),
        (
            code().limits(Limits::new().with_max_retries(101)),
            "steadfast.limits.max_retries",
            RETRIES,
        ),
        (
            code().max_in_flight(NonZeroU32::MAX),
            "steadfast.max_in_flight",
            IN_FLIGHT,
        ),
    ] {
        let want = format!("server \"s\": {field}: out of range; allowed: {allowed}");
        assert_eq!(builder.build().unwrap_err().to_string(), want);
    }
}

#[test]
fn code_is_checked_like_json() {
    let twice = ServerConfig::stdio("s", "c").env("A", "1").env("A", "2");
    for (builder, want) in [
        (
            ServerConfig::stdio("s", ""),
            "command: empty; allowed: a program to start",
        ),
        (
            ServerConfig::stdio("s", " "),
            "command: empty; allowed: a program to start",
        ),
        (twice, "env.A: given twice; allowed: each name once"),
        (
            ServerConfig::http("s", "ws://h"),
            "type: does not fit `url`; allowed: websocket, or no type",
        ),
        (
            ServerConfig::http("s", "h"),
            "url: has no scheme; allowed: an address that starts with http://, https://, ws:// or wss://",
        ),
    ] {
        let line = builder.build().unwrap_err().to_string();
        assert_eq!(line, format!("server \"s\": {want}"));
    }
    let line = ServerConfig::stdio("", "c").build().unwrap_err();
    assert_eq!(
        line.to_string(),
        "server \"\": name: empty; allowed: any text"
    );
}

#[test]
fn what_has_no_effect_is_an_error_in_code() {
    let code = || ServerConfig::stdio("s", "c");
    let http = || ServerConfig::http("s", "http://h");
    let memory = || ServerConfig::in_process("s", async |_| {});
    let own = "headers.Accept: the transport sets this header itself";
    for (builder, want) in [
        (code().header("X", "1"), "headers: has no meaning for stdio"),
        (
            code().oauth(OAuth::default()),
            "oauth: has no meaning for stdio",
        ),
        (http().arg("x"), "args: has no meaning for http"),
        (http().header("Accept", "x"), own),
        (memory().env("E", "1"), "env: has no meaning for in_process"),
        (
            memory().shared(true),
            "steadfast.shared: has no meaning for in_process",
        ),
    ] {
        let line = builder.build().unwrap_err().to_string();
        assert_eq!(
            line,
            format!("server \"s\": {want}; allowed: leaving it out")
        );
    }
}

#[test]
fn a_typo_in_the_shared_families_is_an_error() {
    for (list, word) in [
        ("stdio,htpp", "htpp"),
        ("", ""),
        ("stdio,,http", ""),
        ("sdk", "sdk"),
        ("in_process", "in_process"),
    ] {
        let error = list.parse::<SharedFamilies>().unwrap_err().to_string();
        let want = format!(
            "shared family {word:?}: unknown; allowed: none, or a comma list of stdio, websocket, http"
        );
        assert_eq!(error, want);
    }
}

fn parse(fields: &str) -> ConfigFile {
    ConfigFile::parse(&format!(
        r#"{{"mcpServers": {{"s": {{"command": "c", {fields}}}}}}}"#
    ))
}
