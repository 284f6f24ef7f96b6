//! What a device says about itself.

use std::ffi::{CStr, c_char};

use cudarc::driver::sys;
use sys::CUdevice_attribute as Attribute;

use super::call::driver_call;
use crate::device::DeviceProperties;
use crate::error::{DriverVersion, Result};

/// Reads the properties of `device`.
///
/// # Safety
/// The driver is initialised and has this device.
pub unsafe fn read(
    device: sys::CUdevice,
    ordinal: usize,
    driver: DriverVersion,
) -> Result<DeviceProperties> {
    let attribute = |attribute| -> Result<u32> {
        let mut value = 0;
        // SAFETY: writes the value.
        unsafe { driver_call!(cuDeviceGetAttribute(&raw mut value, attribute, device))? };
        Ok(value.max(0) as u32)
    };
    let mut name = [0 as c_char; 256];
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    let mut total_bytes = 0;
    // SAFETY: each call writes to a variable of its type; the name's length is given, and the
    // driver ends it with a zero.
    let name = unsafe {
        driver_call!(cuDeviceGetName(
            name.as_mut_ptr(),
            name.len() as i32,
            device
        ))?;
        driver_call!(cuDeviceGetUuid_v2(&raw mut uuid, device))?;
        driver_call!(cuDeviceTotalMem_v2(&raw mut total_bytes, device))?;
        CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    };
    Ok(DeviceProperties {
        name,
        uuid: uuid_text(uuid.bytes.map(|byte| byte as u8)),
        ordinal,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        total_bytes: total_bytes as u64,
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        shared_bytes_max: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        driver,
        emulated: false,
    })
}

/// `GPU-` and the bytes in hex, grouped 4-2-2-2-6, as nvidia-smi writes it.
fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (i, byte) in bytes.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&i) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_written_as_nvidia_smi_does() {
        let bytes = std::array::from_fn(|i| 0x10 * i as u8 + 1);
        assert_eq!(uuid_text(bytes), "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
    }
}
