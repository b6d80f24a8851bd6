import type { BrokerObserver } from '@signalbox/broker-core'

import type { AuditLog } from './audit/audit-log.ts'
import type { ManagementServices } from './ports.ts'

/** The parts of the management API that its host uses in addition to the routes. */
export interface ManagementControl {
  /** For the Broker: statistics and the audit log see what passes from the first message on. */
  readonly observers: readonly BrokerObserver[]
  /** Records events of other components: the registry, authenticators, files that are read again. */
  readonly audit: AuditLog
  /** Initialization has finished. Until then `/api/*` and `/v1/stats/*`, but for the monitor, answer `api service not ready`. */
  serve(services: ManagementServices): void
  /**
   * Prepares for the close of the engine: ends waiting receives with an empty answer, settles
   * delivered messages, writes the audit log. Monitors and reading routes continue. `close` includes
   * it. Idempotent. @default graceMs the option `drainMs`
   */
  finish(graceMs?: number): Promise<void>
}
