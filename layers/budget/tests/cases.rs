//! Faults that people reported.

mod support;

use std::time::Duration;

use steadfast_budget::{BudgetLayer, InvalidLimit, Mode, Quota};
use support::{Request, Reserving, global, make_ready, over};
use tokio::{task::JoinSet, time::Instant};
use tower::{Layer, Service};

/// A budget for all was enforced for each session, so that three sessions got three
/// times as much.
#[tokio::test(start_paused = true)]
async fn j07_one_budget_for_all_sessions_layers() {
    let layer = BudgetLayer::new(global("2/h"));
    let begin = Instant::now();
    let mut calls = JoinSet::new();

    for session in 0..3 {
        // Each session has a service of its own, of the one layer.
        let mut service = layer.layer(Reserving::new());
        for tool in 0..3 {
            make_ready(&mut service).await;
            calls.spawn(service.call(Request::of(session).with_tool(tool)));
        }
    }
    let (admitted, refused): (Vec<_>, Vec<_>) =
        calls.join_all().await.into_iter().partition(Result::is_ok);

    assert_eq!(admitted.len(), 2);
    assert_eq!(refused.len(), 7);
    for failure in refused {
        let failure = failure.unwrap_err();
        assert_eq!(over(&failure).limit(), "all");
        assert!(failure.to_string().contains("\"all\""), "{failure}");
    }
    assert_eq!(begin.elapsed(), Duration::ZERO, "and soon");
}

/// One value was read in two ways in two places.
#[test]
fn j07_odd_values_are_refused_by_name_layers() {
    let number = |field| Err(InvalidLimit::Number { field });
    for (count, want) in [
        ("2", Ok(2)),
        (" 2", number("count")),
        ("2 ", number("count")),
        ("+2", number("count")),
        ("-2", number("count")),
        ("2.5", number("count")),
        ("1e3", number("count")),
        ("0x2", number("count")),
        ("2_0", number("count")),
        ("٢", number("count")),
        ("", number("count")),
        ("0", number("count")),
        ("4294967296", number("count")),
    ] {
        let read = |text: String| text.parse::<Quota>().map(|quota| quota.burst().get());
        assert_eq!(read(format!("{count}/s")), want, "{count:?}");
        let burst = want.map_err(|_| InvalidLimit::Number { field: "burst" });
        assert_eq!(read(format!("1/s burst {count}")), burst, "{count:?}");
    }
    for (text, want) in [
        ("", InvalidLimit::Quota),
        ("2", InvalidLimit::Quota),
        ("2/", InvalidLimit::Unit),
        ("2/sec", InvalidLimit::Unit),
        ("2/s ", InvalidLimit::Unit),
        ("2/S", InvalidLimit::Unit),
        ("2/s/s", InvalidLimit::Unit),
        ("2/s burst", InvalidLimit::Unit),
        ("2/s burst  2", InvalidLimit::Number { field: "burst" }),
    ] {
        assert_eq!(text.parse::<Quota>(), Err(want), "{text:?}");
    }
    for text in ["", " warn", "Warn", "on", "true"] {
        assert_eq!(text.parse::<Mode>(), Err(InvalidLimit::Mode), "{text:?}");
    }
}
