import { hostname } from 'node:os'

import type { EngineHealth } from '@signalbox/broker-core'

/** What `/ready` answers (specification, "Probe and other routes"; fields as decided for the management listener). */
export interface HealthState {
  /** Whether calls are welcome: started, not stopping, and every check is passed. */
  readonly ready: boolean
  /** Whether the engine can do its work. */
  readonly healthy: boolean
  /** The name of this node. */
  readonly node: string
  readonly version: string
  readonly engine: string
  readonly uptime_seconds: number
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

type Phase = 'starting' | 'serving' | 'stopping'

/** An engine that does not answer for this long is not healthy. */
const HEALTH_TIMEOUT_MS = 5_000

/** What the probes ask of the engine, and of what stands on it. A failed check alone makes it not ready, not unhealthy. */
export interface HealthyEngine {
  health(): Promise<EngineHealth>
}

/** Knows how the server is, for the probes of both listeners. */
export class Health {
  readonly #engineName: string
  readonly #version: string
  readonly #startedAt = performance.now()
  #engine: HealthyEngine | undefined
  #phase: Phase = 'starting'
  /** Why the engine is not open yet, where that takes more than the time of a start. */
  #waitingFor: string | undefined

  constructor(engineName: string, version: string) {
    this.#engineName = engineName
    this.#version = version
  }

  /** While the server starts: it has to wait for its engine, and why. */
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

  /** Starting and stopping are ordinary and not ill. A start that waits for its store is: nothing works until that is there. */
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
