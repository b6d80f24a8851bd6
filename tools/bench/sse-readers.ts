import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

export interface SseReadersOptions {
  readonly url: string
  readonly count: number
  /** The request that each reader sends, as bytes. */
  readonly request: Buffer
  /** A text that every event contains once. */
  readonly mark: string
}

/** Readers of event streams over bare sockets that only count events. */
export class SseReaders implements Disposable {
  readonly #mark: Buffer
  readonly #sockets: Socket[] = []
  #received = 0
  #target = Number.POSITIVE_INFINITY
  #reached: () => void = () => {}

  private constructor(mark: string) {
    this.#mark = Buffer.from(mark)
  }

  /** Resolves when each stream has begun. */
  static async open({ url, count, request, mark }: SseReadersOptions): Promise<SseReaders> {
    const readers = new SseReaders(mark)
    // Opens connections in batches, so that the listener's backlog does not overflow.
    for (let open = 0; open < count; open += 100) {
      await Promise.all(Array.from({ length: Math.min(100, count - open) }, () => readers.#open(url, request)))
    }
    return readers
  }

  /** Resolves when all readers together have received this many more events. */
  receive(events: number): Promise<void> {
    return new Promise((resolve) => {
      this.#target = this.#received + events
      this.#reached = resolve
    })
  }

  async #open(url: string, request: Buffer): Promise<void> {
    const { hostname, port } = new URL(url)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const socket = connect(Number(port), hostname, () => socket.write(request))
    this.#sockets.push(socket)
    socket.on('error', reject)
    socket.once('close', () => reject(new Error('the server closed a stream')))
    socket.once('data', (head: Buffer) => {
      const text = head.toString('latin1')
      if (text.startsWith('HTTP/1.1 200') && /\r\ncontent-type: text\/event-stream/i.test(text)) resolve()
      else reject(new Error(`not a stream:\n${text.slice(0, 500)}`))
    })
    // A chunk can end inside an event's mark, so a possible beginning of one waits for the next chunk.
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      const bytes = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk])
      let from = 0
      for (let at = bytes.indexOf(this.#mark); at !== -1; at = bytes.indexOf(this.#mark, from)) {
        from = at + this.#mark.byteLength
        this.#received++
      }
      rest = bytes.subarray(Math.max(from, bytes.byteLength - this.#mark.byteLength + 1))
      if (this.#received >= this.#target) this.#reached()
    })
    await promise
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
