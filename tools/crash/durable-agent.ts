import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

import type { LoopbackServer } from '@signalbox/testkit/loopback'
import { serveHttp } from '@signalbox/testkit/loopback'

/** A task of the agent: the texts of its artifact so far, and whether it is over. */
interface AgentTask {
  readonly id: string
  readonly parts: string[]
  isOver: boolean
  news: PromiseWithResolvers<void>
}

interface Request {
  readonly method: string
  readonly params: { readonly id?: string; readonly message?: { readonly messageId: string } }
}

/** An agent of A2A 1.0 whose tasks go on without their clients: it streams, lets clients subscribe, and knows its tasks. */
export class DurableAgent implements AsyncDisposable {
  readonly #eventCount: number
  readonly #paceMs: number
  readonly #tasks = new Map<string, AgentTask>()
  readonly #server: LoopbackServer
  readonly #open = new Set<ServerResponse>()
  /** The number of times that each message arrived. */
  readonly runs = new Map<string, number>()

  private constructor(eventCount: number, paceMs: number, serve: (listener: DurableAgent['handle']) => LoopbackServer) {
    this.#eventCount = eventCount
    this.#paceMs = paceMs
    this.#server = serve(this.handle)
  }

  static async start(eventCount: number, paceMs: number): Promise<DurableAgent> {
    const { promise, resolve } = Promise.withResolvers<DurableAgent['handle']>()
    const server = await serveHttp((request, response) => void promise.then((handle) => handle(request, response)))
    const agent = new DurableAgent(eventCount, paceMs, () => server)
    resolve(agent.handle)
    return agent
  }

  get url(): string {
    return this.#server.url
  }

  /** Cuts every connection: clients see it as a crash of the agent, whose tasks are durable. */
  cut(): void {
    for (const response of this.#open) response.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await this.#server[Symbol.asyncDispose]()
  }

  readonly handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.on('error', () => {})
    this.#open.add(response)
    response.once('close', () => this.#open.delete(response))
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    if (request.method !== 'POST') {
      response.writeHead(404).end()
      return
    }
    const { method, params } = JSON.parse(Buffer.concat(chunks).toString()) as Request
    if (method === 'SendStreamingMessage') await this.#stream(response, this.#begin(params.message?.messageId ?? ''), 0)
    else {
      const task = this.#tasks.get(params.id ?? '')
      if (task === undefined) answer(response, { error: { code: -32001, message: 'Task not found' } })
      else if (method !== 'SubscribeToTask') answer(response, { result: shown(task) })
      else if (task.isOver) answer(response, { error: { code: -32004, message: 'the task is over' } })
      else await this.#stream(response, task, task.parts.length)
    }
  }

  #begin(messageId: string): AgentTask {
    const count = (this.runs.get(messageId) ?? 0) + 1
    this.runs.set(messageId, count)
    const task: AgentTask = { id: `${messageId}-${count}`, parts: [], isOver: false, news: Promise.withResolvers() }
    this.#tasks.set(task.id, task)
    void this.#work(task)
    return task
  }

  async #work(task: AgentTask): Promise<void> {
    for (let n = 1; n <= this.#eventCount; n++) {
      await pause(this.#paceMs)
      task.parts.push(String(n))
      if (n === this.#eventCount) task.isOver = true
      task.news.resolve()
      task.news = Promise.withResolvers()
    }
  }

  /** Writes the task as it is, and then its later events. */
  async #stream(response: ServerResponse, task: AgentTask, from: number): Promise<void> {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write(event({ task: shown(task) }))
    let next = from
    while (!response.destroyed) {
      const { promise } = task.news
      for (; next < task.parts.length; next++) {
        const artifact = { artifactId: 'a', parts: [{ text: task.parts[next] }] }
        response.write(event({ artifactUpdate: { taskId: task.id, contextId: 'c', artifact, append: true } }))
      }
      if (task.isOver) {
        const status = { state: 'TASK_STATE_COMPLETED' }
        response.end(event({ statusUpdate: { taskId: task.id, contextId: 'c', status } }))
        return
      }
      await promise
    }
  }
}

function shown({ id, isOver, parts }: AgentTask): object {
  const artifacts =
    parts.length === 0 ? {} : { artifacts: [{ artifactId: 'a', parts: parts.map((text) => ({ text })) }] }
  return { id, contextId: 'c', status: { state: isOver ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_WORKING' }, ...artifacts }
}

function event(result: object): string {
  return `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`
}

function answer(response: ServerResponse, content: object): void {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...content }))
}
