import { MultiMap } from '@signalbox/broker-core/internal'

/** The phase of a run in an inbox: parked, with a lessee, with its events, waiting for its caller, or over. */
export type ParkedPhase = 'stored' | 'delivered' | 'working' | 'waiting' | 'done'

/** The state of one run of an inbox: a task, with its messages. Times are in ms since the epoch. */
export interface ParkedRun {
  readonly run: string
  readonly agentId: string
  readonly callerId: string
  readonly contextId: string
  readonly phase: ParkedPhase
  /** The id of the queue item of the last message. Items with another id are dropped. */
  readonly item: string
  /** The sequence of the last event before the last message. */
  readonly start: number
  readonly createdAt: number
  /** The time at which a parked message is given up. */
  readonly expiresAt: number
  /** The number of times that the last message was leased. */
  readonly attempt: number
  /** The digest of the lessee's receipt. */
  readonly lease?: string | undefined
  /** True once the last message may have reached an agent that is called: it is not sent again. */
  readonly isSent?: boolean | undefined
  /** The id of the task at an agent that is called. */
  readonly agentTask?: string | undefined
  /** True once the caller has asked to cancel the task. */
  readonly cancel?: boolean | undefined
  /** The end that the gateway has decided for the task. */
  readonly outcome?: ParkedOutcome | undefined
}

/** An end of a task that its agent has not written itself. */
export interface ParkedOutcome {
  /** The state of A2A 1.0. */
  readonly state: 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED'
  readonly reason: 'DELIVERY_EXPIRED' | 'DELIVERY_FAILED' | 'REJECTED' | 'CANCELED'
  /** The reason in words. */
  readonly text: string
}

/** A state, and its position in the log. */
export interface KnownRun extends ParkedRun {
  readonly sequence: number
  /** The time at which it was written, in ms since the epoch. */
  readonly writtenAt: number
}

/** The phases in which the last message of a task is in the queue. */
const IN_QUEUE: ReadonlySet<ParkedPhase> = new Set<ParkedPhase>(['stored', 'delivered', 'working'])

/** The most tasks that are over and kept in memory. The others are found by their ids. */
const MAX_OVER = 10_000

/** The tasks of all inboxes in memory, counted so that no request has to look at all of them. */
export class ParkedIndex {
  readonly #known = new Map<string, KnownRun>()
  readonly #byAgent = new MultiMap<string, string>()
  /** The tasks whose last messages are parked, by agent, in the order in which they were parked. */
  readonly #stored = new MultiMap<string, string>()
  /** The number of tasks in the queue of each agent, and of each of its callers. */
  readonly #inQueue = new Map<string, number>()
  /** The tasks that are over, oldest first. */
  readonly #over = new Set<string>()

  /** The agents that have tasks. */
  get agents(): Iterable<string> {
    return this.#byAgent.keys()
  }

  /** Returns the last state of a task that this node knows. */
  get(run: string): KnownRun | undefined {
    return this.#known.get(run)
  }

  /** Returns the tasks that are not over. */
  unfinished(): readonly KnownRun[] {
    return [...this.#known.values()].filter(({ phase }) => phase !== 'done')
  }

  /** Returns the tasks of an agent, oldest first. */
  of(agentId: string): readonly KnownRun[] {
    return [...this.#byAgent.get(agentId)].flatMap((run) => this.#known.get(run) ?? [])
  }

  /** Returns the number of tasks in an agent's queue: of a caller, or of all. */
  inQueue(agentId: string, callerId?: string): number {
    return this.#inQueue.get(nameOf(agentId, callerId)) ?? 0
  }

  /** Returns the number of tasks of an agent that are parked. */
  stored(agentId: string): number {
    return this.#stored.get(agentId).size
  }

  /** Returns the place of a task among those of its agent that are parked, from 1. */
  positionOf({ agentId, run }: KnownRun): number {
    let position = 1
    for (const one of this.#stored.get(agentId)) {
      if (one === run) break
      position++
    }
    return position
  }

  /** Adds a state. Returns false for one that is not newer than the known one. */
  set(state: KnownRun): boolean {
    const { agentId, phase, run } = state
    const before = this.#known.get(run)
    if (before !== undefined && before.sequence >= state.sequence) return false
    if (before === undefined) this.#byAgent.add(agentId, run)
    else this.#count(before, -1)
    this.#known.set(run, state)
    this.#count(state, 1)
    if (phase === 'stored') this.#stored.add(agentId, run)
    else this.#stored.delete(agentId, run)
    if (phase === 'done') this.#keepOver(run)
    return true
  }

  clear(): void {
    for (const run of this.#known.keys()) this.#delete(run)
  }

  /** Forgets the tasks that did not change for a time. The log removes them too. */
  forget(before: number): void {
    for (const [run, { expiresAt }] of this.#known) if (expiresAt < before) this.#delete(run)
  }

  #keepOver(run: string): void {
    this.#over.add(run)
    const [oldest] = this.#over
    if (this.#over.size > MAX_OVER && oldest !== undefined) this.#delete(oldest)
  }

  #delete(run: string): void {
    const known = this.#known.get(run)
    if (known === undefined) return
    this.#count(known, -1)
    this.#known.delete(run)
    this.#over.delete(run)
    this.#byAgent.delete(known.agentId, run)
    this.#stored.delete(known.agentId, run)
  }

  #count({ agentId, callerId, phase }: KnownRun, by: number): void {
    if (!IN_QUEUE.has(phase)) return
    for (const name of [nameOf(agentId, callerId), nameOf(agentId, undefined)]) {
      const count = (this.#inQueue.get(name) ?? 0) + by
      if (count === 0) this.#inQueue.delete(name)
      else this.#inQueue.set(name, count)
    }
  }
}

/** An agent_id has no line end. */
function nameOf(agentId: string, callerId: string | undefined): string {
  return callerId === undefined ? agentId : `${agentId}\n${callerId}`
}
