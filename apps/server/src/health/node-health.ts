import type { EngineHealth } from '@signalbox/broker-core'
import type { AdmissionControl } from '@signalbox/http-kit'

import type { Agents } from '../agents/open-agents.ts'
import type { HealthyEngine } from './health.ts'

/**
 * A node that does not hear of agents as they come and go is not ready, nor is one that is short of memory; its engine
 * may be well.
 */
export async function healthOf(
  engine: HealthyEngine,
  agents: Agents | undefined,
  { limits, use }: AdmissionControl,
): Promise<EngineHealth> {
  const { ok, checks } = await engine.health()
  const { memoryPercent } = limits.process
  const memory = {
    name: 'memory',
    ok: !use.memoryExceeded,
    detail: `${use.memoryExceeded ? 'above' : 'below'} ${memoryPercent} %${use.memoryExceeded ? ': bodies over 64 KiB and new streams are refused' : ''}`,
  }
  const shared = memoryPercent === 0 ? checks : [...checks, memory]
  if (agents === undefined) return { ok, checks: shared }
  const { current, size } = agents.registry
  const detail = current ? `${size} agents` : 'waits for the discovery log'
  return { ok, checks: [...shared, { name: 'registry', ok: current, detail }] }
}
