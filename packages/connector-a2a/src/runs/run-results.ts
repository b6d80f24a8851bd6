import { Buffer } from 'node:buffer'

import type { JsonObject } from '@signalbox/http-kit'

import type { ServerSentEvent } from '../stream/event-reader.ts'
import { EventReader } from '../stream/event-reader.ts'
import { fromBytes } from '../stream/native-events.ts'
import type { WireVersion } from '../wire/index.ts'
import {
  isObject,
  METHODS,
  parsedJson,
  StreamTranslation,
  translateResult,
  UntranslatableError,
} from '../wire/index.ts'
import type { RunChunk } from './run-log.ts'

/** A result of a run, in A2A 1.0: a StreamResponse, or the error of the agent. */
export interface RunResult {
  /** The sequence of the event in its run. */
  readonly sequence: number
  /** The place among the results of one event: a translation may add one. */
  readonly part: number
  /** True for the last result of its event. */
  readonly isLast: boolean
  readonly result: unknown
  readonly error?: JsonObject | undefined
}

/** Reads the chunks of one run, in order, as results of A2A 1.0. Events that are no results are left out. */
export class RunResults {
  /** The log has no event that is too large. */
  readonly #reader = new EventReader(Infinity, (event) => this.#onEvent(event))
  #translation: StreamTranslation | undefined
  #sequence = 0
  #results: RunResult[] = []

  /** Returns the results of the events that end in the next chunk. */
  read({ body, continues, first, reply, wire }: RunChunk): readonly RunResult[] {
    if (reply !== undefined) return resultsOf(first, [plainResult(reply.body, wire)])
    this.#translation ??= new StreamTranslation(wire ?? '0.3', '1.0')
    // Older chunks may have been removed.
    if (!continues) this.#sequence = first - 1
    this.#results = []
    this.#reader.feed(Buffer.from(body.buffer, body.byteOffset, body.byteLength))
    return this.#results
  }

  #onEvent({ event, data }: ServerSentEvent): void {
    const sequence = ++this.#sequence
    if (event !== undefined) return
    const response = parsedJson(fromBytes(data))
    if (!isObject(response)) return
    const { error, result } = response
    if (isObject(error)) this.#results.push({ sequence, part: 0, isLast: true, result: undefined, error })
    else if (isObject(result)) this.#results.push(...resultsOf(sequence, this.#translated(result)))
  }

  #translated(result: unknown): readonly unknown[] {
    // A reader of the stream gets the error for one that cannot be translated.
    return orNothing(() => this.#translation?.next(result)) ?? []
  }
}

function resultsOf(sequence: number, results: readonly unknown[]): RunResult[] {
  return results.map((result, part) => ({ sequence, part, isLast: part === results.length - 1, result }))
}

/** Returns the result of a plain answer to a message, in A2A 1.0; undefined if it has none. */
function plainResult(body: Uint8Array, wire: WireVersion | undefined): unknown {
  const response = parsedJson(body)
  const result = isObject(response) ? response['result'] : undefined
  if (!isObject(result)) return undefined
  const from = wire ?? (result['kind'] === undefined ? '1.0' : '0.3')
  return orNothing(() => translateResult(METHODS.send, from, '1.0', result))
}

/** Returns a translation; undefined if there is none. */
export function orNothing<T>(translate: () => T): T | undefined {
  try {
    return translate()
  } catch (error) {
    if (error instanceof UntranslatableError) return undefined
    throw error
  }
}
