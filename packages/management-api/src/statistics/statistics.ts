import { CHANNEL_TYPES, channelNameProblem, isReservedChannel } from '@signalbox/broker-core'
import type {
  Action,
  BrokerErrorCode,
  BrokerObserver,
  Caller,
  ChannelType,
  OutgoingMessage,
} from '@signalbox/broker-core'

import { BoundedTable } from './bounded-table.ts'
import type { Flow } from './flow.ts'
import { noFlow } from './flow.ts'

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
