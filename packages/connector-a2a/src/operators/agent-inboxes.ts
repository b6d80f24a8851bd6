import type { AgentCard, InboxStatus } from '@signalbox/registry'
import { isParkable } from '@signalbox/registry'

import type { Inbox } from '../inbox/inbox.ts'
import type { KnownRun, ParkedPhase } from '../inbox/parked-index.ts'
import type { AgentLookup } from '../options.ts'
import type { RunLog } from '../runs/run-log.ts'
import { parseCursor } from '../runs/run-log.ts'
import type { TaskRecords } from '../subscriber/isolation/task-records.ts'
import type { RunEvents, RunEventsOptions } from './run-events.ts'
import { readRunEvents } from './run-events.ts'

/** The phase of a task of an inbox: it waits, is with the agent, is worked on, waits for its caller, or is over. */
export type InboxTaskPhase = ParkedPhase

/** A task of an inbox, as operators see it. Times are in ms since the epoch. */
export interface InboxTask {
  readonly id: string
  readonly agentId: string
  /** The ClientID of the caller. */
  readonly callerId: string
  readonly contextId: string
  readonly phase: InboxTaskPhase
  /** The number of deliveries of its last message. */
  readonly attempt: number
  readonly createdAt: number
  /** The time at which its last message is given up if it still waits. */
  readonly expiresAt: number
  /** True once the agent was asked to cancel it. */
  readonly cancelRequested: boolean
  /** The end that the gateway has decided, such as `DELIVERY_EXPIRED`. */
  readonly reason?: string | undefined
}

/** The tasks of {@link AgentInboxes.tasks}. */
export interface InboxTasksOptions {
  /** True for the tasks that are over too. @default false */
  readonly all?: boolean | undefined
  /** The most tasks. */
  readonly limit: number
  /** {@link InboxTasks.next} of the previous page. @default the first page */
  readonly after?: string | undefined
}

/** A page of tasks. */
export interface InboxTasks {
  /** Newest first. */
  readonly items: readonly InboxTask[]
  /** The end of this page, if there is another one. */
  readonly next: string | undefined
  /** The number of tasks on all pages. */
  readonly total: number
}

/** The inboxes and the kept events of agents, for operators. Unknown agents, and those without an inbox, are undefined. */
export interface AgentInboxes {
  /** Returns the ids of the agents with an inbox. */
  ids(): readonly string[]
  /** Counts the requests in an inbox. @throws BrokerError ENGINE_UNAVAILABLE */
  status(agentId: string): Promise<InboxStatus | undefined>
  /** Returns the tasks of an inbox. @throws BrokerError ENGINE_UNAVAILABLE */
  tasks(agentId: string, options: InboxTasksOptions): Promise<InboxTasks | undefined>
  /** Cancels a task, or asks the agent to. Resolves with its state. @throws BrokerError ENGINE_UNAVAILABLE */
  cancel(agentId: string, taskId: string): Promise<InboxTask | undefined>
  /**
   * Returns the kept events of a task of any agent, also of one without an inbox, and of a run by its id.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  events(agentId: string, taskId: string, options: RunEventsOptions): Promise<RunEvents | undefined>
  /** Returns the number of unfinished tasks of all inboxes by their phase. */
  phases(): Readonly<Record<Exclude<InboxTaskPhase, 'done'>, number>>
}

export interface AgentInboxesParts {
  readonly registry: Pick<AgentLookup, 'get' | 'list'>
  readonly log: RunLog
  readonly records: TaskRecords
  /** Returns the inboxes, and opens them first. */
  readonly inbox: () => Inbox
}

/** The reason of tasks that operators cancel, for their callers. */
const CANCELED = 'an operator has canceled it'

/** Returns the inboxes as operators use them. */
export function agentInboxes(parts: AgentInboxesParts): AgentInboxes {
  const { registry, log, records, inbox } = parts
  const cardOf = (agentId: string): AgentCard | undefined => {
    const card = registry.get(agentId)
    return card !== undefined && isParkable(card) ? card : undefined
  }
  const parkable = () => registry.list().filter(isParkable)
  const runOf = async (agentId: string, taskId: string): Promise<string | undefined> => {
    // The id of a parked task is that of its run.
    const run = parseCursor(`${taskId}.0`)?.run
    const first = run === undefined ? undefined : await log.first(run)
    return first?.agentId === agentId ? run : (await records.runOf(agentId, taskId))?.run
  }
  return {
    ids: () => parkable().map(({ agent_id: agentId }) => agentId),
    async status(agentId) {
      const card = cardOf(agentId)
      return card && inbox().status(card.agent_id)
    },
    async tasks(agentId, { all = false, limit, after }) {
      if (cardOf(agentId) === undefined) return undefined
      await inbox().opened
      const tasks = inbox().tasks.of(agentId)
      const wanted = (all ? tasks : tasks.filter(({ phase }) => phase !== 'done')).toSorted(newestFirst)
      const rest = after === undefined ? wanted : wanted.filter((task) => placeOf(task) < after)
      const page = rest.slice(0, limit)
      const last = page.at(-1)
      const next = last !== undefined && rest.length > page.length ? placeOf(last) : undefined
      return { items: page.map(shown), next, total: wanted.length }
    },
    async cancel(agentId, taskId) {
      if (cardOf(agentId) === undefined) return undefined
      const found = await inbox().find(taskId)
      if (found?.agentId !== agentId) return undefined
      return shown((await inbox().cancel(taskId, CANCELED)) ?? (await inbox().find(taskId)) ?? found)
    },
    async events(agentId, taskId, options) {
      const run = await runOf(agentId, taskId)
      return run === undefined ? undefined : readRunEvents(log, run, options)
    },
    phases() {
      const counts = { stored: 0, delivered: 0, working: 0, waiting: 0 }
      for (const { agent_id: agentId } of parkable()) {
        for (const { phase } of inbox().tasks.of(agentId)) if (phase !== 'done') counts[phase]++
      }
      return counts
    },
  }
}

/** Digits of a time in ms, enough for some thousand years. */
const TIME_DIGITS = 15

/** Returns the place of a task in the order of their creation. */
function placeOf({ createdAt, run }: KnownRun): string {
  return `${String(createdAt).padStart(TIME_DIGITS, '0')} ${run}`
}

function newestFirst(a: KnownRun, b: KnownRun): number {
  return b.createdAt - a.createdAt || (a.run < b.run ? 1 : -1)
}

function shown(task: KnownRun): InboxTask {
  const { run: id, agentId, callerId, contextId, phase, attempt, createdAt, expiresAt, cancel, outcome } = task
  return {
    id,
    agentId,
    callerId,
    contextId,
    phase,
    attempt,
    createdAt,
    expiresAt,
    cancelRequested: cancel === true,
    reason: outcome?.reason,
  }
}
