import { hash } from 'node:crypto'

import type { BrokerHandle } from '../broker.ts'
import { isBrokerError } from '../errors.ts'
import type { Tags } from '../message.ts'
import type { KeyedContent, KeyedEntry } from './keyed-log.ts'
import { KeyedLog } from './keyed-log.ts'

const DAY_MS = 86_400_000

/** About a million records. Beyond it the oldest are removed. */
const MAX_BYTES = 256 * 1024 * 1024

/** Returns the log that all nodes share of the requests that run once, and of the tasks that they began. */
export function requestLog(system: BrokerHandle): KeyedLog {
  return new KeyedLog(system, '_AGENTS_.runs', { maxAgeMs: 8 * DAY_MS, maxBytes: MAX_BYTES })
}

/** The form of a key: 1 to 255 visible ASCII characters. */
export const IDEMPOTENCY_KEY_FORM = '1 to 255 visible ASCII characters'
const KEY = /^[\u0021-\u007e]{1,255}$/

/** Returns true for a valid key. */
export function isIdempotencyKey(text: string): boolean {
  return KEY.test(text)
}

/** A request that runs once. The caller is a part of its key, so that no key reaches the request of another caller. */
export interface KeyedRequest {
  /** The kind of the target, such as `agent` or `queries`. */
  readonly kind: string
  readonly target: string
  readonly callerId: string
  readonly key: string
  /** The digest of the request; see {@link digestOf}. */
  readonly digest: string
}

/** The record of a request that has a key. */
export interface KeyRecord {
  readonly digest: string
  /** The id of the request's run. */
  readonly run: string
  /** The answer; undefined while the request runs, and if it is kept in another place. */
  readonly answer: KeyedContent | undefined
  /** The time until which the request may run, in ms since the epoch; undefined if it is unknown. */
  readonly until: number | undefined
  /** The time of the record, in ms since the epoch. */
  readonly timestamp: number
}

/** A key that this request holds. */
export interface ClaimedKey {
  /** Lets the next request with this key run: this one certainly did not. @throws BrokerError ENGINE_UNAVAILABLE */
  release(): Promise<void>
  /** Keeps the answer for requests with the same key. @throws BrokerError MESSAGE_TOO_LARGE, ENGINE_UNAVAILABLE */
  answer(content: KeyedContent): Promise<void>
}

/** The keys of requests that ran, in the log that all nodes share. */
export class IdempotencyKeys {
  readonly #log: KeyedLog
  readonly #keepMs: number

  /** @param keepMs The time after which a key may be used for another request */
  constructor(log: KeyedLog, keepMs: number) {
    this.#log = log
    this.#keepMs = keepMs
  }

  /**
   * Claims a key for a request. Resolves with the record of the earlier request, if there is one.
   * @param until The time until which the request may run, in ms since the epoch; its key is kept until then.
   * @default unknown
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async claim(request: KeyedRequest, run: string, until?: number): Promise<ClaimedKey | KeyRecord> {
    const key = recordKey(request)
    const tags = { digest: request.digest, run, ...(until === undefined ? {} : { until: String(until) }) }
    // Nearly every key is new.
    let expected = 0
    for (;;) {
      try {
        const { sequence } = await this.#log.write(key, { body: NOTHING, tags }, expected)
        return this.#claimed(key, tags, sequence)
      } catch (error) {
        if (!isBrokerError(error, 'CONFLICT')) throw error
      }
      const last = await this.#log.last(key)
      const known = last && this.#recordIn(last)
      if (known !== undefined) return known
      expected = last?.sequence ?? 0
    }
  }

  /** Returns the record of a request; undefined if there is none. @throws BrokerError ENGINE_UNAVAILABLE */
  async find(request: KeyedRequest): Promise<KeyRecord | undefined> {
    const last = await this.#log.last(recordKey(request))
    return last && this.#recordIn(last)
  }

  #claimed(key: string, tags: Tags, sequence: number): ClaimedKey {
    const write = async (content: KeyedContent | undefined): Promise<void> => {
      try {
        await this.#log.write(key, content, sequence)
      } catch (error) {
        // The key is another request's: the time of this one is over.
        if (!isBrokerError(error, 'CONFLICT')) throw error
      }
    }
    return {
      release: () => write(undefined),
      answer: ({ tags: more, ...content }) => write({ ...content, tags: { ...more, ...tags, answered: '1' } }),
    }
  }

  #recordIn({ body, metadata, tags, tombstone, timestamp }: KeyedEntry): KeyRecord | undefined {
    if (tombstone === true) return undefined
    const { digest, run, until: runsUntil, answered, ...rest } = tags
    if (digest === undefined || run === undefined) return undefined
    const until = runsUntil === undefined ? undefined : Number(runsUntil)
    if (Date.now() > Math.max(timestamp + this.#keepMs, until ?? 0)) return undefined
    const answer = answered === undefined ? undefined : { body, metadata, tags: rest }
    return { digest, run, answer, until, timestamp }
  }
}

const NOTHING = new Uint8Array(0)

/** Line feeds separate the parts: only the ClientID could contain one. */
function recordKey({ kind, target, callerId, key }: KeyedRequest): string {
  return `k/${digestOf([kind, target, callerId, key].join('\n'))}`
}

/** Returns the SHA-256 digest of a text or of bytes, in hexadecimal form. */
export function digestOf(content: string | Uint8Array): string {
  return hash('sha256', content)
}
