//! `${VAR}` and `${VAR:-default}`.

use super::error::Problem;

/// Where the values of variables come from.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

pub(crate) const ALLOWED: &str = "${VAR} with VAR set, ${VAR:-default}, or $${ for a literal ${";

/// Replaces each `${VAR}` by the variable's value, and `${VAR:-default}` by the
/// default if the variable is not set or empty, as a shell does. `${env:VAR}` is
/// another way to write `${VAR}`. `$${` stands for a literal `${`; a `$` without a
/// brace is left alone, so that passwords survive. What was put in is not looked at
/// again.
pub(crate) fn expand(text: &str, variables: Variables<'_>) -> Result<String, Problem> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find("${") {
        let (before, from_dollar) = rest.split_at(dollar);
        if let Some(literal) = before.strip_suffix('$') {
            expanded.push_str(literal);
            expanded.push_str("${");
            rest = &from_dollar[2..];
            continue;
        }
        expanded.push_str(before);
        let end = from_dollar.find('}').ok_or(Problem::BadVariable)?;
        expanded.push_str(&value(&from_dollar[2..end], variables)?);
        rest = &from_dollar[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn value(inside: &str, variables: Variables<'_>) -> Result<String, Problem> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    // `${A:-${B}}` would end at the inner brace and leave a stray one behind.
    if !is_name(name) || default.is_some_and(|default| default.contains("${")) {
        return Err(Problem::BadVariable);
    }
    match (variables(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(Problem::Unset(name.to_owned())),
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
