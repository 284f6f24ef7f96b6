//! The stored form of a request: the bytes whose SHA-256 is the request's identity.
//!
//! Fields 2–4, 10, 11, 20–23 and 30–32 of `cuzk.v1.SubmitProofRequest`, in the order of their
//! numbers, each as number (u32), length (u64) and bytes, all little-endian; integers are eight
//! bytes. Every field is there once, field 11 once for each of its items. The request id and the
//! priority are left out: they do not change what is proven. So the same question has the same
//! bytes, whoever asks and however urgently.

use crate::decode::{Hints, SubmitProofRequest, Warning};
use crate::error::Error;
use crate::request::Request;

/// Bytes of a field's number and length.
const HEAD: usize = 4 + 8;
/// The number of the repeated field.
const VANILLA_PROOFS: u32 = 11;
/// Every field, ascending.
const FIELDS: [u32; 12] = [2, 3, 4, 10, VANILLA_PROOFS, 20, 21, 22, 23, 30, 31, 32];

impl SubmitProofRequest {
    /// Writes the stored form; see the [module](self).
    pub fn to_payload(&self) -> Vec<u8> {
        let proofs: usize = self.vanilla_proofs.iter().map(|p| HEAD + p.len()).sum();
        let mut out = Vec::with_capacity(self.vanilla_proof.len() + proofs + 512);
        let mut put = |number: u32, bytes: &[u8]| {
            out.extend(number.to_le_bytes());
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        };
        // The wire's enumerations are signed; their bits are kept.
        put(2, &i64::from(self.proof_kind).to_le_bytes());
        put(3, &self.sector_size.to_le_bytes());
        put(4, &self.registered_proof.to_le_bytes());
        put(10, &self.vanilla_proof);
        for proof in &self.vanilla_proofs {
            put(VANILLA_PROOFS, proof);
        }
        put(20, &self.sector_number.to_le_bytes());
        put(21, &self.miner_id.to_le_bytes());
        put(22, &self.randomness);
        put(23, &u64::from(self.partition_index).to_le_bytes());
        put(30, &self.comm_r_old);
        put(31, &self.comm_r_new);
        put(32, &self.comm_d_new);
        out
    }

    /// Reads the stored form. Request id and priority are empty and zero.
    ///
    /// # Errors
    /// [`Error::BadField`] unless the bytes are exactly what [`Self::to_payload`] writes.
    pub fn from_payload(bytes: &[u8]) -> Result<Self, Error> {
        let mut request = Self::default();
        let mut rest = bytes;
        for number in FIELDS {
            while let Some(content) = take(&mut rest, number)? {
                request.set(number, content)?;
                if number != VANILLA_PROOFS {
                    break;
                }
            }
        }
        if rest.is_empty() {
            Ok(request)
        } else {
            let known = rest.first_chunk().map(|n| u32::from_le_bytes(*n));
            Err(bad(known.unwrap_or(0), "stands where no field may"))
        }
    }

    fn set(&mut self, number: u32, content: &[u8]) -> Result<(), Error> {
        match number {
            2 => {
                self.proof_kind = i32::try_from(integer(number, content)?.cast_signed())
                    .map_err(|_| bad(number, "is no enumeration value"))?;
            }
            3 => self.sector_size = integer(number, content)?,
            4 => self.registered_proof = integer(number, content)?,
            10 => self.vanilla_proof = content.to_vec(),
            VANILLA_PROOFS => self.vanilla_proofs.push(content.to_vec()),
            20 => self.sector_number = integer(number, content)?,
            21 => self.miner_id = integer(number, content)?,
            22 => self.randomness = content.to_vec(),
            23 => {
                self.partition_index = u32::try_from(integer(number, content)?)
                    .map_err(|_| bad(number, "is larger than 32 bits"))?;
            }
            30 => self.comm_r_old = content.to_vec(),
            31 => self.comm_r_new = content.to_vec(),
            _ => self.comm_d_new = content.to_vec(),
        }
        Ok(())
    }
}

impl Request {
    /// Decodes the stored form. What decoding finds odd was told when the request came in.
    ///
    /// # Errors
    /// [`Error::BadField`] for bytes that are not the stored form, else as
    /// [`SubmitProofRequest::decode`].
    pub fn from_payload(bytes: &[u8]) -> Result<Self, Error> {
        let mut warnings: Vec<Warning> = Vec::new();
        SubmitProofRequest::from_payload(bytes)?.decode(Hints::default(), &mut warnings)
    }
}

