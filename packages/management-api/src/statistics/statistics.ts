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

/** A client's flow, and when it was last heard of, milliseconds since the epoch. */
export interface ClientFlow extends Flow {
  lastActivity: number
}

/** @default of both limits: some 2 MiB when full. */
const DEFAULT_LIMIT = 10_000

/**
 * Counts what engines do not: by client, errors by channel, and totals of this node since its start. Channels of the
 * broker's own are left out (M8).
 */
export class Statistics implements BrokerObserver {
  /** Milliseconds since the epoch. */
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

  failed(
    _action: Action,
    type: ChannelType | undefined,
    channel: string,
    caller: Caller,
    _code: BrokerErrorCode,
  ): void {
    const client = this.#clients.of(caller.clientId)
    client.errors++
    client.lastActivity = Date.now()
    if (type === undefined || isReservedChannel(channel)) return
    this.#types[type].errors++
    // What is no name of a channel never turns up in a list, and may be of any length.
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

  clients(): readonly (readonly [clientId: string, flow: Readonly<ClientFlow>])[] {
    return this.#clients.list()
  }

  /** Clients that are not listed any more, to bound memory. */
  get forgottenClients(): number {
    return this.#clients.forgotten
  }
}
