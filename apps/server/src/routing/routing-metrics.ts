import type { BrokerObserver, RoutingFailureReason } from '@signalbox/broker-core'
import type { Registry } from 'prom-client'
import { Counter } from 'prom-client'

const REASONS: Readonly<Record<RoutingFailureReason, true>> = {
  condition: true,
  placeholder: true,
  channel: true,
  cycle: true,
  hops: true,
  copies: true,
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