/// The content of the next field if its number is `number`. Only the repeated field may be absent.
fn take<'a>(rest: &mut &'a [u8], number: u32) -> Result<Option<&'a [u8]>, Error> {
    let next = rest.first_chunk().map(|found| u32::from_le_bytes(*found));
    if next != Some(number) {
        return match number {
            VANILLA_PROOFS => Ok(None),
            _ => Err(bad(number, "is missing")),
        };
    }
    let cut_short = || bad(number, "is cut short");
    let length = rest[4..].first_chunk().ok_or_else(cut_short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut_short())?;
    let content = rest[HEAD..].get(..length).ok_or_else(cut_short)?;
    *rest = &rest[HEAD + length..];
    Ok(Some(content))
}

fn integer(number: u32, content: &[u8]) -> Result<u64, Error> {
    let bytes: [u8; 8] = content
        .try_into()
        .map_err(|_| bad(number, "is not eight bytes long"))?;
    Ok(u64::from_le_bytes(bytes))
}

fn bad(number: u32, cause: &str) -> Error {
    Error::BadField {
        field: format!("field {number} of the stored request"),
        cause: cause.to_owned(),
        remedy: "submit the request again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::fixtures;
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    /// Without what the stored form leaves out.
    fn anonymous(submit: &SubmitProofRequest) -> SubmitProofRequest {
        SubmitProofRequest {
            request_id: String::new(),
            priority: 0,
            ..submit.clone()
        }
    }

    #[test]
    fn every_fixture_comes_back_and_means_the_same() {
        for fixture in fixtures::all() {
            for (submit, request) in fixture.submits().iter().zip(fixture.requests()) {
                let payload = submit.to_payload();
                assert_eq!(
                    SubmitProofRequest::from_payload(&payload).unwrap(),
                    anonymous(submit)
                );
                assert_eq!(
                    Request::from_payload(&payload).unwrap(),
                    request,
                    "{}",
                    fixture.name
                );
            }
        }
    }

    #[test]
    fn the_layout_is_that_of_the_description() {
        let request = SubmitProofRequest {
            request_id: "x".to_owned(),
            proof_kind: 3,
            priority: 4,
            vanilla_proofs: vec![vec![7, 8], Vec::new()],
            partition_index: 9,
            ..SubmitProofRequest::default()
        };
        let field = |number: u32, bytes: &[u8]| {
            let mut field = number.to_le_bytes().to_vec();
            field.extend((bytes.len() as u64).to_le_bytes());
            field.extend(bytes);
            field
        };
        let number = |n: u64| n.to_le_bytes();
        let expected = [
            field(2, &number(3)),
            field(3, &number(0)),
            field(4, &number(0)),
            field(10, &[]),
            field(11, &[7, 8]),
            field(11, &[]),
            field(20, &number(0)),
            field(21, &number(0)),
            field(22, &[]),
            field(23, &number(9)),
            field(30, &[]),
            field(31, &[]),
            field(32, &[]),
        ];
        assert_eq!(request.to_payload(), expected.concat());
        // A golden value: jobs stored by one version must be found by the next.
        let digest = hex::encode(Sha256::digest(SubmitProofRequest::default().to_payload()));
        assert_eq!(
            digest,
            "8ab17651d3c92039c4dbc6b4d818e5cfb4f0caacdcec870180cf5efc6bcae843"
        );
    }

    #[test]
    fn every_cut_and_every_extra_byte_is_refused() {
        let payload = SubmitProofRequest {
            vanilla_proofs: vec![vec![1; 5]; 3],
            ..SubmitProofRequest::default()
        }
        .to_payload();
        for end in 0..payload.len() {
            // Without its last items a list is still a list: only the end of the whole counts.
            assert!(
                SubmitProofRequest::from_payload(&payload[..end]).is_err(),
                "{end}"
            );
        }
        let mut longer = payload.clone();
        longer.push(0);
        assert!(SubmitProofRequest::from_payload(&longer).is_err());
        let mut endless = payload;
        endless[4..12].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(SubmitProofRequest::from_payload(&endless).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_what_is_read_is_written_the_same(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
            grafted in any::<bool>(),
            at in any::<proptest::sample::Index>(),
        ) {
            if grafted {
                let payload = SubmitProofRequest::default().to_payload();
                let change = bytes.first().copied().unwrap_or(1);
                bytes = payload;
                let at = at.index(bytes.len());
                bytes[at] ^= change;
            }
            if let Ok(request) = SubmitProofRequest::from_payload(&bytes) {
                prop_assert_eq!(request.to_payload(), bytes);
            }
        }
    }
}
