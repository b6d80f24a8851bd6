import { randomUUID } from 'node:crypto'

import type { BrokerHandle, WorkerPool } from '@signalbox/broker-core'
import { encodeText, isBrokerError } from '@signalbox/broker-core'
import type { JsonObject } from '@signalbox/http-kit'
import type { AgentCard, InboxStatus } from '@signalbox/registry'
import { agentOptions } from '@signalbox/registry'

import { HEADER_TAG } from '../requests/agent-query.ts'
import type { RunLog } from '../runs/run-log.ts'
import type { KnownRun, ParkedIndex, ParkedOutcome, ParkedRun } from './parked-index.ts'
import { ParkedRuns } from './parked-runs.ts'
import { NO_EVENTS, outcomeEvent, TaskLog } from './task-log.ts'

export interface InboxOptions {
  readonly system: BrokerHandle
  readonly log: RunLog
  /** The time for which the state of a task is kept after its end, in ms. */
  readonly keepMs: number
  readonly failed: (error: unknown) => void
}

/** A message to park. */
export interface ParkedMessage {
  readonly run: string
  readonly callerId: string
  readonly contextId: string
  /** A SendMessageRequest of A2A 1.0. */
  readonly request: JsonObject
  readonly headers: Readonly<Record<string, string>>
  /** The state of the task that the message continues; undefined for a new task. */
  readonly after: KnownRun | undefined
  /** The first event of the log that belongs to this message: the task as it is now. */
  readonly task: JsonObject
}

/** The part of a state that a message decides. */
export type StoredMessage = Pick<ParkedRun, 'run' | 'agentId' | 'callerId' | 'contextId' | 'item' | 'expiresAt'>

/** The queue of the messages whose attempts are used, of all agents. */
const DEAD = '_AGENTS_.inbox-dead'

/** The time between two looks for messages that were parked for too long, in ms. */
const SWEEP_MS = 2_000

/** A lessee that was heard within this time is expected to come back, in ms. */
const HEARD_MS = 60_000

/**
 * The inboxes of agents: requests that wait in queues for agents that call in, and the states of their tasks. The queue
 * decides which lessee has a request. The state of a task decides which item of the queue counts, so that an item that
 * arrives twice does no harm.
 */
export class Inbox {
  readonly log: TaskLog
  readonly #options: InboxOptions
  readonly #runs: ParkedRuns
  readonly #heard = new Map<string, number>()
  readonly #timer: NodeJS.Timeout
  readonly #dead: WorkerPool

  constructor(options: InboxOptions) {
    const { system, keepMs, failed } = options
    const changed = ({ agentId, phase }: KnownRun): void => {
      if (phase === 'delivered' || phase === 'working') this.hear(agentId)
    }
    this.#options = options
    this.log = new TaskLog(options.log, keepMs)
    this.#runs = new ParkedRuns(system, keepMs, changed, failed)
    this.#dead = system.queues.work(DEAD, {}, (message) => this.#onDead(message))
    this.#timer = setInterval(() => void this.#sweep().catch(failed), SWEEP_MS)
    this.#timer.unref()
  }

  /** Resolves when the tasks are known. */
  get opened(): Promise<void> {
    return this.#runs.opened
  }

  /** The tasks of all inboxes, as this node has followed them. */
  get tasks(): ParkedIndex {
    return this.#runs.index
  }

  /** Returns the last state of a task; undefined if there is none. @throws BrokerError ENGINE_UNAVAILABLE */
  find(run: string): Promise<KnownRun | undefined> {
    return this.#runs.last(run)
  }

  /** Writes a state. Resolves with undefined if the task has changed meanwhile. @throws BrokerError ENGINE_UNAVAILABLE */
  write(state: ParkedRun, after: KnownRun): Promise<KnownRun | undefined> {
    return this.#runs.write(state, after)
  }

  /** Records that a lessee of an agent was heard now. */
  hear(agentId: string): void {
    this.#heard.set(agentId, performance.now())
  }

  /** Returns true if a lessee of an agent was heard within the last minute. */
  isHeard({ agent_id: agentId }: AgentCard): boolean {
    const heard = this.#heard.get(agentId)
    return heard !== undefined && performance.now() - heard < HEARD_MS
  }

