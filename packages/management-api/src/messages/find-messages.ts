import { setImmediate as nextTurn } from 'node:timers/promises'

import type { BrokerHandle } from '@signalbox/broker-core'
import { decodeText } from '@signalbox/broker-core'
import { messageSize, Pace } from '@signalbox/broker-core/internal'

import { messageSizeInJson } from '@signalbox/http-kit/internal'

import { firstBytes, newestFirst, oldestFirst } from './stored-messages.ts'
import type { ShownMessage } from './shown-message.ts'
import { shownMessage } from './shown-message.ts'
import type { ReadingStart, StoredChannel, StoredMessage } from './stored-messages.ts'

/** The bounds of one request: messages looked at, their bytes, and the time, in ms. */
export const MAX_EXAMINED = 10_000
const MAX_EXAMINED_BYTES = 64 * 1024 * 1024
const MAX_EXAMINED_MS = 5_000

/** The most bytes of messages in one answer, in JSON. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/** The characters of a text that are searched in one piece: a few milliseconds. */
const SEARCHED = 262_144

/** All searches share the time. */
const pace = new Pace()

/** Counts the messages that a request looks at. */
export class Examination {
  readonly #until = performance.now() + MAX_EXAMINED_MS
  #bytes = 0
  #count = 0

  get count(): number {
    return this.#count
  }

  /** True if the request has looked at enough. It looks at one message at least. */
  get isOver(): boolean {
    if (this.#count === 0) return false
    return this.#count >= MAX_EXAMINED || this.#bytes >= MAX_EXAMINED_BYTES || performance.now() > this.#until
  }

  add(message: StoredMessage): void {
    this.#count++
    this.#bytes += messageSize(message)
  }
}

interface MessageSearch extends StoredChannel, ReadingStart {
  readonly order: 'oldest' | 'newest'
  readonly limit: number
  readonly maxBodySize: number
  /** A text in the id, sender, metadata, tags or body, in any case. */
  readonly search?: string | undefined
}

interface FoundMessages {
  readonly items: ShownMessage[]
  /** The sequence at which the search continues; null at the end of the channel. */
  readonly next_sequence: number | null
  /** The number of messages looked at. */
  readonly examined: number
}

/** Returns messages of a channel, in order. A search looks at a bounded number of messages. */
export async function findMessages(broker: BrokerHandle, request: MessageSearch): Promise<FoundMessages> {
  const { channel, limit, maxBodySize, order, search } = request
  const examination = new Examination()
  const matches = search === undefined ? undefined : textMatcher(search)
  const items: ShownMessage[] = []
  let bytes = 0
  const end = (next: number | null): FoundMessages => ({ items, next_sequence: next, examined: examination.count })
  // One message more than the page shows if there is a next page.
  const step = search === undefined ? limit + 1 : undefined
  const batches =
    order === 'newest' ? newestFirst(broker, channel, request, step) : oldestFirst(broker, request, request, step)
  for await (const batch of batches) {
    for (const message of batch) {
      if (items.length === limit || bytes >= MAX_ANSWER_BYTES || examination.isOver) return end(message.sequence)
      examination.add(message)
      if (matches !== undefined && !(await matches(message))) continue
      const shown = shownMessage(message, maxBodySize)
      const { metadata, tags } = shown
      bytes += messageSizeInJson({ body: firstBytes(message.body, maxBodySize), metadata, tags })
      items.push(shown)
    }
    await nextTurn()
  }
  return end(null)
}

/** Returns a message by its sequence or its id; undefined if the channel does not show it. */
export async function findMessage(
  broker: BrokerHandle,
  channel: StoredChannel,
  { sequence, id }: { readonly sequence?: number | undefined; readonly id?: string | undefined },
): Promise<StoredMessage | undefined> {
  if (sequence !== undefined) {
    for await (const [message] of oldestFirst(broker, channel, { fromSequence: sequence }, 1)) {
      return message?.sequence === sequence && (id === undefined || message.id === id) ? message : undefined
    }
    return undefined
  }
  const examination = new Examination()
  for await (const batch of oldestFirst(broker, channel)) {
    for (const message of batch) {
      if (message.id === id) return message
      if (examination.isOver) return undefined
      examination.add(message)
    }
    await nextTurn()
  }
  return undefined
}

function textMatcher(search: string): (message: StoredMessage) => Promise<boolean> {
  const text = search.toLowerCase()
  return async ({ id, clientId, metadata, tags, body }) => {
    for (const value of [id, clientId, metadata, ...Object.entries(tags).flat(), decodeText(body) ?? '']) {
      for (let at = 0; at < value.length; at += SEARCHED) {
        while (pace.isOver) await pace.rest()
        if (
          pace.run(() =>
            value
              .slice(at, at + SEARCHED + text.length)
              .toLowerCase()
              .includes(text),
          )
        )
          return true
      }
    }
    return false
  }
}
