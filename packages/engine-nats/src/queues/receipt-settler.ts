import type { SettleResult } from '@signalbox/broker-core/engine'
import { messageSize } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'
import type { Msg } from '@nats-io/transport-node'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { isNoResponders } from '../errors.ts'
import { jsonOf } from '../json.ts'
import type { Parts } from '../parts.ts'
import { QUEUE_CONSUMER } from '../streams.ts'
import { ackSubject } from './ack-subject.ts'
import type { Disposal } from './disposal.ts'
import type { LeaseClaims } from './lease-claims.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import type { Lease, Leases } from './leases.ts'
import { readRecord } from './queue-record.ts'
import type { Receipt, Receipts } from './receipts.ts'

/** What somebody who holds a message wants done with it. */
const WISH = Type.Union([
  Type.Object({ what: Type.Union([Type.Literal('ack'), Type.Literal('nack')]) }),
  Type.Object({ what: Type.Literal('extend'), leaseMs: Type.Number({ exclusiveMinimum: 0 }) }),
])

type Wish = Static<typeof WISH>

/** A receipt that was shown to another node than the one that has its lease. */
const SHOWN = Type.Object({ receipt: Type.String(), clientId: Type.String(), wish: WISH })

type ReceiptState = 'settled' | 'lost' | 'moved'

/** How often a receipt is followed from node to node, while they come and go. */
const HOPS = 4
/** How long another node may take to answer before it is asked whether it is still there, in milliseconds. */
const ASK_MS = 1_000

/**
 * Settles leases, wherever they were granted. The node that granted a lease decides about it as long as it can be
 * reached; then some other node takes over the say.
 */
export class ReceiptSettler {
  readonly #parts: Parts
  readonly #leases: Leases
  readonly #keeper: LeaseKeeper
  readonly #receipts: Receipts
  readonly #disposal: Disposal
  readonly #claims: LeaseClaims

  constructor(
    parts: Parts,
    leases: Leases,
    keeper: LeaseKeeper,
    receipts: Receipts,
    disposal: Disposal,
    claims: LeaseClaims,
  ) {
    this.#parts = parts
    this.#leases = leases
    this.#keeper = keeper
    this.#receipts = receipts
    this.#disposal = disposal
    this.#claims = claims
  }

