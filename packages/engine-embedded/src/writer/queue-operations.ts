import type { SettingsTable } from '@signalbox/broker-core/engine'
import type { QueueLimit } from '@signalbox/broker-core/engine'
import { expiredTarget, queueLimitsOf } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { DELAYED } from '../store/damage.ts'
import type { MovedRow, QueueRow } from '../store/message-rows.ts'
import {
  CHANNEL,
  deadLetterRow,
  hasSourceTag,
  KEY,
  LAST_SEQUENCE,
  MOVED_COLUMNS,
  QUEUE_COLUMNS,
  QUEUE_PARAMETERS,
  RETURNED_COLUMNS,
  queueValues,
  SEQUENCE,
} from '../store/message-rows.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { ChannelTable } from './channel-table.ts'
import type { Deduplication } from './deduplication.ts'
import type {
  ExpireDelayedOperation,
  ExpireDelayedOperationResult,
  ExpireOperation,
  ExpireOperationResult,
  PlacedMessage,
  PromoteOperation,
  PromoteOperationResult,
  PurgeOperation,
  PurgeOperationResult,
  Release,
  ReleaseOperation,
  ReleaseOperationResult,
  SendOperation,
  SendOperationResult,
  SettleOperation,
  SettleOperationResult,
} from './operations.ts'
import type { QueueGroups } from './queue-groups.ts'
import { QueueRows } from './queue-rows.ts'
import type { FirstSend } from './recent-sends.ts'
import type { SkippedChannels } from './refusals.ts'
import { RefusedError, touching, touchingPart } from './refusals.ts'

interface QueueLimits {
  /** The maximum number of messages in a queue; 0 means unlimited. */
  readonly queueMaxMessages: number
  readonly queueMaxBytes: number
}

interface QueueOperationsParts {
  readonly groups: QueueGroups
  readonly limits: QueueLimits
  readonly settings: SettingsTable
  readonly skipped: SkippedChannels
}

const rangeOf = (table: string): string =>
  `SELECT ${SEQUENCE} AS sequence FROM ${table} WHERE key > ${KEY} AND key <= ${KEY} ORDER BY key LIMIT ?`

interface ExpiredRow {
  readonly receiveCount: number
  readonly deadLetterQueue: string
  readonly tags: string
}

interface PlaceRow {
  readonly channel: number
  readonly sequence: number
}

/** The writer's operations on queues. Each checks before it writes, so that a refused one writes nothing. */
export class QueueOperations {
  readonly #channels: ChannelTable
  readonly #deduplication: Deduplication
  readonly #limits: QueueLimits
  readonly #settings: SettingsTable
  readonly #skipped: SkippedChannels
  readonly #groups: QueueGroups
  readonly #rows: QueueRows
  readonly #insertDelayed
  readonly #select
  readonly #selectExpired
  readonly #setReceiveCount
  readonly #dueRows
  readonly #promote
  readonly #delay
  readonly #deleteDelayed
  readonly #nextDue
  readonly #expiredDelayed
  readonly #range
  readonly #delayedRange

