import type { Buffer } from 'node:buffer'

import { decodeText, encodeText } from '@signalbox/broker-core'
import { isJsonObject } from '@signalbox/http-kit/internal'

import { A2A_CODES, errorDetails } from '../../native/errors.ts'
import type { AgentQuery } from '../../requests/agent-query.ts'
import type { AgentReply } from '../../requests/agent-reply.ts'
import type { Operation } from '../../wire/index.ts'
import { findMethod } from '../../wire/index.ts'
import { isOfTask, startedTask, StreamedTask } from '../instances/task-ids.ts'
import { parsedBody } from '../json-bodies.ts'
import type { TaskRecords } from './task-records.ts'

/** The prefix of the accounts of verified callers. All others are anonymous, and share their tasks. */
const VERIFIED = 'client:'

/** The caller of an agent. */
interface AgentCaller {
  readonly agentId: string
  /** The ClientID that registered the agent. */
  readonly agentOwner: string | undefined
  /** The largest response of an agent, in bytes. */
  readonly maxBytes: number
}

/** The isolation of tasks: a task belongs to the caller that began it. */
export class TaskIsolation {
  readonly #records: TaskRecords
  readonly #strict: boolean

  /** @param strict Hides tasks without a record, which were begun by the agent or before the isolation */
  constructor(records: TaskRecords, strict: boolean) {
    this.#records = records
    this.#strict = strict
  }

  /** Returns the isolation of one request; undefined without authentication. */
  of(query: AgentQuery, caller: AgentCaller): IsolatedRequest | undefined {
    if (!query.account.startsWith(VERIFIED)) return undefined
    return new IsolatedRequest(this.#records, this.#strict, query, caller)
  }
}

/** One request of a verified caller. */
export class IsolatedRequest {
  readonly #records: TaskRecords
  readonly #strict: boolean
  readonly #query: AgentQuery
  readonly #caller: AgentCaller
  readonly #request: TaskRequest

  constructor(records: TaskRecords, strict: boolean, query: AgentQuery, caller: AgentCaller) {
    this.#records = records
    this.#strict = strict
    this.#query = query
    this.#caller = caller
    this.#request = taskRequest(query.body)
  }

  /** True if the request names a task, so that it may be refused. */
  get namesTasks(): boolean {
    return this.#request.taskIds.length > 0
  }

  /**
   * Returns the reply in place of the agent's, if the request names a task of another caller: that there is no such task.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async refusal(): Promise<AgentReply | undefined> {
    const { taskIds, kind } = this.#request
    if (kind === 'read' && this.#seesAll) return undefined
    const visible = await Promise.all(taskIds.map((taskId) => this.#isVisible(taskId)))
    const hidden = taskIds.find((_taskId, i) => !visible[i])
    return hidden === undefined ? undefined : taskNotFound(hidden, this.#query)
  }

  /**
   * Returns the reply that the caller may see. Before that, records the task that the request began.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async shown(reply: AgentReply): Promise<AgentReply> {
    if (reply.failure !== undefined) return reply
    const { kind } = this.#request
    if (kind === 'list' && !this.#seesAll) return this.#ownTasks(reply)
    if (kind === 'begin') await this.#begun(startedTask(reply.body, Infinity).taskId)
    return reply
  }

  /**
   * Returns a reader of the events of a stream. It returns a promise for the chunk with the task that the request began:
   * the chunk may be shown when the promise resolves.
   */
  tap(): ((chunk: Buffer) => Promise<void> | undefined) | undefined {
    if (this.#request.kind !== 'begin') return undefined
    let recorded: Promise<void> | undefined
    const reader = new StreamedTask(({ taskId }) => {
      recorded = this.#begun(taskId)
    }, this.#caller.maxBytes)
    return (chunk) => {
      reader.read(chunk)
      const until = recorded
      recorded = undefined
      return until
    }
  }

  /** The owner of an agent, and an Admin, may read and cancel all its tasks. */
  get #seesAll(): boolean {
    return this.#query.admin === true || this.#query.callerId === this.#caller.agentOwner
  }

  async #begun(taskId: string | undefined): Promise<void> {
    // A message to a task does not begin it.
    if (taskId === undefined || this.#request.taskIds.includes(taskId)) return
    await this.#records.add(this.#caller.agentId, taskId, this.#query.callerId, this.#query.log?.run)
  }

  async #isVisible(taskId: string): Promise<boolean> {
    const callerId = await this.#records.callerOf(this.#caller.agentId, taskId)
    return callerId === undefined ? !this.#strict : callerId === this.#query.callerId
  }

