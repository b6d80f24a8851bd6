import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { onTestFinished } from 'vitest'

/** One TCP connection, for what an HTTP client would hide. */
export class RawConnection {
  readonly socket: Socket
  #received = ''

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('data', (data) => {
      this.#received += data.toString('latin1')
    })
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    onTestFinished(() => void socket.destroy())
    return new RawConnection(socket)
  }

  /** POSTs to an agent. */
  post(agentId: string, body: string): void {
    this.socket.write(
      `POST /a2a/${agentId} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
  }

  /** Everything that was received, once it holds this text. */
  async until(text: string): Promise<string> {
    while (!this.#received.includes(text)) {
      if (this.socket.closed) throw new Error(`the connection is closed; received: ${this.#received}`)
      await Promise.race([once(this.socket, 'data'), once(this.socket, 'close')])
    }
    return this.#received
  }
}
