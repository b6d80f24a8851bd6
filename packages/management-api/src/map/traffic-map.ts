import { channelNameProblem } from '@signalbox/broker-core'
import type {
  Action,
  BrokerErrorCode,
  BrokerObserver,
  Caller,
  ChannelType,
  OutgoingMessage,
} from '@signalbox/broker-core'
import { RUN_SOURCE } from '@signalbox/broker-core/ports'
import type { WebhookType } from '@signalbox/broker-core/ports'

import type { SeenRequest } from '../requests/open-requests.ts'
import type { Relation } from './edge-table.ts'
import { EdgeTable } from './edge-table.ts'

/** A request to an agent that has ended. */
export interface MappedAgentCall {
  /** The ClientID of the caller. */
  readonly clientId: string
  readonly agentId: string
  readonly status: 'success' | 'error'
  /** The time until the answer began. */
  readonly seconds: number
}

/** An attempt to deliver to a webhook. */
export interface MappedAttempt {
  readonly id: string
  readonly type: WebhookType
  /** The channel; for the type `run` the agent_id, a slash and the id of the task. */
  readonly channel: string
  readonly delivered: boolean
  readonly seconds: number
}

/** The reports of parts whose traffic the Broker does not see. */
export interface MapReports {
  agentCalled(call: MappedAgentCall): void
  webhookAttempted(attempt: MappedAttempt): void
}

/** The relation that a failed call belongs to. Calls that move no message belong to none. */
const RELATIONS: Partial<Readonly<Record<Action, Relation>>> = {
  send: 'send',
  receive: 'receive',
  read: 'receive',
  subscribe: 'receive',
  respond: 'receive',
  settle: 'receive',
}

/** Counts who talks to whom on this node: callers, channels, agents, receivers and webhooks. */
export class TrafficMap implements BrokerObserver, MapReports {
  readonly edges: EdgeTable
  /** In ms since the epoch. */
  readonly since = Date.now()
  /** The caller in whose name the server reads channels for webhooks: their attempts are counted. */
  #system: Caller | undefined

  constructor(stepMs: number) {
    this.edges = new EdgeTable(Math.floor(this.since / stepMs))
  }

  ignore(system: Caller): void {
    this.#system = system
  }

  accepted(type: ChannelType, channel: string, { clientId }: Caller): void {
    const edge = this.edges.of('send', type, channel, clientId)
    if (edge !== undefined) edge.messages++
  }

  delivered(type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void {
    if (caller === this.#system) return
    const edge = this.edges.of('receive', type, channel, caller.clientId)
    if (edge === undefined) return
    edge.messages++
    if (type !== 'queues' || !('timestamp' in message) || typeof message.timestamp !== 'number') return
    edge.timed++
    edge.seconds += Math.max(0, Date.now() - message.timestamp) / 1000
  }

  failed(action: Action, type: ChannelType | undefined, channel: string, caller: Caller, _code: BrokerErrorCode): void {
    const relation = RELATIONS[action]
    if (relation === undefined || type === undefined || caller === this.#system) return
    // An invalid name may have any length.
    if (channelNameProblem(channel) !== undefined) return
    const edge = this.edges.of(relation, type, channel, caller.clientId)
    if (edge !== undefined) edge.errors++
  }

  /** Counts the end of a command or query, for its caller and its responder. */
  requestEnded({ type, channel, client, sentAt, delivered, ended }: SeenRequest): void {
    if (ended === undefined) return
    const { at, outcome } = ended
    const answered = outcome === 'executed' || outcome === 'rejected'
    const count = (relation: Relation, party: string, since: number, isError: boolean): void => {
      const edge = this.edges.of(relation, type, channel, party)
      if (edge === undefined) return
      if (isError) edge.errors++
      if (!answered) return
      edge.timed++
      edge.seconds += Math.max(0, at - since) / 1000
    }
    // Errors of the Broker are failed calls, which are counted already.
    count('send', client, sentAt, outcome === 'rejected' || outcome === 'INTERNAL')
    if (delivered !== undefined) count('receive', delivered.responder, delivered.at, outcome !== 'executed')
  }

  agentCalled({ clientId, agentId, status, seconds }: MappedAgentCall): void {
    const edge = this.edges.of('send', 'agents', agentId, clientId)
    if (edge === undefined) return
    edge.messages++
    if (status === 'error') edge.errors++
    edge.timed++
    edge.seconds += seconds
  }

  webhookAttempted({ id, type, channel, delivered, seconds }: MappedAttempt): void {
    const edge =
      type === RUN_SOURCE
        ? this.edges.of('push', 'agents', agentOf(channel), id)
        : this.edges.of('push', type, channel, id)
    if (edge === undefined) return
    edge.messages++
    if (!delivered) edge.errors++
    edge.timed++
    edge.seconds += seconds
  }
}

function agentOf(channel: string): string {
  return channel.slice(0, channel.indexOf('/'))
}
