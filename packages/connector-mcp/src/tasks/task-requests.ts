import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import type { AgentDirectory } from '@signalbox/broker-core/ports'
import type { Entry } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import type { HeldBytes } from '@signalbox/http-kit/internal'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { CallEndReason, Calls, RunningCall } from '../calls.ts'
import { CallEnded } from '../calls.ts'
import { openRequests, readResponses } from '../request-state.ts'
import { DEFAULT_MAX_ANSWER_BYTES } from '../tools/answer-size.ts'
import type { Tool, ToolContext, ToolOutcome } from '../tools/tool.ts'
import type { OwnedTask } from './owned-task.ts'
import { requestName } from './owned-task.ts'
import type { StoredTask, TaskRecord } from './task-record.ts'
import { detailedMembers, isOver, NO_RESULT, restingRecord } from './task-record.ts'
import type { Tasks, TaskWork } from './tasks.ts'

/** Writes of one request that may fail because another node wrote first. */
const TRIES = 5

/** The pause after the first of these writes, in ms; each later one is longer. */
const RETRY_MS = 20

/** The methods `tasks/get`, `tasks/update` and `tasks/cancel`. Each works on every node. */
export class TaskRequests {
  readonly #tasks: Tasks
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #calls: Calls

  constructor(tasks: Tasks, tools: ReadonlyMap<string, Tool>, calls: Calls) {
    this.#tasks = tasks
    this.#tools = tools
    this.#calls = calls
  }

  /**
   * Returns the members of a task as JSON text.
   * @throws JsonRpcError -32602 for a task that is unknown, expired, or of another caller
   */
  async get(id: string, principal: string): Promise<string> {
    return detailedMembers(await this.#find(id, principal), this.#tasks.options.pollIntervalMs)
  }

  /** Returns a task of a caller; `undefined` if it has no such task. @throws JsonRpcError -32603 */
  async findOwn(id: string, principal: string): Promise<StoredTask | undefined> {
    try {
      const task = await this.#tasks.find(id)
      return task?.record.principal === principal ? task : undefined
    } catch (error) {
      throw storeError(error)
    }
  }

  /**
   * Gives a task the answers to its open requests. When all are answered, the call continues on this node. Answers to
   * other requests are ignored.
   * @throws JsonRpcError -32602 for an invalid task or answer
   */
  async update(id: string, answers: JsonObject, request: TaskRequest): Promise<void> {
    await this.#write(id, request, (task) => {
      const { requests = {}, responses = {} } = task.record
      if (task.record.status !== 'input_required') return undefined
      const given = readResponses(Object.keys(requests), answers)
      if (Object.keys(given).length === 0) return undefined
      const open = openRequests(requests, given)
      const all = { ...responses, ...given }
      if (Object.keys(open).length === 0) return () => this.#resume(task, all, request)
      const change = { requests: open, responses: all }
      return () => this.#rest(task, change).then(() => {})
    })
  }

  /**
   * Ends a task. The party that works on the call is informed, and may have finished it already.
   * @throws JsonRpcError -32602 for an invalid task
   */
  async cancel(id: string, request: TaskRequest, statusMessage = 'the client cancelled the task'): Promise<void> {
    await this.#write(id, request, (task) => {
      if (isOver(task.record)) return undefined
      return async () => {
        await this.#rest(task, { status: 'cancelled', statusMessage })
        const { tool, state } = task.record
        const handling = this.#tools.get(tool)?.onTask
        if (handling === undefined) return
        // The client does not wait for the agent.
        const call = new ResumedCall(request, this.#calls, false)
        void call.run((context) => handling.cancel(state, context), this.#tasks.failed)
      }
    })
  }

  /** Writes a change of a task; tries again if another node wrote first. `change` returns nothing if there is no change. */
  async #write(
    id: string,
    { broker }: TaskRequest,
    change: (task: StoredTask) => (() => Promise<void>) | undefined,
  ): Promise<void> {
    for (let tries = 1; ; tries++) {
      const write = change(await this.#find(id, broker.caller.clientId))
      try {
        await write?.()
        return
      } catch (error) {
        if (!isBrokerError(error, 'CONFLICT') || tries === TRIES) throw storeError(error)
      }
      // The other write may not be readable yet.
      await delay(tries * RETRY_MS)
    }
  }

  #rest(task: StoredTask, change: Partial<TaskRecord>): Promise<StoredTask> {
    const record = restingRecord(task.record, change, this.#tasks.options.ttlMs)
    return this.#tasks.write({ ...task, record, result: NO_RESULT })
  }

  async #resume(task: StoredTask, answers: Readonly<Record<string, JsonObject>>, request: TaskRequest): Promise<void> {
    const { record } = task
    const handling = this.#tools.get(record.tool)?.onTask
    if (handling === undefined) {
      throw new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, `this server cannot continue a call of ${record.tool}`)
    }
    const call = new ResumedCall(request, this.#calls, record.asks)
    const owned = await this.#tasks.start(task, call)
    const named = Object.entries(answers).map(([key, answer]) => [requestName(key), answer] as const)
    const { failed } = this.#tasks
    void call.run(
      (context) => settle(owned, handling.resume(record.state, Object.fromEntries(named), context), failed),
      failed,
    )
  }

  async #find(id: string, principal: string): Promise<StoredTask> {
    const task = await this.findOwn(id, principal)
    if (task !== undefined) return task
    throw new JsonRpcError(
      JSON_RPC_CODES.INVALID_PARAMS,
      'invalid params: taskId is unknown or expired, or the task of another caller',
    )
  }
}

