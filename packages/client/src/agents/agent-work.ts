import type { ClientContext, ErrorListener, TraceHeaders } from '../client-context.ts'
import { callSignal } from '../client-context.ts'
import { asString, isObject, objectOf, parsed } from '../cloud-event.ts'
import { argumentError, Reject, SignalboxError } from '../errors.ts'
import type { Duration } from '../time.ts'
import { wholeSeconds } from '../time.ts'
import type { PoolItem, WorkOptions } from '../work/worker-pool.ts'
import { delayOf, WorkerPool } from '../work/worker-pool.ts'
import { contentOf, partsOf } from './agent.ts'
import type { AgentEvent } from './inbox-delivery.ts'
import { settles, InboxDelivery } from './inbox-delivery.ts'
import { isCode, registryCall } from './registry-calls.ts'

export interface AgentWorkOptions extends Omit<WorkOptions, 'lease' | 'backoff'> {
  /**
   * Registers the agent with this card, as a pull agent, and again if the server has lost it. `name` is the id by
   * default. @default the agent is registered already
   */
  readonly card?: Readonly<Record<string, unknown>> | undefined
  /** The lease of a request, 10 s to 1 h. It is renewed while the handler runs. @default '30s' */
  readonly lease?: Duration | undefined
  /** The time until a failed request is delivered again, by its number of receives. @default 1 s, doubled each time, at most 5 min */
  readonly backoff?: ((receives: number) => Duration) | undefined
}

/** A request that a handler works on. */
export interface AgentWork {
  /** The texts of the message, a line each. */
  readonly text: string
  /** The JSON and the bytes among the parts of the message. */
  readonly data: readonly unknown[]
  readonly taskId: string
  readonly contextId: string
  /** The number of this delivery, from 1. */
  readonly attempt: number
  /** The verified ClientID of the caller. */
  readonly callerId: string
  /** The caller's headers that agents get, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The whole SendMessageRequest of A2A 1.0. */
  readonly request: Readonly<Record<string, unknown>>
  /**
   * Aborts when a caller cancels the task, when the lease is lost, or when a drain runs out of time. The reason is a
   * SignalboxError with the code CANCELED, LEASE_LOST or CLOSED.
   */
  readonly signal: AbortSignal
}

/**
 * A part of the answer: a text, which is appended to the text of the task's artifact, or an object of A2A 1.0. A
 * StreamResponse (`{ statusUpdate }`, `{ artifactUpdate }`, `{ task }`) is sent as it is, a Task as the task, and a
 * Message as the status of the completed task.
 */
export type AgentOutput = string | Readonly<Record<string, unknown>>

/**
 * Answers a request: returns the answer, or yields its parts and may return the last one. A task that has no final state
 * then is completed. Throw a {@link Reject} to fail the task with a reason. After another error the request is delivered
 * again, or the task fails if events were sent.
 */
export type AgentHandler = (
  work: AgentWork,
) =>
  | AgentOutput
  | void
  | AsyncGenerator<AgentOutput, AgentOutput | void, void>
  | Promise<AgentOutput | void | AsyncGenerator<AgentOutput, AgentOutput | void, void>>

/** Seconds that an empty inbox is asked for. */
const WAIT_SECONDS = 20

/** Added to the time that the server waits, in ms. */
const MARGIN_MS = 5000

/** The most requests of one call. */
const MAX_ITEMS = 32

/** The longest lease and delay, in seconds. */
const MAX_SECONDS = 3600

/** The reason of a failure after an error that is not a {@link Reject}: its text may be secret. */
const FAILED = 'the agent failed'

