import { KeepAliveConnection } from './keep-alive-connection.ts'
import type { LoadResult } from './closed-loop.ts'

/** The connections of one host's session: the requests of each, in their order. */
export type Session = readonly (readonly Buffer[])[]

/** MCP hosts that repeat the same session: they connect, send prepared requests one after another, and close. */
export class HostSessions {
  readonly #url: string
  readonly #session: Session
  readonly #hosts: number

  constructor(url: string, session: Session, hosts = 64) {
    this.#url = url
    this.#session = session
    this.#hosts = hosts
  }

  /** Runs whole sessions until the time has passed. An answer that is not a success throws. */
  async run(durationMs: number): Promise<LoadResult> {
    const begin = performance.now()
    const end = begin + durationMs
    let requests = 0
    const host = async () => {
      while (performance.now() < end) {
        const done = await this.#runSession()
        requests += done
      }
    }
    await Promise.all(Array.from({ length: this.#hosts }, host))
    return { requests, wallMs: performance.now() - begin }
  }

  async #runSession(): Promise<number> {
    let done = 0
    for (const requests of this.#session) {
      const connection = await KeepAliveConnection.open(this.#url)
      for (const request of requests) {
        const { status, body } = await connection.request(request)
        if (status !== 200 || !body.includes('"result":{') || body.includes('"isError":true')) {
          throw new Error(`the server answered ${status}: ${body.toString().slice(0, 500)}`)
        }
        done++
      }
      connection.close()
    }
    return done
  }
}
