import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import { connect, createServer } from 'node:net'

/** A balancer: each connection goes to the next node that accepts it, and is cut when its node dies. */
export class Front implements AsyncDisposable {
  readonly #server: Server
  readonly #nodes: () => readonly string[]
  readonly #open = new Set<Socket>()
  #next = 0

  private constructor(nodes: () => readonly string[]) {
    this.#nodes = nodes
    this.#server = createServer((client) => {
      this.#open.add(client)
      client.once('close', () => this.#open.delete(client))
      client.on('error', () => client.destroy())
      this.#join(client, this.#nodes().length)
    })
  }

  /** `nodes` returns the addresses of the running nodes, `http://host:port`. */
  static async start(nodes: () => readonly string[]): Promise<Front> {
    const front = new Front(nodes)
    await once(front.#server.listen(0, '127.0.0.1'), 'listening')
    return front
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  #join(client: Socket, tries: number): void {
    const nodes = this.#nodes()
    const node = nodes[this.#next++ % Math.max(1, nodes.length)]
    if (node === undefined || tries === 0) {
      client.destroy()
      return
    }
    const { hostname, port } = new URL(node)
    const upstream = connect(Number(port), hostname)
    let joined = false
    upstream.once('connect', () => {
      joined = true
      client.pipe(upstream).pipe(client)
    })
    upstream.on('error', () => {
      upstream.destroy()
      if (joined) client.destroy()
      else this.#join(client, tries - 1)
    })
    upstream.once('close', () => joined && client.destroy())
    client.once('close', () => upstream.destroy())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