/** Starts workers on the requests of a pull agent. */
export function workForAgent(
  context: ClientContext,
  id: string,
  handler: AgentHandler,
  options: AgentWorkOptions,
): WorkerPool {
  const { card, lease = '30s', onError = context.onError } = options
  const leaseSeconds = wholeSeconds('lease', lease, 10, MAX_SECONDS)
  const path = `${encodeURIComponent(id)}/inbox`
  const item = { context, path, leaseSeconds, delayMs: delayOf(options.backoff, MAX_SECONDS), handler, onError }
  let isRegistered = card === undefined
  const register = async (signal: AbortSignal): Promise<void> => {
    const a2a = isObject(card?.['a2a']) ? card['a2a'] : {}
    await registryCall(
      context,
      'register',
      { name: id, ...card, agent_id: id, a2a: { pull: true, ...a2a } },
      { signal },
    )
    isRegistered = true
  }
  return new WorkerPool(context, options, async (max, stop) => {
    const signal = callSignal(context, stop)
    if (!isRegistered) await register(signal)
    const body = { max: Math.min(max, MAX_ITEMS), wait_seconds: WAIT_SECONDS, lease_seconds: leaseSeconds }
    const ask = () => registryCall(context, `${path}/lease`, body, { signal, waitMs: WAIT_SECONDS * 1000 + MARGIN_MS })
    const { text } = await ask().catch(async (error: unknown) => {
      if (card === undefined || !isCode(error, 'AGENT_NOT_FOUND')) throw error
      await register(signal)
      return ask()
    })
    const items = objectOf(parsed(text), 'the answer of inbox/lease')['items']
    return (Array.isArray(items) ? items : []).filter(isObject).map((each) => new AgentWorkItem(each, item))
  })
}

interface AgentWorkItemOptions {
  readonly context: ClientContext
  readonly path: string
  readonly leaseSeconds: number
  readonly delayMs: (attempt: number) => number
  readonly handler: AgentHandler
  readonly onError: ErrorListener
}

/** A leased request that a handler works on. */
class AgentWorkItem implements PoolItem {
  readonly key: string
  readonly trace: TraceHeaders
  readonly released: Promise<void>
  readonly #work: AgentWork
  readonly #options: AgentWorkItemOptions
  readonly #delivery: InboxDelivery
  readonly #handling = new AbortController()
  readonly #returned = new AbortController()
  /** The artifact of the handler's texts: a redelivery replaces it, and a later message of the task has another one. */
  readonly #artifactId: string
  /** `true` if the lease is lost, or the request was returned. */
  #isLost = false
  #isCanceled = false
  /** The error for events that the server did not accept. */
  #refused: SignalboxError | undefined
  #hasText = false
  #hasEvents = false
  #hasEnded = false

