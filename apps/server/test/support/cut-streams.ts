import { connect } from 'node:net'

import type { LoopbackServer } from '@signalbox/testkit/loopback'
import { serveSockets } from '@signalbox/testkit/loopback'

const EVENT = Buffer.from('data: {')

/** A proxy on TCP that cuts each connection once so many events of a stream have passed, and forwards all bytes before. */
export class CuttingProxy implements AsyncDisposable {
  /** The address of the server behind the proxy, `http://host:port`. */
  target = ''
  /** The event after which connections are cut. */
  after = Infinity
  #server: LoopbackServer | undefined

  static async start(): Promise<CuttingProxy> {
    const proxy = new CuttingProxy()
    proxy.#server = await serveSockets((client) => {
      const { hostname, port } = new URL(proxy.target)
      const { after } = proxy
      const server = connect(Number(port), hostname)
      let events = 0
      const cut = (): void => {
        client.destroy()
        server.destroy()
      }
      client.on('error', cut).on('close', cut).pipe(server)
      server.on('error', cut).on('close', cut)
      server.on('data', (bytes: Buffer) => {
        for (let at = bytes.indexOf(EVENT); at !== -1; at = bytes.indexOf(EVENT, at + 1)) events++
        // The event that is one too many may have begun: its reader drops the part.
        if (events > after) client.end(bytes.subarray(0, Math.floor(bytes.length / 2)), cut)
        else client.write(bytes)
      })
    })
    return proxy
  }

  get url(): string {
    return this.#server?.url ?? ''
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }
}

/** Reads the whole events of a stream until it ends or breaks off. */
export async function eventsOf(url: string, request: object, cursor?: string): Promise<readonly string[]> {
  let text = ''
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'a2a-version': '1.0',
        connection: 'close',
        ...(cursor === undefined ? {} : { 'last-event-id': cursor }),
      },
      body: JSON.stringify(request),
    })
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true })
  } catch {
    // The connection was cut.
  }
  return text
    .split('\n\n')
    .slice(0, -1)
    .filter((event) => event.includes('data: '))
}

/** Returns the id of the last event; undefined without events. */
export function cursorOf(events: readonly string[]): string | undefined {
  return /^id: (.*)$/m.exec(events.at(-1) ?? '')?.[1]
}
