import type { Broker } from '@signalbox/broker-core'
import type { ConnectionCaller, HeldBytes, JsonRpcRequest, SseStream } from '@signalbox/http-kit'
import { hopsOf, internalError, JsonRpcError } from '@signalbox/http-kit'

import type { AgentDirectory } from '../agent-directory.ts'
import type { McpExchange } from '../mcp-exchange.ts'
import { readInputResponses, readTaskId } from '../methods.ts'
import { traceContext } from '../trace-context.ts'
import { tasksRequired } from '../wire/client-capabilities.ts'
import { acknowledgement, subscriptionMeta } from '../wire/subscriptions.ts'
import type { TaskRequest } from './resumed-call.ts'
import type { TaskRequests } from './task-requests.ts'
import { TaskStream } from './task-stream.ts'
import type { Tasks } from './tasks.ts'

/** The parts of the endpoint that the methods of tasks use. */
export interface TaskMethodsEnvironment {
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

  #requestOf({ request, meta }: McpExchange, caller: ConnectionCaller): TaskRequest {
    const { broker, agents } = this.#environment
    return {
      broker: caller.handle(broker),
      agents,
      traceContext: traceContext(request.headers, meta),
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
