import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { Readable } from 'node:stream'

import type { Fetch } from '@signalbox/client'

import type { ClientTls } from '../tls/client-tls.ts'

/** Statuses of answers that have no body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Returns a `fetch` whose connections have the TLS: the global one takes no certificates without the classes of its
 * library. Bodies are texts, and redirects are errors.
 */
export function fetchWith(tls: ClientTls): Fetch {
  const agent = new Agent({ ...tls, keepAlive: true })
  return async (url, init) => {
    if (!url.startsWith('https:')) return fetch(url, init)
    const answer = await send(agent, url, init)
    const { statusCode = 0, rawHeaders } = answer
    if (statusCode >= 300 && statusCode <= 399 && answer.headers.location !== undefined) {
      answer.destroy()
      throw new TypeError(`${url} answered with a redirect`)
    }
    const headers = new Headers()
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) headers.append(rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '')
    if (!WITHOUT_BODY.has(statusCode)) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of Node and of the platform differ
      return new Response(Readable.toWeb(answer) as ReadableStream<Uint8Array>, { status: statusCode, headers })
    }
    answer.resume()
    return new Response(null, { status: statusCode, headers })
  }
}

/** Sends a request. Resolves with the head of the answer. Aborting the signal closes the connection. */
function send(
  agent: Agent,
  url: string,
  { method = 'GET', headers, body, signal }: RequestInit,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    if (body !== undefined && body !== null && typeof body !== 'string') throw new TypeError('the body must be a text')
    const outgoing = request(url, { agent, method, headers: Object.fromEntries(new Headers(headers)) })
    const abort = (): void => {
      const reason: unknown = signal?.reason
      outgoing.destroy(reason instanceof Error ? reason : new Error(String(reason)))
    }
    outgoing.once('response', resolve)
    outgoing.on('error', reject)
    outgoing.once('close', () => signal?.removeEventListener('abort', abort))
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort, { once: true })
    outgoing.end(body ?? undefined)
  })
}
