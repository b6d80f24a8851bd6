import type { Buffer } from 'node:buffer'

import { isJsonObject } from '@signalbox/http-kit'

import { A2A_CODES } from '../../native/error-info.ts'
import { parseData } from '../../stream/own-events.ts'
import { fromBytes } from '../../stream/native-events.ts'
import { EventReader } from '../../stream/event-reader.ts'
import type { A2aMethod } from '../../wire/index.ts'
import { TERMINAL_03 } from '../../wire/index.ts'

/** The time for which the first event of a stream is awaited, in ms. Agents refuse a request at once. */
const WAIT_MS = 500

/** A refusal has a short text, and so has a task that has ended long ago. Longer first events are not read. */
const MAX_BYTES = 65_536

/** Subscribing to a task that has ended is an error in A2A 1.0 (section 3.1.6). */
const ENDED = JSON.stringify({
  jsonrpc: '2.0',
  id: null,
  error: {
    code: A2A_CODES.UNSUPPORTED_OPERATION,
    message: 'unsupported operation: the task has ended, so that it has no further events; read it with GetTask',
  },
})

/** Reads the first event of an agent of A2A 0.3, without taking it from the stream. */
export class FirstEvent {
  readonly #reader: EventReader
  readonly #found = Promise.withResolvers<string | undefined>()
  #bytes = 0
  #done = false

  constructor() {
    this.#reader = new EventReader(MAX_BYTES, ({ data }) => this.#end(data))
  }

  /** Reads a chunk of the stream. Does nothing after the first event. */
  readonly read = (chunk: Buffer): void => {
    if (this.#done) return
    this.#bytes += chunk.byteLength
    if (this.#bytes > MAX_BYTES || !this.#reader.feed(chunk)) this.#end(undefined)
  }

  /**
   * Returns the JSON-RPC response, in 0.3, that a caller of A2A 1.0 gets in place of the stream: agents of 1.0 refuse a
   * request for a stream with JSON. Undefined for any other stream, and for one whose first event takes long.
   */
  async refusal(method: A2aMethod | undefined): Promise<string | undefined> {
    const timer = setTimeout(() => this.#end(undefined), WAIT_MS)
    const data = await this.#found.promise
    clearTimeout(timer)
    const source = data === undefined ? undefined : parseData(data)
    if (typeof source !== 'object' || !isJsonObject(source.value)) return undefined
    const { error, result } = source.value
    if (isJsonObject(error)) return fromBytes(source.text)
    return method?.operation === 'resubscribe' && isEnded(result) ? ENDED : undefined
  }

  #end(data: string | undefined): void {
    this.#done = true
    this.#found.resolve(data)
  }
}

function isEnded(result: unknown): boolean {
  if (!isJsonObject(result) || result['kind'] !== 'task') return false
  const status: unknown = result['status']
  return isJsonObject(status) && TERMINAL_03.has(status['state'])
}
