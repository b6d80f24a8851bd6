import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Body {
  readonly id?: unknown
  readonly method: string
  readonly params?: { readonly message?: { readonly messageId?: string } }
}

/** The statuses of the agent's task, in A2A 0.3 and in 1.0. */
const SAYS = {
  dialect: {
    working: { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'working' }, final: false },
    completed: { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'completed' }, final: true },
  },
  native: {
    working: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } },
    completed: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } },
  },
}

/** An agent for both versions of A2A: it echoes the id of a message, and streams stay open until they are finished. */
export class UpgradeAgent implements AsyncDisposable {
  /** The ids of the messages that it executed. */
  readonly executed = new Set<string>()
  readonly #server: Server
  readonly #streams = new Map<ServerResponse, string>()

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response))
  }

  static async start(): Promise<UpgradeAgent> {
    const agent = new UpgradeAgent()
    await once(agent.#server.listen(0, '127.0.0.1'), 'listening')
    return agent
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    const { id, method, params } = JSON.parse(await text(request)) as Body
    const messageId = params?.message?.messageId ?? ''
    this.executed.add(messageId)
    const version = method.includes('/') ? 'dialect' : 'native'
    const rpc = (result: object): string => JSON.stringify({ jsonrpc: '2.0', id, result })
    if (id === undefined) {
      response.writeHead(204).end()
    } else if (method === 'message/stream' || method === 'SendStreamingMessage') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${rpc(SAYS[version].working)}\n\n`)
      this.#streams.set(response, `data: ${rpc(SAYS[version].completed)}\n\n`)
      response.once('close', () => this.#streams.delete(response))
    } else {
      response.setHeader('content-type', 'application/json')
      const parts = [version === 'native' ? { text: messageId } : { kind: 'text', text: messageId }]
      const message = { messageId: 'answer', parts }
      const result =
        version === 'native'
          ? { message: { ...message, role: 'ROLE_AGENT' } }
          : { ...message, kind: 'message', role: 'agent' }
      response.end(rpc(result))
    }
  }

  /** Ends every open stream with a completed task. */
  finishStreams(): void {
    for (const [response, end] of this.#streams) response.end(end)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}
