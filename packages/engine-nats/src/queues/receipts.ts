import { unavailable } from '@signalbox/broker-core/engine'
import { Buffer } from 'node:buffer'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

import type { KeyedRecords } from '../keyed-records.ts'
import type { Subjects } from '../subjects.ts'

/** The content of a receipt. A MAC proves that a node wrote it. */
export interface Receipt {
  /** The incarnation of the queue. */
  readonly queue: string
  readonly sequence: number
  readonly delivery: number
  /** The node that granted the lease. */
  readonly node: string
  /** The end of the lease as it was granted, in milliseconds since the epoch. */
  readonly deadline: number
  readonly receiveCount: number
  readonly clientId: string
}

const KEY_BYTES = 32
const MAC_BYTES = 16
const MAX_LENGTH = 2_048

/** Writes and reads receipts. All nodes share the key, which the cluster stores. */
export class Receipts {
  readonly #key: Buffer

  private constructor(key: Buffer) {
    this.#key = key
  }

  static async open(keyedRecords: KeyedRecords, subjects: Subjects): Promise<Receipts> {
    const subject = subjects.keyedRecord('key')
    await keyedRecords.put(subject, randomBytes(KEY_BYTES).toString('base64url'), 0)
    const record = await keyedRecords.get(subject)
    const key = Buffer.from(record?.text ?? '', 'base64url')
    // With an empty key any client could write receipts.
    if (key.byteLength !== KEY_BYTES) throw unavailable(`the key of receipts (${subject}) cannot be read; restore it`)
    return new Receipts(key)
  }

  write(receipt: Receipt): string {
    const { queue, sequence, delivery, node, deadline, receiveCount, clientId } = receipt
    const text = Buffer.from(JSON.stringify([queue, sequence, delivery, node, deadline, receiveCount, clientId]))
    return Buffer.concat([this.#mac(text), text]).toString('base64url')
  }

  /** Reads a receipt. Returns undefined for a text that no node wrote in exactly this form. */
  read(text: string): Receipt | undefined {
    if (text.length > MAX_LENGTH) return undefined
    const bytes = Buffer.from(text, 'base64url')
    if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== text) return undefined
    const content = bytes.subarray(MAC_BYTES)
    if (!timingSafeEqual(bytes.subarray(0, MAC_BYTES), this.#mac(content))) return undefined
    const parts: unknown = JSON.parse(content.toString())
    if (!Array.isArray(parts)) return undefined
    const [queue, sequence, delivery, node, deadline, receiveCount, clientId] = parts.map(String)
    if (queue === undefined || node === undefined || clientId === undefined) return undefined
    return {
      queue,
      sequence: Number(sequence),
      delivery: Number(delivery),
      node,
      deadline: Number(deadline),
      receiveCount: Number(receiveCount),
      clientId,
    }
  }

  #mac(content: Uint8Array): Buffer {
    return createHmac('sha256', this.#key).update(content).digest().subarray(0, MAC_BYTES)
  }
}
