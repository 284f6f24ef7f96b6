//! Many multiples of the generators: what a test set-up consists of.

mod multiplier;
mod table;

use std::sync::{Mutex, PoisonError};

use blstrs::{G1Affine, G2Affine, Scalar};
use groth16::BackendError;
use groth16::setup::FixedBaseMultiplier;

use crate::backend::BackendFailure;
use crate::device::Device;
use crate::error::Result;
use crate::msm::{G1, G2};
use multiplier::Multiplier;
use table::BaseCurve;

/// Multiplies the generators of G1 and G2 on a GPU.
///
/// A group's table and buffers are made when it is first asked for and stay: on an H200 1.9 GB of its
/// memory and 0.6 GB of page-locked host memory for G1, 2.0 GB and 0.7 GB for G2.
#[derive(Debug)]
pub struct GpuFixedBase {
    device: Device,
    width: Option<u32>,
    g1: Mutex<Option<Multiplier<G1>>>,
    g2: Mutex<Option<Multiplier<G2>>>,
}

impl GpuFixedBase {
    /// On a device that is open.
    pub fn on(device: Device) -> Self {
        GpuFixedBase {
            device,
            width: None,
            g1: Mutex::default(),
            g2: Mutex::default(),
        }
    }

    /// Takes windows of `width` bits, 5 to 24: a scalar costs 255/width additions, a table
    /// 255/width · 2^(width − 1) points.
    ///
    /// # Panics
    /// For another width.
    #[must_use]
    pub fn with_window_bits(self, width: u32) -> Self {
        assert!(table::WIDTHS.contains(&width), "windows of {width} bits");
        GpuFixedBase {
            width: Some(width),
            ..self
        }
    }

    fn multiply<C: BaseCurve>(
        &self,
        group: &Mutex<Option<Multiplier<C>>>,
        scalars: &[Scalar],
        out: &mut [C::Affine],
    ) -> Result<()> {
        assert_eq!(scalars.len(), out.len(), "one result for each scalar");
        if scalars.is_empty() {
            return Ok(());
        }
        let mut group = group.lock().unwrap_or_else(PoisonError::into_inner);
        let multiplier = match group.take() {
            Some(multiplier) => multiplier,
            // A table for an emulated device that the host makes alone.
            None if self.device.info().emulated => {
                let width = self.width.unwrap_or(table::HOST_WIDTH);
                Multiplier::new(&self.device, width)?
            }
            None => Multiplier::new(&self.device, self.width.unwrap_or(C::WIDTH))?,
        };
        // After an error it goes: nobody knows what is under way in its buffers.
        let done = group.insert(multiplier).run(scalars, out);
        if done.is_err() {
            *group = None;
        }
        done
    }
}

impl FixedBaseMultiplier for GpuFixedBase {
    /// # Panics
    /// If the slices differ in length.
    fn g1(
        &self,
        scalars: &[Scalar],
        out: &mut [G1Affine],
    ) -> std::result::Result<(), BackendError> {
        let done = self.multiply(&self.g1, scalars, out);
        Ok(done.map_err(BackendFailure::from)?)
    }

    /// # Panics
    /// If the slices differ in length.
    fn g2(
        &self,
        scalars: &[Scalar],
        out: &mut [G2Affine],
    ) -> std::result::Result<(), BackendError> {
        let done = self.multiply(&self.g2, scalars, out);
        Ok(done.map_err(BackendFailure::from)?)
    }

    /// Ten launches of an H200: of the first chunk's way to the device and the last one's way back little is
    /// left.
    fn batch(&self) -> usize {
        1 << 22
    }
}
