//! Which path gives what.

use std::sync::Arc;

use hyper::StatusCode;
use serde_json::json;

use super::Answer;
use super::json;
use crate::context::{Context, Work, now};
use crate::readiness::Progress;

const PAGE: &str = include_str!("page.html");
const JSON: &str = "application/json";
/// What the page shows of the past, milliseconds.
const TIMELINE_MS: u64 = 5 * 60 * 1000;

pub(super) async fn find(context: &Arc<Context>, path: &str, query: Option<&str>) -> Answer {
    match path {
        "/" | "/index.html" => Answer::new(StatusCode::OK, "text/html; charset=utf-8", PAGE),
        "/metrics" => Answer::new(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            context.metrics(),
        ),
        "/healthz" => Answer::text(StatusCode::OK, "ok\n"),
        "/readyz" => ready(context),
        "/timeline" => {
            let now = now();
            let since = since(query).unwrap_or(now.saturating_sub(TIMELINE_MS));
            let spans = context.observatory.timeline(since, now);
            as_json(&json::Timeline::new(now, &spans))
        }
        // The earlier daemon answers every path that begins so.
        _ if path.starts_with("/status") => as_json(&json::status(context)),
        _ => match path
            .strip_prefix("/jobs/")
            .and_then(|rest| rest.strip_suffix("/trace"))
        {
            Some(name) => trace(context, name).await,
            None => Answer::text(
                StatusCode::NOT_FOUND,
                "not found; there are / /status /metrics /healthz /readyz /timeline and \
                 /jobs/ID/trace\n",
            ),
        },
    }
}

fn as_json(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => Answer::new(StatusCode::OK, JSON, body),
        Err(error) => Answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// `since=<milliseconds since the epoch>` of a query.
fn since(query: Option<&str>) -> Option<u64> {
    let pairs = query?.split('&');
    let mut values = pairs.filter_map(|pair| pair.strip_prefix("since="));
    values.next()?.parse().ok()
}

fn ready(context: &Context) -> Answer {
    let parts: serde_json::Map<_, _> = context
        .readiness
        .parts()
        .into_iter()
        .map(|(part, progress)| {
            let value = match progress {
                Progress::Waiting => json!({"state": "waiting"}),
                Progress::Passed => json!({"state": "passed"}),
                Progress::Failed(cause) => json!({"state": "failed", "cause": cause}),
            };
            (part.label().to_owned(), value)
        })
        .collect();
    let ready = context.is_ready();
    let body = json!({
        "ready": ready,
        "test_keys": context.test_keys(),
        "note": if context.test_keys() { "test key: proofs are worth nothing on a public network" }
            else { "" },
        "shutting_down": context.is_closing(),
        "store_error": context.service.status().store_error,
        "parts": parts,
    });
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    Answer::new(status, JSON, body.to_string())
}

async fn trace(context: &Arc<Context>, name: &str) -> Answer {
    let Some(name) = decoded(name) else {
        return Answer::text(
            StatusCode::BAD_REQUEST,
            "the job's name is not valid UTF-8\n",
        );
    };
    let job = match name.parse() {
        Ok(id) => Some(id),
        Err(_) => {
            let wanted = name.clone();
            let found = context.blocking(Work::Question, move |context| {
                context.service.lookup(&wanted).ok()
            });
            found.await.ok().flatten()
        }
    };
    match job.and_then(|job| context.observatory.trace(job, now())) {
        Some(trace) => as_json(&trace),
        None => Answer::text(
            StatusCode::NOT_FOUND,
            "no timeline of this job; the last 1000 ended jobs since the start have one\n",
        ),
    }
}

/// Undoes percent-encoding; `None` if what comes out is not text.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded() {
        assert_eq!(decoded("porep-1-2"), Some("porep-1-2".to_owned()));
        assert_eq!(
            decoded("wdpost-1-0-%5B1%202%5d").as_deref(),
            Some("wdpost-1-0-[1 2]")
        );
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }

    #[test]
    fn since_is_read_from_the_query() {
        assert_eq!(since(Some("a=1&since=77")), Some(77));
        for none in [None, Some(""), Some("since="), Some("since=x")] {
            assert_eq!(since(none), None);
        }
    }
}
