import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { WebhookFormat, WebhookMessageSource } from '@signalbox/broker-core/ports'
import { RUN_SOURCE } from '@signalbox/broker-core/ports'
import type { SecretBox } from '@signalbox/http-kit/internal'
import type { OutboundTarget } from '@signalbox/http-kit/internal'
import { OpenRequests } from '@signalbox/http-kit/internal'

import { signedHeaders } from '../signature.ts'
import type { Item, Source } from '../sources/source.ts'
import { UNORDERED_IN_FLIGHT } from '../sources/source.ts'
import type { ItemFilter } from '../sources/sources.ts'
import { filterOf, openSource, wantedItems } from '../sources/sources.ts'
import type { Beat } from '../subscription/cursor-writer.ts'
import { CursorWriter } from '../subscription/cursor-writer.ts'
import type { KnownSubscription } from '../subscription/stored-subscriptions.ts'
import type { CursorRecord, SubscriptionRecord } from '../subscription/subscription-record.ts'
import type { WebhookLog } from '../subscription/webhook-log.ts'
import type { WebhookHooks } from '../options.ts'
import { attemptSpan, endAttempt } from './attempt-span.ts'
import type { Attempt, OpenSecret } from './attempt.ts'
import { deliveryId, encode, openNotes, openSecrets, outcomeOf, pauseAfter, send, validAt } from './attempt.ts'
import type { Failure } from './dead-letters.ts'
import { storeDeadLetter } from './dead-letters.ts'
import type { EndpointClient } from './endpoint-client.ts'
import { FailedAttempts, Progress } from './progress.ts'
import type { Slots } from './slots.ts'

/** Delivers the messages of one subscription, while this node serves it. */
export class SubscriptionRunner {
  readonly subscription: KnownSubscription
  readonly #parts: RunnerParts
  readonly #events: RunnerEvents
  readonly #target: OutboundTarget
  /** Aborted when no attempt may start any more. */
  readonly #halt = new AbortController()
  /** The attempts in flight. Aborted when they must end too. */
  readonly #requests = new OpenRequests()
  readonly #progress: Progress
  readonly #failed: FailedAttempts
  readonly #cursor: CursorWriter
  readonly #inFlight = new Map<readonly Item[], Promise<void>>()
  readonly #filter: ItemFilter | undefined
  /** The position in a connector's source. */
  #at: string | undefined
  #failing: CursorRecord['failing']
  #notBefore = 0
  #settled: (() => void) | undefined
  #ended: Promise<void> | undefined

