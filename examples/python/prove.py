"""Gives a request file to a cuzk daemon and prints the proof.

A request file is the proto3 JSON of cuzk.v1.SubmitProofRequest, as under examples/requests.
"""

import argparse
import pathlib
import sys

import grpc
from google.protobuf import json_format

from cuzk.v1 import proving_pb2, proving_pb2_grpc

MESSAGE_LIMIT = 256 << 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="host:port or unix:///path")
    parser.add_argument("request", type=pathlib.Path, help="request file")
    parser.add_argument("--id", default="", help="the same request under the same id is proven once")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds")
    args = parser.parse_args()

    request = json_format.Parse(args.request.read_text(), proving_pb2.SubmitProofRequest())
    if args.id:
        request.request_id = args.id

    options = [
        ("grpc.max_send_message_length", MESSAGE_LIMIT),
        ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ]
    with grpc.insecure_channel(args.address, options) as channel:
        daemon = proving_pb2_grpc.ProvingEngineStub(channel)
        submitted = daemon.SubmitProof(request, timeout=60)
        print(f"job {submitted.job_id}, {submitted.queue_position} before it", file=sys.stderr)
        result = daemon.AwaitProof(
            proving_pb2.AwaitProofRequest(job_id=submitted.job_id), timeout=args.timeout
        )

    status = proving_pb2.AwaitProofResponse.Status.Name(result.status)
    if status != "COMPLETED":
        print(f"{status}: {result.error_message} ({result.error_code})", file=sys.stderr)
        return 1
    if result.test_key:
        print("made with a test key", file=sys.stderr)
    print(f"{len(result.proof)} bytes in {result.total_ms} ms", file=sys.stderr)
    print(result.proof.hex())
    return 0


if __name__ == "__main__":
    sys.exit(main())
