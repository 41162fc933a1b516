//! How much a store in memory keeps.

use steadfast_fallback::{Bounds, Caller, Kept, Key, Memory, Question, Store as _};

type Store = Memory<Vec<u8>>;

fn store(entries: u64, bytes: u64) -> Store {
    let bounds = Bounds::new()
        .with_max_entries(entries)
        .with_max_bytes(bytes);
    Memory::new(bounds, Vec::len).unwrap()
}

fn key(number: usize) -> Key {
    let question = Question::new("fetch", number.to_string().as_bytes(), Caller::Anyone);
    Key::new("library", question)
}

async fn keeps(store: &Store, number: usize) -> bool {
    store.lookup(key(number), 0).await.is_some()
}

#[tokio::test(start_paused = true)]
async fn the_number_of_answers_is_bounded_after_each_put() {
    let store = store(10, 10_000);

    for number in 0..1000 {
        store.put(key(number), 0, &Vec::new());
        assert!(store.len() <= 10);
    }

    assert_eq!(store.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_answers_are_bounded_after_each_put() {
    let store = store(1000, 100_000);

    for number in 0..100 {
        store.put(key(number), 0, &vec![0; 30_000]);
        assert!(store.len() <= 3);
    }

    assert_eq!(store.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_one_not_used_for_longest_goes_first() {
    let store = store(3, 3_000);
    for number in 0..3 {
        store.put(key(number), 0, &Vec::new());
    }
    assert!(keeps(&store, 0).await);

    store.put(key(3), 0, &Vec::new());

    assert!(keeps(&store, 0).await);
    assert!(!keeps(&store, 1).await);
    assert!(keeps(&store, 3).await);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_often_and_is_stale_makes_room() {
    let store = store(3, 3_000);
    for number in 0..3 {
        store.put(key(number), 0, &Vec::new());
        for _ in 0..100 {
            assert!(keeps(&store, number).await);
        }
    }

    store.raise("library");
    for number in 3..6 {
        store.put(key(number), 1, &Vec::new());
    }

    for number in 3..6 {
        assert!(store.lookup(key(number), 1).await.is_some(), "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_larger_than_the_store_is_not_kept_and_throws_nothing_out() {
    let store = store(10, 10_000);
    store.put(key(1), 0, &vec![1]);

    store.put(key(1), 0, &vec![2; 10_001]);

    let kept = store.lookup(key(1), 0).await;
    assert_eq!(kept.map(|kept| kept.value), Some(vec![1]));
}

#[tokio::test(start_paused = true)]
async fn a_later_answer_replaces_an_earlier_one() {
    let store = store(10, 10_000);
    store.put(key(1), 0, &vec![1]);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;

    store.put(key(1), 0, &vec![2]);

    let age = std::time::Duration::ZERO;
    assert_eq!(store.lookup(key(1), 0).await, Some(Kept::new(vec![2], age)));
    assert_eq!(store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_another_generation_is_neither_taken_nor_given() {
    let store = store(10, 10_000);
    store.put(key(1), 0, &vec![1]);
    store.raise("library");
    assert!(store.lookup(key(1), 1).await.is_none());

    store.put(key(2), 0, &vec![3]);
    store.put(key(1), 1, &vec![2]);
    store.put(key(1), 0, &vec![3]);

    assert!(store.lookup(key(1), 0).await.is_none());
    let kept = store.lookup(key(1), 1).await;
    assert_eq!(kept.map(|kept| kept.value), Some(vec![2]));
    assert_eq!(store.len(), 1);
}

#[test]
fn arguments_and_callers_are_not_printed() {
    let question = Question::new("fetch", &b"pin 1234"[..], Caller::only("ann"));
    let key = Key::new("library", question.clone());

    let printed = format!("{question:?} {key:?} {:?}", key.caller());

    for secret in ["1234", "49", "ann"] {
        assert!(!printed.contains(secret), "{printed}");
    }
    assert!(printed.contains("library") && printed.contains("fetch"));
}
