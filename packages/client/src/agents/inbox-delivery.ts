import type { ClientContext, ErrorListener } from '../client-context.ts'
import { isObject, objectOf, parsed } from '../cloud-event.ts'
import { SignalboxError } from '../errors.ts'
import { backoff, pause } from '../time.ts'
import { isRetryable } from '../transport.ts'
import { isCode, registryCall } from './registry-calls.ts'

/** A StreamResponse of A2A 1.0. The server adds the ids of the task. */
export type AgentEvent = Readonly<Record<string, unknown>>

/** The time between two calls with events, in ms. */
const BATCH_MS = 50

/** The most bytes of events in one call. */
const MAX_BATCH_BYTES = 256 * 1024

/** The bytes of events that wait, above which the handler waits. */
const MAX_WAITING_BYTES = 1024 * 1024

export interface InboxDeliveryOptions {
  readonly context: Pick<ClientContext, 'transport'>
  /** The path of the inbox below `/agents/`. */
  readonly path: string
  readonly receipt: string
  readonly leaseSeconds: number
  readonly onError: ErrorListener
  /** Called once, when a caller has canceled the task. */
  readonly onCancel: () => void
  /** Called once, when no further event can be sent. */
  readonly onLost: (error: SignalboxError) => void
  /** Called with the error for events that the server does not accept. They are dropped. */
  readonly onRefused: (error: SignalboxError) => void
}

/** A delivery of a request: sends its events in order and in batches, and renews its lease. */
export class InboxDelivery {
  readonly #options: InboxDeliveryOptions
  readonly #stop = new AbortController()
  /** The texts of the events that the server has not accepted, oldest first. */
  #waiting: string[] = []
  #waitingBytes = 0
  #accepted = 0
  #end: number
  #renewedAt: number
  #isFlushing = false
  #isCanceled = false
  #change = new AbortController()
  readonly #done: Promise<void>

  constructor(options: InboxDeliveryOptions) {
    this.#options = options
    this.#renewedAt = Date.now()
    this.#end = this.#renewedAt + this.#leaseMs
    this.#done = this.#run()
  }

  get #leaseMs(): number {
    return this.#options.leaseSeconds * 1000
  }

  /** Adds an event. Resolves when the next one may be added. */
  async add(event: AgentEvent): Promise<void> {
    if (this.#stop.signal.aborted) return
    const text = JSON.stringify(event)
    this.#waiting.push(text)
    this.#waitingBytes += text.length
    this.#changed()
    while (this.#waitingBytes > MAX_WAITING_BYTES && !this.#stop.signal.aborted) await aborted(this.#change.signal)
  }

  /** Sends the events that wait at once. Resolves when none waits, or when the lease is lost. */
  async flush(): Promise<void> {
    this.#isFlushing = true
    this.#changed()
    while (this.#waiting.length > 0 && !this.#stop.signal.aborted) await aborted(this.#change.signal)
    this.#isFlushing = false
  }

  /** Ends the renewals. Events that wait are not sent. */
  stop(): Promise<void> {
    this.#stop.abort()
    this.#changed()
    return this.#done
  }

  /** Renews the lease at once. Resolves with `false` if it is lost. */
  async renew(): Promise<boolean> {
    try {
      await this.#send([])
      return true
    } catch (error) {
      this.#lose(error)
      return false
    }
  }

  /** Returns the request for another delivery, or rejects it. @throws SignalboxError */
  async nack(body: { readonly delay_seconds?: number; readonly reject?: boolean; readonly reason?: string }) {
    await registryCall(this.#options.context, `${this.#options.path}/nack`, { receipt: this.#options.receipt, ...body })
  }

  /** Sends events and renewals until `stop`. Never rejects. */
  async #run(): Promise<void> {
    const { signal } = this.#stop
    let sentAt = -Infinity
    for (let failures = 0; !signal.aborted;) {
      const change = this.#change.signal
      const sendAt = this.#waiting.length === 0 ? Infinity : this.#isFlushing ? 0 : sentAt + BATCH_MS
      const due = Math.min(sendAt, this.#renewedAt + this.#leaseMs / 3) - Date.now()
      if (due > 0) {
        await pause(due, change)
        continue
      }
      const batch = this.#batch()
      sentAt = Date.now()
      try {
        await this.#send(batch)
        failures = 0
        this.#drop(batch.length)
      } catch (error) {
        if (signal.aborted) return
        if (isRefusal(error) && batch.length > 0) {
          this.#drop(this.#waiting.length)
          this.#options.onRefused(error)
        } else if (isTransient(error)) {
          this.#options.onError(error)
          await pause(Math.min(backoff(failures++, error.retryAfterMs), Math.max(0, this.#end - Date.now())), signal)
          if (Date.now() >= this.#end) this.#lose(error)
        } else {
          this.#lose(error)
        }
      }
    }
  }

  /** Returns the first events that wait, as many as one call may have. */
  #batch(): readonly string[] {
    let bytes = 0
    const after = this.#waiting.findIndex((text, i) => (bytes += text.length) > MAX_BATCH_BYTES && i > 0)
    return after === -1 ? [...this.#waiting] : this.#waiting.slice(0, after)
  }

  #drop(count: number): void {
    for (const text of this.#waiting.splice(0, count)) this.#waitingBytes -= text.length
    this.#changed()
  }

  async #send(batch: readonly string[]): Promise<void> {
    const { context, leaseSeconds, path, receipt } = this.#options
    const asked = Date.now()
    const offset = this.#accepted
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(Math.max(1, this.#end - asked))])
    const head = JSON.stringify({ receipt, offset, lease_seconds: leaseSeconds })
    const body = `${head.slice(0, -1)},"events":[${batch.join(',')}]}`
    const { text } = await registryCall(context, `${path}/events`, body, { signal }).catch((error: unknown) => {
      if (error instanceof SignalboxError || this.#stop.signal.aborted) throw error
      throw new SignalboxError('TIMEOUT', 'the server did not answer before the end of the lease', { cause: error })
    })
    const answer = objectOf(parsed(text), 'the answer of inbox/events')
    this.#accepted += batch.length
    this.#renewedAt = asked
    this.#end = asked + this.#leaseMs
    if (answer['cancel_requested'] !== true || this.#isCanceled) return
    this.#isCanceled = true
    this.#options.onCancel()
  }

  #lose(cause: unknown): void {
    if (this.#stop.signal.aborted) return
    this.#stop.abort()
    this.#changed()
    const ended = isCode(cause, 'RUN_ENDED') && cause instanceof SignalboxError
    this.#options.onLost(
      ended ? cause : new SignalboxError('LEASE_LOST', 'the lease of the request ended before its task did', { cause }),
    )
  }

  #changed(): void {
    this.#change.abort()
    this.#change = new AbortController()
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/** Returns `true` for an error that another attempt may cure. */
function isTransient(error: unknown): error is SignalboxError {
  return error instanceof SignalboxError && isRetryable(error, true)
}

/** Returns `true` for the refusal of the events themselves. */
function isRefusal(error: unknown): error is SignalboxError {
  return error instanceof SignalboxError && (REFUSALS.has(error.code) || error.status === 413)
}

const REFUSALS = new Set(['EVENT_INVALID', 'BODY_INVALID'])

/** The states that settle a request. */
const ENDS = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
])

/** Returns `true` for an event after which the server accepts no other one. */
export function settles({ message, statusUpdate, task }: AgentEvent): boolean {
  if (message !== undefined) return true
  const { status } = isObject(statusUpdate) ? statusUpdate : isObject(task) ? task : {}
  return isObject(status) && ENDS.has(String(status['state']))
}
