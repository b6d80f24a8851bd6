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
  /** The number of subscribers that got the message in this step, one after the other; otherwise 1. */
  readonly times: number
  readonly id: string
  readonly type: ChannelType
  readonly channel: string
  /** The ClientID of the sender, of the first receiver, or of the operator; the code of an error; empty if it is not known. */
  readonly party: string
  /** The id of the trace, from the tag traceparent. */
  readonly trace: string | undefined
  /** The id of the message that this one repeats, or of the message that a redrive made of it. */
  readonly other: string | undefined
  readonly deadLetterQueue: string | undefined
}

/** A place of the ring, which one step after another uses: this is on the path of every message. */
interface Slot extends Writable<Omit<TrailStep, 'trace'>> {
  /** The tag as it came: reading the id out of it would double the cost of a step. */
  traceparent: string | undefined
}

type Writable<Type> = { -readonly [Name in keyof Type]: Type[Name] }

/** The tag traceparent of W3C: version, trace id, span id and flags. */
const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/

/** The longest tag that is remembered, in characters; that of the current version has 55. */
const MAX_TRACEPARENT = 256

/**
 * Remembers the last steps of messages on this node, in a ring: ids, channels and clients, no
 * bodies. The broker's own channels are left out.
 */
export class MessageTrail implements BrokerObserver {
  readonly #ring: Slot[] = []
  readonly #size: number
  #next = 0
  #last: Slot | undefined

  constructor(size = MAX_REMEMBERED) {
    this.#size = size
  }

  /** The time of the oldest step, in ms since the epoch; undefined while no step is forgotten. */
  get forgotBefore(): number | undefined {
    return this.#ring.length < this.#size ? undefined : this.#ring[this.#next]?.at
  }

  /** Returns the steps that match, oldest first. */
  find(matches: (step: TrailStep) => boolean): readonly TrailStep[] {
    const inOrder =
      this.#ring.length < this.#size
        ? this.#ring
        : [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)]
    return inOrder.map(stepOf).filter(matches)
  }

  readonly accepted: NonNullable<BrokerObserver['accepted']> = (type, channel, { clientId }, message) => {
    this.#add('accepted', type, channel, clientId, message)
  }

  readonly delivered: NonNullable<BrokerObserver['delivered']> = (type, channel, { clientId }, message) => {
    const again = 'receiveCount' in message && typeof message.receiveCount === 'number' && message.receiveCount > 1
    const event = again ? 'redelivered' : 'delivered'
    const last = this.#last
    if (last !== undefined && last.id === message.id && last.event === event && last.channel === channel) last.times++
    else this.#add(event, type, channel, clientId, message)
  }

  readonly answered: NonNullable<BrokerObserver['answered']> = (type, channel, id, outcome) => {
    if (isReservedChannel(channel)) return
    const isReply = outcome === 'executed' || outcome === 'rejected'
    const slot = this.#take(isReply ? outcome : 'unanswered', type, channel, id)
    if (!isReply) slot.party = outcome
  }

  /** Records that a dead letter was sent back as a new message. */
  redriven(id: string, source: string, newId: string, client: string): void {
    const slot = this.#take('redriven', 'queues', source, id)
    slot.party = client
    slot.other = newId
  }

  #add(
    event: TrailEvent,
    type: ChannelType,
    channel: string,
    party: string,
    message: Pick<OutgoingMessage, 'id' | 'tags'>,
  ): void {
    if (isReservedChannel(channel)) return
    const { traceparent, [RESENT_FROM]: other } = message.tags
    const slot = this.#take(event, type, channel, message.id)
    slot.party = party
    slot.traceparent = (traceparent?.length ?? 0) > MAX_TRACEPARENT ? undefined : traceparent
    slot.other = other
    const queue = 'deadLetterQueue' in message ? message.deadLetterQueue : undefined
    slot.deadLetterQueue = typeof queue === 'string' && queue !== '' ? queue : undefined
  }

  /** Returns the place of a new step. */
  #take(event: TrailEvent, type: ChannelType, channel: string, id: string): Slot {
    const at = Date.now()
    let slot = this.#ring[this.#next]
    if (slot === undefined) {
      slot = {
        at,
        event,
        times: 1,
        id,
        type,
        channel,
        party: '',
        traceparent: undefined,
        other: undefined,
        deadLetterQueue: undefined,
      }
      this.#ring.push(slot)
    } else {
      slot.at = at
      slot.event = event
      slot.times = 1
      slot.id = id
      slot.type = type
      slot.channel = channel
      slot.party = ''
      slot.traceparent = undefined
      slot.other = undefined
      slot.deadLetterQueue = undefined
    }
    this.#next = (this.#next + 1) % this.#size
    this.#last = slot
    return slot
  }
}

function stepOf({ traceparent, ...step }: Slot): TrailStep {
  return { ...step, trace: traceparent === undefined ? undefined : TRACEPARENT.exec(traceparent)?.[1] }
}
