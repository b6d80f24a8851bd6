import type { SettleResult } from '@signalbox/broker-core/engine'
import {
  BrokerError,
  decodeQueueMessage,
  isBrokerError,
  messageSize,
  returnOf,
  unavailable,
} from '@signalbox/broker-core/engine'
import type { Ending } from '@signalbox/broker-core/internal'
import { MAX_TIMER_MS, SettledReceipts } from '@signalbox/broker-core/internal'
import type { Msg } from '@nats-io/transport-node'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import { isNoResponders } from '../errors.ts'
import { jsonOf } from '../json.ts'
import type { Parts } from '../parts.ts'
import { failure, runInBackground } from '../problems.ts'
import { ackSubject } from '../pulls.ts'
import { consumerOf } from '../streams.ts'
import { partitionOf } from '../subjects.ts'
import type { Disposal } from './deliveries.ts'
import { receivedMessageOf } from './deliveries.ts'
import type { Lease, LeaseKeeper, Leases, Receipt, Receipts } from './leases.ts'

/** A request of the holder of a receipt: how its message is to be settled. */
const SETTLE_REQUEST = Type.Union([
  Type.Object({ what: Type.Literal('ack') }),
  Type.Object({
    what: Type.Literal('nack'),
    delayMs: Type.Optional(Type.Integer({ minimum: 0 })),
    reject: Type.Optional(Type.Boolean()),
  }),
  Type.Object({ what: Type.Literal('extend'), leaseMs: Type.Number({ exclusiveMinimum: 0 }) }),
])

type SettleRequest = Static<typeof SETTLE_REQUEST>

/** A receipt that was sent to a node that does not own its lease. */
const FORWARDED_RECEIPT = Type.Object({ receipt: Type.String(), clientId: Type.String(), wish: SETTLE_REQUEST })

/** The answer of another node that did not settle the receipt, and whose lease continues. */
const REFUSED_RECEIPT = Type.Object({
  refused: Type.Union([
    Type.Literal('NO_DEAD_LETTER_QUEUE'),
    Type.Literal('QUEUE_FULL'),
    Type.Literal('CHANNEL_LIMIT'),
    Type.Literal('MESSAGE_TOO_LARGE'),
  ]),
  message: Type.String(),
})

type ReceiptState = 'settled' | 'lost' | 'moved'