  /**
   * Parks a message. Resolves when it is durable, with false if the task has changed meanwhile.
   * @throws BrokerError QUEUE_FULL, ENGINE_UNAVAILABLE
   */
  async park(card: AgentCard, message: ParkedMessage): Promise<boolean> {
    const { run, callerId, contextId, request, headers, after, task } = message
    const { agent_id: agentId } = card
    const { maxAttempts, ttlSeconds } = agentOptions(card).queue
    const item = randomUUID()
    const expirationMs = ttlSeconds * 1000
    const tags: Record<string, string> = { run, item, context: contextId, caller: callerId }
    if (after !== undefined) tags['after'] = String(after.sequence)
    for (const name of Object.keys(headers)) tags[HEADER_TAG + name] = headers[name] ?? ''
    // The item first: a lessee records one that no state names, and a state without an item would wait forever.
    await this.#options.system.queues.send(inboxQueue(agentId), {
      body: encodeText(JSON.stringify({ request, task })),
      tags,
      expirationMs,
      maxReceiveCount: maxAttempts,
      deadLetterQueue: DEAD,
    })
    const stored = { run, agentId, callerId, contextId, item, expiresAt: Date.now() + expirationMs }
    return (await this.store(stored, task, after)) !== undefined
  }

  /** Records a parked message as the last one of its task. Resolves with undefined if the task has changed meanwhile. */
  async store(message: StoredMessage, task: JsonObject, after: KnownRun | undefined): Promise<KnownRun | undefined> {
    const { item, run } = message
    const end = after === undefined ? NO_EVENTS : await this.log.end(run)
    const createdAt = after?.createdAt ?? Date.now()
    const state = { ...message, createdAt, start: end.sequence, phase: 'stored', attempt: 0 } as const
    const written = await this.#runs.write(state, after)
    if (written !== undefined) {
      await this.log.append(written, [{ task }], 'open', end)
      return written
    }
    // A node on which the item was leased first has recorded it.
    const known = await this.find(run)
    return known?.item === item ? known : undefined
  }

  /** Counts the requests in the inbox of an agent. @throws BrokerError ENGINE_UNAVAILABLE */
  async status(agentId: string): Promise<InboxStatus> {
    const { channels, queues } = this.#options.system
    const name = inboxQueue(agentId)
    try {
      const [{ queue }, oldest] = await Promise.all([channels.info('queues', name), queues.oldestWaiting(name)])
      const { waiting = 0, delayed = 0, inFlight = 0 } = queue ?? {}
      const ageMs = oldest === undefined ? 0 : Math.max(0, Date.now() - oldest)
      return { waiting: waiting + delayed, inFlight, oldestSeconds: Math.round(ageMs / 1000) }
    } catch (error) {
      // The queue begins with the first request.
      if (isBrokerError(error, 'CHANNEL_NOT_FOUND')) return { waiting: 0, inFlight: 0, oldestSeconds: 0 }
      throw error
    }
  }

  /**
   * Changes the state of a leased task. Resolves with undefined if the lease is another's, or the task is over.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  update(state: KnownRun, change: Partial<ParkedRun>): Promise<KnownRun | undefined> {
    const isSame = ({ lease, phase }: KnownRun): boolean => lease === state.lease && phase !== 'done'
    return this.#change(state, isSame, (known) => this.#runs.write({ ...known, ...change }, known))
  }

  /**
   * Returns the state that a task has after its last event. Callers read the event that ends a round before the state
   * that says so is written, and may answer at once. Resolves with undefined if the task has changed meanwhile.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async afterEvents(state: KnownRun): Promise<KnownRun | undefined> {
    const { lease, phase, run } = state
    if (phase !== 'delivered' && phase !== 'working') return state
    const { delivery, endsRound, isOver } = await this.log.end(run)
    // The events of an earlier lessee do not count.
    if (!endsRound || delivery?.lease !== lease) return state
    return this.update(state, { phase: isOver ? 'done' : 'waiting' })
  }

  /** Ends a task in place of its agent, unless its message is settled already. @throws BrokerError ENGINE_UNAVAILABLE */
  end(state: KnownRun, outcome: ParkedOutcome): Promise<KnownRun | undefined> {
    const isSame = ({ item, phase }: KnownRun): boolean =>
      item === state.item && phase !== 'done' && (phase !== 'waiting' || state.phase === 'waiting')
    return this.#change(state, isSame, (known) => this.#end(known, outcome))
  }

  /** Changes a state. Tries again with the last one if its caller has asked to cancel the task meanwhile. */
  async #change(
    state: KnownRun,
    isSame: (known: KnownRun) => boolean,
    change: (known: KnownRun) => Promise<KnownRun | undefined>,
  ): Promise<KnownRun | undefined> {
    let known: KnownRun | undefined = state
    while (known !== undefined && isSame(known)) {
      const changed = await change(known)
      if (changed !== undefined) return changed
      known = await this.find(state.run)
    }
    return undefined
  }

  async #end(state: KnownRun, outcome: ParkedOutcome): Promise<KnownRun | undefined> {
    const ended = await this.#runs.write({ ...state, phase: 'done', outcome }, state)
    if (ended !== undefined) await this.#writeOutcome(ended, outcome)
    return ended
  }

  async #writeOutcome(state: KnownRun, outcome: ParkedOutcome): Promise<void> {
    const end = await this.log.end(state.run)
    if (!end.isOver) await this.log.append(state, [outcomeEvent(state, outcome)], 'over', end)
  }

  /**
   * Cancels a task, or asks its lessee to. Resolves with the state of the task, or undefined for one that is over.
   * @param text The reason, for the caller
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async cancel(run: string, text = 'the caller has canceled it'): Promise<KnownRun | undefined> {
    for (;;) {
      const found = await this.find(run)
      const state = found && (await this.afterEvents(found))
      if (found !== undefined && state === undefined) continue
      if (state === undefined || state.phase === 'done') return undefined
      const isLeased = state.phase === 'delivered' || state.phase === 'working'
      const changed = isLeased
        ? await this.#runs.write({ ...state, cancel: true }, state)
        : await this.#end(state, { state: 'TASK_STATE_CANCELED', reason: 'CANCELED', text })
      if (changed !== undefined) return changed
    }
  }

  /** Writes the end that the gateway has decided, if the node that decided it was lost before. */
  async settle(run: string): Promise<void> {
    const state = await this.find(run)
    if (state?.outcome !== undefined) await this.#writeOutcome(state, state.outcome)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#dead.drain()
    await this.#runs.close()
  }

  async #onDead({ tags }: { readonly tags: Readonly<Record<string, string>> }): Promise<void> {
    const { run = '', item } = tags
    const state = await this.find(run)
    if (state === undefined || state.item !== item || state.phase === 'waiting') return
    const text = `no delivery of ${state.attempt} was answered`
    await this.end(state, { state: 'TASK_STATE_FAILED', reason: 'DELIVERY_FAILED', text })
  }

  /** Ends the tasks whose time is over, and keeps the others. Every node tries, and one succeeds. */
  async #sweep(): Promise<void> {
    const { keepMs } = this.#options
    const now = Date.now()
    for (const [agentId, at] of this.#heard) if (performance.now() - at > HEARD_MS) this.#heard.delete(agentId)
    const lapsed = new Map<string, KnownRun[]>()
    for (const state of this.tasks.unfinished()) {
      const { agentId, expiresAt, phase, writtenAt } = state
      const isLate = expiresAt <= now && phase !== 'waiting'
      if (isLate && phase === 'stored') await this.#endExpired(state)
      else if (isLate) lapsed.set(agentId, [...(lapsed.get(agentId) ?? []), state])
      // The log would remove it.
      else if (now - writtenAt > keepMs / 2) await this.#runs.write(state, state)
    }
    // The queue has removed the message of a lessee that did not come back.
    for (const [agentId, states] of lapsed) {
      if ((await this.status(agentId)).inFlight > 0) continue
      for (const state of states) await this.#endExpired(state)
    }
    this.tasks.forget(now - keepMs)
  }

  async #endExpired(state: KnownRun): Promise<void> {
    const text = 'the agent did not fetch or answer the request in time'
    await this.#end(state, { state: 'TASK_STATE_FAILED', reason: 'DELIVERY_EXPIRED', text })
  }
}

/** Returns the queue of an agent's requests. */
export function inboxQueue(agentId: string): string {
  return `_AGENTS_.inbox/${agentId}`
}
