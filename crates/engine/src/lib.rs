//! Jobs and units: the pure [`scheduler`], and the [`service`] around it that stores what is
//! promised before it promises it, and drives devices.

#![forbid(unsafe_code)]

mod error;
pub mod scheduler;
pub mod service;

pub use error::Error;
pub use service::Service;