/** The reasons of ENGINE_UNAVAILABLE for a settlement that may have been applied. */
const DOUBTS = {
  ack: 'the message may be acknowledged',
  nack: 'the message may be returned to its queue',
  extend: 'the lease may be extended',
} as const

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
  readonly #settled = new SettledReceipts(() => Date.now())

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
    const forwarded = jsonOf(FORWARDED_RECEIPT, message.string())
    if (!forwarded) return
    try {
      const { receipt, clientId, wish: request } = forwarded
      message.respond(await this.#settleIfHere(receipt, clientId, request))
    } catch (error) {
      if (isRefusal(error)) {
        message.respond(JSON.stringify({ refused: error.code, message: error.message }))
        return
      }
      this.#parts.settings.onProblem(failure('settling a receipt for another node', error))
      message.respond('unavailable')
    }
  }

  async settle(receipts: readonly string[], clientId: string, request: SettleRequest): Promise<SettleResult> {
    const all = [...new Set(receipts)]
    if (request.what === 'nack' && request.reject === true) await this.#assertRejectable(all, clientId)
    const settled = await Promise.all(all.map((receipt) => this.#settle(receipt, clientId, request)))
    return { settled: settled.filter(Boolean).length, lost: all.filter((_, i) => settled[i] !== true) }
  }

  /** Refuses a call before any of its receipts is settled. @throws BrokerError NO_DEAD_LETTER_QUEUE */
  async #assertRejectable(receipts: readonly string[], clientId: string): Promise<void> {
    const check = async (receipt: string): Promise<void> => {
      const read = this.#receipts.read(receipt)
      if (!read || read.clientId !== clientId) return
      const isHere = read.node === this.#parts.node
      const lease = this.#leases.get(receipt) ?? (isHere ? undefined : await this.#orphan(receipt, read))
      if (typeof lease !== 'object') return
      returnOf(this.#parts.channelSettings, receivedMessageOf(lease.delivery), { reject: true })
    }
    await Promise.all(receipts.map(check))
  }

  async #settle(receipt: string, clientId: string, request: SettleRequest): Promise<boolean> {
    const read = this.#receipts.read(receipt)
    if (!read || read.clientId !== clientId) return false
    const { node } = this.#parts
    if (!this.#leases.get(receipt) && read.node !== node) return this.#settleFrom(read.node, 0, receipt, read, request)
    const answer = await this.#settleIfHere(receipt, clientId, request)
    if (answer !== 'moved') return answer === 'settled'
    const holder = await this.#claims.holder(read)
    return !holder || holder.node === node
      ? false
      : this.#settleFrom(holder.node, holder.revision, receipt, read, request)
  }

  /**
   * Settles a receipt if this node owns its lease, or repeats the answer if this node has settled it; returns `moved`
   * when another node may own it.
   */
  async #settleIfHere(receipt: string, clientId: string, request: SettleRequest): Promise<ReceiptState> {
    for (;;) {
      const lease = this.#leases.get(receipt)
      if (!lease || lease.clientId !== clientId) break
      const isOurs = await this.#claims.isOurs(lease)
      if (lease.settling || this.#leases.get(receipt) !== lease) {
        // The receipt is being settled: the result decides about this call too.
        await lease.settling?.catch(() => {})
        continue
      }
      if (isOurs) {
        await this.#settleHere(lease, request)
        return 'settled'
      }
      this.#leases.take(receipt, clientId)
    }
    const before = this.#settled.recall(receipt, clientId)
    if (before === 'dropped') throw unavailable(DOUBTS.ack)
    if (before !== undefined) return before === request.what ? 'settled' : 'lost'
    // If this node was always reachable, no other node took over any of its leases.
    return this.#parts.peers.livenessEpoch === 0 ? 'lost' : 'moved'
  }

  async #settleHere(lease: Lease, request: SettleRequest): Promise<void> {
    lease.settling = request.what === 'extend' ? this.#extend(lease, request.leaseMs) : this.#end(lease, request)
    try {
      await lease.settling
    } finally {
      lease.settling = undefined
      if (lease.deadline <= Date.now()) this.#leases.resume(lease)
    }
  }

  async #end(lease: Lease, request: Exclude<SettleRequest, { what: 'extend' }>): Promise<void> {
    const { receipt, clientId, delivery, tried } = lease
    const ending: Ending = request.what
    // The servers may still apply what was tried before, so another ending has no certain result.
    if (lease.tried !== undefined && lease.tried !== ending) throw unavailable(DOUBTS[lease.tried])
    lease.tried = ending
    try {
      if (request.what === 'ack') await this.#disposal.remove(delivery)
      else await this.#disposal.returnMessage(delivery, request)
    } catch (error) {
      if (isRefusal(error)) {
        lease.tried = tried
        throw error
      }
      // The holder may try again until the lease ends. After it, the servers deliver the message again.
      if (lease.deadline <= Date.now()) this.#leases.take(receipt, clientId)
      throw unavailable(DOUBTS[ending], { cause: error })
    }
    this.#leases.take(receipt, clientId)
    this.#settled.remember(receipt, clientId, ending, lease.deadline)
  }

  /** The servers first: otherwise they could deliver the message to others before the new deadline. */
  async #extend(lease: Lease, leaseMs: number): Promise<void> {
    if (lease.tried !== undefined) throw unavailable(DOUBTS[lease.tried])
    await this.#keeper.holdUntil(lease, Date.now() + leaseMs)
    this.#leases.extend(lease.receipt, lease.clientId, Date.now() + leaseMs)
  }

  /** Settles a receipt on the node that owns the lease, or on this node if the owner is gone. */
  async #settleFrom(
    from: string,
    atRevision: number,
    receipt: string,
    read: Receipt,
    request: SettleRequest,
  ): Promise<boolean> {
    const { connection } = this.#parts
    let [holder, revision] = [from, atRevision]
    for (let hop = 0; hop < HOPS; hop++) {
      const answer = await this.#ask(holder, receipt, read.clientId, request)
      if (answer === 'settled' || answer === 'lost') return answer === 'settled'
      const recorded = await this.#claims.holder(read)
      if (recorded && recorded.node !== holder) {
        ;[holder, revision] = [recorded.node, recorded.revision]
        continue
      }
      if (answer === 'moved') return false
      // A node that is gone no longer owns the lease.
      const lease = await this.#orphan(receipt, read)
      if (lease === 'queue deleted') return false
      if (lease === 'gone') return this.#isGone(read, request)
      if (read.deadline <= Date.now()) return false
      if (await this.#claims.claim(read, revision)) {
        this.#leases.grant(lease)
        this.#keeper.hold(lease)
        this.#claims.forgetLater(read)
        await this.#settleHere(lease, request)
        return true
      }
      await connection.ready()
    }
    throw unavailable(DOUBTS[request.what])
  }

  /**
   * Decides about a message that is gone, and whose owner too. Until the end of its lease nothing but this receipt, or
   * an operator, removes a message, so an ack is in effect. A lease that the owner extended may last longer than the
   * receipt says.
   */
  #isGone(read: Receipt, request: SettleRequest): true {
    if (request.what === 'ack' && read.deadline > Date.now()) return true
    throw unavailable(DOUBTS.ack)
  }

  /**
   * Resolves with undefined when the node no longer answers.
   * @throws BrokerError ENGINE_UNAVAILABLE when the node lives, and its answer is not known
   */
  async #ask(
    holder: string,
    receipt: string,
    clientId: string,
    request: SettleRequest,
  ): Promise<ReceiptState | undefined> {
    const { peers, node } = this.#parts
    if (holder === node) return this.#settleIfHere(receipt, clientId, request)
    const content = JSON.stringify({ receipt, clientId, wish: request })
    let isRepeated = false
    for (const until = Date.now() + this.#parts.settings.requestTimeoutMs; ; isRepeated = true) {
      try {
        const said = await this.#request(holder, content)
        if (said === 'settled' || said === 'moved') return said
        // A node of an earlier version forgets what it settled for the first request.
        if (said === 'lost' && !isRepeated) return said
      } catch (error) {
        if (isRefusal(error)) throw error
        // A node that is stopping may have dropped the request.
        if (isNoResponders(error) || !peers.isAlive(holder)) return undefined
        if (Date.now() < until) continue
      }
      throw unavailable(DOUBTS[request.what])
    }
  }

  async #request(holder: string, content: string): Promise<string> {
    const { connection, subjects } = this.#parts
    const answer = await connection.request(subjects.node(holder, 'settle'), content, { timeout: ASK_MS })
    const said = answer.string()
    const refusal = said.startsWith('{') ? jsonOf(REFUSED_RECEIPT, said) : undefined
    if (refusal) throw new BrokerError(refusal.refused, refusal.message)
    return said
  }

  /** Rebuilds the lease of a node that is gone. */
  async #orphan(receipt: string, read: Receipt): Promise<Lease | 'gone' | 'queue deleted'> {
    const { messages, peers, storedChannels } = this.#parts
    const channel = storedChannels.byIncarnation(read.queue)
    if (!channel) return 'queue deleted'
    const message = await messages.get(channel.stream, { seq: read.sequence })
    const record = message && decodeQueueMessage(message.data)
    if (!record) return 'gone'
    const { sequence, delivery, receiveCount, clientId, deadline } = read
    return {
      receipt,
      clientId,
      deadline,
      // This node does not know how long the servers withhold the message.
      heldUntil: 0,
      livenessEpoch: peers.livenessEpoch,
      delivery: {
        channel,
        record,
        sequence,
        delivery,
        ackSubject: ackSubject(channel.stream, consumerOf(partitionOf(message.subject)), sequence, delivery),
        timestamp: message.timestamp,
        receiveCount,
        uncounted: 0,
        recorded: true,
        size: messageSize(record.message),
        arrivedAt: Date.now(),
      },
    }
  }
}

