import process from 'node:process'

import { readClientTls } from '../tls.ts'
import { bridgeStandardStreams, endpointUrl } from './standard-streams.ts'

/** The program of the MCP bundle. Its host asks the user for the URL and the token, and sets them in the environment. */
for (const name of ['SIGNALBOX_URL', 'SIGNALBOX_TOKEN']) {
  // A host may leave the placeholder of a setting without a value.
  if (process.env[name]?.startsWith('${user_config.')) delete process.env[name]
}
const url = endpointUrl(process.env['SIGNALBOX_URL'] || 'http://127.0.0.1:9090/mcp')
if (typeof url === 'string') {
  process.stderr.write(`signalbox mcp: SIGNALBOX_URL: ${url}\n`)
  process.exitCode = 2
} else {
  const { env } = process
  try {
    const tls = readClientTls({
      caFile: env['SIGNALBOX_CA_FILE'],
      certFile: env['SIGNALBOX_CERT_FILE'],
      keyFile: env['SIGNALBOX_KEY_FILE'],
    })
    await bridgeStandardStreams(url, tls)
  } catch (error) {
    process.stderr.write(`signalbox mcp: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 2
  }
}
