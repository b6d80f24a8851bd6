import { WebSocket } from 'ws'

interface Frame {
  readonly kind: 'message' | 'dropped' | 'started'
  readonly count?: number
}

/** An operator who watches, and counts what comes, or reads nothing at all. */
export class MonitorReader implements Disposable {
  readonly #socket: WebSocket
  messages = 0
  /** Messages that it was told were left out. */
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

  /** Reads nothing from here on. */
  stall(): void {
    this.#socket.pause()
  }

  #count(data: Buffer): void {
    // Counting must not be what is measured: only what is no message is taken apart.
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
