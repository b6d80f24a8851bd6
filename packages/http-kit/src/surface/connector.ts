import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { HttpHandler, HttpRequest } from './http-message.ts'
import type { ConnectorOptions } from './options.ts'
import { DEFAULT_DRAIN_MS } from './options.ts'

/**
 * A request listener for Node's HTTP server, or for a framework that gives access to Node's request and response. An
 * unknown path is answered with 404 in plain text. `headers` are added to the answer, such as CORS headers of the
 * host.
 */
export type NodeHandler = (request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders) => void

/** An HTTP surface that can be mounted in a server. Every connector factory returns one. */
export interface Connector extends AsyncDisposable {
  /**
   * The connector for Node's HTTP server: `http.createServer(connector.handler)`. Call `close` before you close the
   * server.
   */
  readonly handler: NodeHandler
  /**
   * Rejects new calls, ends streams, and waits for the calls in flight for at most `graceMs` milliseconds; 0 does not
   * wait. Idempotent: later calls wait for the first. `await using` calls it too.
   * @default graceMs the option `drainMs`
   */
  close(graceMs?: number): Promise<void>
}

/** The parts of a connector. */
export interface ConnectorParts {
  readonly handler: HttpHandler
  readonly close: (graceMs: number) => Promise<void>
}

/** Returns a connector for a surface, which reads bodies itself. */
export function createConnector(
  parts: ConnectorParts,
  { drainMs = DEFAULT_DRAIN_MS }: Pick<ConnectorOptions, 'drainMs'>,
): Connector {
  return {
    handler: (request, response, headers) => {
      checkHost(request, response)
      parts.handler(request, response, headers)
    },
    close: (graceMs = drainMs) => parts.close(graceMs),
    [Symbol.asyncDispose]: () => parts.close(drainMs),
  }
}

/** @throws TypeError for a request without a socket, such as one of the Fetch API */
function checkHost(request: unknown, response: unknown): void {
  if (hasMethod(memberOf(request, 'socket'), 'once') && hasMethod(response, 'writeHead')) return
  throw new TypeError(
    'the handler takes a request of node:http with its socket, and its response; ' +
      'in a host that passes a Request of the Fetch API, mount createMcpFetchHandler of @signalbox/connector-mcp',
  )
}

function hasMethod(object: unknown, name: string): boolean {
  return typeof memberOf(object, name) === 'function'
}

function memberOf(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined
}

/** Hooks that may have one for failures. */
export interface FailureHooks {
  failed?(error: unknown, request?: HttpRequest): void
}

/** Returns the hook `failed`. Without one, failures go to stderr, in one line each: otherwise they would be lost. */
export function failureHook(hooks: FailureHooks): (error: unknown, request?: HttpRequest) => void {
  return (error, request) => {
    if (hooks.failed === undefined) reportFailure(error, request)
    else hooks.failed(error, request)
  }
}

/** Returns a hook whose errors are dropped; `undefined` for none. */
export function quietHook<Arguments extends unknown[]>(
  hook: ((...args: Arguments) => void) | undefined,
): ((...args: Arguments) => void) | undefined {
  if (hook === undefined) return undefined
  return (...args) => {
    try {
      hook(...args)
    } catch {}
  }
}

function reportFailure(error: unknown, request: HttpRequest | undefined): void {
  const what = request === undefined ? 'failure' : `request failed: ${request.method} ${request.url?.split('?', 1)[0]}`
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const line = text
    .split('\n')
    .map((part) => part.trim())
    .join(' | ')
  process.stderr.write(`signalbox: ${what}: ${line}\n`)
}