  constructor(subscription: KnownSubscription, parts: RunnerParts, events: RunnerEvents) {
    const { id, record, cursor, cursorSequence } = subscription
    this.subscription = subscription
    this.#parts = parts
    this.#events = events
    this.#target = parts.client.to(record.endpoint)
    this.#progress = new Progress(cursor.next, cursor.done)
    this.#failed = new FailedAttempts(cursor.attempts)
    this.#at = cursor.position
    this.#failing = cursor.failing
    this.#filter = filterOf(record)
    setMaxListeners(0, this.#halt.signal)
    this.#cursor = new CursorWriter({
      log: parts.log,
      id,
      sequence: cursorSequence,
      current: () => this.#position(),
      written: events.cursor,
      lost: events.lost,
      failed: parts.failed,
      beat: parts.beat,
      signal: this.#halt.signal,
    })
  }

  /** The time of the oldest message that is not delivered yet, in ms since the epoch; `undefined` if none waits. */
  get oldestMs(): number | undefined {
    const times = [...this.#inFlight.keys()].flat().map(({ message }) => message.timestamp)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  start(): void {
    this.#ended ??= this.#run().catch((error: unknown) => this.#crash(error))
  }

  /**
   * Stops: no attempt is in flight after the promise resolves. An attempt that does not end within `graceMs` is cut off,
   * and repeated by the next runner.
   */
  async stop(graceMs = 0): Promise<void> {
    const reason = new Error('the subscription is not served any more')
    this.#halt.abort(reason)
    if (graceMs === 0) this.#requests.abort(reason)
    const timer = setTimeout(() => this.#requests.abort(reason), graceMs)
    await this.#ended
    clearTimeout(timer)
    await this.#cursor.close()
  }

  #position(): CursorRecord {
    const { cursor, record } = this.subscription
    // Events of a plain channel are gone after a restart.
    const attempts = record.type === 'events' ? [] : this.#failed.stored
    return {
      node: this.#parts.node,
      generation: cursor.generation,
      next: this.#progress.next,
      done: this.#progress.done,
      position: this.#at,
      attempts: attempts.length === 0 ? undefined : attempts,
      failing: this.#failing,
    }
  }

  async #run(): Promise<void> {
    const { record } = this.subscription
    const { signal } = this.#halt
    const format = this.#parts.formatOf(record.format)
    if (format === undefined) {
      this.#disable(`the server has no format ${record.format}`)
      return
    }
    const secrets = openSecrets(this.subscription, this.#parts.box)
    const secretNotes = openNotes(this.subscription, this.#parts.box)
    if (secrets.length === 0 || secretNotes === undefined) {
      this.#disable('the secret cannot be read: WEBHOOKS_KEY_FILE has another key')
      return
    }
    const { system, failed, dropped, sourceOf } = this.#parts
    const options = { next: this.#progress.next, signal, failed, dropped, sourceOf }
    const source = openSource(system, this.subscription, options)
    try {
      while (!signal.aborted) {
        while (this.#full) {
          await this.#oneSettled()
          signal.throwIfAborted()
        }
        const taken = source.take(format.maxBatch)
        // Without a promise if there is a message, as nearly always under load.
        const items = taken instanceof Promise ? await taken : taken
        if (items.length === 0) {
          this.#end('the source has ended')
          return
        }
        const fresh = items.filter(({ sequence }) => sequence === 0 || this.#progress.start(sequence))
        const wanted = this.#filter === undefined ? fresh : await wantedItems(this.#filter, fresh)
        if (wanted.length < items.length) await this.#skip(source, items, wanted)
        if (wanted.length > 0)
          this.#inFlight.set(wanted, this.#launch({ source, format, secrets, secretNotes }, wanted))
      }
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      await Promise.allSettled(this.#inFlight.values())
      await source.close()
    }
  }

  /** Passes over the items that the filter does not match, or that were delivered before. */
  async #skip(source: Source, items: readonly Item[], wanted: readonly Item[]): Promise<void> {
    const skipped = items.filter((item) => !wanted.includes(item))
    for (const { sequence } of skipped) if (sequence > 0) this.#progress.finish(sequence)
    await source.settle(skipped)
    this.#cursor.storeLater()
  }

  /** Delivers items, and lets others start. Never rejects. */
  async #launch(delivery: Delivery, items: readonly Item[]): Promise<void> {
    try {
      await this.#deliver(delivery, items)
    } catch (error) {
      // A later message must not overtake this one.
      this.#crash(error)
      await delivery.source.release(items).catch(this.#parts.failed)
    } finally {
      this.#inFlight.delete(items)
      this.#settled?.()
    }
  }

  /** `true` if no other delivery may start now. An endpoint that fails gets one at a time. */
  get #full(): boolean {
    const { ordered } = this.subscription.record
    return this.#inFlight.size >= (ordered || this.#failing !== undefined ? 1 : UNORDERED_IN_FLIGHT)
  }

  /** Resolves when a delivery under way has ended. */
  #oneSettled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settled = resolve
    })
  }

  /** Attempts a delivery until it is settled. */
  async #deliver(delivery: Delivery, items: readonly Item[]): Promise<void> {
    const { signal } = this.#halt
    const [first] = items
    const since = (first && this.#failed.since(first)) ?? Date.now()
    for (let attempt = 0; ; attempt++) {
      const waitMs = this.#reserveTime()
      if (waitMs > 0) await delay(waitMs, undefined, { signal, ref: false })
      if (!this.#parts.permits(this.subscription.record)) {
        this.#disable('the policy does not let the owner have messages of this channel')
        signal.throwIfAborted()
      }
      const { status, answer, reason, verdict, pauseMs } = await this.#attempt(delivery, items)
      this.#requests.throwIfAborted()
      if (verdict === 'delivered') {
        this.#recovered()
        await this.#settle(delivery.source, items)
        return
      }
      if (verdict === 'gone' && delivery.format.goneEnds !== 'delivery') {
        const gone = 'the endpoint answered 410: it is gone'
        this.#failed.add(items, since)
        this.#cursor.store()
        if (delivery.format.goneEnds === 'removal') this.#end(gone)
        else this.#disable(gone)
        signal.throwIfAborted()
      }
      const refused = verdict === 'refused' || verdict === 'gone'
      if (refused) {
        this.#recovered()
        // One message may be the reason: the others get their own attempt.
        if (items.length > 1) {
          for (const item of items) await this.#deliver(delivery, [item])
          return
        }
      }
      // Before the failure is stored: the age and the attempts of the message must survive a crash.
      this.#failed.add(items, since)
      if (!refused) this.#fail(reason)
      const pause = Math.max(pauseAfter(attempt), pauseMs)
      const { maxAgeMs = this.#parts.maxAgeMs } = delivery.format
      if (refused || Date.now() + pause - since > maxAgeMs) {
        const text = refused ? reason : `not delivered within ${maxAgeMs / 1000} s: ${reason}`
        await this.#giveUp(delivery.source, items, { reason: text, status, answer })
        return
      }
      if (!(await delivery.source.keep(items, pause))) {
        this.#failed.forget(items)
        return
      }
      await delay(pause, undefined, { signal, ref: false })
    }
  }

  /** Reserves the next time that the rate of the endpoint allows. Returns the pause until then, in ms. */
  #reserveTime(): number {
    const { ratePerMinute } = this.subscription.record
    if (ratePerMinute === undefined) return 0
    const now = Date.now()
    const at = Math.max(now, this.#notBefore)
    this.#notBefore = at + 60_000 / ratePerMinute
    return at - now
  }

  async #attempt({ format, secrets, secretNotes }: Delivery, items: readonly Item[]): Promise<Attempt> {
    const encoded = encode(format, this.subscription, items, secretNotes)
    if ('verdict' in encoded) return encoded
    const { slots, client, attempted, system } = this.#parts
    const { id, record } = this.subscription
    this.#halt.signal.throwIfAborted()
    if (!slots.tryAcquire(record.endpoint)) await slots.acquire(record.endpoint, this.#halt.signal)
    try {
      const startedAt = performance.now()
      const now = Date.now()
      const { body, unsigned } = encoded
      const keys = unsigned === true ? [] : validAt(secrets, now)
      const signed = signedHeaders(keys, encoded.id ?? deliveryId(id, items), now, body)
      const failed = items[0] === undefined ? 0 : this.#failed.of(items[0])
      const span = system.tracing && attemptSpan(system.tracing, items, record.endpoint, failed)
      const headers = { ...encoded.headers, ...signed, ...span?.headers() }
      const attempt = await send(client, this.#target, { method: 'POST', headers, body }, this.#requests)
      if (span !== undefined) endAttempt(span, attempt)
      const seconds = (performance.now() - startedAt) / 1000
      if (!this.#requests.aborted)
        attempted(outcomeOf(attempt), seconds, { id, type: record.type, channel: record.channel })
      return attempt
    } finally {
      slots.release(record.endpoint)
    }
  }

  async #settle(source: Source, items: readonly Item[]): Promise<void> {
    for (const { sequence, position } of items) {
      if (sequence > 0) this.#progress.finish(sequence)
      if (position !== undefined) this.#at = position
    }
    this.#failed.forget(items)
    if (STORED.has(this.subscription.record.type)) this.#cursor.store()
    const settled = source.settle(items)
    if (settled !== undefined) await settled
  }

  /** Stores a dead letter for each item. Repeats it until the store accepts it. */
  async #giveUp(source: Source, items: readonly Item[], failure: Omit<Failure, 'attempts'>): Promise<void> {
    const { system, deadLettered, failed } = this.#parts
    for (const item of items) {
      for (let attempt = 0; ; attempt++) {
        try {
          await storeDeadLetter(system, this.subscription.id, item, { ...failure, attempts: this.#failed.of(item) })
          deadLettered()
          break
        } catch (error) {
          failed(error)
          const pause = pauseAfter(attempt)
          if (!(await source.keep([item], pause))) break
          await delay(pause, undefined, { signal: this.#halt.signal, ref: false })
        }
      }
    }
    await this.#settle(source, items)
  }

  #disable(reason: string): void {
    if (this.#halt.signal.aborted) return
    this.#halt.abort(new Error(reason))
    this.#events.disabled(reason)
  }

  /** Ends the subscription: it has no further message. */
  #end(reason: string): void {
    if (this.#halt.signal.aborted) return
    this.#halt.abort(new Error(reason))
    this.#events.ended()
  }

  #crash(error: unknown): void {
    if (this.#halt.signal.aborted) return
    this.#halt.abort(new Error('the delivery failed'))
    this.#parts.failed(error)
    this.#events.crashed()
  }

  #fail(reason: string): void {
    if (this.#failing?.reason !== reason) {
      this.#failing = { sinceMs: this.#failing?.sinceMs ?? Date.now(), reason }
    }
    // Each attempt counts, so each is stored.
    this.#cursor.store()
  }

  #recovered(): void {
    if (this.#failing === undefined) return
    this.#failing = undefined
    this.#cursor.store()
  }
}

/** The parts that all deliveries of a runner share. */
interface Delivery {
  readonly source: Source
  readonly format: WebhookFormat
  readonly secrets: readonly OpenSecret[]
  readonly secretNotes: string
}

/** The types of sources whose position is stored. */
const STORED: ReadonlySet<SubscriptionRecord['type']> = new Set(['events_store', RUN_SOURCE])

/** The parts that all subscriptions of a node share. */
export interface RunnerParts {
  readonly system: BrokerHandle
  readonly log: WebhookLog
  readonly beat: Beat
  readonly client: EndpointClient
  readonly slots: Slots
  readonly box: SecretBox
  readonly node: string
  readonly maxAgeMs: number
  readonly formatOf: (name: string) => WebhookFormat | undefined
  /** Returns the source that a connector has registered. */
  readonly sourceOf: (type: string) => WebhookMessageSource | undefined
  /** Returns `true` if the policy lets the owner have a message of the channel now. */
  readonly permits: (record: SubscriptionRecord) => boolean
  readonly attempted: NonNullable<WebhookHooks['attempted']>
  readonly deadLettered: () => void
  readonly dropped: () => void
  readonly failed: (error: unknown) => void
}

/** The effects of a runner on its subscription. */
interface RunnerEvents {
  readonly cursor: (cursor: CursorRecord, sequence: number) => void
  /** Called if another node or an operator changed the position. */
  readonly lost: () => void
  /** Called if the subscription must end until its owner or an operator acts. The runner has halted. */
  readonly disabled: (reason: string) => void
  /** Called if the subscription has no further message, so that it can be removed. The runner has halted. */
  readonly ended: () => void
  /** Called after an unexpected failure. The runner has halted and must be replaced. */
  readonly crashed: () => void
}