  constructor(leased: Readonly<Record<string, unknown>>, options: AgentWorkItemOptions) {
    const { context, path, leaseSeconds, onError } = options
    const request = objectOf(leased['request'], 'a leased request')
    const message = isObject(request['message']) ? request['message'] : {}
    const headers = isObject(leased['headers']) ? leased['headers'] : {}
    this.#options = options
    this.#work = {
      ...contentOf(partsOf(message)),
      taskId: asString(leased['task_id']) ?? '',
      contextId: asString(leased['context_id']) ?? '',
      attempt: Number(leased['attempt'] ?? 1),
      callerId: asString(leased['caller_id']) ?? '',
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
      request,
      signal: this.#handling.signal,
    }
    this.key = this.#work.taskId
    this.trace = this.#work.headers
    this.#artifactId = asString(message['messageId']) ?? this.key
    this.released = new Promise((resolve) => {
      this.#returned.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    this.#delivery = new InboxDelivery({
      context,
      path,
      receipt: asString(leased['receipt']) ?? '',
      leaseSeconds,
      onError,
      onCancel: () => {
        this.#isCanceled = true
        this.#handling.abort(new SignalboxError('CANCELED', `a caller canceled the task ${this.key}`))
      },
      onLost: (error) => {
        this.#isLost = true
        this.#handling.abort(error)
        onError(error)
      },
      onRefused: (error) => {
        this.#refused = error
        this.#hasEnded = false
        this.#handling.abort(error)
        onError(error)
      },
    })
  }

  async isLost(): Promise<boolean> {
    // The next message of a task is delivered as soon as the last one is settled.
    return this.#isLost || this.#hasEnded || !(await this.#delivery.renew())
  }

  async run(before?: Promise<void>): Promise<void> {
    const { signal } = this.#handling
    try {
      await before
      signal.throwIfAborted()
      await this.#handle()
      await this.#delivery.flush()
      if (!this.#isLost && this.#refused !== undefined) throw this.#refused
    } catch (error) {
      await this.#fail(error)
    } finally {
      await this.#delivery.stop()
    }
  }

  async release(): Promise<void> {
    if (!this.#isLost) {
      this.#isLost = true
      this.#handling.abort(new SignalboxError('CLOSED', 'the worker pool was drained before the handler ended'))
      await this.#delivery.stop()
      await this.#nack({})
    }
    this.#returned.abort()
  }

  /** Runs the handler, and adds its events and the final status. */
  async #handle(): Promise<void> {
    const answer = await this.#options.handler(this.#work)
    const last = isGenerator(answer) ? await this.#consume(answer) : answer
    if (this.#hasEnded) return
    if (last !== undefined) await this.#add(last)
    if (this.#hasEnded) return
    await this.#addStatus(last === undefined && this.#isCanceled ? 'CANCELED' : 'COMPLETED')
  }

  /** Adds the outputs of a generator up to the final one. Resolves with the value that it returns. */
  async #consume(answer: AsyncGenerator<AgentOutput, AgentOutput | void, void>): Promise<AgentOutput | void> {
    for (;;) {
      const { done, value } = await answer.next()
      const { aborted, reason } = this.#handling.signal
      if (aborted && !this.#isCanceled) {
        await answer.return()
        throw reason
      }
      if (done === true) return value
      await this.#add(value)
      if (!this.#hasEnded) continue
      await answer.return()
      return undefined
    }
  }

  async #add(output: AgentOutput): Promise<void> {
    const event = this.#eventOf(output)
    this.#hasEvents = true
    this.#hasEnded = settles(event)
    await this.#delivery.add(event)
  }

  #addStatus(state: string, text?: string): Promise<void> {
    return this.#add(statusEvent(state, text === undefined ? undefined : { parts: [{ text }] }))
  }

  /** @throws SignalboxError ARGUMENT_INVALID */
  #eventOf(output: AgentOutput): AgentEvent {
    if (typeof output === 'string') {
      const append = this.#hasText
      this.#hasText = true
      return { artifactUpdate: { artifact: { artifactId: this.#artifactId, parts: [{ text: output }] }, append } }
    }
    if (isObject(output)) {
      if (MEMBERS.some((name) => isObject(output[name]))) return output
      if (isObject(output['status'])) return { task: output }
      if (Array.isArray(output['parts'])) return statusEvent('COMPLETED', output)
    }
    throw argumentError('output', typeof output, 'a string, or a StreamResponse, Message or Task of A2A 1.0')
  }

  /** Settles the request after an error of the handler. Never rejects. */
  async #fail(error: unknown): Promise<void> {
    const { delayMs, onError } = this.#options
    // The reasons of the signal are reported where they arise.
    const isKnown = error === this.#handling.signal.reason || error === this.#refused
    if (!isKnown && !(error instanceof Reject)) onError(error)
    if (this.#isLost) return
    const reason = error instanceof Reject ? error.message : FAILED
    if (this.#hasEnded) {
      // The handler failed after its last event.
    } else if (this.#isCanceled) await this.#addStatus('CANCELED')
    else if (this.#hasEvents) await this.#addStatus('FAILED', reason)
    else {
      await this.#delivery.stop()
      const rest = { delay_seconds: Math.ceil(delayMs(this.#work.attempt) / 1000) }
      await this.#nack({ reason, ...(error instanceof Reject ? { reject: true } : rest) })
      return
    }
    await this.#delivery.flush()
  }

  async #nack(body: Parameters<InboxDelivery['nack']>[0]): Promise<void> {
    await this.#delivery.nack(body).catch((error: unknown) => this.#options.onError(error))
  }
}

/** The members of a StreamResponse. */
const MEMBERS = ['statusUpdate', 'artifactUpdate', 'task', 'message']

function statusEvent(state: string, message: Readonly<Record<string, unknown>> | undefined): AgentEvent {
  const said = message && { messageId: crypto.randomUUID(), role: 'ROLE_AGENT', ...message }
  const status = { state: `TASK_STATE_${state}`, timestamp: new Date().toISOString(), message: said }
  return { statusUpdate: { status } }
}

function isGenerator(value: unknown): value is AsyncGenerator<AgentOutput, AgentOutput | void, void> {
  return isObject(value) && Symbol.asyncIterator in value
}
