//! Images of the kernels, embedded in the binary, and the kernels in them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, PoisonError};

use cudarc::driver::sys;
use sys::CUfunction_attribute as Attribute;

use super::call::driver_call;
use super::{CudaDriver, Module};
use crate::device::kernel::Kernel;
use crate::error::{CudaError, Result};
use crate::images;
use crate::topic::Topic;

impl CudaDriver {
    /// Finds a kernel in its topic's images, which are loaded when the first is asked for. The
    /// context is current.
    pub(super) fn load_kernel(&self, topic: Topic, name: &'static str) -> Result<Kernel> {
        let missing = CudaError::MissingKernel {
            topic: topic.name(),
            kernel: name,
        };
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let functions = match modules.entry(topic) {
            Entry::Occupied(loaded) => loaded.into_mut(),
            Entry::Vacant(place) => place.insert(self.load_topic(topic)?),
        };
        let (Some(module), Ok(c_name)) = (functions.get(name), CString::new(name)) else {
            return Err(missing);
        };
        let mut function = ptr::null_mut();
        // SAFETY: a loaded module and a C string; writes the handle. (The handles that the list
        // was made from are not loaded yet.)
        unsafe {
            driver_call!(cuModuleGetFunction(
                &raw mut function,
                module.0,
                c_name.as_ptr()
            ))?;
        }
        self.describe(name, function)
    }

    /// The image of each kernel of a topic, by name. Looked up in a list rather than asked for in each image in
    /// turn: every miss would be an error to tools that watch the driver's calls.
    fn load_topic(&self, topic: Topic) -> Result<HashMap<String, Module>> {
        let mut functions = HashMap::new();
        for image in images::of(topic) {
            let mut module = ptr::null_mut();
            // SAFETY: a fatbin made by nvcc, whose length is in its header; writes the handle.
            let code =
                unsafe { sys::cuModuleLoadData(&raw mut module, image.bytes.as_ptr().cast()) };
            match code {
                sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
                | sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                    return Err(CudaError::MissingImage {
                        device: self.properties.name.clone(),
                        capability: self.properties.capability,
                        topic: topic.name(),
                    });
                }
                code => super::call::check("cuModuleLoadData", code)?,
            }
            // SAFETY: the module was loaded just now, and stays until the process ends.
            unsafe { list_functions(module, &mut functions)? };
        }
        Ok(functions)
    }

    fn describe(&self, name: &'static str, function: sys::CUfunction) -> Result<Kernel> {
        let attribute = |attribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function is loaded; writes the value.
            unsafe { driver_call!(cuFuncGetAttribute(&raw mut value, attribute, function))? };
            Ok(value.max(0) as u32)
        };
        let (mut offset, mut params_bytes) = (0, 0);
        // SAFETY: every kernel has one parameter; writes its place and size.
        unsafe {
            driver_call!(cuFuncGetParamInfo(
                function,
                0,
                &raw mut offset,
                &raw mut params_bytes
            ))?;
        }
        let shared_static = attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        Ok(Kernel {
            name,
            function: function as u64,
            params_bytes,
            threads_max: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            shared_bytes_max: self
                .properties
                .shared_bytes_max
                .saturating_sub(shared_static),
            shared_bytes_set: Arc::new(AtomicU32::new(0)),
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        })
    }
}

/// Adds the names of a module's functions to `functions`.
///
/// # Safety
/// The module is loaded, and the context current.
unsafe fn list_functions(
    module: sys::CUmodule,
    functions: &mut HashMap<String, Module>,
) -> Result<()> {
    let mut count = 0;
    // SAFETY: the caller's; each call writes what its arguments have room for, and names are
    // strings of the module.
    unsafe {
        driver_call!(cuModuleGetFunctionCount(&raw mut count, module))?;
        let mut handles = vec![ptr::null_mut(); count as usize];
        driver_call!(cuModuleEnumerateFunctions(
            handles.as_mut_ptr(),
            count,
            module
        ))?;
        for handle in handles {
            let mut name = ptr::null();
            driver_call!(cuFuncGetName(&raw mut name, handle))?;
            let name = CStr::from_ptr(name).to_string_lossy().into_owned();
            functions.insert(name, Module(module));
        }
    }
    Ok(())
}
