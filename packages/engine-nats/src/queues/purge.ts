import { unavailable } from '@signalbox/broker-core/engine'
import type { Msg } from '@nats-io/transport-node'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { reportFailure } from '../background.ts'
import type { StoredChannel } from '../channels/stored-channel.ts'
import { jsonOf } from '../json.ts'
import type { Parts } from '../parts.ts'
import type { Leases } from './leases.ts'
import type { QueueGauges } from './queue-gauges.ts'

/** The time that the other nodes have to report their leases, in milliseconds. */
const ANSWER_MS = 1_000
const PARALLEL = 256

const LEASED = Type.Object({ node: Type.String(), sequences: Type.Array(Type.Integer({ minimum: 1 })) })

type Leased = Static<typeof LEASED>

/** Purges queues, except messages that are leased on any node. */
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

  /** Answers other nodes with the leases of this node. */
  start(): void {
    const { connection, subjects } = this.#parts
    connection.listen(subjects.nodes('leased'), (message) => this.#answer(message))
  }

  async #answer(message: Msg): Promise<void> {
    const incarnation = message.string()
    try {
      await this.#returnStash(incarnation)
    } catch (error) {
      // The servers deliver the remaining messages again.
      reportFailure(this.#parts.settings.onProblem, 'returning messages without a receiver', error)
    }
    const sequences = [...this.#leases.sequences(incarnation)]
    message.respond(JSON.stringify({ node: this.#parts.node, sequences } satisfies Leased))
  }

  async run(channel: StoredChannel): Promise<number> {
    const { connection } = this.#parts
    await this.#gauges.sweep(channel)
    const leased = new Set(await this.#leasedAnywhere(channel))
    if (leased.size === 0) {
      return (await connection.call(() => connection.manager.streams.purge(channel.stream))).purged
    }
    return this.#removeAllBut(channel, leased)
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE when a node does not answer */
  async #leasedAnywhere({ incarnation }: StoredChannel): Promise<readonly number[]> {
    const found: number[] = []
    const read = (answer: Msg): string => {
      const leased = jsonOf(LEASED, answer.string())
      for (const sequence of leased?.sequences ?? []) found.push(sequence)
      return leased?.node ?? ''
    }
    const { silent } = await this.#parts.peers.askAll('leased', incarnation, read, ANSWER_MS)
    if (silent.length > 0) throw unavailable('another node did not report its leases')
    return found
  }

  /** Removes single messages: a purge up to a sequence makes server 2.9 forget the deliveries after it. */
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
