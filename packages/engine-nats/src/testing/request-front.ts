import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Agent, createServer, request } from 'node:http'

/**
 * A proxy that forwards each request to the next node, independently of its connection: two successive
 * requests never go to the same node.
 */
export class RequestFront implements AsyncDisposable {
  readonly #server: Server
  readonly #nodes: readonly string[]
  readonly #agent = new Agent({ keepAlive: true })
  #next = 0

  private constructor(nodes: readonly string[]) {
    this.#nodes = nodes
    this.#server = createServer((incoming, response) => this.#forward(incoming, response))
  }

  /** @param nodes The addresses of the nodes, `http://host:port`. */
  static async start(nodes: readonly string[]): Promise<RequestFront> {
    const front = new RequestFront(nodes)
    await once(front.#server.listen(0, '127.0.0.1'), 'listening')
    return front
  }

  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the front is closed')
    return `http://127.0.0.1:${address.port}`
  }

  #forward(incoming: IncomingMessage, response: ServerResponse): void {
    const node = this.#nodes[this.#next++ % this.#nodes.length]
    const { method, headers, url = '/' } = incoming
    const upstream = request(new URL(url, node), { method, headers, agent: this.#agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      response.flushHeaders()
      answer.on('error', () => response.destroy())
      answer.pipe(response)
    })
    upstream.on('error', () => response.destroy())
    response.once('close', () => upstream.destroy())
    incoming.pipe(upstream)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    this.#agent.destroy()
    await closed
  }
}
