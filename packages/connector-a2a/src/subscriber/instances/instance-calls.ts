import type { Buffer } from 'node:buffer'

import { A2A_CODES } from '../../native/errors.ts'
import type { AgentQuery } from '../../requests/agent-query.ts'
import type { CallResult } from '../agent-call.ts'
import { isErrorWith } from '../json-bodies.ts'
import type { CallPlace, InstancePool, ServedInstance } from './instance-pool.ts'
import { MergedList } from './merged-list.ts'
import type { FollowedTask, StartedTask } from './task-ids.ts'
import { followedTask, messageContext, startedTask, StreamedTask } from './task-ids.ts'

/**
 * Sends a request to the instance at which the call has its place.
 * @param tap Called with each chunk of a response that is a stream
 */
export type SendTo = (place: CallPlace, query: AgentQuery, tap?: (chunk: Buffer) => void) => Promise<CallResult>

/**
 * The choice of the instance for each call of one agent. A call that continues a task goes to the instance that owns the
 * task. A message of a context goes to the instance that has the context, or that the context prefers. Any other call
 * goes to the instance with the fewest calls under way.
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
  choose({ body }: AgentQuery, followed: FollowedTask | undefined): ServedInstance | undefined {
    const owner = this.#ownerOf(followed?.id)
    if (owner !== undefined) return this.#pool.hasRoom(owner) ? owner : undefined
    const contextId = this.#pool.size > 1 ? messageContext(body) : undefined
    return (contextId === undefined ? undefined : this.#ofContext(contextId)) ?? this.#pool.choose()
  }

  #ofContext(contextId: string): ServedInstance | undefined {
    const known = this.#ownerOf(contextName(contextId))
    const isReached = known !== undefined && known.pausedUntil <= performance.now() && this.#pool.hasRoom(known)
    return isReached ? known : this.#pool.preferred(contextId)
  }

  #ownerOf(name: string | undefined): ServedInstance | undefined {
    const ownerId = name === undefined ? undefined : this.#owners.get(this.#agentId, name)
    return ownerId === undefined ? undefined : this.#pool.get(ownerId)
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
    const list = this.#pool.size > 1 ? MergedList.of(query) : undefined
    if (list !== undefined) return list instanceof MergedList ? this.#list(list, place, send, mayGoOn) : { reply: list }
    const begin = performance.now()
    let missed: CallResult | undefined
    const isOwner = this.#ownerOf(followed?.id) === place.instance
    for (let timeoutMs = query.timeoutMs; ;) {
      const result = await send(place, missed === undefined ? query : { ...query, timeoutMs })
      const searched =
        followed?.searchable === true &&
        result.events === undefined &&
        isErrorWith([A2A_CODES.TASK_NOT_FOUND], result.reply)
      if (!isUnsent(result) && !searched) {
        this.#learn(place, query, followed, result)
        return result
      }
      const once = missed !== undefined && followed?.searchable !== true
      // An instance that could not be reached says nothing about the task, unless it is known to own it.
      if (missed === undefined || (isUnsent(missed) && !isUnsent(result) && !isOwner)) missed = result
      timeoutMs = query.timeoutMs - Math.ceil(performance.now() - begin)
      if (once || timeoutMs <= 0 || !mayGoOn() || !place.moveOn()) return missed
    }
  }

  /** Asks every instance for its tasks, one after the other. */
  async #list(list: MergedList, place: CallPlace, send: SendTo, mayGoOn: () => boolean): Promise<CallResult> {
    const begin = performance.now()
    do {
      const query = list.requestTo(place.instance.id)
      if (query === undefined) continue
      const timeoutMs = query.timeoutMs - Math.ceil(performance.now() - begin)
      if (timeoutMs <= 0) break
      list.add(place.instance.id, await send(place, { ...query, timeoutMs }))
    } while (mayGoOn() && place.moveOn())
    return list.result()
  }

  /** Returns a reader of the events of a stream that remembers the owner of the stream's task. */
  tap(place: CallPlace, { mode, streamId }: AgentQuery): ((chunk: Buffer) => void) | undefined {
    if (mode !== 'stream' || this.#pool.size < 2) return undefined
    const { id } = place.instance
    if (streamId !== undefined) this.#owners.set(this.#agentId, streamId, id)
    const reader = new StreamedTask((started) => this.#own(started, id))
    return (chunk) => reader.read(chunk)
  }

  #learn({ instance }: CallPlace, { mode }: AgentQuery, followed: FollowedTask | undefined, result: CallResult): void {
    if (this.#pool.size < 2 || result.reply.failure !== undefined || mode === 'accept') return
    const started = result.events === undefined ? startedTask(result.reply.body) : undefined
    this.#own({ ...started, taskId: followed?.id ?? started?.taskId }, instance.id)
  }

  #own({ taskId, contextId }: StartedTask, instanceId: string): void {
    if (taskId !== undefined) this.#owners.set(this.#agentId, taskId, instanceId)
    if (contextId !== undefined) this.#owners.set(this.#agentId, contextName(contextId), instanceId)
  }
}

function isUnsent({ reply }: CallResult): boolean {
  return reply.unsent === true && !reply.executed
}

/** The maximum number of tasks, contexts and streams whose instance a node remembers. */
const MAX_TASKS = 10_000

/** Ids of agents are short. Longer ones are not remembered. */
const MAX_ID_CHARACTERS = 256

/** Returns the name under which a context has its owner. No task has such an id. */
function contextName(contextId: string): string {
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
