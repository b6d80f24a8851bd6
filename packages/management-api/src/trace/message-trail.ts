import type { BrokerObserver, ChannelType, OutgoingMessage } from '@signalbox/broker-core'
import { isReservedChannel } from '@signalbox/broker-core'

import { RESENT_FROM } from '../messages/edited-message.ts'

/** The steps of messages that a node remembers. */
export const MAX_REMEMBERED = 20_000

export const TRAIL_EVENTS = [
  'accepted',
  'delivered',
  'redelivered',
  'executed',
  'rejected',
  'unanswered',
  'redriven',
] as const

export type TrailEvent = (typeof TRAIL_EVENTS)[number]

/** A step of a message that this node has seen. */
export interface TrailStep {
  /** In ms since the epoch. */
  readonly at: number
  readonly event: TrailEvent
  readonly id: string
  readonly type: ChannelType
  readonly channel: string
  /** The ClientID of the sender, receiver or operator; the code of an error; empty if it is not known. */
  readonly party: string
  /** The id of the trace, from the tag traceparent. */
  readonly trace?: string
  /** The id of the message that this one repeats, or of the message that a redrive made of it. */
  readonly other?: string
  readonly deadLetterQueue?: string
}

/** The tag traceparent of W3C: version, trace id, span id and flags. */
const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/

/**
 * Remembers the last steps of messages on this node, in a ring: ids, channels and clients, no
 * bodies. The broker's own channels are left out.
 */
export class MessageTrail implements BrokerObserver {
  readonly #ring: TrailStep[] = []
  readonly #size: number
  #next = 0

  constructor(size = MAX_REMEMBERED) {
    this.#size = size
  }

  /** The time of the oldest step, in ms since the epoch; undefined while no step is forgotten. */
  get forgotBefore(): number | undefined {
    return this.#ring.length < this.#size ? undefined : this.#ring[this.#next]?.at
  }

  /** Returns the steps that match, oldest first. */
  find(matches: (step: TrailStep) => boolean): readonly TrailStep[] {
    if (this.#ring.length < this.#size) return this.#ring.filter(matches)
    return [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)].filter(matches)
  }

  readonly accepted: NonNullable<BrokerObserver['accepted']> = (type, channel, { clientId }, message) => {
    this.#add('accepted', type, channel, clientId, message)
  }

  readonly delivered: NonNullable<BrokerObserver['delivered']> = (type, channel, { clientId }, message) => {
    const again = 'receiveCount' in message && typeof message.receiveCount === 'number' && message.receiveCount > 1
    this.#add(again ? 'redelivered' : 'delivered', type, channel, clientId, message)
  }

  readonly answered: NonNullable<BrokerObserver['answered']> = (type, channel, id, outcome) => {
    const isReply = outcome === 'executed' || outcome === 'rejected'
    this.#add(isReply ? outcome : 'unanswered', type, channel, isReply ? '' : outcome, { id, tags: {} })
  }

  /** Records that a dead letter was sent back as a new message. */
  redriven(id: string, source: string, newId: string, client: string): void {
    this.#push({ at: Date.now(), event: 'redriven', id, type: 'queues', channel: source, party: client, other: newId })
  }

  #add(
    event: TrailEvent,
    type: ChannelType,
    channel: string,
    party: string,
    message: Pick<OutgoingMessage, 'id' | 'tags'>,
  ): void {
    if (isReservedChannel(channel)) return
    const { id, tags } = message
    const { traceparent, [RESENT_FROM]: other } = tags
    const trace = traceparent === undefined ? undefined : TRACEPARENT.exec(traceparent)?.[1]
    const queue = 'deadLetterQueue' in message ? message.deadLetterQueue : ''
    this.#push({
      at: Date.now(),
      event,
      id,
      type,
      channel,
      party,
      ...(trace === undefined ? {} : { trace }),
      ...(other === undefined ? {} : { other }),
      ...(typeof queue === 'string' && queue !== '' ? { deadLetterQueue: queue } : {}),
    })
  }

  #push(step: TrailStep): void {
    if (this.#ring.length < this.#size) this.#ring.push(step)
    else this.#ring[this.#next] = step
    this.#next = (this.#next + 1) % this.#size
  }
}
