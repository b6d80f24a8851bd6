import type { Engine, EngineHealth, EngineLimits, EngineStats, SettingsEntry } from '@signalbox/broker-core/engine'
import { compactProblem, SettingsTable } from '@signalbox/broker-core/engine'

import type { LiveChannel } from './channel-registry.ts'
import { ChannelRegistry } from './channel-registry.ts'
import { EmbeddedChannels } from './channels.ts'
import { EmbeddedEventsStore } from './events-store/embedded-events-store.ts'
import { EmbeddedEvents } from './events.ts'
import type { EmbeddedEngineOptions, Retries, Settings } from './options.ts'
import { settingsOf } from './options.ts'
import { EmbeddedQueues } from './queues/embedded-queues.ts'
import { EmbeddedRequests } from './requests.ts'
import type { DamagedChannel } from './store/damage.ts'
import { DELAYED } from './store/damage.ts'
import { RETRIES, Store } from './store/store.ts'
import { loadChannels } from './store/stored-channel.ts'
import type { ActivityOperation } from './writer/operations.ts'
import type { GroupReply } from './writer/thread-messages.ts'
import { prepareWriterThread } from './writer/writer.ts'

/** The longest time until delivery counts are stored, in ms. They are also stored with each write. */
const ACTIVITY_MS = 1_000
/** The interval of the sweep for retention, tombstones, deduplication ids and rows of deleted channels, in ms. */
const SWEEP_MS = 1_000
const HOUSEKEEPING_MS = 10_000

/** The embedded engine: the port, and values for operators. */
export interface EmbeddedEngine extends Engine, AsyncDisposable {
  readonly name: 'embedded'
  /** The folder of the store. */
  readonly path: string
}

/**
 * Starts the parts of the next {@link openEmbeddedEngine} that do not depend on its options; the store is not touched.
 * Call it early in a start that has other work, which then runs at the same time.
 */
export function prepareEmbeddedEngine(): void {
  prepareWriterThread()
}

/**
 * Opens an engine on the store in a folder; creates the store if necessary.
 * @throws EmbeddedEngineError STORE_LOCKED, STORE_DAMAGED, STORE_UNWRITABLE, STORE_VERSION, OPTION_INVALID
 */
export function openEmbeddedEngine(options: EmbeddedEngineOptions): Promise<EmbeddedEngine> {
  return openEngine(options, undefined)
}

/**
 * Opens an engine like {@link openEmbeddedEngine}. `faults` lets tests make commits fail (`WriterSettings.faults`), and
 * `retries` shortens the waits after a failure.
 */
export async function openEngine(
  options: EmbeddedEngineOptions,
  faults: Int32Array | undefined,
  // Its type is not that of the store: the declarations must not need the types of the storage library.
  retries: Retries = RETRIES,
): Promise<EmbeddedEngine> {
  const settings = settingsOf(options)
  const store = await Store.open(settings, faults, retries)
  try {
    return new ComposedEngine(settings, store)
  } catch (error) {
    await store.close()
    throw error
  }
}

class ComposedEngine implements EmbeddedEngine {
  readonly name = 'embedded'
  readonly capabilities = {
    fsyncBeforeAck: true,
    exactNackOrder: true,
    peekHidesLeased: true,
    leaseSurvivesNode: false,
    remoteStorage: false,
    exactConsumerLimits: true,
    maxDelayedPerQueue: 0,
    expiryWithoutNode: false,
    deduplicationPerMessage: true,
    groupPartitions: 0,
  } as const
  readonly limits: EngineLimits
  readonly path: string
  readonly settings = new SettingsTable()
  readonly queues: EmbeddedQueues
  readonly events: EmbeddedEvents
  readonly eventsStore: EmbeddedEventsStore
  readonly requests: EmbeddedRequests
  readonly channels: EmbeddedChannels
  readonly #store: Store
  readonly #registry: ChannelRegistry
  readonly #now: () => number
  readonly #timers: readonly NodeJS.Timeout[]
  #sweeping = false
  #closing: Promise<void> | undefined

