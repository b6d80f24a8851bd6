import type { LongBytes } from '@signalbox/http-kit/internal'
import { isoTime, longBodyText } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { bodyEncoding } from '../messages/shown-message.ts'
import { firstBytes } from '../messages/stored-messages.ts'
import { defineAction, defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { cursorKey, cursorOf, pageLimit, pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { AgentInboxesPort, AgentTaskEvent, AgentTaskStatus } from '../agent-ports.ts'

const AGENT_ID = Type.String({ description: 'The id of the agent.', minLength: 1, maxLength: 128 })
const TASK_ID = Type.String({ description: 'The id of the task.', minLength: 1, maxLength: 256 })

/** The number of inboxes that are counted at the same time. */
const PARALLEL = 16

const inboxesRoute = defineManagementRoute({
  name: '/api/agent_inboxes',
  summary:
    'The inboxes of agents that may be away, with the number of their requests. A request that was canceled counts until the agent leases the next one.',
  input: Type.Object(
    {
      agent_id: Type.Optional(
        Type.String({ description: 'Only the inbox of this agent.', minLength: 1, maxLength: 128 }),
      ),
      ...pagingParameters,
    },
    STRICT,
  ),
  output: pageSchema(
    Type.Object({
      agent_id: Type.String(),
      waiting: Type.Integer({ minimum: 0, description: 'The requests that wait.' }),
      in_flight: Type.Integer({ minimum: 0, description: 'The requests that the agent has leased.' }),
      oldest_seconds: Type.Number({
        minimum: 0,
        description: 'The age of the oldest request that waits; 0 if none waits.',
      }),
    }),
  ),
  async run({ agent_id: agentId, ...query }, { services: { agentInboxes } }) {
    const ids = agentInboxes?.ids() ?? []
    const wanted = agentId === undefined ? ids : ids.filter((id) => id === agentId)
    const page = pageOf(wanted, (id) => id, query)
    return { ...page, items: await depthsOf(page.items, agentInboxes) }
  },
})

async function depthsOf(ids: readonly string[], inboxes: AgentInboxesPort | undefined) {
  const items = []
  for (let at = 0; at < ids.length; at += PARALLEL) {
    const some = await Promise.all(
      ids.slice(at, at + PARALLEL).map(async (id) => ({ id, status: await inboxes?.status(id) })),
    )
    for (const { id, status } of some) {
      // It may have been removed meanwhile.
      if (status === undefined) continue
      const { waiting, inFlight, oldestSeconds } = status
      items.push({ agent_id: id, waiting, in_flight: inFlight, oldest_seconds: oldestSeconds })
    }
  }
  return items
}

/** A task of an inbox in answers. */
const taskSchema = Type.Object({
  task_id: Type.String(),
  agent_id: Type.String(),
  caller: Type.String({ description: 'The ClientID of the caller.' }),
  context_id: Type.String(),
  phase: Type.Enum(['stored', 'delivered', 'working', 'waiting', 'done'], {
    description:
      'stored: its message waits. delivered: the agent has leased it. working: the agent has written events. waiting: for the next message of the caller. done: it is over.',
  }),
  attempt: Type.Integer({ minimum: 0, description: 'The number of deliveries of its last message.' }),
  created_at: Type.String({ description: 'ISO 8601.' }),
  expires_at: Type.String({
    description: 'The time at which its last message is given up if it still waits, ISO 8601.',
  }),
  cancel_requested: Type.Boolean({ description: 'True once the agent was asked to cancel it.' }),
  reason: Type.Optional(
    Type.String({
      description: 'The end that the server decided: DELIVERY_EXPIRED, DELIVERY_FAILED, REJECTED or CANCELED.',
    }),
  ),
})

function shownTask(task: AgentTaskStatus) {
  const { id, agentId, callerId, contextId, phase, attempt, createdAt, expiresAt, cancelRequested, reason } = task
  return {
    task_id: id,
    agent_id: agentId,
    caller: callerId,
    context_id: contextId,
    phase,
    attempt,
    created_at: isoTime(createdAt),
    expires_at: isoTime(expiresAt),
    cancel_requested: cancelRequested,
    reason,
  }
}

const tasksRoute = defineManagementRoute({
  name: '/api/agent_tasks',
  summary: 'The tasks of the inbox of an agent, newest first.',
  input: Type.Object(
    {
      agent_id: AGENT_ID,
      all: Type.Optional(Type.Boolean({ description: 'True shows the tasks that are over too.', default: false })),
      ...pagingParameters,
    },
    STRICT,
  ),
  output: pageSchema(taskSchema),
  async run({ agent_id: agentId, all = false, ...query }, { services: { agentInboxes } }) {
    const after = query.cursor === undefined ? undefined : cursorKey(query.cursor)
    const page = await agentInboxes?.tasks(agentId, { all, limit: pageLimit(query), after })
    if (page === undefined) throw inboxNotFound(agentId)
    const { items, next, total } = page
    return { items: items.map(shownTask), next_cursor: next === undefined ? null : cursorOf(next), total }
  },
})

/** A payload, which is written in pieces if it is long. */
const payloadData = Type.Unsafe<string | LongBytes>({ type: 'string', description: 'The beginning of the payload.' })

const eventSchema = Type.Object({
  sequence: Type.Integer({ minimum: 1, description: 'The number of the event in the run: 1, 2, 3 …' }),
  time: Type.String({ description: 'The time at which it became durable, ISO 8601.' }),
  kind: Type.String({
    description:
      'task, status, artifact or message; answer: an answer without events; end: no further events; error; other: an event that only the agent defines, or a large one.',
  }),
  state: Type.Optional(Type.String({ description: 'The state of the task that the event names.' })),
  body: payloadData,
  body_encoding: bodyEncoding,
  body_size: Type.Integer({ minimum: 0, description: 'The size of the whole payload, in bytes.' }),
  truncated: Type.Boolean({ description: 'True if a part of the payload is left out.' }),
})

function shownEvent({ sequence, at, kind, state, size, payload }: AgentTaskEvent, maxBodySize: number) {
  return {
    sequence,
    time: isoTime(at),
    kind,
    state,
    ...longBodyText(firstBytes(payload, maxBodySize)),
    body_size: size,
    truncated: size > maxBodySize,
  }
}

const MAX_EVENTS = 1_000

const eventsRoute = defineManagementRoute({
  name: '/api/agent_task_events',
  summary:
    'The kept events of a task of an agent with `a2a.durable` or an inbox, oldest first, with the beginnings of their payloads. A page ends at 4 MiB.',
  input: Type.Object(
    {
      agent_id: AGENT_ID,
      task_id: Type.String({
        description: 'The id of the task, or of the run: the part of an event id before the dot.',
        minLength: 1,
        maxLength: 256,
      }),
      from_sequence: Type.Optional(
        Type.Integer({
          description: 'The first event, such as `next_sequence` of the last page.',
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
        }),
      ),
      limit: Type.Optional(
        Type.Integer({ description: 'The most events to show.', minimum: 1, maximum: MAX_EVENTS, default: 50 }),
      ),
      max_body_size: Type.Optional(
        Type.Integer({
          description: 'The most bytes shown of a payload; 0 shows none.',
          minimum: 0,
          maximum: 65_536,
          default: 1_024,
        }),
      ),
    },
    STRICT,
  ),
  output: Type.Object({
    agent_id: Type.String(),
    run: Type.String({ description: 'The id of the run: one request with its events.' }),
    caller: Type.String({ description: 'The ClientID of the caller.' }),
    first_sequence: Type.Integer({ minimum: 1, description: 'The first event that is kept.' }),
    items: Type.Array(eventSchema),
    next_sequence: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      description: '`from_sequence` of the next page; null at the last event so far.',
    }),
    is_over: Type.Boolean({ description: 'True if this page has the last event of the run.' }),
  }),
  hasBodies: true,
  async run(query, { services: { agentInboxes } }) {
    const { agent_id: agentId, task_id: taskId, from_sequence: from, limit = 50, max_body_size: size = 1_024 } = query
    // The byte after the last one shows whether a character is cut.
    const found = await agentInboxes?.events(agentId, taskId, { from, limit, maxPayloadBytes: size + 1 })
    if (found === undefined) throw taskNotFound(agentId, taskId, 'has kept events')
    const { run, callerId, firstSequence, items, next, isOver } = found
    return {
      agent_id: agentId,
      run,
      caller: callerId,
      first_sequence: firstSequence,
      items: items.map((event) => shownEvent(event, size)),
      next_sequence: next ?? null,
      is_over: isOver,
    }
  },
})

