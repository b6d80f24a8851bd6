import { decodeText, encodeText } from '@signalbox/broker-core'
import type { JsonObject } from '@signalbox/http-kit'
import type { AgentCard } from '@signalbox/registry'

import type { AgentQuery } from '../requests/agent-query.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import { taskRequest } from '../subscriber/isolation/task-isolation.ts'
import type { TaskRecords } from '../subscriber/isolation/task-records.ts'
import { isObject, METHODS, parseForTranslation, translateResult } from '../wire/index.ts'
import { foldRun } from './folded-task.ts'
import type { RunLog } from './run-log.ts'

/** The tasks of agents as the log has them, for the time in which their agents cannot be asked. */
export class LoggedTasks {
  readonly #log: RunLog
  readonly #records: TaskRecords
  readonly #maxEventBytes: number

  constructor(log: RunLog, records: TaskRecords, maxEventBytes: number) {
    this.#log = log
    this.#records = records
    this.#maxEventBytes = maxEventBytes
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
    const task = await this.#task(known.run, taskId)
    if (task === undefined) return undefined
    const result = translateResult(METHODS.get, '1.0', query.wire?.version ?? '0.3', task)
    const body = encodeText(JSON.stringify({ jsonrpc: '2.0', id: null, result }))
    return { executed: true, error: '', status: 200, body, whole: true }
  }

  async #task(run: string, taskId: string): Promise<JsonObject | undefined> {
    const { folded, last } = await foldRun(this.#log, run, this.#maxEventBytes)
    if (folded.task !== undefined) return folded.task
    // The answer of a call without a stream.
    const response = last?.reply === undefined ? undefined : parsed(last.body)
    const given = isObject(response) ? response['result'] : undefined
    if (last?.wire === undefined || given === undefined) return undefined
    const result = translateResult(METHODS.send, last.wire, '1.0', given)
    const task = isObject(result) ? result['task'] : undefined
    return isObject(task) && task['id'] === taskId ? task : undefined
  }
}

/** The caller of a task, the owner of its agent, and an Admin may read it. */
export function mayRead({ admin, callerId }: AgentQuery, { registered_by: owner }: AgentCard, ofTask: string): boolean {
  return admin === true || callerId === owner || callerId === ofTask
}

/** Returns the task that a request reads. */
function askedTask(body: Uint8Array): string | undefined {
  const { kind, taskIds } = taskRequest(body)
  const request = kind === 'read' ? parsed(body) : undefined
  return isObject(request) && GET.has(request['method']) ? taskIds[0] : undefined
}

const GET: ReadonlySet<unknown> = new Set([METHODS.get.names['1.0'], METHODS.get.names['0.3']])

function parsed(body: Uint8Array): unknown {
  try {
    return parseForTranslation(decodeText(body) ?? '')
  } catch {
    return undefined
  }
}
