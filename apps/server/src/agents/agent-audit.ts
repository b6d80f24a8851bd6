import type { AuditLog } from '@signalbox/management-api'
import type { OperationDetail, RegistryOperation } from '@signalbox/registry'

/**
 * Audits registered and removed agents, and refusals of the registry. Heartbeats change nothing and
 * are not audited.
 */
export class AgentAudit {
  readonly #log: Pick<AuditLog, 'record'>
  readonly #byOperators = new Set<string>()

  constructor(log: Pick<AuditLog, 'record'>) {
    this.#log = log
  }

  operation(op: RegistryOperation, status: 'success' | 'error', detail: OperationDetail): void {
    const { agentId: agent, instanceId, clientId: client = '', address, code } = detail
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
      ...(instanceId === undefined ? {} : { detail: `instance ${instanceId}` }),
    })
  }

  /** Runs a call of a management action without an entry: the action's own entry records more. */
  async byOperator<Result>(agentId: string, call: () => Promise<Result>): Promise<Result> {
    this.#byOperators.add(agentId)
    try {
      return await call()
    } finally {
      this.#byOperators.delete(agentId)
    }
  }
}
