import type { EventSourceMessage } from 'eventsource-parser'

import type { ClientContext } from './client-context.ts'
import { argumentError } from './errors.ts'
import type { StreamRequest, SubscribeOptions, Subscription } from './subscription.ts'
import { isFinal, subscribe } from './subscription.ts'
import type { Duration } from './time.ts'
import { backoff, milliseconds, pause, wholeSeconds } from './time.ts'

export interface ProjectOptions extends Omit<SubscribeOptions, 'group'> {
  /** Returns the sequence of the last event that was handled; `undefined` at the very first start. */
  readonly load: () => number | undefined | Promise<number | undefined>
  /** Stores the sequence of an event that was handled. */
  readonly save: (sequence: number) => unknown
  /** The first event of a projection that has handled no event. @default 'first' */
  readonly from?: StoreStart | undefined
}

/** A reader that handles every event of a store, and keeps its position. */
export class Projection implements Subscription {
  /** Resolves when the server has accepted the subscription. */
  readonly ready: Promise<void>
  readonly closed: Promise<void>
  readonly #stop = new AbortController()
  #position: number | undefined

  /** @internal */
  constructor(
    context: ClientContext,
    options: ProjectOptions,
    request: (position: number | undefined) => StreamRequest,
    handle: (event: EventSourceMessage) => Promise<unknown>,
  ) {
    const { load, save, onError = context.onError } = options
    const signals = [this.#stop.signal, ...(options.signal ? [options.signal] : [])]
    const signal = AbortSignal.any(signals)
    const started = Promise.resolve()
      .then(load)
      .then((position) => {
        this.#position = position
        return subscribe(
          context,
          { signal, onError },
          {
            request: () => request(this.#position),
            received: async (event, stopped) => {
              const sequence = Number(event.id)
              if (await persistently(() => handle(event), onError, stopped)) {
                this.#position = sequence
                await persistently(async () => save(sequence), onError, stopped)
              }
            },
            failed: (error) => {
              onError(error)
              return isFinal(error)
            },
          },
        )
      })
    this.ready = started.then((subscription) => subscription.ready)
    this.closed = started.then((subscription) => subscription.closed)
    this.ready.catch(() => {})
    this.closed.catch(() => {})
    started.catch(onError)
  }

  /** The sequence of the last event that was handled. */
  get position(): number | undefined {
    return this.#position
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.closed.catch(() => {})
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** Repeats until it succeeds. Returns `false` if the signal aborted before. */
async function persistently(
  work: () => Promise<unknown>,
  onError: (error: unknown) => void,
  signal: AbortSignal,
): Promise<boolean> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      await work()
      return true
    } catch (error) {
      onError(error)
      await pause(backoff(attempt), signal)
    }
  }
  return false
}

/** The first event of a reader: the first or last stored one, the next new one, a sequence, a time, or a time ago. */
export type StoreStart =
  | 'first'
  | 'last'
  | 'new'
  | { readonly sequence: number }
  | { readonly time: Date }
  | { readonly ago: Duration }

/** The position of a stored event. */
export interface StorePosition {
  readonly sequence: number
  /** The time at which the server stored it, in ms since 1970. */
  readonly time: number
}

/** Returns the start with a time ago as the time that it means now. */
export function fixedStart(from: StoreStart): StoreStart {
  if (typeof from !== 'object' || !('ago' in from)) return from
  return { time: new Date(Date.now() - milliseconds('from.ago', from.ago)) }
}

/** Returns `true` if no event up to the last one is at or after the start. */
export function isAfter(from: StoreStart, last: StorePosition): boolean {
  if (last.sequence === 0 || from === 'new') return true
  if (typeof from !== 'object') return false
  if ('sequence' in from) return from.sequence > last.sequence
  return 'time' in from && from.time.getTime() > last.time
}

/** Returns the query of a start: the numbers are those of `events_store_type`. */
export function startQuery(from: StoreStart): {
  readonly events_store_type: number
  readonly events_store_value?: string | undefined
} {
  if (from === 'new') return { events_store_type: 1 }
  if (from === 'first') return { events_store_type: 2 }
  if (from === 'last') return { events_store_type: 3 }
  if ('sequence' in from) {
    if (!Number.isSafeInteger(from.sequence) || from.sequence < 1) {
      throw argumentError('from.sequence', from.sequence, 'a whole number of at least 1')
    }
    return { events_store_type: 4, events_store_value: String(from.sequence) }
  }
  if ('time' in from) return { events_store_type: 5, events_store_value: from.time.toISOString() }
  return { events_store_type: 6, events_store_value: String(wholeSeconds('from.ago', from.ago, 0, 1_000_000_000_000)) }
}
