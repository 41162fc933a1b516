//! From what was given to the one place where the server is.

use std::mem;

use secrecy::{ExposeSecret, SecretString};

use super::{
    check,
    draft::Draft,
    endpoint::{Endpoint, Program, Remote},
    error::{Note, Problem},
    family::Family,
    in_process::InProcess,
    report::Report,
};

const PLACES: &str = "one of command, url, httpUrl and tcp";

/// Where the server is and how it is reached; `None` and an error if that is unclear.
pub(crate) fn endpoint(draft: &mut Draft, report: &mut Report) -> Option<Endpoint> {
    if let Some(server) = draft.in_process.take() {
        return Some(in_process(draft, server, report));
    }
    let command = draft.command.take();
    let empty_command = command.as_deref() == Some("");
    let places = [
        ("command", command.map(SecretString::from)),
        ("url", draft.url.take()),
        ("httpUrl", draft.http_url.take()),
        ("tcp", draft.tcp.take()),
    ];
    let mut given = places.into_iter().filter_map(|(field, place)| {
        let place = place.filter(|place| !place.expose_secret().is_empty());
        place.map(|place| (field, place))
    });
    let (field, place) = match (given.next(), given.next()) {
        (Some((first, _)), Some((second, _))) => {
            report.error(second, Problem::Conflict(first), PLACES);
            return None;
        }
        (Some(only), None) => only,
        (None, _) if empty_command => {
            report.error("command", Problem::Empty, "a program to start");
            return None;
        }
        (None, _) => {
            report.error("command or url", Problem::Missing, PLACES);
            return None;
        }
    };
    if field == "command" {
        let program = program(draft, place.expose_secret().to_owned(), report);
        return Some(Endpoint::Stdio(program));
    }
    remote(draft, field, place, report)
}

fn in_process(draft: &Draft, server: InProcess, report: &mut Report) -> Endpoint {
    warn_without_effect(
        Family::InProcess,
        &[
            ("args", !draft.args.is_empty()),
            ("env", !draft.env.is_empty()),
            ("cwd", draft.cwd.is_some()),
            ("headers", !draft.headers.is_empty()),
            ("oauth", draft.oauth.is_some()),
            ("steadfast.shared", draft.settings.shared == Some(true)),
        ],
        report,
    );
    Endpoint::InProcess(server)
}

fn program(draft: &mut Draft, command: String, report: &mut Report) -> Program {
    if draft.family.is_some_and(|family| family != Family::Stdio) {
        report.error("type", Problem::Misfit("command"), "stdio, or no type");
    }
    if command.trim().is_empty() {
        report.error("command", Problem::Empty, "a program to start");
    }
    check::no_nul("command", &command, report);
    for (index, arg) in draft.args.iter().enumerate() {
        check::no_nul(&format!("args[{index}]"), arg.expose_secret(), report);
    }
    let cwd = draft.cwd.take().filter(|cwd| !cwd.is_empty());
    check::no_nul("cwd", cwd.as_deref().unwrap_or_default(), report);
    warn_without_effect(
        Family::Stdio,
        &[
            ("headers", !draft.headers.is_empty()),
            ("oauth", draft.oauth.is_some()),
        ],
        report,
    );
    Program {
        command,
        args: mem::take(&mut draft.args),
        env: check::env(mem::take(&mut draft.env), report),
        cwd: cwd.map(Into::into),
    }
}

fn remote(
    draft: &mut Draft,
    field: &'static str,
    url: SecretString,
    report: &mut Report,
) -> Option<Endpoint> {
    let url = with_scheme(field, url);
    let family = check::scheme(url.expose_secret())
        .map_err(|problem| report.error(field, problem, check::URLS))
        .ok()?;
    check_fit(field, family, draft.family, report);
    warn_without_effect(
        family,
        &[
            ("args", !draft.args.is_empty()),
            ("env", !draft.env.is_empty()),
            ("cwd", draft.cwd.is_some()),
        ],
        report,
    );
    let headers = check::headers(mem::take(&mut draft.headers), report);
    let remote = Remote { url, headers };
    Some(if family == Family::WebSocket {
        Endpoint::WebSocket(remote)
    } else {
        Endpoint::Http(remote)
    })
}

/// The scheme must fit the field it stands in, and the `type` if one is given.
fn check_fit(field: &'static str, family: Family, given: Option<Family>, report: &mut Report) {
    match (field, family) {
        ("httpUrl", Family::WebSocket) => {
            report.error(field, Problem::Misfit("ws://"), "http:// or https://");
        }
        ("tcp", Family::Http) => {
            report.error(
                field,
                Problem::Misfit("http://"),
                "ws://, wss:// or host:port",
            );
        }
        _ => {}
    }
    if given.is_some_and(|given| given != family) {
        let allowed = format!("{family}, or no type");
        report.error("type", Problem::Misfit(field), allowed);
    }
}

/// `tcp` is written as `host:port`, too.
fn with_scheme(field: &str, url: SecretString) -> SecretString {
    if field == "tcp" && !url.expose_secret().contains("://") {
        format!("ws://{}", url.expose_secret()).into()
    } else {
        url
    }
}

fn warn_without_effect(family: Family, fields: &[(&str, bool)], report: &mut Report) {
    for (field, _) in fields.iter().filter(|(_, given)| *given) {
        report.warn(field, Note::OtherTransport(family.as_str()));
    }
}
