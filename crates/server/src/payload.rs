//! The stored form of a submission, over which its digest is taken.
//!
//! Fields 2–4, 10, 11, 20–23 and 30–32 of the message in order of their numbers, each as
//! number (u32), length (u64) and bytes, all little-endian. Integers are 8 bytes. Every entry of
//! field 11 is a record of its own; each of the other fields is there once, also when it is zero
//! or empty. What is left out, the request id and the priority, may differ between two
//! submissions of the same work.

mod upload;

use std::io::{self, Read};

use filecoin::SubmitProofRequest;

pub(crate) use upload::Upload;

/// Bytes in front of each field's content: number and length.
const HEADER: usize = 12;

/// A field's content.
enum Content<'a> {
    Integer([u8; 8]),
    Bytes(&'a [u8]),
}

impl Content<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Integer(bytes) => bytes,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Reads a submission in its stored form, without a copy of the vanilla proofs.
pub struct PayloadReader<'a> {
    records: Vec<([u8; HEADER], Content<'a>)>,
    /// The record being read, and how much of it is.
    at: (usize, usize),
}

impl Read for PayloadReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some((header, content)) = self.records.get(self.at.0) {
            let (content, done) = (content.bytes(), self.at.1);
            let rest = match done.checked_sub(HEADER) {
                None => &header[done..],
                Some(read) => &content[read..],
            };
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.at.1 += count;
            if self.at.1 == HEADER + content.len() {
                self.at = (self.at.0 + 1, 0);
            }
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
        }
        Ok(0)
    }
}

impl<'a> PayloadReader<'a> {
    /// The stored form of the message. Its SHA-256 is the request's digest.
    pub fn new(request: &'a SubmitProofRequest) -> Self {
        let mut records = Vec::with_capacity(12 + request.vanilla_proofs.len());
        let mut put = |number: u32, content: Content<'a>| {
            let mut header = [0; HEADER];
            header[..4].copy_from_slice(&number.to_le_bytes());
            header[4..].copy_from_slice(&(content.bytes().len() as u64).to_le_bytes());
            records.push((header, content));
        };
        let integer = |value: u64| Content::Integer(value.to_le_bytes());
        put(2, integer(i64::from(request.proof_kind).cast_unsigned()));
        put(3, integer(request.sector_size));
        put(4, integer(request.registered_proof));
        put(10, Content::Bytes(&request.vanilla_proof));
        for proof in &request.vanilla_proofs {
            put(11, Content::Bytes(proof));
        }
        put(20, integer(request.sector_number));
        put(21, integer(request.miner_id));
        put(22, Content::Bytes(&request.randomness));
        put(23, integer(request.partition_index.into()));
        put(30, Content::Bytes(&request.comm_r_old));
        put(31, Content::Bytes(&request.comm_r_new));
        put(32, Content::Bytes(&request.comm_d_new));
        Self {
            records,
            at: (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> SubmitProofRequest {
        SubmitProofRequest {
            request_id: "an id".to_owned(),
            proof_kind: 3,
            sector_size: 2048,
            registered_proof: 10,
            priority: 4,
            vanilla_proof: Vec::new(),
            vanilla_proofs: vec![vec![1, 2, 3], Vec::new(), vec![4]],
            sector_number: 7,
            miner_id: u64::MAX,
            randomness: vec![9; 32],
            partition_index: u32::MAX,
            comm_r_old: vec![5; 32],
            comm_r_new: Vec::new(),
            comm_d_new: vec![6],
        }
    }

    fn stored(message: &SubmitProofRequest) -> Vec<u8> {
        let mut bytes = Vec::new();
        PayloadReader::new(message).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn reading_in_steps_of_any_length_gives_the_same_bytes() {
        let message = message();
        let whole = stored(&message);
        for step in 1..20 {
            let mut reader = PayloadReader::new(&message);
            let (mut bytes, mut buffer) = (Vec::new(), vec![0; step]);
            loop {
                let count = reader.read(&mut buffer).unwrap();
                if count == 0 {
                    break;
                }
                bytes.extend_from_slice(&buffer[..count]);
            }
            assert_eq!(bytes, whole, "{step}");
        }
    }

    /// The digest is part of the contract: jobs are stored under it.
    #[test]
    fn the_digest_of_a_known_message_is_known() {
        let mut expected = Vec::new();
        let mut put = |number: u32, bytes: &[u8]| {
            expected.extend(number.to_le_bytes());
            expected.extend((bytes.len() as u64).to_le_bytes());
            expected.extend(bytes);
        };
        put(2, &[3, 0, 0, 0, 0, 0, 0, 0]);
        put(3, &[0, 8, 0, 0, 0, 0, 0, 0]);
        put(4, &[10, 0, 0, 0, 0, 0, 0, 0]);
        put(10, &[]);
        put(11, &[1, 2, 3]);
        put(11, &[]);
        put(11, &[4]);
        put(20, &[7, 0, 0, 0, 0, 0, 0, 0]);
        put(21, &[255; 8]);
        put(22, &[9; 32]);
        put(23, &[255, 255, 255, 255, 0, 0, 0, 0]);
        put(30, &[5; 32]);
        put(31, &[]);
        put(32, &[6]);
        assert_eq!(stored(&message()), expected);
        let digest = store::Digest::of(&expected).to_string();
        assert_eq!(
            digest,
            "f9715e6b88b469f531f014423e2f41ad06a7f541198608d1f71070c181b901c9"
        );
    }

    #[test]
    fn every_field_but_id_and_priority_enters_it() {
        let base = message();
        let changed = |change: fn(&mut SubmitProofRequest)| {
            let mut message = base.clone();
            change(&mut message);
            stored(&message)
        };
        let whole = stored(&base);
        assert_eq!(changed(|m| m.request_id.clear()), whole);
        assert_eq!(changed(|m| m.priority = 1), whole);
        let changes: [fn(&mut SubmitProofRequest); 13] = [
            |m| m.proof_kind = 4,
            |m| m.sector_size = 0,
            |m| m.registered_proof = 0,
            |m| m.vanilla_proof = vec![1],
            |m| m.vanilla_proofs.swap(0, 2),
            // The same bytes, cut otherwise.
            |m| m.vanilla_proofs = vec![vec![1, 2], vec![3], vec![4]],
            |m| m.sector_number = 0,
            |m| m.miner_id = 0,
            |m| m.randomness.clear(),
            |m| m.partition_index = 0,
            |m| m.comm_r_old.clear(),
            |m| m.comm_r_new = vec![0],
            |m| m.comm_d_new.clear(),
        ];
        for (i, change) in changes.into_iter().enumerate() {
            assert_ne!(changed(change), whole, "change {i}");
        }
    }
}
