import { KeepAliveConnection } from './keep-alive-connection.ts'

const FAILED_TOOL = Buffer.from('"isError":true')
const FAILED_CALL = Buffer.from('"error":{')
const FAILED_SEND = Buffer.from('"is_error":true')

export interface LoadResult {
  readonly requests: number
  readonly wallMs: number
}

/**
 * Keep-alive connections that each send the same prepared request again as soon as it is answered. An answer that is
 * not a success throws: a benchmark of errors is worthless.
 */
export class ClosedLoop {
  readonly #connections: readonly KeepAliveConnection[]
  readonly #request: Buffer

  private constructor(connections: readonly KeepAliveConnection[], request: Buffer) {
    this.#connections = connections
    this.#request = request
  }

  static async open(url: string, request: Buffer, connections = 64): Promise<ClosedLoop> {
    const open = Array.from({ length: connections }, () => KeepAliveConnection.open(url))
    return new ClosedLoop(await Promise.all(open), request)
  }

  async run(durationMs: number): Promise<LoadResult> {
    const begin = performance.now()
    const end = begin + durationMs
    let requests = 0
    const send = async (connection: KeepAliveConnection) => {
      while (performance.now() < end) {
        const { status, body } = await connection.request(this.#request)
        if (
          status < 200 ||
          status > 299 ||
          body.includes(FAILED_TOOL) ||
          body.includes(FAILED_CALL) ||
          body.includes(FAILED_SEND)
        ) {
          throw new Error(`the server answered ${status}: ${body.toString().slice(0, 500)}`)
        }
        requests++
      }
    }
    await Promise.all(this.#connections.map(send))
    return { requests, wallMs: performance.now() - begin }
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }
}
