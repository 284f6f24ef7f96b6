//! Decoding of uncompressed points, and the check of those that are Montgomery already.

use std::marker::PhantomData;

use groth16::key::PointFault;

use super::DevicePoint;
use crate::device::{Arena, Device, DeviceSlice, Kernel, Ledger, Lifetime, Params, Slot, Stream};
use crate::error::Result;
use crate::topic::Topic;

/// Threads in a block of the kernel.
const THREADS: u32 = 256;

/// What a decoder needs: room for the encoded points of one call.
#[derive(Debug, Clone, Copy)]
pub struct DecodePlan<P> {
    encoded: Slot<u8>,
    fault: Slot<u64>,
    point: PhantomData<fn() -> P>,
}

impl<P: DevicePoint> DecodePlan<P> {
    /// Plans for at most `points` at a time: as many encoded points of device memory.
    pub fn new(points: usize, lifetime: Lifetime, ledger: &mut Ledger) -> Self {
        let name = format!("points: encoded {}", P::GROUP);
        DecodePlan {
            encoded: ledger.reserve(name, points * P::BYTES, lifetime),
            fault: ledger.reserve("points: first fault", 1, lifetime),
            point: PhantomData,
        }
    }

    /// The decoder on `device`.
    ///
    /// # Errors
    /// The kernel is not in this build; a driver that fails.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<Decoder<P>> {
        Ok(Decoder {
            kernel: device.kernel(Topic::Points, P::DECODE)?,
            check: device.kernel(Topic::Points, P::CHECK)?,
            encoded: arena.get(self.encoded),
            fault: arena.get(self.fault),
            check_curve: false,
            point: PhantomData,
        })
    }
}

/// Decodes points on a device.
#[derive(Debug, Clone)]
pub struct Decoder<P> {
    kernel: Kernel,
    check: Kernel,
    encoded: DeviceSlice<u8>,
    fault: DeviceSlice<u64>,
    check_curve: bool,
    point: PhantomData<fn() -> P>,
}

/// Where the points of a section go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointOrder {
    /// Each to the place of its number.
    Natural,
    /// Each to the place of its number with the bits reversed. The section is a power of two long.
    BitReversed,
}

/// The first bad point of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Its index in the section.
    pub index: u64,
    /// What is wrong with it.
    pub fault: PointFault,
}

impl<P: DevicePoint> Decoder<P> {
    /// Refuses points that are not on the curve as well, as a key needs that no digest vouches
    /// for.
    #[must_use]
    pub fn with_curve_check(self) -> Self {
        Decoder {
            check_curve: true,
            ..self
        }
    }

    /// Where encoded points go before [`Self::decode`] is called on them.
    pub fn encoded(&self) -> DeviceSlice<u8> {
        self.encoded
    }

