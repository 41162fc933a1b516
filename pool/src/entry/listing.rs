//! Asking a server for its lists, and again when they have changed.

use std::{future::pending, sync::Arc, time::Duration};

use futures::{
    FutureExt as _,
    future::{BoxFuture, OptionFuture},
    join,
};
use steadfast_classify::{Class, Failure, Phase as CallPhase};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::pace::Pace;
use crate::{Link, view::Listed};

/// How much longer than the tools the other lists may take at a start.
const OTHERS: Duration = Duration::from_secs(1);

/// Hears that lists have changed, and asks for them anew, one time after the other.
pub(super) struct News {
    link: Arc<dyn Link>,
    limit: Duration,
    tools: watch::Receiver<u64>,
    prompts: watch::Receiver<u64>,
    resources: watch::Receiver<u64>,
    heard: Which,
    pace: Pace,
    collect_until: Option<Instant>,
    /// Dropped with the connection, so that what comes later changes nothing.
    asking: Option<BoxFuture<'static, Listed>>,
}

/// What there is to tell of lists.
pub(super) enum Told {
    /// Some have changed, and are going to be asked for.
    Outdated,
    Listed(Listed),
}

/// Some of a server's lists.
#[derive(Clone, Copy, Debug, Default)]
struct Which {
    tools: bool,
    prompts: bool,
    resources: bool,
}

/// All lists of a server that has just been started. Its tools are what matters: they are
/// waited for, the others not much longer.
pub(super) async fn all(link: &Arc<dyn Link>) -> Listed {
    let here = CancellationToken::new();
    let late = || async {
        here.cancelled().await;
        sleep(OTHERS).await;
    };
    let (tools, prompts, resources, templates) = join!(
        Arc::clone(link).list_tools().inspect(|_| here.cancel()),
        unless(late(), Arc::clone(link).list_prompts()),
        unless(late(), Arc::clone(link).list_resources()),
        unless(late(), Arc::clone(link).list_resource_templates()),
    );
    Listed {
        tools: Some(tools),
        prompts: Some(prompts),
        resources: Some(resources),
        templates: Some(templates),
    }
    .distinct()
}

async fn unless<T>(
    late: impl Future<Output = ()>,
    list: BoxFuture<'static, Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        listed = list => listed,
        () = late => Err(timed_out(OTHERS)),
    }
}

/// Some lists, each within `limit`.
async fn some(link: Arc<dyn Link>, which: Which, limit: Duration) -> Listed {
    fn within<T: 'static>(
        limit: Duration,
        list: Option<BoxFuture<'static, Result<T, Failure>>>,
    ) -> OptionFuture<impl Future<Output = Result<T, Failure>>> {
        list.map(|list| async move {
            let listed = timeout(limit, list).await;
            listed.unwrap_or_else(|_| Err(timed_out(limit)))
        })
        .into()
    }
    let tools = which.tools.then(|| Arc::clone(&link).list_tools());
    let prompts = which.prompts.then(|| Arc::clone(&link).list_prompts());
    let resources = which.resources.then(|| Arc::clone(&link).list_resources());
    let templates = which
        .resources
        .then(|| Arc::clone(&link).list_resource_templates());
    let (tools, prompts, resources, templates) = join!(
        within(limit, tools),
        within(limit, prompts),
        within(limit, resources),
        within(limit, templates),
    );
    Listed {
        tools,
        prompts,
        resources,
        templates,
    }
    .distinct()
}

// === impl News ===

impl News {
    pub(super) fn new(link: &Arc<dyn Link>, limit: Duration) -> Self {
        Self {
            link: Arc::clone(link),
            limit,
            tools: link.tools_changed(),
            prompts: link.prompts_changed(),
            resources: link.resources_changed(),
            heard: Which::default(),
            pace: Pace::new(),
            collect_until: None,
            asking: None,
        }
    }

    /// That lists changed, and then what they are now.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what is under way goes on with the next call.
    pub(super) async fn next(&mut self) -> Told {
        loop {
            if let Some(asking) = &mut self.asking {
                let listed = asking.await;
                self.asking = None;
                self.pace.listed(Instant::now());
                return Told::Listed(listed);
            }
            if let Some(until) = self.collect_until {
                sleep_until(until).await;
                self.collect_until = None;
                let which = self.take_heard();
                self.asking = Some(some(Arc::clone(&self.link), which, self.limit).boxed());
            } else {
                self.hear().await;
                let now = Instant::now();
                self.collect_until = Some(now + self.pace.heard(now));
                return Told::Outdated;
            }
        }
    }

    async fn hear(&mut self) {
        tokio::select! {
            () = change(&mut self.tools) => self.heard.tools = true,
            () = change(&mut self.prompts) => self.heard.prompts = true,
            () = change(&mut self.resources) => self.heard.resources = true,
        }
    }

    /// What was heard until now; what comes from now on is news again.
    fn take_heard(&mut self) -> Which {
        let mut heard = std::mem::take(&mut self.heard);
        heard.tools |= take_change(&mut self.tools);
        heard.prompts |= take_change(&mut self.prompts);
        heard.resources |= take_change(&mut self.resources);
        heard
    }
}

/// Resolves with the next change; never, where there are none any more.
async fn change(news: &mut watch::Receiver<u64>) {
    if news.changed().await.is_err() {
        pending().await
    }
}

fn take_change(news: &mut watch::Receiver<u64>) -> bool {
    let changed = news.has_changed().unwrap_or(false);
    news.borrow_and_update();
    changed
}

fn timed_out(limit: Duration) -> Failure {
    Failure::new(Class::Timeout)
        .with_phase(CallPhase::Read)
        .with_elapsed(limit)
        .with_source("the server did not list in time what it offers")
}
