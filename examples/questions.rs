//! Calls a tool that asks back or reports progress, and answers for the user and the model.
//!
//! ```text
//! cargo run --example questions -- mcp.json SERVER TOOL '{"json":"arguments"}'
//! ```
//!
//! A server asks only over a connection that is the session's own: its entry says
//! `"steadfast": {"shared": false}`.

#![allow(deprecated, reason = "sampling, which servers still use")]

use std::{error::Error, time::Duration};

use futures::future::{BoxFuture, FutureExt as _};
use serde_json::{Map, Value, json};
use steadfast::{
    ConfigFile, Pool, PoolSettings, Stack, fallback,
    pool::{AskHandler, Asking, Offers, Root},
    rmcp::{
        ErrorData,
        model::{
            CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
            ElicitationAction, SamplingMessage,
        },
    },
};
use tower::ServiceExt as _;

/// Stands in for a user, who fills in what is asked for, and for a model.
struct Desk;

impl AskHandler for Desk {
    fn offers(&self) -> Offers {
        Offers::none().with_forms().with_sampling()
    }

    fn elicit<'a>(
        &'a self,
        asking: Asking,
        question: ElicitRequestParams,
    ) -> BoxFuture<'a, Result<ElicitResult, ErrorData>> {
        async move {
            let ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } = question
            else {
                return Ok(ElicitResult::new(ElicitationAction::Decline));
            };
            println!("{} asks the user: {message}", asking.server);
            let form = filled_in(&json!(requested_schema));
            println!("the user answers: {form}");
            let mut answer = ElicitResult::new(ElicitationAction::Accept);
            answer.content = Some(form);
            Ok(answer)
        }
        .boxed()
    }

    fn sample<'a>(
        &'a self,
        asking: Asking,
        request: CreateMessageRequestParams,
    ) -> BoxFuture<'a, Result<CreateMessageResult, ErrorData>> {
        async move {
            println!(
                "{} asks the model: {} messages",
                asking.server,
                request.messages.len()
            );
            let said = SamplingMessage::assistant_text("forty-two");
            Ok(CreateMessageResult::new(said, "none".to_owned()))
        }
        .boxed()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, server, tool, arguments] = args.as_slice() else {
        return Err("usage: questions FILE SERVER TOOL ARGUMENTS".into());
    };
    let servers = ConfigFile::load(file);
    let config = servers.server(server).ok_or("no such usable server")?;

    let roots = [Root::new("file:///srv/shop")];
    let pool = Pool::new(PoolSettings::default().with_roots(roots))?;
    let session = pool.session("desk").with_handler(Desk);
    let explicit = fallback::Settings::new().with_explicit(true);
    let stack = Stack::tools().with_last_good(explicit)?.build()?;
    let lease = session.acquire(config).await?;

    let call = lease
        .tool(tool.as_str())
        .with_arguments(serde_json::from_str(arguments)?);
    let (call, mut progress) = call.with_progress();
    let watching = tokio::spawn(async move {
        while let Some(step) = progress.next().await {
            println!("progress: {:?} of {:?}", step.progress, step.total);
        }
    });
    match stack.around(lease).oneshot(call).await {
        Ok(answer) => println!("{}: {}", answer.source, json!(answer.value.content)),
        Err(failure) => println!("{failure}"),
    }
    watching.await?;
    pool.drain_all(Duration::from_secs(10)).await;
    Ok(())
}

/// What a hurried user writes into a form: only what has to be there.
fn filled_in(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten();
    let fields = required.filter_map(Value::as_str).map(|name| {
        let field = &schema["properties"][name];
        let first = field["enum"]
            .get(0)
            .or_else(|| field["oneOf"].get(0)?.get("const"));
        let value = match field["type"].as_str() {
            _ if !field["default"].is_null() => field["default"].clone(),
            Some("boolean") => true.into(),
            Some("integer" | "number") => field.get("minimum").cloned().unwrap_or(json!(1)),
            _ => first.cloned().unwrap_or(json!("tea")),
        };
        (name.to_owned(), value)
    });
    Value::Object(Map::from_iter(fields))
}