  constructor(
    database: Database.Database,
    channels: ChannelTable,
    deduplication: Deduplication,
    { groups, limits, settings, skipped }: QueueOperationsParts,
  ) {
    this.#channels = channels
    this.#deduplication = deduplication
    this.#limits = limits
    this.#settings = settings
    this.#skipped = skipped
    this.#groups = groups
    this.#rows = new QueueRows(database, groups)
    this.#insertDelayed = database.prepare(
      `INSERT INTO delayed_messages (${QUEUE_COLUMNS}, due_at) VALUES (${QUEUE_PARAMETERS}, ?)`,
    )
    this.#select = database.prepare<[number, number], MovedRow>(
      `SELECT ${MOVED_COLUMNS} FROM queue_messages WHERE key = ${KEY}`,
    )
    this.#selectExpired = database.prepare<[number, number], ExpiredRow>(
      `SELECT receive_count AS receiveCount, dead_letter_queue AS deadLetterQueue, tags FROM queue_messages WHERE key = ${KEY}`,
    )
    this.#setReceiveCount = database.prepare<[number, number, number]>(
      `UPDATE queue_messages SET receive_count = ? WHERE key = ${KEY}`,
    )
    const notLeftAlone = `${CHANNEL} NOT IN (SELECT value FROM json_each(?))`
    this.#dueRows = database.prepare<[number, string, number], PlaceRow>(`
      SELECT ${CHANNEL} AS channel, ${SEQUENCE} AS sequence FROM delayed_messages
      WHERE due_at <= ? AND ${notLeftAlone} ORDER BY due_at, key LIMIT ?`)
    this.#promote = database.prepare<[number, number]>(
      `INSERT INTO queue_messages (${QUEUE_COLUMNS}) SELECT ${QUEUE_COLUMNS} FROM delayed_messages WHERE key = ${KEY}`,
    )
    this.#delay = database.prepare<[number, number, number, number]>(
      `INSERT INTO delayed_messages (${QUEUE_COLUMNS}, due_at)
      SELECT ${RETURNED_COLUMNS}, ? FROM queue_messages WHERE key = ${KEY}`,
    )
    this.#deleteDelayed = database.prepare<[number, number], { size: number }>(
      `DELETE FROM delayed_messages WHERE key = ${KEY} RETURNING size`,
    )
    this.#nextDue = database.prepare<[string], { due: number | null }>(
      `SELECT min(due_at) AS due FROM delayed_messages WHERE ${notLeftAlone}`,
    )
    this.#expiredDelayed = database.prepare<[number, string, number], PlaceRow>(`
      SELECT ${CHANNEL} AS channel, ${SEQUENCE} AS sequence FROM delayed_messages
      WHERE expires_at > 0 AND expires_at <= ? AND ${notLeftAlone} LIMIT ?`)
    this.#range = database.prepare<[number, number, number, number, number], { sequence: number }>(
      rangeOf('queue_messages'),
    )
    this.#delayedRange = database.prepare<[number, number, number, number, number], { sequence: number }>(
      rangeOf('delayed_messages'),
    )
  }

  /**
   * Writes the rows that {@link send} and {@link settle} collected. Call it before any other operation and before the
   * commit.
   */
  flush(): void {
    this.#rows.flush()
  }

  /** Drops the collected rows after a rollback. */
  discard(): void {
    this.#rows.discard()
  }

  /** Stores messages. @throws RefusedError QUEUE_FULL */
  send({ channel: name, now, messages }: SendOperation): SendOperationResult {
    const existing = this.#channels.get('queues', name)
    const message = messages[0]
    if (!message || messages.length > 1) return this.#sendMany(name, existing, messages, now)
    const first = existing && this.#firstOf(existing, message, now)
    if (first) return { kind: 'send', channelId: existing.id, sequences: [first.sequence], duplicates: [first.id] }
    this.#checkLimits(name, existing, 1, message.size)
    const channel = this.#channels.editOrCreate('queues', name)
    const { sequence } = this.#store(channel, message, now)
    return { kind: 'send', channelId: channel.id, sequences: [sequence], duplicates: undefined }
  }

  #firstOf(channel: StoredChannel, { deduplicationId }: QueueRow, now: number): FirstSend | undefined {
    return deduplicationId === undefined ? undefined : this.#deduplication.find(channel, deduplicationId, now)
  }

  #sendMany(
    name: string,
    existing: StoredChannel | undefined,
    messages: readonly QueueRow[],
    now: number,
  ): SendOperationResult {
    /** The first send of each id; undefined if it is in this batch. */
    const firstSends = new Map<string, FirstSend | undefined>()
    let count = 0
    let bytes = 0
    for (const message of messages) {
      const { deduplicationId, size } = message
      if (deduplicationId !== undefined) {
        if (firstSends.has(deduplicationId)) continue
        const first = existing && this.#firstOf(existing, message, now)
        firstSends.set(deduplicationId, first)
        if (first) continue
      }
      count++
      bytes += size
    }
    if (count > 0) this.#checkLimits(name, existing, count, bytes)
    const channel = this.#channels.editOrCreate('queues', name)
    const sequences: number[] = []
    const duplicates: (string | undefined)[] = []
    for (const message of messages) {
      const { deduplicationId } = message
      const first = deduplicationId === undefined ? undefined : firstSends.get(deduplicationId)
      const sent = first ?? this.#store(channel, message, now)
      if (deduplicationId !== undefined) firstSends.set(deduplicationId, sent)
      sequences.push(sent.sequence)
      duplicates.push(first?.id)
    }
    const hasDuplicates = duplicates.some((id) => id !== undefined)
    return { kind: 'send', channelId: channel.id, sequences, duplicates: hasDuplicates ? duplicates : undefined }
  }

  #checkLimits(name: string, channel: StoredChannel | undefined, count: number, bytes: number): void {
    if (!this.#settings.active && this.#limits.queueMaxMessages === 0 && this.#limits.queueMaxBytes === 0) return
    const limits = queueLimitsOf(this.#settings, name, this.#limits)
    // Messages that were acknowledged in this group free capacity.
    if (limits.messages.limit > 0 || limits.bytes.limit > 0) this.#rows.flush()
    const full = (has: string, { limit, setting }: QueueLimit, more: { messages: number } | { bytes: number }): Error =>
      new RefusedError(
        'QUEUE_FULL',
        `the queue ${JSON.stringify(name)} is full: it has ${has}, and the limit is ${limit} (${setting}); receive or purge messages, or raise the limit`,
        { channel: name, limit, ...more },
      )
    const held = channel ? channel.entries + channel.delayed : 0
    if (limits.messages.limit > 0 && held + count > limits.messages.limit) {
      throw full(`${held} messages`, limits.messages, { messages: held })
    }
    const heldBytes = channel?.bytes ?? 0
    if (limits.bytes.limit > 0 && heldBytes + bytes > limits.bytes.limit) {
      throw full(`${heldBytes} bytes, ${bytes} more were sent`, limits.bytes, { bytes: heldBytes })
    }
  }

  #store(channel: StoredChannel, message: QueueRow, now: number): FirstSend {
    const { id, size, dueAt, deduplicationId } = message
    const sequence = channel.lastSequence + 1
    if (dueAt === 0) {
      this.#rows.insert(channel.id, sequence, message)
      channel.entries++
    } else {
      this.#insertDelayed.run(channel.id, sequence, ...queueValues(message), dueAt)
      channel.delayed++
    }
    channel.lastSequence = sequence
    channel.bytes += size
    channel.incoming++
    channel.incomingBytes += size
    channel.lastActivity = Math.max(channel.lastActivity, now)
    const sent = { sequence, id, timestamp: now }
    if (deduplicationId !== undefined) this.#deduplication.remember(channel, deduplicationId, sent)
    return sent
  }

  settle({ channel: name, channelId, sequences }: SettleOperation): SettleOperationResult {
    const channel = this.#channels.get('queues', name)
    if (channel?.id !== channelId) return { kind: 'settle' }
    this.#channels.edit(channel)
    for (const sequence of sequences) this.#rows.deleteLater(channel, sequence)
    return { kind: 'settle' }
  }

  expire({ channel: name, channelId, now, sequences }: ExpireOperation): ExpireOperationResult {
    const channel = this.#channels.get('queues', name)
    if (channel?.id !== channelId) return { kind: 'expire', moved: [] }
    this.#channels.edit(channel)
    return { kind: 'expire', moved: sequences.flatMap((sequence) => this.#expireOne(channel, sequence, now) ?? []) }
  }

  /** Removes an expired message, or moves it; returns its new place. */
  #expireOne(channel: StoredChannel, sequence: number, now: number): PlacedMessage | undefined {
    const target = this.#expiredTarget(channel, sequence)
    if (target === undefined) {
      if (this.#rows.delete(channel, sequence)) channel.expired++
      return undefined
    }
    // It stays until its dead-letter queue can be written.
    const to = this.#channels.get('queues', target.deadLetterQueue)
    if (to && this.#skipped.hasId(to.id)) return undefined
    return this.#deadLetter(channel, { sequence, ...target, reason: 'expired' }, now)
  }

  #expiredTarget(
    channel: StoredChannel,
    sequence: number,
  ): Pick<Release, 'receiveCount' | 'deadLetterQueue'> | undefined {
    if (!this.#settings.uses('retention')) return undefined
    const row = touching(channel, () => this.#selectExpired.get(channel.id, sequence))
    if (!row) return undefined
    const { tags, receiveCount } = row
    const message = { ...row, channel: channel.name, isDeadLetter: hasSourceTag(tags) }
    const deadLetterQueue = expiredTarget(this.#settings, message)
    return deadLetterQueue === '' ? undefined : { receiveCount, deadLetterQueue }
  }

  release({ channel: name, channelId, now, releases }: ReleaseOperation): ReleaseOperationResult {
    const channel = this.#channels.get('queues', name)
    if (channel?.id !== channelId) return { kind: 'release', moved: [] }
    const moved: PlacedMessage[] = []
    for (const release of releases) {
      if (release.deadLetterQueue !== '') {
        const placed = this.#deadLetter(channel, release, now)
        if (placed) moved.push(placed)
      } else if (release.dueAt > 0) {
        this.#delayAgain(channel, release)
      } else {
        this.#setReceiveCount.run(release.receiveCount, channel.id, release.sequence)
      }
    }
    return { kind: 'release', moved }
  }

  /** Moves a message to the delayed ones; it keeps its sequence, and so its position. */
  #delayAgain(channel: StoredChannel, { sequence, receiveCount, dueAt }: Release): void {
    const { changes } = touching(channel, () => this.#delay.run(receiveCount, dueAt, channel.id, sequence))
    if (changes === 0) return
    this.#channels.edit(channel)
    const { bytes } = channel
    this.#rows.delete(channel, sequence)
    channel.bytes = bytes
    channel.delayed++
  }

  /**
   * Moves a message to its dead-letter queue in one transaction. No limit applies there, so that no message is lost. Its
   * age there begins now.
   */
  #deadLetter(from: StoredChannel, release: Omit<Release, 'dueAt'>, now: number): PlacedMessage | undefined {
    const row = touching(from, () => this.#select.get(from.id, release.sequence))
    if (!row) return undefined
    const tags = {
      dlq_source: from.name,
      dlq_reason: release.reason,
      dlq_receive_count: String(release.receiveCount),
    }
    const dead = touching(from, () => deadLetterRow({ ...row, timestamp: now }, tags))
    this.#channels.edit(from)
    this.#rows.delete(from, release.sequence)
    from.deadLettered++
    const to = this.#channels.editOrCreate('queues', release.deadLetterQueue)
    const sequence = to.lastSequence + 1
    touching(to, () => {
      this.#rows.insert(to.id, sequence, dead)
      // Flushes now, so that damage in the collected rows is not attributed to this message.
      this.#rows.flush()
    })
    to.lastSequence = sequence
    to.entries++
    to.bytes += row.size
    to.incoming++
    to.incomingBytes += row.size
    to.lastActivity = Math.max(to.lastActivity, now)
    return { channel: to.name, channelId: to.id, sequence }
  }

  promote({ now, limit }: PromoteOperation): PromoteOperationResult {
    const byId = this.#queuesById()
    const placed: PlacedMessage[] = []
    if (this.#skipped.hasPart(DELAYED)) return { kind: 'promote', placed, nextDue: undefined }
    const { ids } = this.#skipped
    for (const { channel: id, sequence } of this.#dueRows.all(now, ids, limit)) {
      const channel = byId.get(id)
      if (!channel) {
        this.#removeDelayed(id, sequence, undefined)
        continue
      }
      this.#makeDeliverable(channel, sequence)
      placed.push({ channel: channel.name, channelId: id, sequence })
    }
    return { kind: 'promote', placed, nextDue: this.#nextDue.get(ids)?.due ?? undefined }
  }

  #makeDeliverable(channel: StoredChannel, sequence: number): void {
    this.#channels.edit(channel)
    const { id } = channel
    touching(channel, () => {
      this.#promote.run(id, sequence)
      if (this.#groups.has(id)) this.#groups.add(id, sequence, this.#select.get(id, sequence)?.tags ?? '')
    })
    channel.bytes += this.#removeDelayed(id, sequence, channel)
    channel.entries++
  }

  expireDelayed({ now, limit }: ExpireDelayedOperation): ExpireDelayedOperationResult {
    const moved: PlacedMessage[] = []
    if (this.#skipped.hasPart(DELAYED)) return { kind: 'expireDelayed', moved }
    const byId = this.#queuesById()
    const rows = this.#expiredDelayed.all(now, this.#skipped.ids, limit)
    for (const { channel: id, sequence } of rows) {
      const channel = byId.get(id)
      if (channel && this.#settings.uses('retention')) {
        this.#makeDeliverable(channel, sequence)
        const placed = this.#expireOne(channel, sequence, now)
        if (placed) moved.push(placed)
        continue
      }
      if (channel) this.#channels.edit(channel)
      this.#removeDelayed(id, sequence, channel)
      if (channel) channel.expired++
    }
    return { kind: 'expireDelayed', moved }
  }

  /**
   * Deletes a delayed message's row and updates the counters of its channel, if the channel exists; returns the
   * message's size.
   */
  #removeDelayed(id: number, sequence: number, channel: StoredChannel | undefined): number {
    const remove = (): number => this.#deleteDelayed.get(id, sequence)?.size ?? 0
    const size = channel ? touching(channel, remove) : touchingPart(DELAYED, id, remove)
    if (channel) {
      channel.delayed--
      channel.bytes -= size
    }
    return size
  }

  #queuesById(): Map<number, StoredChannel> {
    const byId = new Map<number, StoredChannel>()
    for (const channel of this.#channels.all('queues')) byId.set(channel.id, channel)
    return byId
  }

  purge({ channel: name, channelId, delayed, after, upTo, limit, except }: PurgeOperation): PurgeOperationResult {
    const channel = this.#channels.get('queues', name)
    if (channel?.id !== channelId) return { kind: 'purge', removed: 0, next: undefined }
    this.#channels.edit(channel)
    const kept = new Set(except)
    const range = delayed ? this.#delayedRange : this.#range
    const rows = range.all(channel.id, after, channel.id, Math.min(upTo, LAST_SEQUENCE), limit)
    let removed = 0
    for (const { sequence } of rows) {
      if (kept.has(sequence)) continue
      if (delayed) this.#removeDelayed(channel.id, sequence, channel)
      else this.#rows.delete(channel, sequence)
      removed++
    }
    return { kind: 'purge', removed, next: rows.length < limit ? undefined : rows.at(-1)?.sequence }
  }
}
