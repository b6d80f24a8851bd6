import type { Buffer } from 'node:buffer'

import type { AgentQuery } from '@signalbox/registry'

import type { CallResult } from '../agent-call.ts'
import type { CallPlace } from './call-place.ts'
import { followedTask, isUnknownTask } from './followed-task.ts'
import type { FollowedTask } from './followed-task.ts'
import type { InstancePool } from './instance-pool.ts'
import type { ServedInstance } from './served-instance.ts'
import { startedTask, StreamedTask } from './started-task.ts'
import type { TaskOwners } from './task-owners.ts'

/**
 * Sends a request to the instance at which the call has its place.
 * @param tap Called with each chunk of a response that is a stream
 */
export type SendTo = (place: CallPlace, query: AgentQuery, tap?: (chunk: Buffer) => void) => Promise<CallResult>

/**
 * The choice of the instance for each call of one agent. A call that continues a task goes to the instance that owns the
 * task. Any other call goes to the instance with the fewest calls under way.
 */
export class InstanceCalls {
  readonly #agentId: string
  readonly #pool: InstancePool
  readonly #owners: TaskOwners

  constructor(agentId: string, pool: InstancePool, owners: TaskOwners) {
    this.#agentId = agentId
    this.#pool = pool
    this.#owners = owners
  }

  /** Returns the task that a request continues, if the agent has several instances. */
  followed({ body }: AgentQuery): FollowedTask | undefined {
    return this.#pool.size > 1 ? followedTask(body) : undefined
  }

  /** Returns the instance for a call; undefined if AgentMaxConcurrency is reached. */
  choose(followed: FollowedTask | undefined): ServedInstance | undefined {
    const ownerId = followed && this.#owners.get(this.#agentId, followed.id)
    const owner = ownerId === undefined ? undefined : this.#pool.get(ownerId)
    if (owner === undefined) return this.#pool.choose()
    return this.#pool.hasRoom(owner) ? owner : undefined
  }

  /**
   * Sends a request. Sends it to one other instance if the first certainly did not get it. Asks the other instances in
   * turn for a task that an instance does not know.
   */
  async send(
    place: CallPlace,
    query: AgentQuery,
    followed: FollowedTask | undefined,
    send: SendTo,
    mayGoOn: () => boolean,
  ): Promise<CallResult> {
    const begin = performance.now()
    let missed: CallResult | undefined
    for (let timeoutMs = query.timeoutMs; ;) {
      const result = await send(place, missed === undefined ? query : { ...query, timeoutMs })
      const searched = followed?.searchable === true && result.events === undefined && isUnknownTask(result.reply)
      if (!isUnsent(result) && !searched) {
        this.#learn(place, query, followed, result)
        return result
      }
      const once = missed !== undefined && followed?.searchable !== true
      // The instance that could not be reached may own the task: its failure says more than "task not found".
      if (missed === undefined || (isUnsent(result) && !isUnsent(missed))) missed = result
      timeoutMs = query.timeoutMs - Math.ceil(performance.now() - begin)
      if (once || timeoutMs <= 0 || !mayGoOn() || !place.moveOn()) return missed
    }
  }

  /** Returns a reader of the events of a stream that remembers the owner of the stream's task. */
  tap(place: CallPlace, { mode, streamId }: AgentQuery): ((chunk: Buffer) => void) | undefined {
    if (mode !== 'stream' || this.#pool.size < 2) return undefined
    const { id } = place.instance
    if (streamId !== undefined) this.#owners.set(this.#agentId, streamId, id)
    const reader = new StreamedTask((taskId) => this.#owners.set(this.#agentId, taskId, id))
    return (chunk) => reader.read(chunk)
  }

  #learn({ instance }: CallPlace, { mode }: AgentQuery, followed: FollowedTask | undefined, result: CallResult): void {
    if (this.#pool.size < 2 || result.reply.failure !== undefined || mode === 'accept') return
    const taskId = followed?.id ?? (result.events === undefined ? startedTask(result.reply.body) : undefined)
    if (taskId !== undefined) this.#owners.set(this.#agentId, taskId, instance.id)
  }
}

function isUnsent({ reply }: CallResult): boolean {
  return reply.unsent === true && !reply.executed
}
