//! One module per command.

pub mod bench;
pub mod circuit;
pub mod demo;
pub mod params;
pub mod prove;
pub mod request;
pub mod verify;
