/** The maximum number of tasks, contexts and streams whose instance a node remembers. */
const MAX_TASKS = 10_000

/** Ids of agents are short. Longer ones are not remembered. */
const MAX_ID_CHARACTERS = 256

/** Returns the name under which a context has its owner. No task has such an id. */
export function contextName(contextId: string): string {
  return `\n${contextId}`
}

/**
 * The instances that own tasks, contexts and streams, as this node saw them begin. Forgets the one that was used longest ago when
 * it is full: for a forgotten task the instances are asked in turn.
 */
export class TaskOwners {
  readonly #most: number
  readonly #owners = new Map<string, string>()

  constructor(most = MAX_TASKS) {
    this.#most = most
  }

  get size(): number {
    return this.#owners.size
  }

  /** Returns the id of the instance that owns a task. */
  get(agentId: string, taskId: string): string | undefined {
    const key = keyOf(agentId, taskId)
    const owner = this.#owners.get(key)
    if (owner === undefined) return undefined
    this.#owners.delete(key)
    this.#owners.set(key, owner)
    return owner
  }

  set(agentId: string, taskId: string, instanceId: string): void {
    if (taskId.length > MAX_ID_CHARACTERS) return
    const key = keyOf(agentId, taskId)
    this.#owners.delete(key)
    this.#owners.set(key, instanceId)
    if (this.#owners.size <= this.#most) return
    const oldest = this.#owners.keys().next()
    if (oldest.done !== true) this.#owners.delete(oldest.value)
  }
}

/** An agent_id has no blank. */
function keyOf(agentId: string, taskId: string): string {
  return `${agentId} ${taskId}`
}
