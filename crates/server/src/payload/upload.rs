//! The stored form of a request whose vanilla proofs come in pieces: the header says how long
//! each will be, so the records can be written while the bytes are still under way.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};

use bytes::{Buf as _, Bytes};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc::Receiver;

use crate::proto::v1::ProofKind;
use crate::proto::v2::SubmitHeader;

/// What comes next in the stored form.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// These bytes, known from the header.
    Known(Bytes),
    /// So many bytes of the upload.
    Coming(u64),
}

/// Reads an upload in its stored form, as its pieces arrive. Blocks while none is there.
///
/// After the last byte it waits for an empty piece: the sender's word that nothing more has come.
/// A sender that is gone before that is an error, [`ErrorKind::UnexpectedEof`], so that what is not
/// as it was announced is never stored.
pub(crate) struct Upload<'a> {
    next: VecDeque<Next>,
    pieces: Receiver<Bytes>,
    piece: Bytes,
    /// The sender has said that this was all.
    confirmed: bool,
    /// Over what has come so far, if somebody wants to know.
    hasher: Option<&'a mut Sha256>,
}

impl<'a> Upload<'a> {
    /// The upload that the header announces; `hasher` gets the bytes of the vanilla proofs.
    pub(crate) fn new(
        header: &SubmitHeader,
        pieces: Receiver<Bytes>,
        hasher: Option<&'a mut Sha256>,
    ) -> Self {
        Self {
            next: records(header),
            pieces,
            piece: Bytes::new(),
            confirmed: false,
            hasher,
        }
    }

    /// Fills `buffer` from the next piece; 0 bytes only for an empty buffer.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            self.piece = self.receive()?;
        }
        let count = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..count]);
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        Ok(count)
    }

    fn receive(&mut self) -> io::Result<Bytes> {
        let piece = self.pieces.blocking_recv();
        piece.ok_or_else(|| io::Error::new(ErrorKind::UnexpectedEof, "the upload ended too early"))
    }
}

impl Read for Upload<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(next) = self.next.front_mut() {
            match next {
                Next::Known(bytes) if bytes.is_empty() => {}
                Next::Coming(0) => {}
                Next::Known(bytes) => {
                    let count = buffer.len().min(bytes.len());
                    bytes.copy_to_slice(&mut buffer[..count]);
                    return Ok(count);
                }
                Next::Coming(left) => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX);
                    let most = buffer.len().min(most);
                    let count = self.take(&mut buffer[..most])?;
                    if let Some(Next::Coming(left)) = self.next.front_mut() {
                        *left -= count as u64;
                    }
                    return Ok(count);
                }
            }
            self.next.pop_front();
        }
        if !self.confirmed {
            self.confirmed = self.receive()?.is_empty();
        }
        Ok(0)
    }
}

/// The records of the stored form, in order; see the [module above](super).
fn records(header: &SubmitHeader) -> VecDeque<Next> {
    let mut records = VecDeque::with_capacity(12 + 2 * header.vanilla_proof_bytes.len());
    let mut known = Vec::new();
    put_integer(&mut known, 2, i64::from(header.proof_kind).cast_unsigned());
    put_integer(&mut known, 3, header.sector_size);
    put_integer(&mut known, 4, header.registered_proof);
    let is_porep = header.proof_kind() == ProofKind::PorepSealCommit;
    if !is_porep {
        put(&mut known, 10, &[]);
    }
    for &length in &header.vanilla_proof_bytes {
        put_head(&mut known, if is_porep { 10 } else { 11 }, length);
        records.push_back(Next::Known(std::mem::take(&mut known).into()));
        records.push_back(Next::Coming(length));
    }
    put_integer(&mut known, 20, header.sector_number);
    put_integer(&mut known, 21, header.miner_id);
    put(&mut known, 22, &header.randomness);
    put_integer(&mut known, 23, header.partition_index.into());
    put(&mut known, 30, &header.comm_r_old);
    put(&mut known, 31, &header.comm_r_new);
    put(&mut known, 32, &header.comm_d_new);
    records.push_back(Next::Known(known.into()));
    records
}

