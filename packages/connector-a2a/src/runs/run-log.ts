import { randomUUID } from 'node:crypto'

import type { BrokerHandle, MessageInput, StoredEvent } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { KeyedLog } from '@signalbox/broker-core/internal'

import type { AgentReply } from '../requests/agent-reply.ts'
import { decodeAgentReply, encodeAgentReply } from '../requests/agent-reply.ts'
import { streamChannel } from '../stream/link/messages.ts'
import type { WireVersion } from '../wire/index.ts'

/** The events store of the chunks, with the key `{run}/{number}`. */
const CHANNEL = '_AGENTS_.run-log'

/** The retention of the events of runs. */
export interface RunLogRetention {
  /** The time for which events are kept, in ms (CONNECTORSA2_A_LOG_SECONDS). */
  readonly maxAgeMs: number
  /** The most bytes of all events (CONNECTORSA2_A_LOG_BYTES). */
  readonly maxBytes: number
}

/** The request that a run answers: its agent, and its caller. */
export interface RunOrigin {
  readonly agentId: string
  /** The ClientID of the caller, who alone may read the run. */
  readonly callerId: string
}

/** Some events of a run, in order, or its plain answer: the unit in which they are written. */
export interface RunChunk extends RunOrigin {
  /** 1, 2, 3 … for each run. */
  readonly number: number
  /** The sequence of the first event that begins in this chunk, or after it; sequences begin at 1. */
  readonly first: number
  /** The version of A2A that the content is in; undefined for an agent's own dialect. */
  readonly wire: WireVersion | undefined
  /** The task of the run, once it is known. */
  readonly taskId: string | undefined
  /** The events as server-sent events, one or more, or a part of a large one; or the body of `reply`. */
  readonly body: Uint8Array
  /** True if the one event of this chunk continues in the next one. */
  readonly more: boolean
  /** True if this chunk continues the event of the one before. */
  readonly continues: boolean
  /** True if the run has no further events. */
  readonly end: boolean
  /** The plain answer of the agent, in place of events. */
  readonly reply?: AgentReply | undefined
  /** Present if a lessee of an inbox wrote the events. */
  readonly delivery?: ChunkDelivery | undefined
  /** The time at which the engine accepted it, in ms since the epoch; undefined before that. */
  readonly writtenAt?: number
}

/** The part of a chunk that shows a lessee which of its events were accepted. */
export interface ChunkDelivery {
  /** The digest of the lessee's receipt. */
  readonly lease: string
  /** The number of events of this delivery, up to this chunk. */
  readonly accepted: number
  /** The bytes of all events of the task, up to this chunk. */
  readonly total: number
}

/** The position of an event in a run. */
export interface RunCursor {
  readonly run: string
  /** The sequence of the event, from 1; 0 is before the first one. */
  readonly sequence: number
}

const CURSOR = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d{1,9})$/

/** Returns the id that an event has for its reader. */
export function cursorText({ run, sequence }: RunCursor): string {
  return `${run}.${sequence}`
}

/** Parses the id of an event; undefined if it is not one. */
export function parseCursor(text: string): RunCursor | undefined {
  const [, run, sequence] = CURSOR.exec(text) ?? []
  return run === undefined ? undefined : { run, sequence: Number(sequence) }
}

/**
 * Returns the id of a new run: of its log, and of its stream. It begins with the time, as a UUID of version 7 does:
 * runs of the same time are then neighbors in the index of the store, and share the pages that it writes.
 */