  /** Serves the receipts that other nodes are shown. */
  start(): void {
    const { connection, subjects, node } = this.#parts
    connection.listen(subjects.node(node, 'settle'), (message) => this.#answer(message))
  }

  async #answer(message: Msg): Promise<void> {
    const shown = jsonOf(SHOWN, message.string())
    if (!shown) return
    try {
      const { receipt, clientId, wish } = shown
      message.respond(await this.#settleIfHere(receipt, clientId, wish))
    } catch (error) {
      this.#parts.settings.onProblem({
        kind: 'failed',
        message: `settling for another node: ${messageOf(error)}`,
        error,
      })
      message.respond('unavailable')
    }
  }

  async settle(receipts: readonly string[], clientId: string, wish: Wish): Promise<SettleResult> {
    const all = [...new Set(receipts)]
    const settled = await Promise.all(all.map((receipt) => this.#settle(receipt, clientId, wish)))
    return { settled: settled.filter(Boolean).length, lost: all.filter((_, i) => settled[i] !== true) }
  }

  async #settle(receipt: string, clientId: string, wish: Wish): Promise<boolean> {
    const read = this.#receipts.read(receipt)
    if (!read || read.clientId !== clientId) return false
    const { node } = this.#parts
    if (!this.#leases.get(receipt) && read.node !== node) return this.#settleFrom(read.node, 0, receipt, read, wish)
    const answer = await this.#settleIfHere(receipt, clientId, wish)
    if (answer !== 'moved') return answer === 'settled'
    const holder = await this.#claims.holder(read)
    return !holder || holder.node === node ? false : this.#settleFrom(holder.node, holder.revision, receipt, read, wish)
  }

  /** What this node says of a receipt: `moved` when another one may have its lease by now. */
  async #settleIfHere(receipt: string, clientId: string, wish: Wish): Promise<ReceiptState> {
    const lease = this.#leases.get(receipt)
    if (lease && (await this.#claims.isOurs(lease))) {
      return (await this.#settleHere(receipt, clientId, wish)) ? 'settled' : 'lost'
    }
    if (lease) this.#leases.take(receipt, lease.clientId)
    // Of what it granted and does not have, nobody else took anything over while it was never out of reach.
    return this.#parts.peers.tenure === 0 ? 'lost' : 'moved'
  }

  async #settleHere(receipt: string, clientId: string, wish: Wish): Promise<boolean> {
    if (wish.what === 'extend') return this.#extendHere(receipt, clientId, wish.leaseMs)
    const lease = this.#leases.take(receipt, clientId)
    if (!lease) return false
    try {
      if (wish.what === 'ack') await this.#disposal.remove(lease.delivery)
      else await this.#disposal.giveBack(lease.delivery)
      return true
    } catch (error) {
      // Nothing is known to have happened: the holder may try again for the rest of the lease.
      if (lease.deadline > Date.now()) this.#leases.grant(lease)
      throw error
    }
  }

  /** The servers first: a lease that they do not know to be longer would not be its holder's alone. */
  async #extendHere(receipt: string, clientId: string, leaseMs: number): Promise<boolean> {
    const lease = this.#leases.get(receipt)
    if (lease?.clientId !== clientId) return false
    await this.#keeper.holdUntil(lease, Date.now() + leaseMs)
    return this.#leases.extend(receipt, clientId, Date.now() + leaseMs) !== undefined
  }

  /** At the node that has the lease, by what is known, or here if that node is no more. */
  async #settleFrom(from: string, atRevision: number, receipt: string, read: Receipt, wish: Wish): Promise<boolean> {
    const { connection } = this.#parts
    let [holder, revision] = [from, atRevision]
    for (let hop = 0; hop < HOPS; hop++) {
      const answer = await this.#ask(holder, receipt, read.clientId, wish)
      if (answer === 'settled' || answer === 'lost') return answer === 'settled'
      if (answer === 'moved') {
        const recorded = await this.#claims.holder(read)
        if (!recorded || recorded.node === holder) return false
        ;[holder, revision] = [recorded.node, recorded.revision]
        continue
      }
      // A node that is gone cannot have the say.
      const lease = await this.#orphan(receipt, read)
      if (!lease) return false
      if (await this.#claims.claim(read, revision)) {
        this.#leases.grant(lease)
        this.#keeper.hold(lease)
        this.#claims.forgetLater(read)
        return this.#settleHere(receipt, read.clientId, wish)
      }
      const found = await this.#claims.holder(read)
      ;[holder, revision] = [found?.node ?? read.node, found?.revision ?? 0]
      await connection.ready()
    }
    return false
  }

  /** Undefined when the node does not answer any more. */
  async #ask(holder: string, receipt: string, clientId: string, wish: Wish): Promise<ReceiptState | undefined> {
    const { connection, peers, node } = this.#parts
    if (holder === node) return (await this.#settleHere(receipt, clientId, wish)) ? 'settled' : 'lost'
    try {
      const content = JSON.stringify({ receipt, clientId, wish })
      const answer = await this.#request(holder, content)
      const said = answer.string()
      if (said === 'settled' || said === 'lost' || said === 'moved') return said
      return await connection.call(() => Promise.reject(new Error('of another node')))
    } catch (error) {
      // A node that is just going may have taken the question with it.
      if (isNoResponders(error) || !peers.isAlive(holder)) return undefined
      throw error
    }
  }

  async #request(holder: string, content: string): Promise<Msg> {
    const { connection, subjects, peers } = this.#parts
    const until = Date.now() + this.#parts.settings.requestTimeoutMs
    for (;;) {
      try {
        return await connection.request(subjects.node(holder, 'settle'), content, { timeout: ASK_MS })
      } catch (error) {
        if (isNoResponders(error) || !peers.isAlive(holder) || Date.now() >= until) throw error
      }
    }
  }

  /** The lease of a node that is gone, if it is not over. */
  async #orphan(receipt: string, read: Receipt): Promise<Lease | undefined> {
    const { messages, peers, storedChannels } = this.#parts
    if (read.deadline <= Date.now()) return undefined
    const channel = storedChannels.byIncarnation(read.queue)
    const message = channel && (await messages.get(channel.stream, { seq: read.sequence }))
    const record = message && readRecord(message.data)
    if (!channel || !record) return undefined
    const { sequence, delivery, receiveCount, clientId, deadline } = read
    return {
      receipt,
      clientId,
      deadline,
      // How long the servers hold it is not known here.
      heldUntil: 0,
      tenure: peers.tenure,
      delivery: {
        channel,
        record,
        sequence,
        delivery,
        ackSubject: ackSubject(channel.stream, QUEUE_CONSUMER, sequence, delivery),
        timestamp: message.timestamp,
        receiveCount,
        uncounted: 0,
        recorded: true,
        size: messageSize(record.envelope),
        arrivedAt: Date.now(),
      },
    }
  }
}
