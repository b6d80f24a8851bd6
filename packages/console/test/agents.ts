import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

import type { Server } from './server.ts'

/** Text that a page must show as text. */
export const MARKUP = `<img src=x onerror="document.title=1">`

/** Markup, and a character that turns the order of the text around. */
export const HOSTILE = `${MARKUP}\u202Ereversed`

/** An agent that answers messages with an echo. It fails for the text `fail`, and keeps `wait` open. */
export class EchoAgent implements AsyncDisposable {
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  readonly #waiting = new Set<ServerResponse>()

  static async start(): Promise<EchoAgent> {
    const agent = new EchoAgent()
    await once(agent.#server.listen(0, '127.0.0.1'), 'listening')
    return agent
  }

  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the agent does not listen')
    return `http://127.0.0.1:${address.port}/rpc`
  }

  /** Registers the agent at a server. */
  async register(server: Server, card: object): Promise<void> {
    const response = await fetch(`${server.http}/agents/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...server.headersOf('agents') },
      body: JSON.stringify({ url: this.url, ...card }),
    })
    if (!response.ok) throw new Error(`register: ${response.status} ${await response.text()}`)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const { id, method } = JSON.parse(body) as { id: unknown; method: string }
    if (method === 'message/stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const status = { kind: 'status-update', taskId: 't', contextId: 'c', final: false, status: { state: 'working' } }
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: status })}\n\n`)
      if (body.includes('"wait"')) {
        this.#waiting.add(response)
        return
      }
      const message = { kind: 'message', role: 'agent', messageId: '1', parts: [{ kind: 'text', text: HOSTILE }] }
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: message })}\n\n`)
      return
    }
    if (body.includes('"wait"')) {
      this.#waiting.add(response)
      return
    }
    const answer = body.includes('"fail"')
      ? { error: { code: -32_001, message: 'the agent cannot do that' } }
      : { result: { kind: 'message', role: 'agent', messageId: '1', parts: [{ kind: 'text', text: HOSTILE }] } }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** The card of a translator, with text that must be shown as text. */
export const TRANSLATOR = {
  agent_id: 'translator',
  name: 'Translator',
  description: 'Translates documents between the languages of the European Union, and keeps their layout.',
  version: '2.4.1',
  protocolVersions: ['0.3.0', '1.0'],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain', 'application/pdf'],
  defaultOutputModes: ['text/plain'],
  provider: { organization: 'Lingua Ltd', url: 'https://lingua.example' },
  skills: [
    {
      id: 'translate',
      name: 'Translate a text',
      description: 'Translates up to 100 pages. The language of the original is recognized.',
      tags: ['language', 'documents'],
      examples: ['Translate this contract to Portuguese.'],
    },
    { id: 'summarize', name: MARKUP, description: 'Summarizes a text in one paragraph.', tags: ['language'] },
  ],
}
