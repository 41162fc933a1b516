//! Against a model: what may be given from the cache, for any order of calls.

use std::collections::HashMap;

use proptest::prelude::*;
use steadfast_classify::{Class, Effect, Failure, Source};
use steadfast_fallback::{Caller, Settings};
use tokio::time::advance;

use crate::support::{Ask, Page, ask, page, seconds, with};

const MAX_STALE: u64 = 10;

/// Who asks what of whom.
type Asked = (usize, usize, usize, Option<usize>);

#[derive(Clone, Debug)]
struct Step {
    asked: Asked,
    effect: Effect,
    cacheable: Option<bool>,
    end: End,
    wait: u64,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Good,
    Error,
    Failed(Class),
}

const NAMES: [&str; 2] = ["ab", "a"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = || 0..NAMES.len();
    let asked = (name(), name(), name(), prop::option::of(name()));
    let effect = prop::sample::select(vec![
        Effect::ReadOnly,
        Effect::ReadOnly,
        Effect::ReadOnly,
        Effect::Idempotent,
        Effect::NonIdempotent,
    ]);
    let end = prop_oneof![
        3 => Just(End::Good),
        1 => Just(End::Error),
        3 => prop::sample::select(vec![
            Class::NotSent,
            Class::Overloaded,
            Class::Timeout,
            Class::Unknown,
            Class::Answered,
            Class::Rejected,
            Class::Cancelled,
        ])
        .prop_map(End::Failed),
    ];
    let step = (
        asked,
        effect,
        prop::sample::select(vec![None, None, None, Some(true), Some(false)]),
        end,
        0..6_u64,
    )
        .prop_map(|(asked, effect, cacheable, end, wait)| Step {
            asked,
            effect,
            cacheable,
            end,
            wait,
        });
    prop::collection::vec(step, 1..40)
}

fn request(step: &Step) -> Ask {
    let (server, operation, arguments, caller) = step.asked;
    Ask {
        operation: NAMES[operation],
        caller: caller.map_or(Caller::Anyone, |caller| Caller::only(NAMES[caller])),
        effect: step.effect,
        cacheable: step.cacheable,
        ..Ask::read(NAMES[arguments]).at(NAMES[server])
    }
}

fn result(step: &Step, text: &str) -> Result<Page, Failure> {
    match step.end {
        End::Good => Ok(page(text)),
        End::Error => Ok(Page {
            error: true,
            ..page(text)
        }),
        End::Failed(class) => Err(Failure::new(class)),
    }
}

fn keeps(step: &Step) -> bool {
    step.cacheable.unwrap_or(step.effect == Effect::ReadOnly)
}

fn writes(step: &Step) -> bool {
    step.effect != Effect::ReadOnly && step.cacheable != Some(true)
}

/// What was answered last, and how many seconds ago, by the rules and nothing else.
#[derive(Default)]
struct Model(HashMap<Asked, (String, u64)>);

impl Model {
    fn wait(&mut self, seconds: u64) {
        for (_, age) in self.0.values_mut() {
            *age += seconds;
        }
    }

    /// What a failed call must be given, if anything.
    fn given(&self, step: &Step) -> Option<(&str, u64)> {
        let (text, age) = self.0.get(&step.asked)?;
        (keeps(step) && *age <= MAX_STALE).then_some((text.as_str(), *age))
    }

    fn end(&mut self, step: &Step, text: &str) {
        let ran = match step.end {
            End::Good | End::Error => true,
            End::Failed(class) => class.may_have_run(),
        };
        match step.end {
            End::Good if keeps(step) => {
                self.0.insert(step.asked, (text.to_owned(), 0));
            }
            _ if writes(step) && ran => self.0.retain(|asked, _| asked.0 != step.asked.0),
            _ => {}
        }
    }
}

async fn walk(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let settings = Settings::new().with_max_stale(seconds(MAX_STALE));
    let (script, mut service) = with(settings);
    let mut model = Model::default();
    for (number, step) in steps.iter().enumerate() {
        advance(seconds(step.wait)).await;
        model.wait(step.wait);
        let text = number.to_string();
        script.answers(result(step, &text));

        let answer = ask(&mut service, request(step)).await;

        model.end(step, &text);
        match (step.end, answer) {
            (End::Good | End::Error, Ok(answer)) => {
                prop_assert_eq!(answer.source, Source::Live);
                prop_assert_eq!(answer.value.text, text);
            }
            (End::Failed(class), Err(failure)) => {
                prop_assert!(matches!(class, Class::Answered | Class::Cancelled));
                prop_assert_eq!(failure.class(), class);
            }
            (End::Failed(_), Ok(answer)) => match model.given(step) {
                Some((text, age)) => {
                    prop_assert_eq!(answer.value.text, text);
                    prop_assert_eq!(answer.source, Source::Cache { age: seconds(age) });
                }
                None => prop_assert_eq!(answer.source, Source::Degraded),
            },
            (end, answer) => prop_assert!(false, "{:?} became {:?}", end, answer),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_cache_answers_the_same_caller_a_read_and_nothing_stale(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(walk(steps))?;
    }
}
