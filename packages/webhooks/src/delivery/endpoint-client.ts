import { Buffer } from 'node:buffer'
import { createRequire } from 'node:module'

import type * as Undici from 'undici'

import type { EndpointAnswer, EndpointRequest } from '../format.ts'
import { WebhookError } from '../errors.ts'
import type { EndpointPolicy } from '../safety/endpoint-policy.ts'

/** The time from the start of a request to the head of its answer, in ms. */
const HEAD_MS = 10_000

/** The additional time for the rest of the answer, in ms. */
const REST_MS = 5_000

/** The most bytes of an answer that are read, and that are kept. */
const READ_BYTES = 65_536
const KEPT_BYTES = 4_096

/** The time for which an idle connection is kept, in ms: shorter than the shortest idle time-out of servers. */
const IDLE_MS = 1_500

const require = createRequire(import.meta.url)

/** Sends requests to endpoints: to permitted addresses only, without redirects, and within limits of time and size. */
export class EndpointClient {
  readonly #policy: EndpointPolicy
  readonly #dispatcher: Undici.Agent
  readonly #request: typeof Undici.request

  constructor(policy: EndpointPolicy) {
    // Loaded here: a server without webhooks does not need the hundred files.
    const undici: typeof Undici = require('undici')
    this.#policy = policy
    this.#request = undici.request
    const options: Undici.Pool.Options = {
      // No limit for an origin: an endpoint that hangs must not delay others of the same host. `Slots` has the limits.
      connections: null,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      // Each request has its own deadline.
      headersTimeout: 0,
      bodyTimeout: 0,
    }
    this.#dispatcher = new undici.Agent({
      factory(origin) {
        const connect = { timeout: HEAD_MS, lookup: policy.lookupFor(new URL(origin)) }
        return new undici.Pool(origin, { ...options, connect })
      },
    })
  }

  /**
   * Sends a request. Resolves with the answer, whichever its status.
   * @throws Error without an answer in time, without a connection, or for a refused address; the signal's reason
   */
  async send(url: URL, { method, headers, body }: EndpointRequest, signal?: AbortSignal): Promise<EndpointAnswer> {
    signal?.throwIfAborted()
    if (!this.#policy.permitsHost(url)) throw new WebhookError('ENDPOINT_REFUSED', 'the endpoint may not be called')
    const abort = new AbortController()
    const stop = (): void => abort.abort(signal?.reason)
    signal?.addEventListener('abort', stop, { once: true })
    let timer = setTimeout(() => abort.abort(new Error(`no answer within ${HEAD_MS / 1000} s`)), HEAD_MS)
    try {
      const answer = await this.#request(url, {
        dispatcher: this.#dispatcher,
        method,
        signal: abort.signal,
        headers: { 'user-agent': 'signalbox-webhooks', ...headers },
        ...(body === undefined ? {} : { body }),
      })
      clearTimeout(timer)
      timer = setTimeout(() => abort.abort(new Error('the answer did not end in time')), REST_MS)
      const { statusCode, headers: answerHeaders } = answer
      return { status: statusCode, headers: answerHeaders, text: await textOf(answer.body) }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  /** Closes every connection, including those in use. */
  async close(): Promise<void> {
    await this.#dispatcher.destroy()
  }
}

/** Reads an answer up to a limit, and returns its beginning. The rest of a longer answer is dropped. */
async function textOf(body: AsyncIterable<unknown> & { destroy(): void }): Promise<string> {
  const kept: Buffer[] = []
  let read = 0
  let keptBytes = 0
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) continue
    read += chunk.byteLength
    if (keptBytes < KEPT_BYTES) {
      const part = Buffer.from(chunk.subarray(0, KEPT_BYTES - keptBytes))
      kept.push(part)
      keptBytes += part.byteLength
    }
    if (read > READ_BYTES) break
  }
  return kept.length === 0 ? '' : Buffer.concat(kept).toString('utf8')
}
