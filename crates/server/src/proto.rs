//! The messages and services of `proto/`.

/// `cuzk.v1`: the interface that Curio and Lotus call.
#[allow(missing_docs, clippy::all, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("cuzk.v1");
}

/// `cuzk.v2`: uploads in pieces and streams of states.
#[allow(missing_docs, clippy::all, reason = "generated")]
pub mod v2 {
    tonic::include_proto!("cuzk.v2");
}

/// All files, encoded as a `FileDescriptorSet`, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
