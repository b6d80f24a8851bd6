import { hostname } from 'node:os'

import type { EngineHealth } from '@signalbox/broker-core'
import type { AdmissionControl } from '@signalbox/http-kit'

import type { Agents } from '../agents/open-agents.ts'

/** The answer of `/ready`. */
export interface HealthState {
  /** True if calls are accepted: started, not stopping, and every check passes. */
  readonly ready: boolean
  /** True if the engine works. */
  readonly healthy: boolean
  /** The name of this node. */
  readonly node: string
  readonly version: string
  readonly engine: string
  readonly uptime_seconds: number
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

type Phase = 'starting' | 'serving' | 'stopping'

/** The time without an answer after which an engine is unhealthy, in ms. */
const HEALTH_TIMEOUT_MS = 5_000

/**
 * The health check of the engine and of the parts that use it. A failed check alone makes the node
 * not ready, but not unhealthy.
 */
export interface HealthyEngine {
  health(): Promise<EngineHealth>
}

/** The health of the server, for the probes of both listeners. */
export class Health {
  readonly #engineName: string
  readonly #version: string
  readonly #startedAt = performance.now()
  #engine: HealthyEngine | undefined
  #phase: Phase = 'starting'
  /** The reason why the engine is not open yet, if the start waits for it. */
  #waitingFor: string | undefined

  constructor(engineName: string, version: string) {
    this.#engineName = engineName
    this.#version = version
  }

  /** Reports during the start that the server waits for its engine, and the reason. */
  waiting(reason: string): void {
    this.#waitingFor = reason
  }

  serving(engine: HealthyEngine): void {
    this.#engine = engine
    this.#phase = 'serving'
  }

  stopping(): void {
    this.#phase = 'stopping'
  }

  async state(): Promise<HealthState> {
    const engine = await this.#engineHealth()
    const phase = this.#phase
    return {
      ready: phase === 'serving' && engine.ok && engine.checks.every(({ ok }) => ok),
      healthy: engine.ok,
      node: hostname(),
      version: this.#version,
      engine: this.#engineName,
      uptime_seconds: Math.round(performance.now() - this.#startedAt) / 1000,
      checks: [{ name: 'server', ok: phase === 'serving', detail: PHASE_DETAIL[phase] }, ...engine.checks],
    }
  }

  /**
   * Returns false if the engine fails, or if the start waits for its store: no call works until the
   * store is available. Starting and stopping alone are healthy.
   */
  async healthy(): Promise<boolean> {
    return (await this.#engineHealth()).ok
  }

  async #engineHealth(): Promise<EngineHealth> {
    if (this.#phase === 'starting' && this.#waitingFor !== undefined) return failed(this.#waitingFor)
    if (!this.#engine || this.#phase !== 'serving') return { ok: true, checks: [] }
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<EngineHealth>((resolve) => {
      timer = setTimeout(() => resolve(failed(`no answer within ${HEALTH_TIMEOUT_MS / 1000} s`)), HEALTH_TIMEOUT_MS)
    })
    try {
      return await Promise.race([this.#engine.health(), late])
    } catch (error) {
      return failed(error instanceof Error ? error.message : 'failed')
    } finally {
      clearTimeout(timer)
    }
  }
}

const PHASE_DETAIL: Readonly<Record<Phase, string>> = {
  starting: 'starting',
  serving: 'accepting calls',
  stopping: 'shutting down',
}

function failed(detail: string): EngineHealth {
  return { ok: false, checks: [{ name: 'engine', ok: false, detail }] }
}

/** A part of the node that follows a log of all nodes. */
interface Followed {
  /** `false` while changes by other nodes do not arrive. */
  readonly current: boolean
}

function logCheck(
  name: string,
  { current }: Followed,
  log: string,
  detail = 'current',
): EngineHealth['checks'][number] {
  return { name, ok: current, detail: current ? detail : `waiting for the channel _AGENTS_.${log}` }
}

/**
 * Returns the health of the node: the engine's checks, memory, the channel settings, the schedules and the registry. Too
 * much memory in use, or a log of these that does not follow changes, makes the node not ready, although the engine may
 * be healthy.
 */
export async function healthOf(
  engine: HealthyEngine,
  {
    agents,
    channelSettings,
    schedules,
  }: { readonly agents: Agents | undefined; readonly channelSettings: Followed; readonly schedules: Followed },
  { limits, use }: AdmissionControl,
): Promise<EngineHealth> {
  const { ok, checks } = await engine.health()
  const { memoryPercent } = limits.process
  const memory = {
    name: 'memory',
    ok: !use.memoryExceeded,
    detail: `${use.memoryExceeded ? 'above' : 'below'} ${memoryPercent} %${use.memoryExceeded ? ': bodies over 64 KiB and new streams are refused' : ''}`,
  }
  const shared = [
    ...checks,
    ...(memoryPercent === 0 ? [] : [memory]),
    logCheck('channel_settings', channelSettings, 'channel_settings'),
    logCheck('schedules', schedules, 'schedules'),
  ]
  if (agents === undefined) return { ok, checks: shared }
  const { registry } = agents
  return { ok, checks: [...shared, logCheck('registry', registry, 'discovery', `${registry.size} agents`)] }
}
