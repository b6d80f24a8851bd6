import type { BrokerObserver } from '@signalbox/broker-core'
import type { Registry } from 'prom-client'
import { Counter } from 'prom-client'

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