  /** Removes the tasks of others from a list. A list without such tasks passes byte for byte. */
  async #ownTasks(reply: AgentReply): Promise<AgentReply> {
    const response = parsedBody(reply.body)
    if (!isJsonObject(response)) return reply
    const { result } = response
    if (!isJsonObject(result) || !Array.isArray(result['tasks'])) return reply
    const tasks: readonly unknown[] = result['tasks']
    const visible = await Promise.all(
      tasks.map(async (task) => isJsonObject(task) && typeof task['id'] === 'string' && this.#isVisible(task['id'])),
    )
    const own = tasks.filter((_task, i) => visible[i])
    const { totalSize = own.length, pageSize } = result
    if (own.length === tasks.length && Number(totalSize) === own.length) return reply
    // The agent counts the tasks of all callers.
    const counts = { totalSize: own.length, ...(pageSize === undefined ? {} : { pageSize: own.length }) }
    const body = JSON.stringify({ ...response, result: { ...result, tasks: own, ...counts } })
    return { ...reply, body: encodeText(body) }
  }
}

function taskNotFound(taskId: string, { wire }: AgentQuery): AgentReply {
  const error = { code: A2A_CODES.TASK_NOT_FOUND, message: `Task not found: ${taskId}` }
  const data = wire?.version === '1.0' ? { data: errorDetails('TASK_NOT_FOUND') } : {}
  const body = encodeText(JSON.stringify({ jsonrpc: '2.0', id: null, error: { ...error, ...data } }))
  return { executed: true, error: '', status: 200, body, whole: true }
}

/** A request, by its effect on tasks. */
interface TaskRequest {
  /** The tasks that the request names. */
  readonly taskIds: readonly string[]
  /** `begin`: may begin a task · `list`: lists tasks · `read`: reads or cancels a task · `other`. */
  readonly kind: 'begin' | 'list' | 'read' | 'other'
}

const READING: ReadonlySet<Operation | undefined> = new Set<Operation>([
  'get',
  'cancel',
  'resubscribe',
  'push-get',
  'push-list',
])

/** The names of A2A 0.2, and of drafts of later versions. */
const BEGINNING: ReadonlySet<string> = new Set(['tasks/send', 'tasks/sendSubscribe'])
const LIST = 'tasks/list'

/**
 * Reads a request as leniently as any agent does: some readers ignore the case of names, some take the names of Protocol
 * Buffers, and of two members with one meaning they take either. So every member that may name a task
 * counts.
 */
export function taskRequest(body: Uint8Array): TaskRequest {
  const request = parse(body)
  const methods = members(request, 'method').filter((value) => typeof value === 'string')
  const ofTask = methods.some((method) => method.startsWith('tasks/') || isOfTask(operationOf(method)))
  const params = members(request, 'params')
  const messages = params.flatMap((one) => members(one, 'message'))
  const taskIds = [
    ...[...params, ...messages].flatMap((one) => members(one, 'taskId')),
    ...(ofTask ? params.flatMap((one) => members(one, 'id')) : []),
    ...messages.flatMap((message) => members(message, 'referenceTaskIds')).flat(),
  ]
  return { taskIds: [...new Set(taskIds.filter((id) => typeof id === 'string'))], kind: kindOf(methods[0] ?? '') }
}

function kindOf(method: string): TaskRequest['kind'] {
  const operation = operationOf(method)
  if (operation === 'list' || method === LIST) return 'list'
  if (operation === 'send' || operation === 'stream' || BEGINNING.has(method)) return 'begin'
  return READING.has(operation) ? 'read' : 'other'
}

function operationOf(method: string): Operation | undefined {
  return findMethod(method)?.method.operation
}

/** Returns the values of the members whose names mean this one. */
function members(value: unknown, name: string): unknown[] {
  if (!isJsonObject(value)) return []
  const wanted = name.toLowerCase()
  return Object.keys(value)
    .filter((key) => key.replaceAll('_', '').toLowerCase() === wanted)
    .map((key) => value[key])
}

/** The gateway has checked the depth of the body. */
function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(decodeText(body) ?? '')
  } catch {
    return undefined
  }
}
