"""Gives a request file to a cuzk daemon, follows the job, and prints the proof.

A request file is the proto3 JSON of cuzk.v1.SubmitProofRequest, as under examples/requests.
"""

import argparse
import hashlib
import pathlib
import sys
import time

import grpc
from google.protobuf import json_format

from cuzk.v1 import proving_pb2 as v1
from cuzk.v2 import proving_pb2 as v2
from cuzk.v2 import proving_pb2_grpc

PIECE = 1 << 20
PAUSE_S = 2


def parts(request):
    """The parts of an upload: a header, then the vanilla proofs in pieces."""
    is_porep = request.proof_kind == v1.POREP_SEAL_COMMIT
    proofs = [request.vanilla_proof] if is_porep else list(request.vanilla_proofs)
    header = v2.SubmitHeader(
        vanilla_proof_bytes=[len(proof) for proof in proofs],
        vanilla_sha256=hashlib.sha256(b"".join(proofs)).digest(),
    )
    # The other fields have the same names in both messages.
    for field, value in request.ListFields():
        if not field.name.startswith("vanilla_"):
            setattr(header, field.name, value)
    yield v2.SubmitRequest(header=header)
    for proof in proofs:
        for start in range(0, len(proof), PIECE):
            yield v2.SubmitRequest(piece=proof[start : start + PIECE])


def follow(daemon, job_id, deadline):
    """The result of a job, over broken connections and restarts of the daemon."""
    while True:
        try:
            left = deadline - time.monotonic()
            for state in daemon.WatchJob(v2.WatchJobRequest(job_id=job_id), timeout=left):
                if state.HasField("result"):
                    return state.result
                phase = v2.JobState.Phase.Name(state.phase)
                print(f"{phase} {state.units_proven}/{state.units}", file=sys.stderr)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                raise
            print(f"{error.details()}; asking again", file=sys.stderr)
            time.sleep(PAUSE_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="host:port or unix:///path")
    parser.add_argument("request", type=pathlib.Path, help="request file")
    parser.add_argument("--id", default="", help="the same request under the same id is proven once")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds")
    args = parser.parse_args()

    request = json_format.Parse(args.request.read_text(), v1.SubmitProofRequest())
    if args.id:
        request.request_id = args.id

    deadline = time.monotonic() + args.timeout
    # grpcio would name a Unix socket by its path, which HTTP/2 does not allow as an authority.
    options = [("grpc.default_authority", "localhost")] if args.address.startswith("unix:") else None
    with grpc.insecure_channel(args.address, options=options) as channel:
        daemon = proving_pb2_grpc.ProvingStub(channel)
        try:
            job = daemon.Submit(parts(request), timeout=60)
            print(f"job {job.job_id}, {job.queue_position} before it", file=sys.stderr)
            result = follow(daemon, job.job_id, deadline)
        except grpc.RpcError as error:
            trailers = dict(error.trailing_metadata() or ())
            code = trailers.get("cuzk-error-code", error.code().name)
            print(f"{error.details()} ({code})", file=sys.stderr)
            return 1

    status = v1.AwaitProofResponse.Status.Name(result.status)
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
