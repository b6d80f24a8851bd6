import type { BrokerHandle } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import type { WebhookFormat, WebhookMessageSource } from '@signalbox/broker-core/ports'
import { RUN_SOURCE } from '@signalbox/broker-core/ports'
import type { KeyedLogFollower } from '@signalbox/broker-core/internal'
import { Nodes } from '@signalbox/broker-core/internal'
import type { SecretBox } from '@signalbox/http-kit/internal'

import type { WebhookOptions } from '../options.ts'
import { Beat, PAUSE_MS } from '../subscription/cursor-writer.ts'
import type { KnownSubscription, SubscriptionIndex } from '../subscription/stored-subscriptions.ts'
import { cursorKey } from '../subscription/stored-subscriptions.ts'
import type { LogEntry, WebhookLog } from '../subscription/webhook-log.ts'
import type { EndpointClient } from './endpoint-client.ts'
import { Slots } from './slots.ts'
import type { RunnerParts } from './subscription-runner.ts'
import { SubscriptionRunner } from './subscription-runner.ts'

/** The interval in which a node looks for subscriptions without a node, in ms. */
const SWEEP_MS = 1_000

/** The time after which any node takes over a subscription that its first node has left, in ms. */
const PATIENCE_MS = 2_000

/** The time after which a subscription starts again that failed unexpectedly, in ms. */
const RESTART_MS = 1_000

/** The most subscriptions that a node takes over in one sweep. */
const CLAIMS = 200

/** The time for the attempts under way when their source is removed, in ms. */
const SOURCE_GRACE_MS = 5_000
/** The time after which the entry of a node that stopped is deleted, in ms. */
const FORGET_MS = 600_000

const NODE = 'n/'

interface ServingParts {
  readonly system: BrokerHandle
  readonly log: WebhookLog
  readonly box: SecretBox
  readonly client: EndpointClient
  /** The id of this node. */
  readonly node: string
  readonly options: WebhookOptions
  readonly formatOf: (name: string) => WebhookFormat | undefined
  readonly sourceOf: (type: string) => WebhookMessageSource | undefined
  readonly disable: (known: KnownSubscription, reason: string) => Promise<void>
  readonly remove: (id: string) => Promise<void>
}

/** The subscriptions that this node serves. Each is served by one node at a time. */
export class Serving {
  readonly #index: SubscriptionIndex
  readonly #parts: ServingParts
  readonly #nodes: Nodes
  readonly #shared: boolean
  readonly #leaseMs: number
  readonly #runnerParts: RunnerParts
  readonly #runners = new Map<string, SubscriptionRunner>()
  /** The runners that are about to stop. A subscription starts again after its runner has stopped. */
  readonly #stopping = new Map<string, { readonly runner: SubscriptionRunner; readonly stopped: Promise<void> }>()
  readonly #claiming = new Set<string>()
  /** The time since which a subscription has no node, by `performance.now()`. */
  readonly #orphans = new Map<string, number>()
  readonly #ended = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #follower: KeyedLogFollower | undefined
  #renewing = false
  #current = false

