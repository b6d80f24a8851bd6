import { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'

import type { RunChunk } from '../runs/run-log.ts'
import type { ServerSentEvent } from '../stream/event-reader.ts'
import { EventReader } from '../stream/event-reader.ts'
import { fromBytes } from '../stream/native-events.ts'
import type { WireVersion } from '../wire/index.ts'
import {
  isObject,
  METHODS,
  parseForTranslation,
  StreamTranslation,
  translateResult,
  UntranslatableError,
} from '../wire/index.ts'

/** A result of a run, in A2A 1.0: a StreamResponse. */
export interface RunEvent {
  /** The sequence of the event in its run. */
  readonly sequence: number
  /** The place among the results of one event: a translation may add one. */
  readonly part: number
  /** True for the last result of its event. */
  readonly isLast: boolean
  readonly result: unknown
}

/** Reads the chunks of one run, in order, as events of A2A 1.0. Events that are no results are left out. */
export class RunEvents {
  readonly #reader: EventReader
  #translation: StreamTranslation | undefined
  #sequence = 0
  #events: RunEvent[] = []

  /** @param maxEventBytes The largest event, in bytes */
  constructor(maxEventBytes: number) {
    this.#reader = new EventReader(maxEventBytes, (event) => this.#onEvent(event))
  }

  /** Returns the events that end in the next chunk. */
  read({ body, continues, first, reply, wire }: RunChunk): readonly RunEvent[] {
    if (reply !== undefined) {
      return [{ sequence: first, part: 0, isLast: true, result: plainResult(reply.body, wire) }]
    }
    this.#translation ??= new StreamTranslation(wire ?? '0.3', '1.0')
    // Older chunks may have been removed.
    if (!continues) this.#sequence = first - 1
    this.#events = []
    this.#reader.feed(Buffer.from(body.buffer, body.byteOffset, body.byteLength))
    return this.#events
  }

  #onEvent({ event, data }: ServerSentEvent): void {
    const sequence = ++this.#sequence
    if (event !== undefined) return
    const response = parsed(fromBytes(data))
    if (!isObject(response) || !isObject(response['result'])) return
    const results = this.#translated(response['result'])
    for (const [part, result] of results.entries()) {
      this.#events.push({ sequence, part, isLast: part === results.length - 1, result })
    }
  }

  #translated(result: unknown): readonly unknown[] {
    try {
      return this.#translation?.next(result) ?? []
    } catch (error) {
      // A reader of the stream gets an error for it.
      if (error instanceof UntranslatableError) return []
      throw error
    }
  }
}

/** Returns the result of a plain answer to a message, in A2A 1.0; undefined if it has none. */
function plainResult(body: Uint8Array, wire: WireVersion | undefined): unknown {
  const response = parsed(decodeText(body) ?? '')
  const result = isObject(response) ? response['result'] : undefined
  if (!isObject(result)) return undefined
  const from = wire ?? (result['kind'] === undefined ? '1.0' : '0.3')
  try {
    return translateResult(METHODS.send, from, '1.0', result)
  } catch (error) {
    if (error instanceof UntranslatableError) return undefined
    throw error
  }
}

function parsed(text: string): unknown {
  try {
    return parseForTranslation(text)
  } catch {
    return undefined
  }
}
