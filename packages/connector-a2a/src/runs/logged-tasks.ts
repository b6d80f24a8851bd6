import type { AgentCard } from '@signalbox/registry'

import type { AgentQuery } from '../requests/agent-query.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import { wholeReply } from '../requests/agent-reply.ts'
import { taskRequest } from '../subscriber/isolation/task-isolation.ts'
import type { TaskRecords } from '../subscriber/isolation/task-records.ts'
import { isObject, METHODS, parsedJson, translateResult } from '../wire/index.ts'
import { foldRun } from './folded-task.ts'
import type { RunLog } from './run-log.ts'

/** The tasks of agents as the log has them, for the time in which their agents cannot be asked. */
export class LoggedTasks {
  readonly #log: RunLog
  readonly #records: TaskRecords

  constructor(log: RunLog, records: TaskRecords) {
    this.#log = log
    this.#records = records
  }

  /**
   * Answers `GetTask` from the log; undefined for other requests, and for a task that the log does not have, or that the
   * caller may not read.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async answer(query: AgentQuery, card: AgentCard): Promise<AgentReply | undefined> {
    const taskId = askedTask(query.body)
    const known = taskId === undefined ? undefined : await this.#records.runOf(card.agent_id, taskId)
    if (taskId === undefined || known === undefined || !mayRead(query, card, known.callerId)) return undefined
    const { task } = (await foldRun(this.#log, known.run)).folded
    if (task?.['id'] !== taskId) return undefined
    return wholeReply({ result: translateResult(METHODS.get, '1.0', query.wire?.version ?? '0.3', task) })
  }
}

/** The caller of a task, the owner of its agent, and an Admin may read it. */
export function mayRead({ admin, callerId }: AgentQuery, { registered_by: owner }: AgentCard, ofTask: string): boolean {
  return admin === true || callerId === owner || callerId === ofTask
}

/** Returns the task that a request reads. */
function askedTask(body: Uint8Array): string | undefined {
  const { kind, taskIds } = taskRequest(body)
  const request = kind === 'read' ? parsedJson(body) : undefined
  return isObject(request) && GET.has(request['method']) ? taskIds[0] : undefined
}

const GET: ReadonlySet<unknown> = new Set([METHODS.get.names['1.0'], METHODS.get.names['0.3']])
