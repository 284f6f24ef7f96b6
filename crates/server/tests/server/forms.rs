//! What a client makes of a request file, whatever form it is in.

use filecoin::{Hints, Request, SubmitProofRequest};

use crate::common::request;

#[test]
fn a_file_in_any_form_becomes_the_message_that_asks_for_the_same() {
    let message = request("porep");
    let wanted =
        |message: &SubmitProofRequest| message.decode(Hints::default(), &mut Vec::new()).unwrap();
    let expected = wanted(&message);
    let hints = Hints {
        miner_id: Some(message.miner_id),
        sector_number: Some(message.sector_number),
    };
    // As a request file, and as the envelope that sealing software writes.
    for form in [message.to_json(), message.vanilla_proof.clone()] {
        let made = SubmitProofRequest::from_any(&form, hints).unwrap();
        assert_eq!(wanted(&made), expected);
        assert_eq!(Request::decode(&form, hints).unwrap().request, expected);
    }
    // What the file names goes before the hints.
    let other = Hints {
        miner_id: Some(1),
        sector_number: None,
    };
    let made = SubmitProofRequest::from_any(&message.to_json(), other).unwrap();
    assert_eq!(made.miner_id, message.miner_id);
    for nothing in [&b"[]"[..], b"", b"{}"] {
        assert!(SubmitProofRequest::from_any(nothing, hints).is_err());
    }
}
