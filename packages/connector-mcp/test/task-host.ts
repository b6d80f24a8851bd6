import type { BrokerHandle, Engine } from '@signalbox/broker-core'
import { ANONYMOUS, createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { serveHttp } from '@signalbox/testkit/loopback'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished } from 'vitest'

import type { AgentDirectory, McpConnectorOptions, McpOperations, TaskOptions, TaskStore } from '../src/index.ts'
import { brokerTaskStore, mcpConnector } from '../src/index.ts'
import type { RpcAnswer } from './mcp-host.ts'
import { statelessRequest } from './stateless-client.ts'

/** The member of `_meta` of a client with tasks, and with forms if it says so. */
export function capabilities(more: object = {}): object {
  const declared = { extensions: { 'io.modelcontextprotocol/tasks': {} }, ...more }
  return { 'io.modelcontextprotocol/clientCapabilities': declared }
}

/** A task as the server describes it. */
export interface Task {
  readonly resultType: string
  readonly taskId: string
  readonly status: string
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttlMs: number
  readonly pollIntervalMs: number
  readonly inputRequests?: Record<string, { method: string; params: { message: string } }>
  readonly result?: { content: { text: string }[]; isError: boolean }
  readonly error?: { code: number; message: string }
}

interface Params {
  readonly taskId?: string
  readonly name?: string
  readonly [member: string]: unknown
}

interface RequestOptions {
  /** @default a client with tasks and forms */
  readonly meta?: object
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** One endpoint over the shared store. */
export interface TaskNode {
  readonly port: number
  readonly url: string
  readonly failures: unknown[]
  readonly operations: McpOperations
  request(method: string, params: Params, options?: RequestOptions): Promise<Response>
  ask(method: string, params: Params, options?: RequestOptions): Promise<RpcAnswer & { readonly status: number }>
  /** Calls a tool; resolves with the members of the result, which may be a task. */
  call(tool: string, args: object, options?: RequestOptions): Promise<Task>
  get(taskId: string, options?: RequestOptions): Promise<Task>
  /** Resolves when the task has this status. */
  until(taskId: string, status: string): Promise<Task>
  close(): Promise<void>
}

/** A broker whose system handle stores tasks, and endpoints over it. */
export interface TaskHost {
  readonly user: BrokerHandle
  readonly system: BrokerHandle
  node(tasks?: Partial<TaskOptions>, options?: McpConnectorOptions): Promise<TaskNode>
}

/** Times that let a test see what takes seconds in operation. */
export const FAST = { afterMs: 20, leaseMs: 400 } as const

export async function startTaskHost(
  agents?: (system: BrokerHandle) => Promise<AgentDirectory>,
  open: () => Promise<Engine> = () => openEmbeddedEngine({ path: testFolder() }),
): Promise<TaskHost> {
  const engine = await open()
  const { broker, system } = createBroker(engine)
  const directory = await agents?.(system)
  const nodes: TaskNode[] = []
  onTestFinished(async () => {
    await Promise.all(nodes.map((node) => node.close()))
    await engine.close()
  })
  return {
    user: broker.as(ANONYMOUS),
    system,
    async node(tasks = {}, options = {}) {
      const failures: unknown[] = []
      const ready = Promise.withResolvers<void>()
      const store = watched(tasks.store ?? brokerTaskStore(system, { shared: true }), ready.resolve)
      const connector = mcpConnector(broker, {
        ...(directory === undefined ? {} : { agents: directory }),
        ...options,
        tasks: { ...FAST, ...tasks, store },
        hooks: { failed: (error) => void failures.push(error) },
      })
      const server = await serveHttp(connector.handler)
      await ready.promise
      const node = nodeAt(server.port, failures, connector.operations, async () => {
        await connector.close(0)
        await server[Symbol.asyncDispose]()
      })
      nodes.push(node)
      return node
    },
  }
}

/** A store that tells when its entries have been read. */
function watched(store: TaskStore, current: () => void): TaskStore {
  return {
    shared: store.shared,
    write: (...args) => store.write(...args),
    last: (...args) => store.last(...args),
    announce: (...args) => store.announce(...args),
    follow(sink, signal) {
      const told = {
        entry: (...args: Parameters<typeof sink.entry>) => sink.entry(...args),
        restart: () => sink.restart(),
        alive: (node: string) => sink.alive(node),
        failed: (error: unknown) => sink.failed(error),
        current() {
          sink.current()
          current()
        },
      }
      return store.follow(told, signal)
    },
  }
}

/** The members of a result. */
async function result(answer: Promise<RpcAnswer>): Promise<Task> {
  const { result: members, error } = await answer
  expect(error).toBeUndefined()
  return members as unknown as Task
}

function nodeAt(port: number, failures: unknown[], operations: McpOperations, close: () => Promise<void>): TaskNode {
  const url = `http://127.0.0.1:${port}/mcp`
  const request: TaskNode['request'] = (method, params, options = {}) => {
    const { meta = capabilities({ elicitation: {} }), headers = {}, signal } = options
    const named = params.taskId === undefined ? headers : { 'Mcp-Name': params.taskId, ...headers }
    const made = statelessRequest(method, params, { meta, headers: named })
    return fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...made.headers },
      body: JSON.stringify(made.body),
      ...(signal === undefined ? {} : { signal }),
    })
  }
  const ask: TaskNode['ask'] = async (method, params, options) => {
    const response = await request(method, params, options)
    return { ...((await response.json()) as RpcAnswer), status: response.status }
  }
  const get: TaskNode['get'] = (taskId, options) => result(ask('tasks/get', { taskId }, options))
  return {
    port,
    url,
    failures,
    operations,
    request,
    ask,
    get,
    call: (name, args, options) => result(ask('tools/call', { name, arguments: args }, options)),
    async until(taskId, status) {
      let task: Task | undefined
      await expect.poll(async () => (task = await get(taskId)).status, { timeout: 20_000, interval: 20 }).toBe(status)
      return task as unknown as Task
    },
    close,
  }
}

/** A subscriber that answers when the test calls `answer`. */
export async function slowResponder(
  user: BrokerHandle,
  channel = 'ask',
): Promise<{ readonly arrived: Promise<AbortSignal>; readonly answer: (text: string) => void }> {
  const arrived = Promise.withResolvers<AbortSignal>()
  const answer = Promise.withResolvers<string>()
  const subscription = await user.queries.subscribe(channel, {}, async ({ signal }) => {
    arrived.resolve(signal)
    return { body: new TextEncoder().encode(await answer.promise) }
  })
  onTestFinished(() => {
    answer.resolve('')
    return subscription.close()
  })
  return { arrived: arrived.promise, answer: answer.resolve }
}
