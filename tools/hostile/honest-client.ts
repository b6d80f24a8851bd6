import type { ConnectionOptions } from '@signalbox/testkit/http-connection'
import { McpClient } from '@signalbox/testkit/mcp-client'

export interface HonestOptions extends ConnectionOptions {
  readonly queue: string
  /** An events store to publish to as well. */
  readonly store?: string
  /** The messages that {@link HonestClient.work} sends before it receives. */
  readonly sends: number
  /** The number of sent messages at which it receives; few enough for one receive. */
  readonly receiveAt: number
  /** The time that a receive waits for a message, in seconds. */
  readonly waitSeconds: number
  /** The number of calls of `work` on one connection. @default 1 */
  readonly reconnectAfter?: number
  /** The time-out of a call, in milliseconds. */
  readonly timeoutMs: number
}

/** The server broke a promise to an honest client. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise'
  /** `lost`: an acknowledged message; `wrong`: a message that was never sent; `answer`: a call failed. */
  readonly kind: 'lost' | 'wrong' | 'answer'

  constructor(kind: BrokenPromise['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/**
 * A client that sends, receives and reads normally while others attack the server, and keeps a ledger. Its methods
 * throw a {@link BrokenPromise}.
 */
export class HonestClient {
  readonly #options: HonestOptions
  /** Every body that was sent, also without an acknowledgement: a broken connection may hide the effect of a call. */
  readonly #sent = new Set<string>()
  /** Bodies whose send was acknowledged and that have not arrived yet. */
  readonly #outstanding = new Set<string>()
  /** Bodies in the events store, by sequence. */
  readonly #stored = new Map<number, string>()
  #connection: { readonly http: string; readonly client: McpClient; left: number } | undefined
  #times: number[] = []

  constructor(options: HonestOptions) {
    this.#options = options
  }

  /** Makes some calls, each of which must succeed. */
  async work(http: string): Promise<void> {
    const { queue, store, sends, receiveAt } = this.#options
    await this.#on(http, async () => {
      for (let i = 0; i < sends; i++) {
        const body = `honest ${this.#sent.size}`
        this.#sent.add(body)
        await this.#call('queue_send', { channel: queue, body })
        this.#outstanding.add(body)
        if (store === undefined) continue
        const { sequence } = await this.#call('events_store_publish', { channel: store, body })
        this.#stored.set(Number(sequence), body)
      }
      if (this.#outstanding.size >= receiveAt) await this.#receive()
    })
  }

  /** Receives and reads all expected messages. */
  async settle(http: string): Promise<void> {
    await this.#on(http, async () => {
      while ((await this.#receive()) > 0);
      await this.#read()
    })
    this.close()
    this.expectNothingLost()
  }

  /** Throws if a message that was acknowledged has not arrived, and forgets those messages. */
  expectNothingLost(): void {
    const [first] = this.#outstanding
    if (first === undefined) return
    const count = this.#outstanding.size
    this.#outstanding.clear()
    throw new BrokenPromise('lost', `acknowledged messages are lost: got ${count}, such as ${first}`)
  }

  /** Returns the durations of the calls since the last call of this method, in milliseconds. */
  takeTimes(): readonly number[] {
    const times = this.#times
    this.#times = []
    return times
  }

  close(): void {
    this.#connection?.client.close()
    this.#connection = undefined
  }

  async #on(http: string, work: () => Promise<void>): Promise<void> {
    try {
      if (this.#connection?.http !== http) this.close()
      this.#connection ??= {
        http,
        client: await McpClient.open(http, this.#options),
        left: this.#options.reconnectAfter ?? 1,
      }
      await work()
      if (--this.#connection.left <= 0) this.close()
    } catch (error) {
      this.close()
      if (error instanceof BrokenPromise) throw error
      const text = error instanceof Error ? error.message : String(error)
      throw new BrokenPromise('answer', `an honest call failed: got ${text}`, { cause: error })
    }
  }

  async #call(name: string, args: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
    if (this.#connection === undefined) throw new Error('not connected')
    const { client } = this.#connection
    const begin = performance.now()
    const { timeoutMs } = this.#options
    let isLate = false
    const late = setTimeout(() => {
      isLate = true
      client.close()
    }, timeoutMs)
    try {
      return (await client.call(name, args)).structured
    } catch (error) {
      throw isLate ? new Error(`${name} took more than ${timeoutMs} ms`, { cause: error }) : error
    } finally {
      clearTimeout(late)
      this.#times.push(performance.now() - begin)
    }
  }

  async #receive(): Promise<number> {
    const { queue, waitSeconds } = this.#options
    const args = { channel: queue, max_messages: 100, wait_timeout_seconds: waitSeconds }
    const { messages } = await this.#call('queue_receive', args).catch((error: unknown) => {
      // The answer that did not arrive may have contained any of them.
      this.#outstanding.clear()
      throw error
    })
    const received = messages as readonly { readonly body: string }[]
    for (const { body } of received) {
      if (!this.#sent.has(body)) {
        throw new BrokenPromise('wrong', `a message arrived that was never sent: got ${body}`)
      }
      this.#outstanding.delete(body)
    }
    return received.length
  }

  async #read(): Promise<void> {
    const found = new Map<number, string>()
    for (let from = 1; this.#options.store !== undefined;) {
      const args = { channel: this.#options.store, from_sequence: from, max_messages: 100 }
      const { events } = await this.#call('events_store_read', args)
      const page = events as readonly { readonly body: string; readonly sequence: number }[]
      for (const { body, sequence } of page) found.set(sequence, body)
      if (page.length === 0) break
      from = (page.at(-1)?.sequence ?? from) + 1
    }
    for (const [sequence, body] of this.#stored) {
      if (found.get(sequence) !== body) {
        throw new BrokenPromise('lost', `a stored event is missing: got ${sequence} ${body}`)
      }
    }
  }
}
