//! Devices for tests.

#[allow(dead_code, reason = "not every test needs it")]
pub mod oracle;

use cuda::{CudaError, Device};

/// The devices that tests run on: the emulated one, if it is built in, and the first real one, if
/// there is one. Says why where there is none.
pub fn devices() -> Vec<Device> {
    let mut devices = Vec::new();
    #[cfg(feature = "emulation")]
    devices.push(Device::emulated());
    match Device::open(0) {
        Ok(device) => devices.push(device),
        Err(reason @ (CudaError::NotBuilt | CudaError::NoDriver | CudaError::NoDevice { .. })) => {
            println!("not tested on a GPU: {reason}");
        }
        Err(error) => panic!("the GPU cannot be used: {error}"),
    }
    devices
}
