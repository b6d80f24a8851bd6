import { McpClient } from '../../harness/mcp.ts'
import { Finding } from '../target.ts'

const QUEUE = 'honest.queue'
const STORE = 'honest.store'

/** Few enough for one receive. */
const OUTSTANDING = 60

/** Sends, receives and reads as anybody would, beside what is done to the server, and keeps a ledger. */
export class HonestClient {
  /** Bodies whose send was acknowledged and that have not come yet. */
  readonly #outstanding = new Set<string>()
  /** Bodies in the events store, by sequence. */
  readonly #stored = new Map<number, string>()
  #sent = 0
  /** The call that was under way when a connection broke may have been carried out. */
  readonly #unsure = new Set<string>()

  /** Some calls, each of which must succeed. @throws Finding */
  async work(http: string): Promise<void> {
    const client = await this.#open(http)
    try {
      for (let i = 0; i < 4; i++) {
        const body = `honest ${++this.#sent}`
        this.#unsure.add(body)
        await client.call('queue_send', { channel: QUEUE, body })
        this.#outstanding.add(body)
        const { structured } = await client.call('events_store_publish', { channel: STORE, body })
        this.#stored.set(Number(structured['sequence']), body)
      }
      if (this.#outstanding.size >= OUTSTANDING) await this.#receive(client)
    } catch (error) {
      throw refused(error)
    } finally {
      client.close()
    }
  }

  /** Receives and reads all that there should be. @throws Finding */
  async settle(http: string): Promise<void> {
    const client = await this.#open(http)
    try {
      while ((await this.#receive(client)) > 0);
      await this.#read(client)
    } catch (error) {
      throw refused(error)
    } finally {
      client.close()
    }
    const [first] = this.#outstanding
    if (first !== undefined) {
      const count = this.#outstanding.size
      this.#outstanding.clear()
      throw new Finding('lost', `acknowledged messages are gone: got ${count}, such as ${first}`)
    }
  }

  async #open(http: string): Promise<McpClient> {
    try {
      return await McpClient.open(http)
    } catch (error) {
      throw refused(error)
    }
  }

  async #receive(client: McpClient): Promise<number> {
    const { structured } = await client.call('queue_receive', {
      channel: QUEUE,
      max_messages: 100,
      wait_timeout_seconds: 1,
    })
    const messages = structured['messages'] as readonly { readonly body: string }[]
    for (const { body } of messages) {
      if (!this.#unsure.has(body)) throw new Finding('wrong', `a message comes that nobody sent: got ${body}`)
      this.#outstanding.delete(body)
    }
    return messages.length
  }

  async #read(client: McpClient): Promise<void> {
    const found = new Map<number, string>()
    for (let from = 1; ;) {
      const { structured } = await client.call('events_store_read', {
        channel: STORE,
        from_sequence: from,
        max_messages: 100,
      })
      const events = structured['events'] as readonly { readonly body: string; readonly sequence: number }[]
      for (const { body, sequence } of events) found.set(sequence, body)
      if (events.length === 0) break
      from = (events.at(-1)?.sequence ?? from) + 1
    }
    for (const [sequence, body] of this.#stored) {
      if (found.get(sequence) !== body)
        throw new Finding('lost', `a stored event is not there: got ${sequence} ${body}`)
    }
  }
}

function refused(error: unknown): Finding {
  if (error instanceof Finding) return error
  const text = error instanceof Error ? error.message : String(error)
  return new Finding('answer', `an honest call fails: got ${text}`)
}
