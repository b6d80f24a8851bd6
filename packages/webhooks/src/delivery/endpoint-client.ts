import type { EndpointAnswer, EndpointRequest } from '@signalbox/broker-core/ports'
import type { AnswerLimits, OpenRequests } from '@signalbox/http-kit/internal'
import { AnswerReader, failureOf, OutboundConnections, OutboundTarget } from '@signalbox/http-kit/internal'

import { WebhookError } from '../errors.ts'
import type { EndpointPolicy } from '../safety/endpoint-policy.ts'

/** Limits of an answer: 10 s until its head and 5 s for its body, of which the first 64 KiB are read and 4 KiB are kept. */
const LIMITS: AnswerLimits = { headMs: 10_000, restMs: 5_000, maxBytes: 65_536, keptBytes: 4_096 }

/** The account of all lookups: `Slots` limits the deliveries. */
const ACCOUNT = 'webhooks'

/** Sends requests to endpoints: to permitted addresses only, without redirects, and within limits of time and size. */
export class EndpointClient {
  readonly #connections: OutboundConnections

  constructor(policy: EndpointPolicy) {
    this.#connections = new OutboundConnections({ addressPolicy: policy, http2: true })
  }

  /** Prepares requests to an endpoint. */
  to(url: string): OutboundTarget {
    return new OutboundTarget(url, ACCOUNT, this.#connections)
  }

  /**
   * Sends a request. Resolves with the answer, whichever its status.
   * @param open The requests that are aborted together with this one
   * @throws Error without an answer in time, without a connection, or for a refused address; the reason of the abort
   */
  send(
    target: OutboundTarget,
    { method, headers, body }: EndpointRequest,
    open?: OpenRequests,
  ): Promise<EndpointAnswer> {
    const reader = new AnswerReader(LIMITS, open)
    if (!target.permitted) reader.abort(new WebhookError('ENDPOINT_REFUSED', 'the endpoint may not be called'))
    else if (open?.aborted !== true) {
      const sent = { 'user-agent': 'signalbox-webhooks', 'accept-encoding': 'identity', ...headers }
      target.request(method, sent, body ?? null, reader)
    }
    return reader.answer
  }

  /** Closes every connection, including those in use. */
  close(): Promise<void> {
    return this.#connections.close()
  }
}

/** The class of a failed connection, for the owner of a subscription. It reveals nothing else about the network. */
type ConnectionFailure = 'connection_refused' | 'timeout' | 'tls_error'

/** Returns the class of a connection's error. */
export function classOf(error: unknown): ConnectionFailure {
  const { kind, code } = failureOf(error)
  if (kind === 'tls') return 'tls_error'
  // Without a code it is the deadline of the client.
  return kind === 'timeout' || kind === 'connect_timeout' || code === '' ? 'timeout' : 'connection_refused'
}
