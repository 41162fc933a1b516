//! What goes for a call: limits, effect, cacheable, sharing, filter.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use rmcp::model::ToolAnnotations;
use steadfast_classify::{Effect, Limits};
use steadfast_pool::{
    ConfigFile, Family, Filter, IdempotencyPolicy, ServerConfig, SharedFamilies, ToolHints,
};

const MS: fn(u64) -> Duration = Duration::from_millis;
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn limits_merge_tool_over_server_over_timeout() {
    let server = one(r#"{"command": "c", "timeout": 1000, "steadfast": {
            "limits": {"connect_ms": 2000, "attempt_ms": 3000, "max_retries": 4},
            "tools": {"t": {"limits": {"attempt_ms": 5, "total_ms": 6, "max_retries": 0}},
                      "r": {"limits": {"read_ms": 7}}}}}"#);
    let all = Limits::new()
        .with_connect(MS(2000))
        .with_read(MS(1000))
        .with_attempt(MS(3000))
        .with_max_retries(4);

    assert_eq!(*server.limits_for("other").unwrap(), all);
    let tool = all
        .clone()
        .with_attempt(MS(5))
        .with_total(MS(6))
        .with_max_retries(0);
    assert_eq!(*server.limits_for("t").unwrap(), tool);
    assert_eq!(*server.limits_for("r").unwrap(), all.with_read(MS(7)));
}

