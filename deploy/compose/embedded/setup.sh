#!/bin/sh
# Makes a key pair in ./keys that tokens are signed with. The container gets the public key alone.
# Make tokens with:  npx signalbox token --folder keys --client-id NAME --roles ReadWrite --ttl 12h
set -eu
cd "$(dirname "$0")"

if [ -e keys ]; then
  echo "setup: ./keys exists; nothing is changed. Remove it to start again." >&2
  exit 1
fi
(umask 077 && mkdir keys && openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out keys/private.pem 2> /dev/null)
openssl pkey -in keys/private.pem -pubout -out keys/public.pem
# The container reads the public key as its own user. Nobody else can enter the folder of the private key.
chmod 0644 keys/public.pem
echo "setup: keys/public.pem is for the server, keys/private.pem for whoever makes tokens"
