// Asks a probe of the server in this container: `node healthcheck.mjs /ready`. Exits with 0 for a status of 200.
//
// It asks the shared listener, which it finds by the settings of the environment. For settings in a file, set
// HEALTHCHECK_URL, such as https://127.0.0.1:9443. For a listener that requires client certificates, mount one, and set
// HEALTHCHECK_CERT_FILE and HEALTHCHECK_KEY_FILE.
import { readFileSync } from 'node:fs'
import { get as getPlain } from 'node:http'
import { get as getTls } from 'node:https'

const { HTTP_PORT = '9090', SECURITY_CERT_FILE = '', HEALTHCHECK_URL } = process.env
const { HEALTHCHECK_CERT_FILE: cert, HEALTHCHECK_KEY_FILE: key } = process.env
const base = HEALTHCHECK_URL ?? `${SECURITY_CERT_FILE === '' ? 'http' : 'https'}://127.0.0.1:${HTTP_PORT}`
const url = new URL(process.argv[2] ?? '/ready', base)

const get = url.protocol === 'https:' ? getTls : getPlain
const certificate = cert && key ? { cert: readFileSync(cert), key: readFileSync(key) } : {}
// The server's certificate is for its public name, and this request does not leave the container.
get(url, { timeout: 4_000, rejectUnauthorized: false, ...certificate }, (response) => {
  response.resume()
  response.on('end', () => process.exit(response.statusCode === 200 ? 0 : 1))
})
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1))
