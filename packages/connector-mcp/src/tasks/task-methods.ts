import type { Broker } from '@signalbox/broker-core'
import type { AgentDirectory } from '@signalbox/broker-core/ports'
import type { ConnectionCaller, JsonRpcRequest, SseStream } from '@signalbox/http-kit'
import type { HeldBytes } from '@signalbox/http-kit/internal'
import { JsonRpcError } from '@signalbox/http-kit'
import { hopsOf, internalError } from '@signalbox/http-kit/internal'

import type { McpExchange } from '../mcp-exchange.ts'
import { readInputResponses, readTaskId } from '../methods.ts'
import { acknowledgement, subscriptionMeta, taskNotification } from '../wire/2026-07-28.ts'
import { tasksRequired } from '../wire/capabilities.ts'
import type { StoredTask } from './task-record.ts'
import { detailedMembers, isOver } from './task-record.ts'
import type { TaskRequest, TaskRequests } from './task-requests.ts'
import type { Tasks } from './tasks.ts'

/** The parts of the endpoint that the methods of tasks use. */
interface TaskMethodsEnvironment {
  readonly broker: Broker
  readonly agents: AgentDirectory | undefined
  /** Opens a stream as the answer, or refuses it: then it returns `undefined`. */
  openStream(exchange: McpExchange, caller: ConnectionCaller): SseStream | undefined
  /** Returns a count of the bytes that a caller's call holds. */
  heldBytes(account: string): HeldBytes
  failed(error: unknown): void
}

/** Answers the requests about tasks, and sends their notifications. */
export class TaskMethods {
  readonly #tasks: Tasks
  readonly #requests: TaskRequests
  readonly #environment: TaskMethodsEnvironment
  /** The functions that complete the open streams. */
  readonly #streams = new Set<() => void>()

  constructor(tasks: Tasks, requests: TaskRequests, environment: TaskMethodsEnvironment) {
    this.#tasks = tasks
    this.#requests = requests
    this.#environment = environment
  }

  /** Answers `tasks/get`, `tasks/update` or `tasks/cancel`. @throws JsonRpcError -32021, -32602 */
  handle(exchange: McpExchange, caller: ConnectionCaller, message: JsonRpcRequest): void {
    const { id, method } = message
    if (!exchange.capabilities.tasks) throw tasksRequired(method)
    const taskId = readTaskId(message)
    this.#answerWith(exchange, id, this.#run(exchange, caller, message, taskId))
  }