fn put_head(out: &mut Vec<u8>, number: u32, length: u64) {
    out.extend(number.to_le_bytes());
    out.extend(length.to_le_bytes());
}

fn put(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_head(out, number, bytes.len() as u64);
    out.extend(bytes);
}

fn put_integer(out: &mut Vec<u8>, number: u32, value: u64) {
    put(out, number, &value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use filecoin::SubmitProofRequest;

    use super::*;
    use crate::proto::v2::submit_request::Part;

    fn request(kind: i32) -> SubmitProofRequest {
        let proofs: Vec<Vec<u8>> = vec![vec![1, 2, 3], Vec::new(), vec![4; 1000]];
        let (one, many) = match kind {
            1 => (proofs.concat(), Vec::new()),
            _ => (Vec::new(), proofs),
        };
        SubmitProofRequest {
            request_id: "an id".to_owned(),
            proof_kind: kind,
            sector_size: 2048,
            registered_proof: 10,
            priority: 4,
            vanilla_proof: one,
            vanilla_proofs: many,
            sector_number: 7,
            miner_id: u64::MAX,
            randomness: vec![9; 32],
            partition_index: u32::MAX,
            comm_r_old: vec![5; 32],
            comm_r_new: Vec::new(),
            comm_d_new: vec![6],
        }
    }

    /// What our client makes of a request: the header, and the pieces.
    fn taken_apart(request: &SubmitProofRequest) -> (SubmitHeader, Vec<Bytes>) {
        let mut parts = crate::client::parts(Arc::new(request.clone()), 0).map(|part| part.part);
        let Some(Some(Part::Header(header))) = parts.next() else {
            panic!("the first part is the header");
        };
        let pieces = parts.map(|part| match part {
            Some(Part::Piece(piece)) => piece,
            other => panic!("{other:?}"),
        });
        (header, pieces.collect())
    }

    /// Reads a whole upload in steps of `step`, its pieces of `size` bytes.
    fn read(request: &SubmitProofRequest, size: usize, step: usize) -> io::Result<Vec<u8>> {
        let (header, content) = taken_apart(request);
        let content = content.concat();
        let (sender, pieces) = tokio::sync::mpsc::channel(content.len() + 1);
        for piece in content.chunks(size) {
            sender.try_send(Bytes::copy_from_slice(piece)).unwrap();
        }
        sender.try_send(Bytes::new()).unwrap();
        let mut hasher = Sha256::new();
        let mut upload = Upload::new(&header, pieces, Some(&mut hasher));
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; step]);
        loop {
            match upload.read(&mut buffer)? {
                0 => break,
                count => bytes.extend_from_slice(&buffer[..count]),
            }
        }
        assert_eq!(hasher.finalize()[..], Sha256::digest(&content)[..]);
        Ok(bytes)
    }

    #[test]
    fn an_upload_is_stored_as_the_same_request_in_one_message() {
        for kind in 1..=4 {
            let request = request(kind);
            let stored = request.to_payload();
            for (size, step) in [(1, 1), (7, 3), (64, 4096), (2000, 5)] {
                assert_eq!(read(&request, size, step).unwrap(), stored, "{kind}");
            }
        }
    }

    #[test]
    fn an_upload_that_ends_too_early_is_an_error() {
        let (header, content) = taken_apart(&request(3));
        // Also one of which all bytes have come, but not the word that they are all.
        for count in 0..=content.len() {
            let (sender, pieces) = tokio::sync::mpsc::channel(content.len() + 1);
            for piece in &content[..count] {
                sender.try_send(piece.clone()).unwrap();
            }
            drop(sender);
            let mut upload = Upload::new(&header, pieces, None);
            let error = upload.read_to_end(&mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{count}");
        }
    }
}
