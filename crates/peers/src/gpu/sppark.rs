//! The kernels of the crate sppark, through the functions in `sppark/`.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;

use anyhow::{Result, ensure};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuda::DeviceSlice;
use group::Group;

// What links the library of sppark's own build.
extern crate sppark as _;

unsafe extern "C" {
    fn sppark_g1_create(out: *mut *mut c_void, len: usize) -> c_int;
    fn sppark_g1_run(
        sum: *mut c_void,
        out: *mut c_void,
        points: *mut c_void,
        scalars: *mut c_void,
        len: usize,
    ) -> c_int;
    fn sppark_g1_destroy(sum: *mut c_void) -> c_int;
    fn sppark_g2_create(out: *mut *mut c_void, len: usize) -> c_int;
    fn sppark_g2_run(
        sum: *mut c_void,
        out: *mut c_void,
        points: *mut c_void,
        scalars: *mut c_void,
        len: usize,
    ) -> c_int;
    fn sppark_g2_destroy(sum: *mut c_void) -> c_int;
    fn sppark_g1_select(
        out: *mut c_void,
        points: *mut c_void,
        bits: *const c_void,
        len: u32,
        ms: *mut f32,
    ) -> c_int;
    fn sppark_ntt(
        values: *mut c_void,
        log_len: u32,
        from_reversed: bool,
        inverse: bool,
        ms: *mut f32,
    ) -> c_int;
}

fn checked(code: c_int, what: &str) -> Result<()> {
    ensure!(code == 0, "sppark's {what} failed with CUDA error {code}");
    Ok(())
}

fn pointer<T>(slice: DeviceSlice<T>) -> *mut c_void {
    ptr::with_exposed_provenance_mut(slice.ptr() as usize)
}

type Run = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void, usize) -> c_int;

/// A group that sppark sums in.
pub trait Curve {
    /// A point on the device.
    type Affine;
    /// A sum: Jacobian coordinates, as sppark leaves them.
    type Projective: Group;
    #[doc(hidden)]
    const CREATE: unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int;
    #[doc(hidden)]
    const RUN: Run;
    #[doc(hidden)]
    const DESTROY: unsafe extern "C" fn(*mut c_void) -> c_int;
}

impl Curve for cuda::msm::G1 {
    type Affine = G1Affine;
    type Projective = G1Projective;
    const CREATE: unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int = sppark_g1_create;
    const RUN: Run = sppark_g1_run;
    const DESTROY: unsafe extern "C" fn(*mut c_void) -> c_int = sppark_g1_destroy;
}

impl Curve for cuda::msm::G2 {
    type Affine = G2Affine;
    type Projective = G2Projective;
    const CREATE: unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int = sppark_g2_create;
    const RUN: Run = sppark_g2_run;
    const DESTROY: unsafe extern "C" fn(*mut c_void) -> c_int = sppark_g2_destroy;
}

/// sppark's MSM with its buckets allocated.
pub struct Sum<C: Curve> {
    handle: *mut c_void,
    len: usize,
    curve: PhantomData<C>,
}

impl<C: Curve> Sum<C> {
    /// For sums of `len` terms.
    ///
    /// # Errors
    /// sppark's.
    pub fn new(len: usize) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` lives.
        checked(unsafe { C::CREATE(&mut handle, len) }, "set-up of a sum")?;
        Ok(Sum {
            handle,
            len,
            curve: PhantomData,
        })
    }

    /// Σ scalars[i]·points[i]; waits for it. Scalars are canonical.
    ///
    /// # Errors
    /// sppark's, or other lengths than planned.
    pub fn run(
        &self,
        points: DeviceSlice<C::Affine>,
        scalars: DeviceSlice<[u8; 32]>,
    ) -> Result<C::Projective> {
        ensure!(
            points.len() == self.len && scalars.len() == self.len,
            "a sum of {} points and {} scalars was set up for {}",
            points.len(),
            scalars.len(),
            self.len
        );
        let mut sum = C::Projective::identity();
        let (points, scalars) = (pointer(points), pointer(scalars));
        // SAFETY: the handle is `create`'s; the slices have `len` elements of live device memory;
        // the sum's type is three coordinates in blst's layout, as is sppark's.
        let code = unsafe {
            C::RUN(
                self.handle,
                (&raw mut sum).cast(),
                points,
                scalars,
                self.len,
            )
        };
        checked(code, "sum")?;
        Ok(sum)
    }
}

impl<C: Curve> Drop for Sum<C> {
    fn drop(&mut self) {
        // SAFETY: the handle is `create`'s, and used no more.
        unsafe { C::DESTROY(self.handle) };
    }
}

/// The sum of the points that `bits` selects, and the kernel's milliseconds.
///
/// # Errors
/// sppark's; lengths that it does not take.
pub fn select(
    points: DeviceSlice<G1Affine>,
    bits: DeviceSlice<u64>,
) -> Result<(G1Projective, f64)> {
    ensure!(
        points.len() == 64 * bits.len() && points.len().is_multiple_of(1024),
        "a selection needs a bit for each point and a multiple of 1024 points"
    );
    let mut sum = G1Projective::identity();
    let mut ms = 0.0;
    let len = u32::try_from(points.len())?;
    let (points, bits) = (pointer(points), pointer(bits));
    // SAFETY: as in `Sum::run`.
    let code = unsafe { sppark_g1_select((&raw mut sum).cast(), points, bits, len, &mut ms) };
    checked(code, "sum of selected points")?;
    Ok((sum, f64::from(ms)))
}

/// A transform in place, between natural and bit-reversed order; its milliseconds.
///
/// # Errors
/// sppark's.
pub fn ntt(values: DeviceSlice<Scalar>, from_reversed: bool, inverse: bool) -> Result<f64> {
    ensure!(values.len().is_power_of_two(), "a power of two of values");
    let mut ms = 0.0;
    // SAFETY: live device memory of as many values.
    let code = unsafe {
        sppark_ntt(
            pointer(values),
            values.len().ilog2(),
            from_reversed,
            inverse,
            &mut ms,
        )
    };
    checked(code, "transform")?;
    Ok(f64::from(ms))
}
