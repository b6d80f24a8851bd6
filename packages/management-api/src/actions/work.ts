import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { shownTask, taskSchema } from '../routes/work.ts'
import { defineAction, STRICT } from './action.ts'

const id = (description: string) =>
  Type.Object({ id: Type.String({ description, minLength: 1, maxLength: 128 }) }, STRICT)

export const cancelTask = defineAction({
  name: 'cancel_task',
  summary:
    'Cancels a task of /mcp, for its owner. The agent that works on it is informed, and may have finished already.',
  input: id('The id of the task.'),
  data: taskSchema,
  target: () => ({}),
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

export const cancelStream = defineAction({
  name: 'cancel_stream',
  summary: "Ends an agent's stream that is open to a client of this node. The agent is informed.",
  input: id('The id of the stream.'),
  data: Type.Object({ id: Type.String() }),
  target: () => ({}),
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
