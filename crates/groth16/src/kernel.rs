//! The choice of arithmetic, at run time.

use std::fmt;

/// Which arithmetic adds points and transforms vectors. The results are the same bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// One element at a time, on any processor.
    Portable,
    /// Eight elements at a time with AVX-512 IFMA.
    Avx512Ifma,
}

impl Kernel {
    /// The fastest kernel that this processor runs.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if crate::avx512::supported() {
            return Kernel::Avx512Ifma;
        }
        Kernel::Portable
    }

    /// Every kernel that this processor runs, the portable one first.
    pub fn available() -> Vec<Self> {
        match Self::detect() {
            Kernel::Portable => vec![Kernel::Portable],
            detected => vec![Kernel::Portable, detected],
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kernel::Portable => "portable arithmetic",
            Kernel::Avx512Ifma => "AVX-512 IFMA arithmetic",
        })
    }
}
