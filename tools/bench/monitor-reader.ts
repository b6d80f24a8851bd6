import { WebSocket } from 'ws'

interface Frame {
  readonly kind: 'message' | 'dropped' | 'started'
  readonly count?: number
}

/** An operator's monitor that counts messages, or reads nothing at all. */
export class MonitorReader implements Disposable {
  readonly #socket: WebSocket
  messages = 0
  /** The number of messages that the monitor reported as dropped. */
  dropped = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data: Buffer) => this.#count(data))
    socket.on('error', () => {})
  }

  /** @param query Filters of the monitor, `?direction=in` */
  static open(api: string, query: string): Promise<MonitorReader> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(`${api.replace('http', 'ws')}/api/monitor${query}`, { perMessageDeflate: false })
      const reader = new MonitorReader(socket)
      socket.once('message', () => resolve(reader))
      socket.once('error', reject)
    })
  }

  /** Stops reading. */
  stall(): void {
    this.#socket.pause()
  }

  #count(data: Buffer): void {
    // The reader must not dominate the measurement, so it parses only frames that are not messages.
    if (data.subarray(0, MESSAGE.length).equals(MESSAGE)) {
      this.messages++
      return
    }
    const { kind, count = 0 } = JSON.parse(data.toString()) as Frame
    if (kind === 'dropped') this.dropped += count
  }

  [Symbol.dispose](): void {
    this.#socket.terminate()
  }
}

const MESSAGE = Buffer.from('{"kind":"message"')
