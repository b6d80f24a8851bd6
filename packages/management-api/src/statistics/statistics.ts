import { CHANNEL_TYPES, channelNameProblem, isReservedChannel } from '@signalbox/broker-core'
import type {
  Action,
  BrokerErrorCode,
  BrokerObserver,
  Caller,
  ChannelType,
  OutgoingMessage,
} from '@signalbox/broker-core'
import { Type } from 'typebox'

/** A client's counters, and the time of its last call, in ms since the epoch. */
export interface ClientFlow extends Flow {
  lastActivity: number
}

/** The default of both limits: some 2 MiB when full. */
const DEFAULT_LIMIT = 10_000

/**
 * Counts per client, errors per channel, and totals of this node since its start, which engines do
 * not count. Reserved channels are left out.
 */
export class Statistics implements BrokerObserver {
  /** In ms since the epoch. */
  readonly since = Date.now()
  readonly #types: Readonly<Record<ChannelType, Flow>> = {
    queues: noFlow(),
    events: noFlow(),
    events_store: noFlow(),
    commands: noFlow(),
    queries: noFlow(),
  }
  readonly #clients: BoundedTable<ClientFlow>
  readonly #errors: BoundedTable<{ count: number }>
  readonly #errorsByCode = new Map<BrokerErrorCode, number>()

  constructor({ maxClients = DEFAULT_LIMIT, maxChannels = DEFAULT_LIMIT } = {}) {
    this.#clients = new BoundedTable<ClientFlow>(maxClients, () => ({ ...noFlow(), lastActivity: 0 }))
    this.#errors = new BoundedTable(maxChannels, () => ({ count: 0 }))
  }

  accepted(type: ChannelType, channel: string, caller: Caller, { body }: OutgoingMessage): void {
    if (isReservedChannel(channel)) return
    const bytes = body.byteLength
    const flow = this.#types[type]
    flow.messagesIn++
    flow.bytesIn += bytes
    const client = this.#clients.of(caller.clientId)
    client.messagesIn++
    client.bytesIn += bytes
    client.lastActivity = Date.now()
  }

  delivered(type: ChannelType, channel: string, caller: Caller, { body }: OutgoingMessage): void {
    if (isReservedChannel(channel)) return
    const bytes = body.byteLength
    const flow = this.#types[type]
    flow.messagesOut++
    flow.bytesOut += bytes
    const client = this.#clients.of(caller.clientId)
    client.messagesOut++
    client.bytesOut += bytes
    client.lastActivity = Date.now()
  }

  failed(_action: Action, type: ChannelType | undefined, channel: string, caller: Caller, code: BrokerErrorCode): void {
    this.#errorsByCode.set(code, (this.#errorsByCode.get(code) ?? 0) + 1)
    const client = this.#clients.of(caller.clientId)
    client.errors++
    client.lastActivity = Date.now()
    if (type === undefined || isReservedChannel(channel)) return
    this.#types[type].errors++
    // An invalid name never appears in a list, and may have any length.
    if (channelNameProblem(channel) === undefined) this.#errors.of(`${type} ${channel}`).count++
  }

  /** Since the start of this node. */
  ofType(type: ChannelType): Readonly<Flow> {
    return this.#types[type]
  }

  totals(): Readonly<Flow> {
    const sum = noFlow()
    for (const type of CHANNEL_TYPES) {
      const flow = this.#types[type]
      sum.messagesIn += flow.messagesIn
      sum.messagesOut += flow.messagesOut
      sum.bytesIn += flow.bytesIn
      sum.bytesOut += flow.bytesOut
      sum.errors += flow.errors
    }
    return sum
  }

  errorsOf(type: ChannelType, channel: string): number {
    return this.#errors.peek(`${type} ${channel}`)?.count ?? 0
  }

  /** Failed calls of all channels since the start of this node. */
  get errorsByCode(): ReadonlyMap<BrokerErrorCode, number> {
    return this.#errorsByCode
  }

  clients(): readonly (readonly [clientId: string, flow: Readonly<ClientFlow>])[] {
    return this.#clients.list()
  }

  /** Clients that were removed from the list to limit memory. */
  get forgottenClients(): number {
    return this.#clients.forgotten
  }
}

/** Counters of messages, as plain numbers: counting must cost the messaging path nothing. */
interface Flow {
  messagesIn: number
  messagesOut: number
  bytesIn: number
  bytesOut: number
  errors: number
}

function noFlow(): Flow {
  return { messagesIn: 0, messagesOut: 0, bytesIn: 0, bytesOut: 0, errors: 0 }
}

export const flowFields = {
  messages_in: Type.Integer({ minimum: 0, description: 'Messages accepted.' }),
  messages_out: Type.Integer({ minimum: 0, description: 'Messages delivered; each delivery counts.' }),
  bytes_in: Type.Integer({ minimum: 0, description: 'Bytes of the bodies accepted.' }),
  bytes_out: Type.Integer({ minimum: 0, description: 'Bytes of the bodies delivered.' }),
  errors: Type.Integer({ minimum: 0, description: 'Calls to the broker that failed.' }),
}

export function flowShape({ messagesIn, messagesOut, bytesIn, bytesOut, errors }: Flow) {
  return {
    messages_in: messagesIn,
    messages_out: messagesOut,
    bytes_in: bytesIn,
    bytes_out: bytesOut,
    errors,
  }
}

/** The caller of statistics. It has no special rights, so reserved channels never appear. */
export const OBSERVER = Object.freeze({ clientId: 'signalbox' })

/** The number of recently used entries that a full table skips before it removes one anyway. */
const MAX_CHANCES = 16

interface Entry<Value> {
  readonly value: Value
  /** True if the entry was used since it was last skipped. */
  recent: boolean
}

/**
 * Values by keys that callers choose, so their number is not limited. A full table removes an entry
 * that was not used recently (second chance), in constant time.
 */
export class BoundedTable<Value> {
  readonly #limit: number
  readonly #make: () => Value
  readonly #entries = new Map<string, Entry<Value>>()
  #hand: MapIterator<[string, Entry<Value>]>
  #forgotten = 0

  constructor(limit: number, make: () => Value) {
    this.#limit = limit
    this.#make = make
    this.#hand = this.#entries.entries()
  }

  /** The number of entries removed because the table was full. */
  get forgotten(): number {
    return this.#forgotten
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns the key's value, and creates it if there is none. */
  of(key: string): Value {
    const known = this.#entries.get(key)
    if (known !== undefined) {
      known.recent = true
      return known.value
    }
    if (this.#entries.size >= this.#limit) this.#forgetOne()
    const value = this.#make()
    this.#entries.set(key, { value, recent: false })
    return value
  }

  peek(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  list(): readonly (readonly [key: string, value: Value])[] {
    return Array.from(this.#entries, ([key, { value }]) => [key, value] as const)
  }

  /**
   * The hand continues from where it stopped: from the beginning it would skip all deleted entries
   * there.
   */
  #forgetOne(): void {
    for (let passed = 0; this.#entries.size > 0;) {
      const next = this.#hand.next()
      if (next.done) {
        this.#hand = this.#entries.entries()
        continue
      }
      const [key, entry] = next.value
      if (entry.recent && passed++ < MAX_CHANCES) {
        entry.recent = false
        continue
      }
      this.#entries.delete(key)
      this.#forgotten++
      return
    }
  }
}
