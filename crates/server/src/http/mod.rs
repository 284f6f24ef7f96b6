//! HTTP/1.1: status, metrics, health, traces, and the page. One request per connection.

mod json;
mod route;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::context::Context;

/// A client that sends its request more slowly is let go.
const READ_LIMIT: Duration = Duration::from_secs(10);
/// Longest time for a connection: the answers are small.
const CONNECTION_LIMIT: Duration = Duration::from_secs(60);

/// An answer.
struct Answer {
    status: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: StatusCode, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self {
            status,
            content_type,
            body,
        }
    }

    fn text(status: StatusCode, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body)
    }
}

/// Serves one connection.
pub(crate) async fn serve(
    context: Arc<Context>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let service = service_fn(move |request| {
        let context = Arc::clone(&context);
        async move { Ok::<_, Infallible>(answer(&context, &request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(READ_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    // Errors here are those of the peer: it went away or spoke something else.
    let _ = tokio::time::timeout(CONNECTION_LIMIT, connection).await;
}

async fn answer(context: &Arc<Context>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let head = request.method() == Method::HEAD;
    let answer = if request.method() == Method::GET || head {
        route::find(context, request.uri().path(), request.uri().query()).await
    } else {
        Answer::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n")
    };
    let length = answer.body.len();
    let body = if head { Vec::new() } else { answer.body };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    if head {
        headers.insert(hyper::header::CONTENT_LENGTH, length.into());
    }
    for (name, value) in [
        (CONTENT_TYPE, answer.content_type),
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The page is one file with its style and script, and asks this server only.
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
             connect-src 'self'; img-src data:",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if answer.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
