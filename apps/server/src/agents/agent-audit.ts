import type { AuditLog } from '@signalbox/management-api'
import type { OperationDetail, RegistryOperation } from '@signalbox/registry'

/** Audits what changes in the registry, and what it refuses. Heartbeats are no change. */
export class AgentAudit {
  readonly #log: Pick<AuditLog, 'record'>
  readonly #byOperators = new Set<string>()

  constructor(log: Pick<AuditLog, 'record'>) {
    this.#log = log
  }

  operation(op: RegistryOperation, status: 'success' | 'error', detail: OperationDetail): void {
    const { agentId: agent, clientId: client = '', address, code } = detail
    const denied = code === 'AGENT_OWNED'
    if (op === 'heartbeat' && !denied) return
    if (op === 'deregister' && agent !== undefined && this.#byOperators.has(agent)) return
    this.#log.record({
      client,
      action: `${op}_agent`,
      outcome: denied ? 'denied' : status === 'success' ? 'success' : 'failure',
      ...(address === undefined ? {} : { address }),
      ...(agent === undefined ? {} : { agent }),
      ...(code === undefined ? {} : { code }),
    })
  }

  /** Runs a call that a management action makes: the action's own entry says more. */
  async byOperator<Result>(agentId: string, call: () => Promise<Result>): Promise<Result> {
    this.#byOperators.add(agentId)
    try {
      return await call()
    } finally {
      this.#byOperators.delete(agentId)
    }
  }
}
