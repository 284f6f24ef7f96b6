#!/usr/bin/env bash
# Makes the certificates of the tests, valid for a hundred years: an authority, the server's and a
# client's. They protect nothing.
set -euo pipefail
cd "$(dirname "$0")"
new() { # name, subject, extensions
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$2" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -out "$1.pem" \
        -extfile <(printf '%s\n' "$3") 2>/dev/null
    rm "$1.csr"
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem \
    -days 36500 -subj "/CN=cuzk test authority" 2>/dev/null
new server localhost 'subjectAltName=DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth'
new client "test client" 'extendedKeyUsage=clientAuth'
rm -f ca.key ca.srl
