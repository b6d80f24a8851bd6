import type { BrokerObserver, RequestOutcome, RequestType } from '@signalbox/broker-core'
import { isReservedChannel } from '@signalbox/broker-core'

/** The most commands and queries that are listed at a time, waiting ones and ended ones each. */
export const MAX_OPEN = 10_000
export const MAX_ENDED = 200

/** The deliveries that are remembered until their request is accepted, in the same tick. */
const MAX_EARLY = 64

/** A command or query as this node has seen it. */
export interface SeenRequest {
  readonly id: string
  readonly type: RequestType
  readonly channel: string
  /** The ClientID of the requester. */
  readonly client: string
  readonly bodySize: number
  /** In ms since the epoch. */
  readonly sentAt: number
  /** The first delivery on this node, and its responder; undefined if there is none. */
  readonly delivered: { readonly at: number; readonly responder: string } | undefined
  readonly ended?: { readonly at: number; readonly outcome: RequestOutcome }
}

/**
 * The commands and queries that were sent on this node: those that wait for an answer, and the last
 * that ended. Requests on the broker's own channels, such as calls of agents, are left out.
 */
export class OpenRequests implements BrokerObserver {
  readonly #open = new Map<string, SeenRequest>()
  readonly #ended: SeenRequest[] = []
  /** Deliveries of requests that are not accepted yet: an engine may deliver before it returns. */
  readonly #early = new Map<string, NonNullable<SeenRequest['delivered']>>()
  readonly #onEnded: (request: SeenRequest) => void
  #left = 0

  constructor(onEnded: (request: SeenRequest) => void = () => {}) {
    this.#onEnded = onEnded
  }

  /** Waiting requests, oldest first. */
  waiting(): readonly SeenRequest[] {
    return [...this.#open.values()]
  }

  /** Ended requests, newest first. */
  ended(): readonly SeenRequest[] {
    return this.#ended.toReversed()
  }

  /** The number of requests that were not listed, because too many waited. */
  get unlisted(): number {
    return this.#left
  }

  readonly accepted: NonNullable<BrokerObserver['accepted']> = (type, channel, { clientId }, { id, body }) => {
    if ((type !== 'commands' && type !== 'queries') || isReservedChannel(channel)) return
    if (this.#open.size >= MAX_OPEN) {
      this.#left++
      return
    }
    const delivered = this.#early.get(id)
    this.#early.delete(id)
    this.#open.set(id, {
      id,
      type,
      channel,
      client: clientId,
      bodySize: body.byteLength,
      sentAt: Date.now(),
      delivered,
    })
  }

  readonly delivered: NonNullable<BrokerObserver['delivered']> = (type, channel, { clientId: responder }, { id }) => {
    if ((type !== 'commands' && type !== 'queries') || isReservedChannel(channel)) return
    const delivered = { at: Date.now(), responder }
    const request = this.#open.get(id)
    if (request === undefined) this.#rememberEarly(id, delivered)
    else if (request.delivered === undefined) this.#open.set(id, { ...request, delivered })
  }

  /** A responder of this node also gets requests of other nodes, which are never accepted here. */
  #rememberEarly(id: string, delivered: NonNullable<SeenRequest['delivered']>): void {
    this.#early.set(id, delivered)
    if (this.#early.size <= MAX_EARLY) return
    const [oldest] = this.#early.keys()
    if (oldest !== undefined) this.#early.delete(oldest)
  }

  readonly answered: NonNullable<BrokerObserver['answered']> = (_type, _channel, id, outcome) => {
    const request = this.#open.get(id)
    if (request === undefined) return
    this.#open.delete(id)
    const ended = { ...request, ended: { at: Date.now(), outcome } }
    this.#ended.push(ended)
    if (this.#ended.length > MAX_ENDED) this.#ended.shift()
    this.#onEnded(ended)
  }
}