export function newRun(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/**
 * The durable events of all runs. A run is one request to an agent, with its events or its answer. Its chunks are
 * written by one node at a time: each under the condition that no node has written one with its number.
 */
export class RunLog {
  readonly #system: BrokerHandle
  readonly #log: KeyedLog
  readonly #appended: (chunk: RunChunk) => void

  /** @param appended Called with each chunk that this node has written */
  constructor(system: BrokerHandle, retention: RunLogRetention, appended: (chunk: RunChunk) => void = () => {}) {
    this.#system = system
    this.#appended = appended
    this.#log = new KeyedLog(system, CHANNEL, retention)
  }

  /**
   * Writes a chunk, and then sends it to the readers of the run. Resolves when it is durable, with false if another
   * node has written a chunk with this number: the run is that node's.
   * @throws BrokerError ENGINE_UNAVAILABLE, MESSAGE_TOO_LARGE
   */
  async append(run: string, chunk: RunChunk): Promise<boolean> {
    const message = encodeChunk(chunk)
    try {
      await this.#log.write(keyOf(run, chunk.number), message, 0)
    } catch (error) {
      if (isBrokerError(error, 'CONFLICT')) return false
      throw error
    }
    this.#appended(chunk)
    if (chunk.number % MARK_CHUNKS === 0 || (chunk.end && chunk.number > MARK_CHUNKS)) this.#mark(run, chunk.number)
    // A reader that misses it reads the log.
    await this.#system.events.publish(streamChannel(run), message).catch(() => {})
    return true
  }

  /** Returns a chunk; undefined if there is none, or not any more. @throws BrokerError ENGINE_UNAVAILABLE */
  async read(run: string, number: number): Promise<RunChunk | undefined> {
    const entry = await this.#log.last(keyOf(run, number))
    return entry === undefined || entry.tombstone === true ? undefined : decodeChunk(entry)
  }

  /**
   * Removes the chunks before one, and records first that the run begins with it now.
   * @param known The first chunk that was not removed earlier
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async trim(run: string, before: number, known: number): Promise<void> {
    await this.#log.write(keyOf(run, 1), { body: NOTHING, tags: { from: String(before) } })
    for (let number = Math.max(2, known); number < before; number++) {
      await this.#log.write(keyOf(run, number), undefined)
    }
  }

  /** Records the number of a chunk, for {@link #firstLeft}. If it fails, the next one replaces it. */
  #mark(run: string, number: number): void {
    this.#log.write(markOf(run), { body: NOTHING, tags: { chunk: String(number) } }).catch(() => {})
  }

  /**
   * Returns the first chunk of a run that is kept; undefined if there is none.
   * @param known The number of a chunk that the reader has heard of; 0 if it has heard of none
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async first(run: string, known = 0): Promise<RunChunk | undefined> {
    for (let tried = 1; ;) {
      const entry = await this.#log.last(keyOf(run, 1))
      const from = Number(entry?.tags['from'] ?? 1)
      const chunk = from > 1 ? await this.read(run, from) : entry && decodeChunk(entry)
      if (chunk !== undefined) return chunk
      // It may have been removed between the two.
      if (from === tried) return this.#firstLeft(run, from, known)
      tried = from
    }
  }

  /** Finds the first chunk of a run whose beginning was removed by retention. The chunks that are left have no gaps. */
  async #firstLeft(run: string, removed: number, known: number): Promise<RunChunk | undefined> {
    const oldest = await this.#log.oldest()
    // Nothing that was written later than the oldest entry was removed.
    if (oldest === undefined || oldest.timestamp < begunAt(run) - CLOCKS_MS) return undefined
    const marked = Number((await this.#log.last(markOf(run)))?.tags['chunk'] ?? 0)
    const from = Math.max(removed, marked, known)
    let first = from === removed ? undefined : await this.read(run, from)
    if (first === undefined) {
      for (let number = from + 1; first === undefined && number <= from + MARK_CHUNKS; number++) {
        first = await this.read(run, number)
      }
      return first
    }
    for (let gone = removed; first.number - gone > 1;) {
      const middle: number = gone + Math.floor((first.number - gone) / 2)
      const chunk = await this.read(run, middle)
      if (chunk === undefined) gone = middle
      else first = chunk
    }
    return first
  }

  /**
   * Returns the last chunk that begins at or before an event; undefined if the event was removed, or there are no
   * chunks.
   * @param known See {@link first}
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async find(run: string, sequence: number, known = 0): Promise<RunChunk | undefined> {
    const first = await this.first(run, known)
    return first === undefined || first.first > sequence
      ? undefined
      : this.#lastWhere(run, first, (chunk) => chunk.first <= sequence)
  }

  /**
   * Returns the last chunk of a run; undefined if there is none.
   * @param after The number of a chunk before it. @default unknown
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async last(run: string, after = 0): Promise<RunChunk | undefined> {
    const low = after === 0 ? await this.first(run) : await this.read(run, after + 1)
    return low && this.#lastWhere(run, low, () => true)
  }

  /** Doubles the distance until a chunk does not exist or is too late, and then halves it. */
  async #lastWhere(run: string, from: RunChunk, isBefore: (chunk: RunChunk) => boolean): Promise<RunChunk> {
    let low = from
    let grows = true
    for (let step = 1; step >= 1;) {
      const next = await this.read(run, low.number + step)
      const isFound = next !== undefined && isBefore(next)
      if (isFound) low = next
      else grows = false
      step = grows ? step * 2 : Math.floor(step / 2)
    }
    return low
  }
}

