#!/bin/sh
# Makes what the parts need to know each other, in ./secrets:
#   secrets/nats/       ca.crt, tls.crt, tls.key, passwords.conf    for the NATS servers
#   secrets/signalbox/  ca.crt, nats-servers, public.pem            for the nodes
#   secrets/ca.key, secrets/keys/private.pem                        for you: keep them elsewhere
#
# Make tokens with:  npx signalbox token --folder secrets/keys --client-id NAME --roles ReadWrite --ttl 12h
#
# SERVERS are the names of the NATS servers, with ports if they differ from 4222; DAYS is how long certificates are
# valid. The nodes run as user 1000 and must be able to read their files: run this as user 1000, or as root.
set -eu
cd "$(dirname "$0")"
SERVERS=${SERVERS:-nats-1 nats-2 nats-3}
DAYS=${DAYS:-825}

if [ -e secrets ]; then
  echo "setup: ./secrets exists; nothing is changed. Remove it to start again." >&2
  exit 1
fi
umask 077
mkdir -p secrets/nats secrets/signalbox secrets/keys
cd secrets

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days "$DAYS" -keyout ca.key -out ca.crt \
  -subj '/CN=Signalbox NATS authority' -addext 'keyUsage=critical,keyCertSign,cRLSign' 2> /dev/null

names=''
for server in $SERVERS; do
  host=${server%:*}
  case $host in
    *[!0-9.]*) names="$names,DNS:$host" ;;
    *) names="$names,IP:$host" ;;
  esac
done
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout nats/tls.key -out tls.csr \
  -subj '/CN=nats' 2> /dev/null
printf '%s\n' 'basicConstraints=CA:FALSE' 'extendedKeyUsage=serverAuth,clientAuth' "subjectAltName=${names#,}" > tls.ext
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days "$DAYS" -extfile tls.ext -out nats/tls.crt 2> /dev/null
rm -f tls.csr tls.ext ca.srl
cp ca.crt nats/ca.crt
mv ca.crt signalbox/ca.crt

password=$(openssl rand -hex 24)
printf 'SIGNALBOX_PASSWORD: "%s"\nOPERATOR_PASSWORD: "%s"\n' "$password" "$(openssl rand -hex 24)" > nats/passwords.conf
for server in $SERVERS; do
  case $server in
    *:*) address=$server ;;
    *) address=$server:4222 ;;
  esac
  printf 'tls://signalbox:%s@%s\n' "$password" "$address"
done > signalbox/nats-servers

openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out keys/private.pem 2> /dev/null
openssl pkey -in keys/private.pem -pubout -out signalbox/public.pem

if [ "$(id -u)" = 0 ]; then
  chown -R 1000:1000 signalbox
elif [ "$(id -u)" != 1000 ]; then
  echo "setup: you are not user 1000, as which the nodes run: chown -R 1000:1000 secrets/signalbox" >&2
fi
echo "setup: ./secrets is ready; keep secrets/ca.key and secrets/keys away from the servers"
