import type { AgentTarget } from '@signalbox/registry'
import type { InstancePool } from './instance-pool.ts'
import type { ServedInstance } from './served-instance.ts'

/** The place of one call among the calls of an instance. The call may move to another instance. */
export class CallPlace {
  readonly #pool: InstancePool
  readonly #asked = new Set<ServedInstance>()
  #instance: ServedInstance
  #target: AgentTarget | undefined

  constructor(pool: InstancePool, instance: ServedInstance) {
    this.#pool = pool
    this.#instance = instance
    this.#enter(instance)
  }

  get instance(): ServedInstance {
    return this.#instance
  }

  /** The address of the instance when the call came to it. */
  get target(): AgentTarget | undefined {
    return this.#target
  }

  /** Moves the call to an instance that it has not been at. Returns false if there is none, or each has its maximum. */
  moveOn(): boolean {
    const next = this.#pool.choose(this.#asked)
    if (next === undefined) return false
    this.leave()
    this.#enter(next)
    return true
  }

  /** Ends the call. Call it once. */
  leave(): void {
    this.#instance.inFlight--
    this.#pool.ended(this.#instance)
  }

  #enter(instance: ServedInstance): void {
    this.#instance = instance
    this.#target = instance.target
    this.#asked.add(instance)
    instance.inFlight++
  }
}
