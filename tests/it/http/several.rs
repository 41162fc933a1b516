//! Several servers, of which some are no good.

use serde_json::json;
use tokio::time::Instant;

use crate::{
    place::{Place, once},
    support::{Agent, ms, secs},
};

#[tokio::test]
async fn r01_bad_servers_keep_no_good_one_from_anybody_http() {
    let gateway = json!({"on": ["initialize"], "status": 502, "body": "bad gateway"});
    let place = Place::enter(json!({"faults": [gateway]})).await;
    let fine = place.stage.server(&json!({}));
    let missing = place
        .stage
        .server_with(&json!({}), json!({"command": "/no/such/program"}));
    let fields = json!({"discoveryTimeoutMs": 1000});
    let hangs = place
        .stage
        .server_with(&json!({"start": {"never": true}}), fields.clone());
    let refuses = place.config(fields.clone());
    let exits = place
        .stage
        .server_with(&json!({"start": {"exit": 3}}), fields);
    let servers = [&fine, &missing, &hangs, &refuses, &exits];

    let begun = Instant::now();
    let early = Agent::new(place.session.lease(&fine).unwrap(), once());
    let all = place.session.acquire_all(servers);
    let call = async {
        tokio::time::sleep(ms(100)).await;
        let answer = early.call("w", json!({"tag": "early"})).await;
        (answer, begun.elapsed())
    };
    let (outcomes, (answer, called)) = tokio::join!(all, call);
    let took = begun.elapsed();

    assert!(answer.unwrap().is_live());
    assert!(took >= secs(1) && took < secs(4), "{took:?}");
    assert!(called < took, "the call does not wait for the others");
    let told: Vec<_> = outcomes
        .iter()
        .map(|(_, outcome)| outcome.as_ref().map_err(ToString::to_string).err())
        .collect();
    assert_eq!(told[0], None);
    for (index, part) in [
        (1, "/no/such/program"),
        (2, "in time"),
        (3, "502"),
        (4, "3"),
    ] {
        let cause = told[index].as_ref().unwrap();
        assert!(cause.contains(part), "{index}: {cause}");
        println!("{index}: {cause}");
    }
    drop((outcomes, early));
    place.end().await;
}