  constructor(index: SubscriptionIndex, parts: ServingParts) {
    const { options, system, log, box, client, node, formatOf, sourceOf } = parts
    const { shared = false, leaseMs = 5_000, permits = () => true, hooks = {} } = options
    this.#index = index
    this.#parts = parts
    this.#shared = shared
    this.#leaseMs = leaseMs
    this.#nodes = new Nodes(node, { leaseMs, shared })
    this.#runnerParts = {
      system,
      log,
      box,
      client,
      node,
      beat: new Beat(PAUSE_MS),
      formatOf,
      sourceOf,
      slots: new Slots({ ofEndpoint: options.maxInFlightOfEndpoint ?? 16, ofNode: options.maxInFlight ?? 256 }),
      maxAgeMs: options.maxAgeMs ?? 86_400_000,
      permits: ({ owner, type, channel }) =>
        type === RUN_SOURCE
          ? sourceOf(type)?.permits(owner, channel) === true
          : permits({ clientId: owner }, type, channel),
      attempted: (outcome, seconds, subscription) => quietly(() => hooks.attempted?.(outcome, seconds, subscription)),
      deadLettered: () => quietly(() => hooks.deadLettered?.()),
      dropped: () => quietly(() => hooks.dropped?.()),
      failed: (error) => this.#failed(error),
    }
  }

  /** The id of this node. */
  get node(): string {
    return this.#parts.node
  }

  /** `true` while this node knows all subscriptions. */
  get current(): boolean {
    return this.#current
  }

  /** The number of subscriptions that this node serves. */
  get size(): number {
    return this.#runners.size
  }

  /** Returns the age of the oldest message that is not delivered, in ms; 0 without one. */
  oldestMs(): number {
    const now = Date.now()
    let oldest = 0
    for (const { oldestMs } of this.#runners.values()) {
      if (oldestMs !== undefined) oldest = Math.max(oldest, now - oldestMs)
    }
    return oldest
  }

  /** Starts or stops the subscriptions after a connector has registered a source, or has removed it. */
  sourcesChanged(): void {
    if (!this.#current) return
    for (const { id, record } of this.#index.all()) if (record.type === RUN_SOURCE) this.#reconcile(id)
  }

  /** Starts to follow the log. Resolves when all subscriptions were read. */
  open(): Promise<void> {
    const sink = {
      knows: (key: string, sequence: number) => this.#index.knows(key, sequence),
      entry: (entry: LogEntry) => this.apply(entry),
      retain: (keys: ReadonlySet<string>) => {
        for (const id of this.#index.retain(keys)) this.#reconcile(id)
      },
      current: () => {
        this.#current = true
        this.#sweep()
      },
      failed: (error: unknown) => this.#failed(error),
    }
    this.#follower = this.#parts.log.follow(sink, this.#ended.signal)
    this.#timer = setInterval(() => this.#sweep(), Math.min(SWEEP_MS, this.#leaseMs / 5))
    this.#timer.unref()
    return this.#follower.opened
  }

  /** Applies an entry of the log, or a write of this node. */
  apply(entry: LogEntry): void {
    if (entry.key.startsWith(NODE)) {
      const node = entry.key.slice(NODE.length)
      if (entry.value === undefined) this.#nodes.gone(node)
      else this.#nodes.heard(node)
      return
    }
    const id = this.#index.apply(entry)
    if (id !== undefined && this.#current) this.#reconcile(id)
  }

  async close(graceMs: number): Promise<void> {
    this.#ended.abort()
    clearInterval(this.#timer)
    const runners = [...this.#runners.values()]
    this.#runners.clear()
    const stopping = [...this.#stopping.values()]
    for (const { runner } of stopping) runners.push(runner)
    await Promise.all([...runners.map((runner) => runner.stop(graceMs)), ...stopping.map(({ stopped }) => stopped)])
    await this.#follower?.closed
    if (!this.#shared) return
    // Without this entry, other nodes would wait for the end of the lease.
    await this.#parts.log.write(NODE + this.node, undefined).catch((error: unknown) => this.#failed(error))
  }

  #sweep(): void {
    if (this.#ended.signal.aborted) return
    if (this.#shared) this.#renew()
    if (!this.#nodes.held) {
      for (const id of this.#runners.keys()) this.#stop(id)
      return
    }
    if (!this.#current) return
    const now = Date.now()
    for (const { id, record } of this.#index.all()) {
      if (record.expiresMs !== undefined && record.expiresMs <= now) this.#expire(id)
      else this.#reconcile(id)
    }
    for (const node of this.#nodes.lostFor(FORGET_MS)) {
      this.#nodes.forget(node)
      this.#parts.log.write(NODE + node, undefined).catch((error: unknown) => this.#failed(error))
    }
  }

  /** Renews the lease of this node. */
  #renew(): void {
    if (this.#renewing) return
    this.#renewing = true
    const startedAt = performance.now()
    this.#parts.log
      .write(NODE + this.node, {})
      .then(
        () => this.#nodes.renewed(startedAt),
        (error: unknown) => this.#failed(error),
      )
      .finally(() => {
        this.#renewing = false
      })
  }

  #expire(id: string): void {
    if (this.#claiming.has(id)) return
    this.#claiming.add(id)
    this.#parts
      .remove(id)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => this.#claiming.delete(id))
  }

  /** Starts, stops or takes over a subscription, as its entries demand. */
  #reconcile(id: string): void {
    const known = this.#index.get(id)
    const runner = this.#runners.get(id)
    const isServable = known?.record.type !== RUN_SOURCE || this.#parts.sourceOf(RUN_SOURCE) !== undefined
    const mayRun = known?.record.state === 'active' && isServable && this.#nodes.held && !this.#ended.signal.aborted
    if (runner !== undefined) {
      // A connector that ends removes its source: the attempts that are being answered are not repeated.
      if (!isServable) this.#stop(id, SOURCE_GRACE_MS)
      else if (!mayRun || !this.#isServedBy(runner, known)) this.#stop(id)
      return
    }
    if (!mayRun || this.#stopping.has(id)) return
    if (known.cursor.node === this.node || !this.#shared) this.#start(known)
    else if (this.#nodes.isLost(known.cursor.node)) this.#claimWhenDue(known)
    else this.#orphans.delete(id)
  }

  #isServedBy({ subscription }: SubscriptionRunner, { recordSequence, cursor }: KnownSubscription): boolean {
    if (this.#shared && cursor.node !== this.node) return false
    return subscription.recordSequence === recordSequence && subscription.cursor.generation === cursor.generation
  }

  #start(known: KnownSubscription): void {
    const { id } = known
    this.#orphans.delete(id)
    const runner: SubscriptionRunner = new SubscriptionRunner(known, this.#runnerParts, {
      cursor: (cursor, sequence) => this.apply({ key: cursorKey(id), sequence, value: cursor }),
      lost: () => this.#lost(id),
      disabled: (reason) => {
        this.#parts
          .disable(known, reason)
          .catch((error: unknown) => this.#failed(error))
          .finally(() => this.#stop(id))
      },
      ended: () => {
        this.#parts
          .remove(id)
          .catch((error: unknown) => this.#failed(error))
          // One that could not be removed ends again.
          .finally(() => setTimeout(() => this.#stop(id), RESTART_MS).unref())
      },
      crashed: () => void setTimeout(() => this.#stop(id), RESTART_MS).unref(),
    })
    this.#runners.set(id, runner)
    runner.start()
  }

  #stop(id: string, graceMs?: number): void {
    const runner = this.#runners.get(id)
    if (runner === undefined) return
    this.#runners.delete(id)
    const stopped = runner
      .stop(graceMs)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#stopping.delete(id)
        this.#reconcile(id)
      })
    this.#stopping.set(id, { runner, stopped })
  }

  /** Reads the position that another writer stored, and continues according to it. */
  #lost(id: string): void {
    this.#stop(id)
    this.#parts.log
      .last(cursorKey(id))
      .then((entry) => entry && this.apply(entry))
      .catch((error: unknown) => this.#failed(error))
  }

  /** Takes over a subscription. Its preferred node does so at once, the others after a delay. */
  #claimWhenDue(known: KnownSubscription): void {
    const { id } = known
    const now = performance.now()
    const since = this.#orphans.get(id) ?? now
    this.#orphans.set(id, since)
    if (this.#claiming.has(id) || this.#claiming.size >= CLAIMS) return
    if (now - since < PATIENCE_MS && !this.#nodes.isFirstFor(id)) return
    this.#claiming.add(id)
    this.#claim(known)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => this.#claiming.delete(id))
  }

  async #claim({ id, cursor, cursorSequence }: KnownSubscription): Promise<void> {
    const key = cursorKey(id)
    const own = { ...cursor, node: this.node }
    try {
      this.apply({ key, sequence: await this.#parts.log.write(key, own, cursorSequence), value: own })
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT')) throw error
      const entry = await this.#parts.log.last(key)
      if (entry !== undefined) this.apply(entry)
    }
  }

  #failed(error: unknown): void {
    if (this.#ended.signal.aborted) return
    quietly(() => this.#parts.options.hooks?.failed?.(error))
  }
}

/** An error of a callback must not end a delivery. */
function quietly(call: () => void): void {
  try {
    call()
  } catch {}
}