#[test]
fn a_server_without_limits_has_none_and_timeout_alone_is_the_read_limit() {
    assert_eq!(one(r#"{"command": "c"}"#).limits_for("t"), None);

    let limits = one(r#"{"command": "c", "timeout": 1}"#)
        .limits_for("t")
        .unwrap();

    assert_eq!(*limits, Limits::new().with_read(MS(1)));
}

#[test]
fn asking_for_limits_again_gives_the_same_allocation() {
    let server = one(
        r#"{"command": "c", "timeout": 1, "steadfast": {"tools": {"t": {"limits": {"read_ms": 2}}}}}"#,
    );

    for tool in ["t", "other"] {
        let (first, again) = (
            server.limits_for(tool).unwrap(),
            server.clone().limits_for(tool),
        );
        assert!(Arc::ptr_eq(&first, &again.unwrap()), "{tool}");
    }
}

#[test]
fn a_long_task_has_an_idle_limit_a_day_and_no_retry() {
    for settings in [
        r#""steadfast": {"long": true}"#,
        r#""steadfast": {"tools": {"t": {"long": true}}}"#,
        r#""timeout": 1000, "steadfast": {"long": true}"#,
        r#""steadfast": {"limits": {"read_ms": 1, "attempt_ms": 2, "total_ms": 3, "max_retries": 5},
            "tools": {"t": {"long": true}}}"#,
    ] {
        let server = one(&format!(r#"{{"command": "c", {settings}}}"#));
        assert!(server.is_long("t"), "{settings}");
        let limits = server.limits_for("t").unwrap();
        assert_eq!(*limits, long(MINUTE, DAY), "{settings}");
    }
}

#[test]
fn a_long_task_is_lengthened_from_further_out_and_cut_only_from_beside_or_nearer() {
    for (settings, want) in [
        (
            r#""timeout": 600000, "steadfast": {"long": true}"#,
            long(10 * MINUTE, DAY),
        ),
        (
            r#""steadfast": {"limits": {"total_ms": 172800000}, "tools": {"t": {"long": true}}}"#,
            long(MINUTE, 2 * DAY),
        ),
        (
            r#""steadfast": {"long": true, "limits": {"read_ms": 1000, "total_ms": 3000}}"#,
            long(MS(1000), MS(3000)),
        ),
        (
            r#""steadfast": {"long": true, "tools": {"t": {"limits": {"total_ms": 3, "max_retries": 2}}}}"#,
            long(MINUTE, MS(3)).with_max_retries(2),
        ),
        (
            r#""steadfast": {"tools": {"t": {"long": true, "limits": {"attempt_ms": 9}}}}"#,
            long(MINUTE, DAY).with_attempt(MS(9)),
        ),
        (
            r#""steadfast": {"limits": {"connect_ms": 7}, "tools": {"t": {"long": true}}}"#,
            long(MINUTE, DAY).with_connect(MS(7)),
        ),
    ] {
        let server = one(&format!(r#"{{"command": "c", {settings}}}"#));
        assert_eq!(*server.limits_for("t").unwrap(), want, "{settings}");
    }
}

#[test]
fn a_tool_can_be_short_on_a_long_server() {
    let server = one(
        r#"{"command": "c", "timeout": 5, "steadfast": {"long": true, "tools": {"t": {"long": false}}}}"#,
    );

    assert!(!server.is_long("t") && server.is_long("other"));
    assert_eq!(
        *server.limits_for("t").unwrap(),
        Limits::new().with_read(MS(5))
    );
}

#[test]
fn the_effect_is_set_or_believed_or_the_safe_one() {
    use Effect::{Idempotent, NonIdempotent, ReadOnly};
    let set = r#""steadfast": {"effect": "idempotent", "tools": {"t": {"effect": "readOnly"}}}"#;
    let server = r#""trust": true, "steadfast": {"effect": "non_idempotent"}"#;
    for (settings, hints, want) in [
        (r#""trust": true"#, None, NonIdempotent),
        (r#""trust": true"#, hints(true, false, false), ReadOnly),
        (r#""trust": true"#, hints(true, false, true), ReadOnly),
        (r#""trust": true"#, hints(false, true, true), Idempotent),
        (r#""trust": true"#, hints(false, false, true), Idempotent),
        (
            r#""trust": true"#,
            hints(false, false, false),
            NonIdempotent,
        ),
        (r#""trust": true"#, hints(true, true, false), NonIdempotent),
        (r#""trust": true"#, hints(true, true, true), Idempotent),
        (r#""trust": false"#, hints(true, false, true), NonIdempotent),
        (
            r#""description": """#,
            hints(true, false, true),
            NonIdempotent,
        ),
        (set, hints(false, true, false), ReadOnly),
        (server, hints(true, false, false), NonIdempotent),
    ] {
        let server = one(&format!(r#"{{"command": "c", {settings}}}"#));
        assert_eq!(server.effect_for("t", hints), want, "{settings} {hints:?}");
    }
    assert_eq!(
        one(&format!(r#"{{"command": "c", {set}}}"#)).effect_for("u", None),
        Idempotent
    );
}

#[test]
fn a_server_that_runs_each_key_once_makes_calls_repeatable_unless_they_are_set() {
    let server = one(
        r#"{"command": "c", "trust": true, "steadfast": {"idempotency": "deduplicated",
            "tools": {"t": {"effect": "non_idempotent"}}}}"#,
    );

    assert_eq!(server.idempotency(), IdempotencyPolicy::Deduplicated);
    assert_eq!(server.effect_for("any", None), Effect::Idempotent);
    assert_eq!(
        server.effect_for("any", hints(true, false, false)),
        Effect::ReadOnly
    );
    assert_eq!(server.effect_for("t", None), Effect::NonIdempotent);
    let sent = one(r#"{"command": "c", "steadfast": {"idempotency": "send"}}"#);
    assert_eq!(sent.effect_for("any", None), Effect::NonIdempotent);
}

#[test]
fn annotations_count_only_where_they_say_true() {
    let annotations = ToolAnnotations::new().read_only(true).destructive(false);

    let hints = ToolHints::from(&annotations);

    assert!(hints.read_only && !hints.destructive && !hints.idempotent);
    assert_eq!(
        ToolHints::from(&ToolAnnotations::new()),
        ToolHints::default()
    );
    let both = ToolAnnotations::new().destructive(true).idempotent(true);
    assert_eq!(ToolHints::from(&both).effect(), Effect::Idempotent);
}

#[test]
fn a_tool_says_whether_it_may_be_cached_before_its_server_does() {
    let server = one(
        r#"{"command": "c", "steadfast": {"cacheable": true, "max_in_flight": 3,
            "tools": {"t": {"cacheable": false}}}}"#,
    );

    assert_eq!(server.cacheable("t"), Some(false));
    assert_eq!(server.cacheable("other"), Some(true));
    assert_eq!(server.max_in_flight().unwrap().get(), 3);
    assert_eq!(one(r#"{"command": "c"}"#).cacheable("t"), None);
}

/// A server, the families that are shared, and whether it is.
const SHARED: &[(&str, &str, bool)] = &[
    (r#"{"command": "c"}"#, "stdio,web-socket", true),
    (r#"{"url": "ws://h"}"#, "stdio,web-socket", true),
    (r#"{"url": "http://h"}"#, "stdio,web-socket", false),
    (
        r#"{"url": "http://h", "steadfast": {"shared": true}}"#,
        "stdio,web-socket",
        true,
    ),
    (
        r#"{"command": "c", "steadfast": {"shared": false}}"#,
        "stdio,web-socket",
        false,
    ),
    (
        r#"{"url": "ws://h", "steadfast": {"shared": false}}"#,
        "stdio,web-socket",
        false,
    ),
    (r#"{"url": "http://h"}"#, "HTTP , Stdio", true),
    (r#"{"url": "ws://h"}"#, "HTTP , Stdio", false),
    (r#"{"command": "c"}"#, "none", false),
    (
        r#"{"command": "c", "steadfast": {"shared": true}}"#,
        "none",
        true,
    ),
];

#[test]
fn stdio_and_websocket_are_shared_and_http_asks() {
    for (server, families, want) in SHARED {
        let shared = families.parse::<SharedFamilies>().unwrap();
        assert_eq!(one(server).is_shared(shared), *want, "{server} {families}");
    }
    let default = "stdio,websocket".parse::<SharedFamilies>().unwrap();
    assert_eq!(default, SharedFamilies::default());
    let none = SharedFamilies::none();
    assert_eq!(none.with(Family::InProcess), none);
}

#[test]
fn race_s1_filters_match_as_documented() {
    let no_list = None;
    for (include, exclude, tool, want) in [
        (no_list, &[] as &[&str], "a", true),
        (no_list, &["a"], "a", false),
        (no_list, &["a(x)"], "a", true),
        (no_list, &["a(x)"], "a(x)", false),
        (Some(&[] as &[&str]), &[], "a", false),
        (Some(&["a"]), &[], "a", true),
        (Some(&["a"]), &[], "b", false),
        (Some(&["a(x, y)(z)"]), &[], "a", true),
        (Some(&["a(x)"]), &[], "a(x)", false),
        (Some(&["a(x)"]), &["a"], "a", false),
        (Some(&["a"]), &["a(x)"], "a", true),
        (Some(&["ab"]), &[], "a", false),
        (Some(&["A"]), &[], "a", false),
    ] {
        let filter = Filter::new(include, exclude);
        assert_eq!(filter.allows(tool), want, "{include:?} {exclude:?} {tool}");
    }
}

#[test]
fn filters_that_mean_the_same_are_one_cache_entry() {
    let hash = RandomState::new();
    let none: Option<[&str; 0]> = None;
    let plain = Filter::new(Some(["beta"]), [""; 0]);
    for same in [
        Filter::new(Some(["beta(args)", "beta"]), [""; 0]),
        Filter::new(Some(["beta", "alpha"]), ["alpha"]),
    ] {
        assert_eq!(same, plain);
        assert_eq!(hash.hash_one(&same), hash.hash_one(&plain));
    }
    assert_eq!(Filter::new(none, [""; 0]), Filter::default());
    assert_ne!(Filter::new(Some([""; 0]), [""; 0]), Filter::default());
    let cache = HashMap::from([(plain, 1)]);
    assert_eq!(
        cache.get(&Filter::new(Some(["beta(x)"]), ["other"])),
        Some(&1)
    );
}

fn long(read: Duration, total: Duration) -> Limits {
    let limits = Limits::new().with_read(read).with_total(total);
    limits.with_attempt(total).with_max_retries(0)
}

fn hints(read_only: bool, destructive: bool, idempotent: bool) -> Option<ToolHints> {
    let mut hints = ToolHints::default();
    hints.read_only = read_only;
    hints.destructive = destructive;
    hints.idempotent = idempotent;
    Some(hints)
}

fn one(server: &str) -> ServerConfig {
    let file = ConfigFile::parse(&format!(r#"{{"mcpServers": {{"s": {server}}}}}"#));
    file.into_servers()
        .unwrap_or_else(|errors| panic!("{server}: {errors}"))
        .remove(0)
}
