import type { Msg } from '@nats-io/transport-node'

import type { StoredChannel } from '../channels/stored-channel.ts'
import type { Parts } from '../parts.ts'
import type { Leases } from './leases.ts'
import type { QueueGauges } from './queue-gauges.ts'

/** How long the other nodes have to say what they lease, in milliseconds. */
const ANSWER_MS = 1_000
const PARALLEL = 256

/** Empties queues, but for what is leased anywhere. */
export class Purge {
  readonly #parts: Parts
  readonly #leases: Leases
  readonly #gauges: QueueGauges
  readonly #returnStash: (incarnation: string) => Promise<void>

  constructor(parts: Parts, leases: Leases, gauges: QueueGauges, returnStash: (incarnation: string) => Promise<void>) {
    this.#parts = parts
    this.#leases = leases
    this.#gauges = gauges
    this.#returnStash = returnStash
  }

  /** Tells other nodes what is leased here. */
  start(): void {
    const { connection, subjects } = this.#parts
    connection.nc.subscribe(subjects.nodes('leased'), {
      callback: (error, message) => {
        if (error) return
        void this.#answer(message)
      },
    })
  }

  async #answer(message: Msg): Promise<void> {
    const incarnation = message.string()
    try {
      await this.#returnStash(incarnation)
    } catch {
      // What could not be given back comes back by itself.
    }
    message.respond(JSON.stringify([...this.#leases.sequences(incarnation)]))
  }

  async run(channel: StoredChannel): Promise<number> {
    const { connection } = this.#parts
    await this.#gauges.sweep(channel)
    await this.#returnStash(channel.incarnation)
    const leased = new Set([...this.#leases.sequences(channel.incarnation), ...(await this.#leasedElsewhere(channel))])
    if (leased.size === 0) {
      return (await connection.call(() => connection.manager.streams.purge(channel.stream))).purged
    }
    return this.#removeAllBut(channel, leased)
  }

  async #leasedElsewhere({ incarnation }: StoredChannel): Promise<readonly number[]> {
    const { connection, subjects, peers } = this.#parts
    const others = peers.others.length
    if (others === 0) return []
    const found: number[] = []
    await connection.call(async () => {
      // This node answers as well.
      const options = { strategy: 'count', maxMessages: others + 1, maxWait: ANSWER_MS } as const
      for await (const answer of await connection.nc.requestMany(subjects.nodes('leased'), incarnation, options)) {
        found.push(...answer.json<number[]>())
      }
    })
    return found
  }

  /** One by one: a purge up to a sequence makes server 2.9 forget the deliveries after it. */
  async #removeAllBut(channel: StoredChannel, leased: ReadonlySet<number>): Promise<number> {
    const { messages, subjects } = this.#parts
    const { lastSequence } = await this.#gauges.read(channel)
    let removed = 0
    for (let from = 1; from <= lastSequence;) {
      const found: number[] = []
      let last = lastSequence
      await messages.forward(
        channel.stream,
        subjects.all(channel.incarnation),
        from,
        lastSequence,
        PARALLEL,
        (message) => {
          last = message.sequence
          if (!leased.has(last)) found.push(last)
          return found.length < PARALLEL
        },
      )
      const outcomes = await Promise.all(found.map((sequence) => this.#gauges.removeOne(channel, sequence)))
      removed += outcomes.filter(Boolean).length
      if (found.length < PARALLEL) break
      from = last + 1
    }
    return removed
  }
}
