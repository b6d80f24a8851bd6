import { createRequire } from 'node:module'

import type * as Undici from 'undici'

import { WebhookError } from '../errors.ts'
import type { EndpointAnswer, EndpointRequest } from '../format.ts'
import type { EndpointPolicy } from '../safety/endpoint-policy.ts'
import { AnswerReader, HEAD_MS } from './answer-reader.ts'
import type { OpenRequests } from './open-requests.ts'

/** The time for which an idle connection is kept, in ms: shorter than the shortest idle time-out of servers. */
const IDLE_MS = 1_500

/** The parts of a URL that a request needs. */
export interface EndpointUrl {
  readonly origin: string
  /** The path with the query. */
  readonly path: string
}

/** Returns the parts of a URL. Each member of a `URL` is computed when it is read. */
export function endpointUrl({ origin, pathname, search }: URL): EndpointUrl {
  return { origin, path: pathname + search }
}

const require = createRequire(import.meta.url)

/** Sends requests to endpoints: to permitted addresses only, without redirects, and within limits of time and size. */
export class EndpointClient {
  readonly #dispatcher: Undici.Agent

  constructor(policy: EndpointPolicy) {
    // Loaded here: a server without webhooks does not need the hundred files.
    const undici: typeof Undici = require('undici')
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
        const url = new URL(origin)
        const open = undici.buildConnector({ timeout: HEAD_MS, lookup: policy.lookupFor(url) })
        // Node calls no `lookup` for a host that is an address.
        const connect: Undici.buildConnector.connector = (target, callback) => {
          if (policy.permitsHost(url)) open(target, callback)
          else callback(new WebhookError('ENDPOINT_REFUSED', 'the endpoint may not be called'), null)
        }
        return new undici.Pool(origin, { ...options, connect })
      },
    })
  }

  /**
   * Sends a request. Resolves with the answer, whichever its status.
   * @param open The requests that are aborted together with this one
   * @throws Error without an answer in time, without a connection, or for a refused address; the reason of the abort
   */
  send(url: EndpointUrl, { method, headers, body }: EndpointRequest, open?: OpenRequests): Promise<EndpointAnswer> {
    const reader = new AnswerReader(open)
    if (open?.aborted) return reader.answer
    this.#dispatcher.dispatch(
      {
        origin: url.origin,
        path: url.path,
        method,
        headers: { 'user-agent': 'signalbox-webhooks', 'accept-encoding': 'identity', ...headers },
        body: body ?? null,
      },
      reader,
    )
    return reader.answer
  }

  /** Closes every connection, including those in use. */
  async close(): Promise<void> {
    await this.#dispatcher.destroy()
  }
}
