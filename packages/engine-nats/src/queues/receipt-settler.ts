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

/** The way in which the holder of a receipt settles its message. */
const WISH = Type.Union([
  Type.Object({ what: Type.Union([Type.Literal('ack'), Type.Literal('nack')]) }),
  Type.Object({ what: Type.Literal('extend'), leaseMs: Type.Number({ exclusiveMinimum: 0 }) }),
])

type Wish = Static<typeof WISH>

/** A receipt that was sent to a node that does not own its lease. */
const SHOWN = Type.Object({ receipt: Type.String(), clientId: Type.String(), wish: WISH })

type ReceiptState = 'settled' | 'lost' | 'moved'

/** The maximum number of nodes that are asked for a receipt, while nodes come and go. */
const HOPS = 4
/** The time that another node has to answer before its liveness is checked, in milliseconds. */
const ASK_MS = 1_000

/**
 * Settles leases of all nodes. The node that granted a lease settles it as long as it can be reached;
 * otherwise another node takes the lease over.
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

  /** Settles receipts for other nodes. */
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
        message: `settling a receipt for another node failed: ${messageOf(error)}`,
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

  /** Settles a receipt if this node owns its lease; returns `moved` when another node may own it. */
  async #settleIfHere(receipt: string, clientId: string, wish: Wish): Promise<ReceiptState> {
    const lease = this.#leases.get(receipt)
    if (lease && (await this.#claims.isOurs(lease))) {
      return (await this.#settleHere(receipt, clientId, wish)) ? 'settled' : 'lost'
    }
    if (lease) this.#leases.take(receipt, lease.clientId)
    // If this node was always reachable, no other node took over any of its leases.
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
      // The message's state is unknown: the holder may try again until the lease ends.
      if (lease.deadline > Date.now()) this.#leases.grant(lease)
      throw error
    }
  }

  /** The servers first: otherwise they could deliver the message to others before the new deadline. */
  async #extendHere(receipt: string, clientId: string, leaseMs: number): Promise<boolean> {
    const lease = this.#leases.get(receipt)
    if (lease?.clientId !== clientId) return false
    await this.#keeper.holdUntil(lease, Date.now() + leaseMs)
    return this.#leases.extend(receipt, clientId, Date.now() + leaseMs) !== undefined
  }

  /** Settles a receipt on the node that owns the lease, or on this node if the owner is gone. */
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
      // A node that is gone no longer owns the lease.
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

  /** Resolves with undefined when the node no longer answers. */
  async #ask(holder: string, receipt: string, clientId: string, wish: Wish): Promise<ReceiptState | undefined> {
    const { connection, peers, node } = this.#parts
    if (holder === node) return (await this.#settleHere(receipt, clientId, wish)) ? 'settled' : 'lost'
    try {
      const content = JSON.stringify({ receipt, clientId, wish })
      const answer = await this.#request(holder, content)
      const said = answer.string()
      if (said === 'settled' || said === 'lost' || said === 'moved') return said
      return await connection.call(() => Promise.reject(new Error('another node failed to settle the receipt')))
    } catch (error) {
      // A node that is stopping may have dropped the request.
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

  /** Rebuilds the lease of a node that is gone; undefined if the lease is over. */
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
      // This node does not know how long the servers withhold the message.
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
