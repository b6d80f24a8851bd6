import process from 'node:process'

import type { ClientTls } from '../tls.ts'
import { Bridge } from './bridge.ts'

/** The environment variable with the bearer token. */
const TOKEN_VARIABLE = 'SIGNALBOX_TOKEN'

/**
 * Runs the bridge between this process's standard streams and a server, until the host closes stdin or a signal
 * arrives. Only messages go to stdout; stderr has the lines for people.
 */
export async function bridgeStandardStreams(url: URL, tls?: ClientTls): Promise<void> {
  const token = process.env[TOKEN_VARIABLE] || undefined
  const { stdin, stdout, stderr } = process
  const log = (line: string): void => void stderr.write(`signalbox mcp: ${line}\n`)
  if (token !== undefined && url.protocol === 'http:' && !isLoopback(url.hostname)) {
    log(`the token crosses the network in clear text: use https, not ${url.protocol}//`)
  }
  const bridge = new Bridge({ url, token, tls, input: stdin, output: stdout, log })
  const stop = (): void => bridge.stop()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  log(`forwards messages to ${url.href}`)
  try {
    await bridge.run()
  } catch (error) {
    log(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host)
}

/**
 * Returns the URL of the MCP endpoint; `/mcp` if the text names only a host. Returns the problem as a text if the text
 * is not a URL of a server.
 */
export function endpointUrl(text: string): URL | string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    return `${JSON.stringify(text)}; allowed is an http or https URL without credentials, such as http://127.0.0.1:9090/mcp`
  }
  if (url.pathname === '/') url.pathname = '/mcp'
  return url
}