const cancelTask = defineAction({
  name: 'cancel_agent_task',
  summary:
    'Cancels a task of the inbox of an agent in place of its caller: at once if the agent has not leased it. Otherwise the agent is asked to cancel it, and may have finished already.',
  input: Type.Object({ agent_id: AGENT_ID, task_id: TASK_ID }, STRICT),
  output: taskSchema,
  target: ({ agent_id: agent }) => ({ agent }),
  async run({ agent_id: agentId, task_id: taskId }, { services: { agentInboxes } }) {
    const task = await agentInboxes?.cancel(agentId, taskId)
    if (task === undefined) throw taskNotFound(agentId, taskId, 'is in its inbox')
    return shownTask(task)
  },
  detail: ({ task_id: taskId, caller, phase, cancel_requested: isAsked }) =>
    `task ${taskId} of ${caller} is ${phase}${isAsked && phase !== 'done' ? ', the agent was asked to cancel it' : ''}`,
})

function inboxNotFound(agentId: string): ManagementError {
  return new ManagementError(
    'INBOX_NOT_FOUND',
    `no agent ${JSON.stringify(agentId)} with an inbox is registered; /api/agent_inboxes lists the inboxes`,
    { agent_id: agentId },
  )
}

function taskNotFound(agentId: string, taskId: string, what: string): ManagementError {
  return new ManagementError(
    'TASK_NOT_FOUND',
    `no task ${JSON.stringify(taskId)} of the agent ${JSON.stringify(agentId)} ${what}; /api/agent_tasks lists the tasks`,
    { agent_id: agentId, task_id: taskId },
  )
}

export const inboxOperations: readonly Operation[] = [inboxesRoute, tasksRoute, eventsRoute, cancelTask]
