import type { IncomingMessage, RequestListener } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'

import type { Answer, Caller } from './caller.ts'

/** An agent in this process that runs until the end of the attack. */
export class HostileAgent implements Disposable {
  readonly url: string
  readonly #close: () => void

  private constructor(url: string, close: () => void) {
    this.url = url
    this.#close = close
  }

  static start(listener: RequestListener): Promise<HostileAgent> {
    const server = createServer(listener)
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => {
        const { port } = server.address() as AddressInfo
        const close = (): void => {
          server.closeAllConnections()
          server.close()
        }
        resolve(new HostileAgent(`http://127.0.0.1:${port}/rpc`, close))
      })
    })
  }

  /** An agent that answers every request with this text. */
  static answering(body: string): Promise<HostileAgent> {
    return HostileAgent.start((request, response) => {
      void consume(request).then(() => response.writeHead(200, { 'content-type': 'application/json' }).end(body))
    })
  }

  [Symbol.dispose](): void {
    this.#close()
  }
}

/** Reads a request's body; an aborted body is empty. */
export async function consume(request: IncomingMessage): Promise<string> {
  try {
    return await readText(request)
  } catch {
    return ''
  }
}

/** Registers an agent; resolves with the answer. */
export function register(caller: Caller, agentId: string, url: string, card: object = {}): Promise<Answer> {
  return caller.post('/agents/register', { agent_id: agentId, name: agentId, url, ...card })
}

/** Registers an agent, which must succeed. */
export async function registered(caller: Caller, agentId: string, url: string, card: object = {}): Promise<void> {
  const { status, text } = await register(caller, agentId, url, card)
  if (status !== 200) throw new Error(`the agent was not registered: ${status} ${text.slice(0, 300)}`)
}