  /** Returns the members of the result. */
  async #run(
    exchange: McpExchange,
    caller: ConnectionCaller,
    message: JsonRpcRequest,
    taskId: string,
  ): Promise<string> {
    switch (message.method) {
      case 'tasks/get':
        return this.#requests.get(taskId, caller.identity.clientId)
      case 'tasks/update':
        await this.#requests.update(taskId, readInputResponses(message), this.#requestOf(exchange, caller))
        return ''
      default:
        await this.#requests.cancel(taskId, this.#requestOf(exchange, caller))
        return ''
    }
  }

  #requestOf({ request, span, traceHeaders }: McpExchange, caller: ConnectionCaller): TaskRequest {
    const { broker, agents } = this.#environment
    return {
      broker: caller.handleWithin(span, broker),
      agents,
      traceContext: traceHeaders,
      traced: span !== undefined,
      hops: hopsOf(request.headers),
      held: () => this.#environment.heldBytes(caller.account),
    }
  }

  #answerWith(exchange: McpExchange, id: string, members: Promise<string>): void {
    members
      .then(
        (text) => exchange.succeed(id, text),
        (error: unknown) => this.#fail(exchange, id, error),
      )
      .catch((error: unknown) => this.#crash(exchange, error))
  }

  #fail(exchange: McpExchange, id: string, error: unknown): void {
    if (error instanceof JsonRpcError) {
      if (error.cause !== undefined) this.#environment.failed(error.cause)
      exchange.fail(error, id)
    } else {
      this.#environment.failed(error)
      exchange.fail(internalError(error), id)
    }
  }

  #crash(exchange: McpExchange, error: unknown): void {
    this.#environment.failed(error)
    exchange.response.destroy()
  }

  /**
   * Sends the states of tasks of the caller, and their changes until all are over.
   * @param taskIds Tasks; those that the caller does not have are left out
   * @throws JsonRpcError -32021
   */
  listen(exchange: McpExchange, caller: ConnectionCaller, id: string, taskIds: readonly string[]): void {
    if (!exchange.capabilities.tasks) throw tasksRequired('subscriptions/listen with taskIds')
    const complete = (): void => exchange.succeed(id, '', 'success', { meta: subscriptionMeta(id) })
    const watch = new TaskStream(this.#tasks, taskIds, id, complete)
    const { clientId } = caller.identity
    Promise.all(taskIds.map((taskId) => this.#requests.findOwn(taskId, clientId)))
      .then(
        (found) => {
          const tasks = found.filter((task) => task !== undefined)
          const stream = this.#environment.openStream(exchange, caller)
          if (stream === undefined) {
            watch.close()
            return
          }
          this.#streams.add(complete)
          stream.onEnd(() => {
            this.#streams.delete(complete)
            exchange.finish('disconnected')
          })
          const own = tasks.map((task) => task.id)
          stream.write({ event: 'message', data: acknowledgement(id, own) })
          watch.open(stream, tasks)
        },
        (error: unknown) => {
          watch.close()
          this.#fail(exchange, id, error)
        },
      )
      .catch((error: unknown) => this.#crash(exchange, error))
  }

  /** Completes the open streams. */
  close(): void {
    for (const complete of this.#streams) complete()
  }
}

/**
 * The notifications about some tasks on one event stream: the state of each, then each change. A reader that is slow
 * misses states between, but not the last one.
 */
class TaskStream {
  readonly #tasks: Tasks
  readonly #id: string
  readonly #onOver: () => void
  /** The tasks that can still change, with the functions that end the watch. */
  readonly #watched = new Map<string, () => void>()
  /** The last states that are not sent yet. */
  readonly #waiting = new Map<string, StoredTask>()
  /** The sequence of the last state of each task, sent or waiting. */
  readonly #known = new Map<string, number>()
  #stream: SseStream | undefined
  #sending = false

  /**
   * Starts to watch tasks, before their states are read, so that no change is missed between.
   * @param id The source text of the id of the `subscriptions/listen`
   * @param onOver Called when the stream is open and has nothing more to send
   */
  constructor(tasks: Tasks, taskIds: readonly string[], id: string, onOver: () => void) {
    this.#tasks = tasks
    this.#id = id
    this.#onOver = onOver
    for (const taskId of taskIds) {
      const unwatch = tasks.watch(taskId, (task) => this.#changed(taskId, task))
      this.#watched.set(taskId, unwatch)
    }
  }

  /** Sends the states of these tasks, and then each change. Ends the watch of the others. */
  open(stream: SseStream, tasks: readonly StoredTask[]): void {
    const own = new Set(tasks.map(({ id }) => id))
    for (const taskId of this.#watched.keys()) if (!own.has(taskId)) this.#unwatch(taskId)
    for (const taskId of this.#waiting.keys()) if (!own.has(taskId)) this.#waiting.delete(taskId)
    stream.onEnd(() => this.close())
    for (const task of tasks) this.#changed(task.id, task)
    this.#stream = stream
    void this.#send(stream)
  }

  close(): void {
    for (const id of this.#watched.keys()) this.#unwatch(id)
    this.#waiting.clear()
  }

  #changed(id: string, task: StoredTask | undefined): void {
    if (task === undefined || isOver(task.record)) this.#unwatch(id)
    if (task !== undefined && task.sequence > (this.#known.get(id) ?? 0)) {
      this.#known.set(id, task.sequence)
      this.#waiting.set(id, task)
    }
    if (this.#stream !== undefined && !this.#sending) void this.#send(this.#stream)
  }

  async #send(stream: SseStream): Promise<void> {
    this.#sending = true
    try {
      for (const [id, task] of this.#waiting) {
        this.#waiting.delete(id)
        const members = detailedMembers(task, this.#tasks.options.pollIntervalMs)
        stream.write({ event: 'message', data: taskNotification(this.#id, members) })
        // Each waits for the one before: results are large, and a stream that is far behind is closed.
        await stream.drained()
      }
    } catch (error) {
      this.#tasks.failed(error)
    } finally {
      this.#sending = false
    }
    if (this.#watched.size === 0 && stream.open) this.#onOver()
  }

  #unwatch(id: string): void {
    this.#watched.get(id)?.()
    this.#watched.delete(id)
  }
}
