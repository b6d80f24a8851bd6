import { isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineAction, defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { StreamStatus, WorkEvent } from '../agent-ports.ts'
import type { TaskStatus } from '../ports.ts'

const eventSchema = Type.Object({
  time: Type.String({ description: 'ISO 8601.' }),
  event: Type.String({ description: 'Such as created, working, completed or status update.' }),
  detail: Type.Optional(Type.String()),
})

function shownEvent({ at, event, detail }: WorkEvent) {
  return { time: isoTime(at), event, detail }
}

/** A task of `/mcp` in answers. */
const taskSchema = Type.Object({
  id: Type.String(),
  tool: Type.String({ description: 'The tool that the task runs.' }),
  owner: Type.String({ description: 'The ClientID of the caller.' }),
  status: Type.String({ description: 'working, input_required, completed, failed or cancelled.' }),
  status_message: Type.Optional(Type.String()),
  created_at: Type.String({ description: 'ISO 8601.' }),
  updated_at: Type.String({ description: 'ISO 8601.' }),
  expires_at: Type.String({ description: 'The time after which the task is removed, unless it works, ISO 8601.' }),
  events: Type.Array(eventSchema, { description: 'The changes that this node has seen, oldest first; at most 20.' }),
})

function shownTask(task: TaskStatus) {
  const { id, tool, owner, status, statusMessage, createdAt, updatedAt, expiresAt, events } = task
  return {
    id,
    tool,
    owner,
    status,
    status_message: statusMessage,
    created_at: isoTime(createdAt),
    updated_at: isoTime(updatedAt),
    expires_at: isoTime(expiresAt),
    events: events.map(shownEvent),
  }
}

const ONGOING = new Set(['working', 'input_required'])

const tasksRoute = defineManagementRoute({
  name: '/api/tasks',
  summary: 'The stored tasks of /mcp on all nodes, with the changes that this node has seen.',
  input: Type.Object(
    {
      under_way: Type.Optional(
        Type.Boolean({ description: 'True shows only tasks that work or wait for input.', default: false }),
      ),
      ...pagingParameters,
    },
    STRICT,
  ),
  output: pageSchema(taskSchema),
  run({ under_way: underWay = false, ...query }, { services }) {
    const tasks = services.tasks?.list() ?? []
    const meant = underWay ? tasks.filter(({ status }) => ONGOING.has(status)) : tasks
    const page = pageOf(meant, ({ id }) => id, query)
    return { ...page, items: page.items.map(shownTask) }
  },
})

/** A stream of an agent in answers. */
const streamSchema = Type.Object({
  id: Type.String(),
  agent_id: Type.String(),
  client: Type.String({ description: 'The ClientID of the caller.' }),
  opened_at: Type.String({ description: 'ISO 8601.' }),
  last_event_at: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601; null before the first event.' }),
  event_count: Type.Integer({ minimum: 0, description: 'The events that were written to the client.' }),
  events: Type.Array(eventSchema, {
    description: 'The last of these events with their sizes, oldest first; at most 20.',
  }),
})

function shownStream({ id, agentId, client, openedAt, lastEventAt, eventCount, events }: StreamStatus) {
  return {
    id,
    agent_id: agentId,
    client,
    opened_at: isoTime(openedAt),
    last_event_at: lastEventAt === undefined ? null : isoTime(lastEventAt),
    event_count: eventCount,
    events: events.map(shownEvent),
  }
}

const streamsRoute = defineManagementRoute({
  name: '/api/streams',
  summary: "The agents' streams that are open to clients of this node.",
  input: Type.Object(pagingParameters, STRICT),
  output: pageSchema(streamSchema),
  run(query, { services }) {
    const page = pageOf(services.streams?.list() ?? [], ({ id }) => id, query)
    return { ...page, items: page.items.map(shownStream) }
  },
})

const id = (description: string) =>
  Type.Object({ id: Type.String({ description, minLength: 1, maxLength: 128 }) }, STRICT)

const cancelTask = defineAction({
  name: 'cancel_task',
  summary:
    'Cancels a task of /mcp, for its owner. The agent that works on it is informed, and may have finished already.',
  input: id('The id of the task.'),
  output: taskSchema,
  async run({ id: taskId }, { services }) {
    const task = await services.tasks?.cancel(taskId)
    if (task !== undefined) return shownTask(task)
    throw new ManagementError(
      'TASK_NOT_FOUND',
      `no task has the id ${JSON.stringify(taskId)}; /api/tasks lists the tasks`,
      { id: taskId },
    )
  },
  detail: ({ id: taskId, owner, status }) => `task ${taskId} of ${owner} is ${status}`,
})

const cancelStream = defineAction({
  name: 'cancel_stream',
  summary: "Ends an agent's stream that is open to a client of this node. The agent is informed.",
  input: id('The id of the stream.'),
  output: Type.Object({ id: Type.String() }),
  async run({ id: streamId }, { services }) {
    if (services.streams?.cancel(streamId) === true) return { id: streamId }
    throw new ManagementError(
      'STREAM_NOT_FOUND',
      `this node has no open stream with the id ${JSON.stringify(streamId)}; /api/streams lists the streams`,
      { id: streamId },
    )
  },
  detail: ({ id: streamId }) => `stream ${streamId} ended`,
})

export const workOperations: readonly Operation[] = [tasksRoute, streamsRoute, cancelTask, cancelStream]
