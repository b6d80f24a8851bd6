import type { EngineHealth } from '@signalbox/broker-core'
import type { AdmissionControl } from '@signalbox/http-kit'

import type { Agents } from '../agents/open-agents.ts'
import type { HealthyEngine } from './health.ts'

/**
 * Returns the health of the node: the engine's checks, memory, and the registry. Too much memory in
 * use, or a registry that does not follow changes of agents, makes the node not ready, although the
 * engine may be healthy.
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
  const detail = current ? `${size} agents` : 'waiting for the channel _AGENTS_.discovery'
  return { ok, checks: [...shared, { name: 'registry', ok: current, detail }] }
}
