import type { EventSourceMessage } from 'eventsource-parser'

import type { ClientContext } from './client-context.ts'
import { backoff, pause } from './pause.ts'
import type { StoreStart } from './store-start.ts'
import type { StreamRequest, SubscribeOptions, Subscription } from './subscription.ts'
import { isFinal, subscribe } from './subscription.ts'

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
