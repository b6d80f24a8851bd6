import type { BrokerErrorCode, BrokerObserver, ChannelType, OutgoingMessage } from '@signalbox/broker-core'
import { BROKER_ERRORS, CHANNEL_TYPES } from '@signalbox/broker-core'
import type { Registry } from 'prom-client'
import { Counter } from 'prom-client'

/** The counters of one channel type and direction, looked up once: the messaging path makes no label objects. */
interface Flow {
  readonly messages: Counter.Internal
  readonly bytes: Counter.Internal
}

/** Counts what passes through the Broker: messages and bytes by type and direction, errors by code. */
export function messageMetrics(registry: Registry): BrokerObserver {
  const registers = [registry]
  const labelNames = ['type', 'direction'] as const
  const messages = new Counter({
    name: 'broker_messages_total',
    help: 'Messages accepted (in) and delivered (out), by channel type.',
    labelNames,
    registers,
  })
  const bytes = new Counter({
    name: 'broker_message_bytes_total',
    help: 'Bytes of the bodies of messages accepted (in) and delivered (out), by channel type.',
    labelNames,
    registers,
  })
  const errors = new Counter({
    name: 'broker_errors_total',
    help: 'Calls to the broker that failed, by error code.',
    labelNames: ['code'],
    registers,
  })
  const flow = (type: ChannelType, direction: 'in' | 'out'): Flow => ({
    messages: counterChild(messages.labels(type, direction)),
    bytes: counterChild(bytes.labels(type, direction)),
  })
  const incoming = byType((type) => flow(type, 'in'))
  const outgoing = byType((type) => flow(type, 'out'))
  const failures = new Map<string, Counter.Internal>(
    Object.keys(BROKER_ERRORS).map((code) => [code, counterChild(errors.labels(code))]),
  )
  return {
    accepted: (type, _channel, _caller, message) => add(incoming[type], message),
    delivered: (type, _channel, _caller, message) => add(outgoing[type], message),
    failed: (_action, _type, _channel, _caller, code: BrokerErrorCode) => failures.get(code)?.inc(1),
  }
}

/** Begins at 0, so that a rate is right from the first message on. */
function counterChild(child: Counter.Internal): Counter.Internal {
  child.inc(0)
  return child
}

function add({ messages, bytes }: Flow, message: OutgoingMessage): void {
  messages.inc(1)
  bytes.inc(message.body.byteLength)
}

function byType(make: (type: ChannelType) => Flow): Readonly<Record<ChannelType, Flow>> {
  const [queues, events, eventsStore, commands, queries] = CHANNEL_TYPES
  return {
    queues: make(queues),
    events: make(events),
    events_store: make(eventsStore),
    commands: make(commands),
    queries: make(queries),
  }
}
