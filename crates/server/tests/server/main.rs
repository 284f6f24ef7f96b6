//! A whole server, spoken to as its clients do. One program, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "test code")]

mod browser;
mod common;
mod deploy;
mod discovery;
mod forms;
mod http;
mod large;
mod old_daemon;
mod tls;
mod v2;
mod wire;
