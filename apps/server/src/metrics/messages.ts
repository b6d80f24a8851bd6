import type {
  BrokerObserver,
  ChannelType,
  GateReason,
  OutgoingMessage,
  RoutingFailureReason,
} from '@signalbox/broker-core'
import { BROKER_ERRORS, CHANNEL_TYPES, isReservedChannel } from '@signalbox/broker-core'
import type { Registry } from 'prom-client'
import { Counter } from 'prom-client'

/**
 * Messages and bytes of one channel type in one direction. Plain numbers: counting must cost the
 * messaging path nothing.
 */
interface MessageCounters {
  messages: number
  bytes: number
}

/** Counts users' messages in the Broker: messages and bytes by type and direction, errors by code. */
export function messageMetrics(registry: Registry): BrokerObserver {
  const labelNames = ['type', 'direction'] as const
  const incoming = byType(noFlow)
  const outgoing = byType(noFlow)
  const failures = new Map<string, number>(Object.keys(BROKER_ERRORS).map((code) => [code, 0]))

  /** Copies the totals into a counter on a scrape. */
  const fill = (counter: Counter<'type' | 'direction'>, total: (flow: MessageCounters) => number): void => {
    counter.reset()
    for (const type of CHANNEL_TYPES) {
      counter.inc({ type, direction: 'in' }, total(incoming[type]))
      counter.inc({ type, direction: 'out' }, total(outgoing[type]))
    }
  }
  const messages = new Counter({
    name: 'broker_messages_total',
    help: 'Messages accepted (in) and delivered (out), by channel type.',
    labelNames,
    registers: [],
    collect() {
      fill(this, (flow) => flow.messages)
    },
  })
  const bytes = new Counter({
    name: 'broker_message_bytes_total',
    help: 'Bytes of the bodies of messages accepted (in) and delivered (out), by channel type.',
    labelNames,
    registers: [],
    collect() {
      fill(this, (flow) => flow.bytes)
    },
  })
  const errors = new Counter({
    name: 'broker_errors_total',
    help: 'Calls to the broker that failed, by error code.',
    labelNames: ['code'],
    registers: [],
    collect() {
      this.reset()
      for (const [code, count] of failures) this.inc({ code }, count)
    },
  })
  for (const counter of [messages, bytes]) registry.registerMetric(counter)
  registry.registerMetric(errors)
  const waits = new Counter({
    name: 'broker_gate_waits_total',
    help: 'Receives from queues that had to wait, or got nothing, because of a pause or of limits in the channel settings.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of GATE_REASONS) waits.inc({ reason }, 0)
  return {
    gateWaited: (reason) => waits.inc({ reason }),
    accepted: (type, channel, _caller, message) => add(incoming[type], channel, message),
    delivered: (type, channel, _caller, message) => add(outgoing[type], channel, message),
    failed: (_action, _type, _channel, _caller, code) => void failures.set(code, (failures.get(code) ?? 0) + 1),
  }
}

const GATE_REASONS: readonly GateReason[] = ['paused', 'rate', 'in_flight']

/** Messages on reserved channels are not users' messages and are not counted. */
function add(flow: MessageCounters, channel: string, message: OutgoingMessage): void {
  if (isReservedChannel(channel)) return
  flow.messages++
  flow.bytes += message.body.byteLength
}

function noFlow(): MessageCounters {
  return { messages: 0, bytes: 0 }
}

function byType(make: () => MessageCounters): Readonly<Record<ChannelType, MessageCounters>> {
  return { queues: make(), events: make(), events_store: make(), commands: make(), queries: make() }
}

/** Counts the messages and copies that the schema of their channel refused. */
export function schemaMetrics(registry: Registry): BrokerObserver {
  const refusals = new Counter({
    name: 'broker_schema_refusals_total',
    help: 'Messages and copies by routing whose body does not match the schema of their channel.',
    registers: [registry],
  })
  return {
    failed: (_action, _type, _channel, _caller, code) => {
      if (code === 'SCHEMA_MISMATCH') refusals.inc()
    },
    routingFailed: ({ code }) => {
      if (code === 'SCHEMA_MISMATCH') refusals.inc()
    },
  }
}

/** Counts denials by the policy, and by the scopes of tokens. */
export function authorizationMetrics(registry: Registry): BrokerObserver {
  const denials = new Counter({
    name: 'broker_authorization_denials_total',
    help: 'Calls that the policy or the scopes of the token denied, by action and pattern.',
    labelNames: ['action', 'pattern'],
    registers: [registry],
  })
  return { denied: (action, pattern) => denials.inc({ action, pattern }) }
}

const REASONS: Readonly<Record<RoutingFailureReason, true>> = {
  condition: true,
  placeholder: true,
  channel: true,
  cycle: true,
  hops: true,
  copies: true,
  schema: true,
  engine: true,
}

/** Counts the copies that the routing table makes, and failed copies by reason. */
export function routingMetrics(registry: Registry): BrokerObserver {
  const copies = new Counter({
    name: 'broker_routed_messages_total',
    help: 'Copies of messages that the routing table made.',
    registers: [registry],
  })
  const failures = new Counter({
    name: 'broker_routing_failures_total',
    help: 'Failed copies of the routing table, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of Object.keys(REASONS)) failures.inc({ reason }, 0)
  return {
    routed: () => copies.inc(),
    routingFailed: ({ reason }) => failures.inc({ reason }),
  }
}