  constructor(settings: Settings, store: Store) {
    const { now, onProblem, maxMessageBytes, maxChannels, path } = settings
    this.path = path
    this.limits = { maxMessageBytes, maxChannels, creationsAtOnce: 0 }
    this.#store = store
    this.#now = now
    const registry = new ChannelRegistry(maxChannels, now, (channel) => this.#channelCreated(channel))
    this.#registry = registry
    this.queues = new EmbeddedQueues(store, registry, this.settings, now)
    this.events = new EmbeddedEvents(registry, now, onProblem)
    this.eventsStore = new EmbeddedEventsStore(store, registry, this.settings, now, settings.durableGroupMs)
    this.requests = new EmbeddedRequests(registry, now, onProblem)
    this.channels = new EmbeddedChannels(store, registry, this.eventsStore, this.events)
    registry.apply({ changed: loadChannels(store.reader), removed: [] })
    registry.startCounting()
    store.listen({
      group: (reply) => this.#applyGroup(reply),
      activity: () => this.#takeActivity(),
      sharing: (part) => (part === DELAYED ? this.#delaying() : []),
      reopened: () => this.#reopened(),
    })
    this.settings.onChange(() => {
      store.useSettings(this.settings.entries)
      this.queues.settingsChanged()
    })
    this.queues.start()
    this.#timers = [
      setInterval(() => this.#storeActivity(), ACTIVITY_MS).unref(),
      setInterval(() => this.#sweep(), SWEEP_MS).unref(),
      setInterval(() => this.#tidy(), HOUSEKEEPING_MS).unref(),
    ]
  }

  #applyGroup(reply: Pick<GroupReply, 'changed' | 'removed'>): void {
    for (const { type, name } of this.#registry.apply(reply)) {
      this.#store.damage.forget(type, name)
      if (type === 'queues') this.queues.forget(name)
      else this.eventsStore.forget(name)
    }
  }

  /** Counts the subscribers that existed before the channel, or stayed after its deletion. */
  #channelCreated(channel: LiveChannel): void {
    if (channel.type === 'queues') this.queues.channelCreated(channel.name)
    else if (channel.type === 'events') this.events.channelCreated(channel)
    else if (channel.type === 'events_store') this.eventsStore.channelCreated(channel)
    else this.requests.channelCreated(channel)
  }

  /** Reads everything from disk again: operations that ran when the store failed may or may not be stored. */
  #reopened(): void {
    const stored = loadChannels(this.#store.reader)
    const there = new Set(stored.map(({ id }) => id))
    for (const type of ['queues', 'events_store'] as const) {
      for (const { name, id } of Array.from(this.#registry.all(type))) {
        if (there.has(id)) continue
        this.#registry.remove(type, name)
        if (type === 'queues') this.queues.forget(name)
        else this.eventsStore.forget(name)
      }
    }
    this.#applyGroup({ changed: stored, removed: [] })
    this.queues.reopened()
    this.eventsStore.reopened()
  }

  /**
   * Returns the delivery counts to store, without those of damaged channels: storing them would fail, and the others
   * with them.
   */
  #takeActivity(): ActivityOperation | undefined {
    const { damage } = this.#store
    return this.#registry.takeActivity(({ type, name }) => !damage.has(type, name))
  }

  #delaying(): DamagedChannel[] {
    const delaying = [...this.#registry.all('queues')].filter(({ delayed }) => delayed > 0)
    return delaying.map(({ name }) => ({ type: 'queues', name }))
  }

  #storeActivity(): void {
    const operation = this.#takeActivity()
    if (operation) this.#store.submit('activity', operation, 0, () => {}).catch(() => {})
  }

  #sweep(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    this.#store
      .submit('sweep', { kind: 'sweep', now: this.#now() }, 0, ({ more }) => more)
      .catch(() => false)
      .then((more) => {
        this.#sweeping = false
        if (more && !this.#closing) setImmediate(() => this.#sweep()).unref()
      })
      .catch(() => {})
  }

  #tidy(): void {
    this.queues.coolDown()
    this.#registry.forgetIdleReserved()
  }

  settingProblem(entry: SettingsEntry): Promise<string | undefined> {
    const stores = [...this.#registry.all('events_store')].filter(({ compacted }) => !compacted)
    return compactProblem(this.settings, entry, stores, ({ entries }) => entries)
  }

  async health(): Promise<EngineHealth> {
    const { store, writes } = this.#store.problem
    const closed = this.#closing ? 'it is closed' : undefined
    const checks = [
      { name: 'store', ok: !store && !closed, detail: closed ?? store ?? 'open' },
      { name: 'writes', ok: !writes && !closed, detail: closed ?? writes ?? 'durable' },
    ]
    return { ok: checks.every(({ ok }) => ok), checks }
  }

  async stats(): Promise<EngineStats> {
    const { entries, delayed, inFlight, backingOff } = this.#registry.totals
    const waiting = Math.max(0, entries - inFlight - backingOff)
    return {
      storeBytes: await this.#store.size(),
      channels: this.#registry.userChannels,
      queues: { waiting, delayed: delayed + backingOff, inFlight },
      sinceOpen: { ...this.#registry.sinceOpen },
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown()
    return this.#closing
  }

  async #shutDown(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    this.channels.close()
    this.events.close()
    this.requests.close()
    this.eventsStore.close()
    await this.queues.close()
    this.#storeActivity()
    await this.#store.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