    /// Begins a section: forgets faults.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn begin(&self, stream: &Stream) -> Result<()> {
        stream.upload(self.fault, &[u64::MAX])
    }

    /// Queues the decoding of `out.len()` points at `encoded` (16-byte aligned, outside `out`), the
    /// first of which is number `first_index` of its section. Checks flags and canonical
    /// coordinates as [`KeyPoint::decode`](groth16::key::KeyPoint::decode) does; a bad point
    /// becomes infinity and is remembered for [`Self::fault`].
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If `encoded` has not the bytes of as many points.
    pub fn decode(
        &self,
        stream: &Stream,
        encoded: DeviceSlice<u8>,
        out: DeviceSlice<P>,
        first_index: u64,
    ) -> Result<()> {
        assert_eq!(encoded.len(), out.len() * P::BYTES, "bytes of the points");
        let len = u32::try_from(out.len()).expect("invariant: a section counts its points in u32");
        let params = DecodeParams {
            encoded: encoded.ptr(),
            points: out.ptr(),
            fault: self.fault.ptr(),
            first_index,
            len,
            check_curve: u32::from(self.check_curve),
        };
        stream.launch(&self.kernel, len.div_ceil(THREADS), THREADS, 0, &params)
    }

    /// Queues the check of the `count` points at `montgomery` (16-byte aligned, outside `section`), x and y as
    /// little-endian limbs in Montgomery form, the first of which is number `first_index` of its
    /// section, and puts them in their places there. Refuses coordinates that are not reduced and
    /// points off the curve; zeros, which are the point at infinity, unless `allow_infinity`. A bad point
    /// becomes infinity and is remembered for [`Self::fault`].
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the points are not of the section, or in bit-reversed order a section is no power of two long.
    pub fn check(
        &self,
        stream: &Stream,
        montgomery: DeviceSlice<u8>,
        (section, order): (DeviceSlice<P>, PointOrder),
        first_index: u64,
        allow_infinity: bool,
    ) -> Result<()> {
        let source: DeviceSlice<P> = montgomery.cast();
        let len =
            u32::try_from(source.len()).expect("invariant: a section counts its points in u32");
        assert!(
            first_index + u64::from(len) <= section.len() as u64,
            "points of the section"
        );
        let reversed_bits = match order {
            PointOrder::Natural => 0,
            PointOrder::BitReversed => {
                assert!(section.len().is_power_of_two(), "bits of an index");
                section.len().ilog2()
            }
        };
        let params = CheckParams {
            source: source.ptr(),
            points: section.ptr(),
            fault: self.fault.ptr(),
            first_index,
            len,
            reversed_bits,
            allow_infinity: u32::from(allow_infinity),
            _end: 0,
        };
        stream.launch(&self.check, len.div_ceil(THREADS), THREADS, 0, &params)
    }

    /// The first bad point since [`Self::begin`]; waits for the stream.
    ///
    /// # Errors
    /// A driver that fails, and failures of the work before.
    pub fn fault(&self, stream: &Stream) -> Result<Option<Fault>> {
        let mut word = [u64::MAX];
        stream.download(self.fault, &mut word)?;
        Ok((word[0] != u64::MAX).then(|| Fault {
            index: word[0] >> 8,
            fault: match word[0] & 0xff {
                1 => PointFault::Compressed,
                2 => PointFault::Infinity,
                3 => PointFault::StrayFlag,
                4 => PointFault::NotCanonical,
                _ => PointFault::NotOnCurve,
            },
        }))
    }

    /// Decodes `bytes`, all points of a section from the first on, into `out`, in as many pieces
    /// as the plan's room asks for.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the lengths do not agree.
    pub fn load(
        &self,
        stream: &Stream,
        bytes: &[u8],
        out: DeviceSlice<P>,
    ) -> Result<Option<Fault>> {
        assert_eq!(bytes.len(), out.len() * P::BYTES, "bytes of the points");
        self.begin(stream)?;
        let room = self.encoded.len() / P::BYTES;
        for (i, piece) in bytes.chunks(room * P::BYTES).enumerate() {
            let first = i * room;
            let encoded = self.encoded.slice(0..piece.len());
            stream.upload(encoded, piece)?;
            let out = out.slice(first..first + piece.len() / P::BYTES);
            self.decode(stream, encoded, out, first as u64)?;
        }
        self.fault(stream)
    }
}

/// `CheckParams` in `kernels/points/decode.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CheckParams {
    source: u64,
    points: u64,
    fault: u64,
    first_index: u64,
    len: u32,
    reversed_bits: u32,
    allow_infinity: u32,
    /// The C++ struct's size is a multiple of 8 as well.
    _end: u32,
}

// SAFETY: the same fields in the same order.
unsafe impl Params for CheckParams {}

/// `DecodeParams` in `kernels/points/decode.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DecodeParams {
    encoded: u64,
    points: u64,
    fault: u64,
    first_index: u64,
    len: u32,
    check_curve: u32,
}

// SAFETY: the same fields in the same order.
unsafe impl Params for DecodeParams {}
