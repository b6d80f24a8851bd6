import { isObject } from './cloud-event.ts'
import { SignalboxError } from './errors.ts'
import { callCe, eventCall } from './http-calls.ts'
import type { Transport } from './transport.ts'

/** The most messages of one request. */
const MAX_EVENTS = 64
/** The longest text of one request with several messages, in characters. */
const MAX_CHARACTERS = 256 * 1024
/** The longest time that a message waits for others, in ms. */
const GATHER_MS = 1

/** A store of messages: where messages are sent to. */
export interface StoreTarget {
  readonly channel: string
  readonly path: '/ce/queue/send' | '/ce/send/event-store'
  /** Settings of the message. */
  readonly settings: Readonly<Record<string, string | number | undefined>>
}

interface SendOptions {
  readonly transport: Transport
  /** `false` sends each message alone. */
  readonly batch: boolean
  readonly retryForMs: number
  /** Aborts when the client is closed. */
  readonly signal: AbortSignal
}

/** A message on its way. */
interface PendingSend {
  /** The CloudEvent in JSON. */
  readonly event: string
  readonly signal: AbortSignal | undefined
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  /** Called when the caller aborts the send and waits no longer. */
  onAborted?: () => void
}

/**
 * The sends of a client to queues and events stores. Messages that are sent to a channel in the same tick share a
 * request. While a request is under way, further messages wait for others, at most {@link GATHER_MS}. A message that is
 * alone never waits.
 */
export class SendBatches {
  readonly #options: SendOptions
  readonly #lanes = new Map<string, Lane>()

  constructor(options: SendOptions) {
    this.#options = options
  }

  /** Returns the server's result for the message. @throws SignalboxError, or the reason of a signal */
  store(target: StoreTarget, event: string, signal: AbortSignal | undefined): Promise<unknown> {
    const { batch, transport } = this.#options
    // A request belongs to one trace.
    const key = batch ? JSON.stringify([target, transport.trace]) : crypto.randomUUID()
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      lane = new Lane(this.#options, target, () => this.#lanes.delete(key))
      this.#lanes.set(key, lane)
    }
    return lane.store(event, signal)
  }
}

/** The messages to one channel with the same settings. */
class Lane {
  readonly #options: SendOptions
  readonly #target: StoreTarget
  readonly #ended: () => void
  #waiting: PendingSend[] = []
  #inFlight = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  /** @param ended Called when no message is left */
  constructor(options: SendOptions, target: StoreTarget, ended: () => void) {
    this.#options = options
    this.#target = target
    this.#ended = ended
  }

  async store(event: string, signal: AbortSignal | undefined): Promise<unknown> {
    let abort: (() => void) | undefined
    try {
      return await new Promise((resolve, reject) => {
        const send: PendingSend = { event, signal, resolve, reject }
        // The other messages of its request are sent all the same.
        abort = () => {
          reject(signal?.reason)
          send.onAborted?.()
        }
        signal?.addEventListener('abort', abort)
        this.#add(send)
      })
    } finally {
      if (abort) signal?.removeEventListener('abort', abort)
    }
  }

  #add(send: PendingSend): void {
    this.#waiting.push(send)
    if (this.#waiting.length === MAX_EVENTS) this.#flush()
    else if (this.#waiting.length > 1) return
    else if (this.#inFlight === 0) queueMicrotask(() => this.#flush())
    else this.#timer = setTimeout(() => this.#flush(), GATHER_MS)
  }

  #flush(): void {
    clearTimeout(this.#timer)
    const waiting = this.#waiting.filter(isWanted)
    this.#waiting = []
    while (waiting.length > 0) {
      let count = 0
      let characters = 0
      do characters += waiting[count++]?.event.length ?? 0
      while (count < waiting.length && characters + (waiting[count]?.event.length ?? 0) <= MAX_CHARACTERS)
      void this.#deliver(waiting.splice(0, count))
    }
    if (this.#inFlight === 0) this.#ended()
  }

  async #deliver(sends: readonly PendingSend[]): Promise<void> {
    this.#inFlight++
    try {
      const results = await this.#request(sends)
      for (const [i, { resolve }] of sends.entries()) resolve(results[i])
    } catch (error) {
      // The server refuses a batch as a whole. Alone, each message gets its own result.
      if (sends.length > 1 && dependsOnMessage(error)) {
        await Promise.all(sends.filter(isWanted).map((send) => this.#deliver([send])))
      } else for (const { reject } of sends) reject(error)
    } finally {
      this.#inFlight--
      if (this.#inFlight === 0 && this.#waiting.length === 0) this.#ended()
    }
  }

  async #request(sends: readonly PendingSend[]): Promise<readonly unknown[]> {
    const { transport, retryForMs, signal } = this.#options
    const { path, settings } = this.#target
    const events = sends.map(({ event }) => event)
    const [body = ''] = events
    const call = eventCall(path, body, settings, requestSignal(signal, sends))
    const batch = { headers: { 'Content-Type': 'application/cloudevents-batch+json' }, body: `[${events.join(',')}]` }
    const { data } = await callCe(transport, {
      ...call,
      ...(events.length > 1 ? batch : {}),
      repeatable: true,
      retryForMs,
    })
    return isObject(data) && Array.isArray(data['events']) ? data['events'] : []
  }
}

/** Returns a signal that aborts with the client, and when every message of the request was aborted. */
function requestSignal(client: AbortSignal, sends: readonly PendingSend[]): AbortSignal {
  if (sends.some(({ signal }) => signal === undefined)) return client
  const all = new AbortController()
  for (const send of sends) {
    send.onAborted = () => {
      if (!sends.some(isWanted)) all.abort(send.signal?.reason)
    }
  }
  return AbortSignal.any([client, all.signal])
}

function isWanted({ signal }: PendingSend): boolean {
  return signal?.aborted !== true
}

/** Returns `true` for a refusal that may concern one message of a batch only. */
function dependsOnMessage(error: unknown): boolean {
  if (!(error instanceof SignalboxError) || error.retryable || error.status === undefined) return false
  return error.status >= 400 && error.status < 500 && ![401, 403, 404].includes(error.status)
}