/** Returns whether a settlement was refused, and has changed nothing. */
function isRefusal(error: unknown): error is BrokerError {
  return isBrokerError(error) && error.code !== 'ENGINE_UNAVAILABLE'
}

/**
 * The time after the end of a lease from which a node no longer acts on it, because the servers have ended
 * it, in milliseconds.
 */
const LATE_MS = 60_000

/** The delivery that a lease belongs to. */
type Claimed = Pick<Receipt, 'queue' | 'sequence' | 'delivery' | 'deadline'>

/**
 * The ownership of leases. The node that granted a lease owns it until another node finds that node gone and
 * writes a record; if several nodes do, the first one owns it.
 */
export class LeaseClaims {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  #key({ queue, sequence, delivery }: Claimed): string {
    return this.#parts.subjects.keyedRecord('t', queue, `${sequence}-${delivery}`)
  }

  /**
   * Returns the node that took the lease over, and the record's revision; undefined if no node did. @throws
   * BrokerError ENGINE_UNAVAILABLE
   */
  async holder(claimed: Claimed): Promise<{ readonly node: string; readonly revision: number } | undefined> {
    const record = await this.#parts.keyedRecords.get(this.#key(claimed))
    return record && { node: record.text, revision: record.revision }
  }

  /**
   * Takes the lease over. Returns false if the record has another revision by now. @throws BrokerError
   * ENGINE_UNAVAILABLE
   */
  claim(claimed: Claimed, revision: number): Promise<boolean> {
    return this.#parts.keyedRecords.put(this.#key(claimed), this.#parts.node, revision)
  }

  /**
   * Returns true when this node still owns a lease. Another node may have taken it over while this one was
   * cut off or suspended.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async isOurs(lease: Lease): Promise<boolean> {
    const { connection, peers, node } = this.#parts
    await connection.ready()
    const { livenessEpoch } = peers
    if (lease.livenessEpoch === livenessEpoch) return true
    if (Date.now() > lease.deadline + LATE_MS) return false
    const { channel, sequence, delivery } = lease.delivery
    const claimed = { queue: channel.incarnation, sequence, delivery, deadline: lease.deadline }
    const isOurs = (await this.claim(claimed, 0)) || (await this.holder(claimed))?.node === node
    if (!isOurs) return false
    lease.livenessEpoch = livenessEpoch
    this.forgetLater(claimed)
    return true
  }

  /**
   * Removes the record later: it must last as long as a client may send the receipt, and as the former owner
   * may still act on the lease.
   */
  forgetLater(claimed: Claimed): void {
    const forget = (): void => {
      const removed = this.#parts.keyedRecords.remove(this.#key(claimed))
      runInBackground(this.#parts.settings.onProblem, 'removing the record of a lease', removed)
    }
    const left = claimed.deadline + 2 * LATE_MS - Date.now()
    setTimeout(forget, Math.min(MAX_TIMER_MS, Math.max(0, left))).unref()
  }

  /** Removes the records of a deleted queue. */
  async forget({ incarnation }: StoredChannel): Promise<void> {
    await this.#parts.keyedRecords.remove(this.#parts.subjects.keyedRecord('t', incarnation, '>'))
  }
}
