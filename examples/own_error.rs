//! The stack with an application's own error type.
//!
//! ```text
//! cargo run --example own_error
//! ```

use steadfast::{Call, Class, Classified, Failure, Stack};
use tower::{Layer, ServiceExt, service_fn};

/// The error of this application. `From<Failure>` lets the layers make one, and
/// [`Classified`] lets them see what happened.
#[derive(Debug, thiserror::Error)]
enum ShopError {
    #[error(transparent)]
    Call(#[from] Failure),
    #[error("{0} is sold out")]
    SoldOut(&'static str),
}

impl Classified for ShopError {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Call(failure) => Some(failure),
            // Foreign to the layers: it may have run, so it is not repeated.
            Self::SoldOut(_) => None,
        }
    }

    fn failure_mut(&mut self) -> Option<&mut Failure> {
        match self {
            Self::Call(failure) => Some(failure),
            Self::SoldOut(_) => None,
        }
    }
}

#[derive(Clone)]
struct Buy(&'static str);

impl Call for Buy {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shop = service_fn(async |Buy(item)| match item {
        "apples" => Ok("bought"),
        "pears" => Err(ShopError::SoldOut(item)),
        _ => Err(Failure::new(Class::NotSent)
            .with_source("no shop there")
            .into()),
    });
    let service = Stack::new("shop").build()?.layer(shop);

    for item in ["apples", "pears", "plums"] {
        match service.clone().oneshot(Buy(item)).await {
            Ok(answer) => println!("{item}: {} ({})", answer.value, answer.source),
            Err(ShopError::SoldOut(item)) => println!("{item}: sold out"),
            Err(ShopError::Call(failure)) => println!("{item}: {failure}"),
        }
    }
    Ok(())
}