const NOTHING = new Uint8Array(0)

/** A run records the number of each chunk that this number divides, and that of its last one. */
const MARK_CHUNKS = 64

/** The most by which the clocks of two nodes differ, in ms. */
const CLOCKS_MS = 60_000

function keyOf(run: string, number: number): string {
  return `${run}/${number}`
}

function markOf(run: string): string {
  return `${run}/last`
}

/** Returns the time at which a run began, by its id, in ms since the epoch; 0 for an id of an older version. */
function begunAt(run: string): number {
  return run[14] === '7' ? Number.parseInt(run.slice(0, 8) + run.slice(9, 13), 16) : 0
}

function encodeChunk(chunk: RunChunk): MessageInput & { readonly body: Uint8Array } {
  const { number, first, wire, taskId, agentId, callerId, body, more, continues, end, reply, delivery } = chunk
  const tags: Record<string, string> = { n: String(number), first: String(first), agent: agentId, caller: callerId }
  if (wire !== undefined) tags['wire'] = wire
  if (taskId !== undefined) tags['task'] = taskId
  if (more) tags['more'] = '1'
  if (continues) tags['continues'] = '1'
  if (end) tags['end'] = '1'
  if (delivery !== undefined) {
    tags['lease'] = delivery.lease
    tags['accepted'] = String(delivery.accepted)
    tags['total'] = String(delivery.total)
  }
  if (reply === undefined) return { body, tags }
  const { error, body: answer = NOTHING, tags: answerTags } = encodeAgentReply(reply)
  return {
    body: answer,
    tags: { ...tags, ...answerTags, a2a_error: error ?? '', a2a_executed: reply.executed ? '1' : '0' },
  }
}

/** Decodes a chunk; undefined for a message that is none. */
export function decodeChunk({
  body,
  tags,
  timestamp: writtenAt,
}: Pick<StoredEvent, 'body' | 'tags' | 'timestamp'>): RunChunk | undefined {
  const {
    n,
    first,
    agent,
    caller,
    wire,
    task,
    more,
    continues,
    end,
    lease,
    accepted,
    total,
    a2a_error: error,
    a2a_executed: executed,
  } = tags
  const number = Number(n)
  if (!(number >= 1) || !(Number(first) >= 1) || agent === undefined || caller === undefined) return undefined
  return {
    number,
    first: Number(first),
    agentId: agent,
    callerId: caller,
    wire: wire === '1.0' || wire === '0.3' ? wire : undefined,
    taskId: task,
    body,
    more: more === '1',
    continues: continues === '1',
    end: end === '1',
    writtenAt,
    delivery: lease === undefined ? undefined : { lease, accepted: Number(accepted), total: Number(total ?? 0) },
    reply:
      executed === undefined
        ? undefined
        : decodeAgentReply({ executed: executed === '1', error: error ?? '', body, metadata: '', tags }),
  }
}