/** Returns the error for a store that does not answer, or rejects an entry. */
function storeError(error: unknown): unknown {
  if (isBrokerError(error, 'MESSAGE_TOO_LARGE')) {
    return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, 'invalid params: inputResponses is too large to be stored')
  }
  if (!isBrokerError(error)) return error
  const text = 'the tasks are not available at the moment; try again in some seconds'
  return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, text, { cause: error })
}

/** A request about a task, as the context of the call that it continues or cancels. */
export interface TaskRequest {
  /** The broker handle of the verified caller. */
  readonly broker: BrokerHandle
  readonly agents: AgentDirectory | undefined
  readonly traceContext: Readonly<Record<string, string>>
  /** `true` if the request is recorded in a trace. @default false */
  readonly traced?: boolean
  readonly hops: number
  /** Returns a count of the bytes that the call holds: the request is answered before the call ends. */
  readonly held?: () => HeldBytes
}

/** A tool call without a client that waits: it continues a task, or cancels one. */
class ResumedCall implements ToolContext, RunningCall, TaskWork {
  readonly broker: BrokerHandle
  readonly agents: AgentDirectory | undefined
  readonly traceContext: Readonly<Record<string, string>>
  readonly traced: boolean
  readonly hops: number
  readonly mayAsk: boolean
  readonly wantsProgress = false
  readonly maxAnswerBytes = DEFAULT_MAX_ANSWER_BYTES
  readonly startedAt = performance.now()
  readonly hasTimeout = false
  readonly endsAtShutdown = false
  readonly key = undefined
  readonly waits = true
  readonly callerGone: AbortSignal = new AbortController().signal
  readonly #controller = new AbortController()
  readonly hold: HeldBytes | undefined
  readonly #calls: Calls
  #entry: Entry | undefined

  constructor(
    { broker, agents, traceContext, traced = false, hops, held }: TaskRequest,
    calls: Calls,
    mayAsk: boolean,
  ) {
    this.hold = held?.()
    this.broker = broker
    this.agents = agents
    this.traceContext = traceContext
    this.traced = traced
    this.hops = hops
    this.mayAsk = mayAsk
    this.#calls = calls
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  progress(): void {}

  /** The call has a task already. */
  allowTask(): boolean {
    return true
  }

  end(reason: CallEndReason): void {
    this.#controller.abort(new CallEnded(reason))
  }

  abandon(): void {
    this.end('cancelled')
  }

  /** Runs the work, which a shutdown waits for. Never rejects. */
  async run(work: (context: ToolContext) => Promise<void>, failed: (error: unknown) => void): Promise<void> {
    this.#entry = this.#calls.begin(this)
    try {
      await work(this)
    } catch (error) {
      failed(error)
    } finally {
      this.hold?.release()
      this.#entry.remove()
      this.#calls.finish()
    }
  }
}

/** Stores the outcome of a continued call in its task. */
async function settle(task: OwnedTask, outcome: Promise<ToolOutcome>, failed: (error: unknown) => void): Promise<void> {
  try {
    await task.finish(await outcome)
  } catch (error) {
    if (!(error instanceof JsonRpcError) && !(error instanceof CallEnded)) failed(error)
    await task.fail(error)
  }
}
