const MAX_EXAMPLES = 5

/** Broken promises: the number of each kind, and a few examples. */
export class BrokenPromises<Kind extends string> {
  /** The names of the kinds in the examples and in the summary. */
  readonly #texts: Readonly<Record<Kind, string>>
  readonly #counts = new Map<Kind, number>()
  readonly #examples: string[] = []

  constructor(texts: Readonly<Record<Kind, string>>) {
    this.#texts = texts
  }

  add(kind: Kind, example: string, count = 1): void {
    if (count === 0) return
    const before = this.count(kind)
    this.#counts.set(kind, before + count)
    if (before < MAX_EXAMPLES) this.#examples.push(`${this.#texts[kind]}: ${example}`)
  }

  count(kind: Kind): number {
    return this.#counts.get(kind) ?? 0
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  get examples(): readonly string[] {
    return this.#examples
  }

  lines(): string[] {
    const kinds = Object.keys(this.#texts) as Kind[]
    return kinds.map((kind) => `${String(this.count(kind)).padStart(8)}  ${this.#texts[kind]}`)
  }
}

/** The promises about messages and stored events. */
const PROMISES = {
  lost: 'acknowledged messages lost',
  doubled: 'messages delivered twice outside the settle window',
  afterAck: 'messages delivered after a confirmed core ack',
  twoHolders: 'messages leased to two receivers at once',
  dedupDouble: 'message_id retries stored twice',
  early: 'delayed messages delivered before their time',
  expired: 'messages delivered after they expired',
  unknown: 'messages delivered that were never sent',
  storeLost: 'acknowledged events missing from their store',
  storeGap: 'sequence gaps in events stores',
  storeRepeat: 'events twice in a store',
  storeChanged: 'events that were read and later changed or disappeared',
  unsynced: 'commit groups without a sync',
  failed: 'calls that a running server failed',
  shutdown: 'servers that did not end cleanly on SIGTERM',
} as const

/** The broken promises about messages and stored events. */
export class Violations extends BrokenPromises<keyof typeof PROMISES> {
  constructor() {
    super(PROMISES)
  }
}

/** The options of a producer, in addition to storing the message. */
export interface SendKind {
  readonly delayMs: number
  readonly expirationMs: number
  /** The `message_id` tag, with which a send without an answer may be repeated. */
  readonly retried: boolean
}

export interface Sent {
  readonly id: string
  readonly channel: string
  readonly kind: SendKind
  readonly startedAt: number
  attempts: number
  acknowledgedAt: number | undefined
  last: { readonly attempt: number; readonly at: number; readonly life: number } | undefined
}

/** The server counts in whole milliseconds, so it may shorten a delay by one. */
const CLOCK_MS = 2

/**
 * The messages sent to queues, acknowledged and received, over all lives of the server, and the broken promises. Times
 * are milliseconds of the harness's clock.
 */
export class QueueLedger {
  readonly #violations: Violations
  readonly #windowMs: number
  readonly #sent = new Map<string, Sent>()
  readonly #killedAt = new Map<number, number>()
  #next = 1
  acknowledged = 0
  received = 0
  #arrived = 0
  /** Second deliveries because the server was killed inside the settle window: permitted, and counted. */
  again = 0
  duplicatesRefused = 0

  /** `windowMs`: the time after an answer in which its messages may still be unsettled when the server dies. */
  constructor(violations: Violations, windowMs: number) {
    this.#violations = violations
    this.#windowMs = windowMs
  }

  begin(channel: string, kind: SendKind, now: number): Sent {
    const id = `m${this.#next++}`
    const sent: Sent = { id, channel, kind, startedAt: now, attempts: 1, acknowledgedAt: undefined, last: undefined }
    this.#sent.set(id, sent)
    return sent
  }

  acknowledge(sent: Sent, now: number, duplicate: boolean): void {
    if (sent.acknowledgedAt === undefined) this.acknowledged++
    sent.acknowledgedAt ??= now
    if (duplicate) this.duplicatesRefused++
    if (duplicate && sent.attempts === 1) {
      this.#violations.add('lost', `${sent.id} was called a duplicate at its first send`)
    }
  }

  /** Returns the sends with a `message_id` and without an answer, to be repeated. */
  unanswered(): readonly Sent[] {
    return [...this.#sent.values()].filter(({ kind, acknowledgedAt }) => kind.retried && acknowledgedAt === undefined)
  }

  /** The body distinguishes attempts, so that two of them cannot look like one message delivered twice. */
  body(sent: Sent): string {
    return `${sent.id}#${sent.attempts}`
  }

  killed(life: number, now: number): void {
    this.#killedAt.set(life, now)
  }

  /** The messages that have not arrived yet. */
  get waiting(): number {
    return this.#sent.size - this.#arrived
  }

  /** Returns the send of a message that arrives for the first time. */
  receive(body: string, life: number, callStartedAt: number, now: number): Sent | undefined {
    this.received++
    const [id = '', attemptText] = body.split('#')
    const attempt = Number(attemptText)
    const sent = this.#sent.get(id)
    if (sent === undefined || !(attempt <= sent.attempts)) {
      this.#violations.add('unknown', body)
      return undefined
    }
    const { last, kind, startedAt, acknowledgedAt } = sent
    if (last !== undefined) {
      const killedAt = this.#killedAt.get(last.life)
      if (last.attempt !== attempt) {
        this.#violations.add('dedupDouble', `${id}: attempts ${last.attempt} and ${attempt} were both delivered`)
      } else if (last.life < life && killedAt !== undefined && killedAt - last.at <= this.#windowMs) {
        this.again++
      } else {
        const ago =
          killedAt === undefined ? 'the server ran on' : `${Math.round(killedAt - last.at)} ms before the kill`
        this.#violations.add('doubled', `${id}: in life ${last.life} (${ago}) and in life ${life}`)
      }
    }
    if (now < startedAt + kind.delayMs - CLOCK_MS) {
      this.#violations.add('early', `${id}: ${Math.round(startedAt + kind.delayMs - now)} ms too early`)
    }
    const expiredAt = acknowledgedAt === undefined ? Number.POSITIVE_INFINITY : acknowledgedAt + kind.expirationMs
    if (kind.expirationMs > 0 && callStartedAt > expiredAt + CLOCK_MS) {
      this.#violations.add('expired', `${id}: asked for ${Math.round(callStartedAt - expiredAt)} ms after its end`)
    }
    sent.last = { attempt, at: now, life }
    if (last !== undefined) return undefined
    this.#arrived++
    return sent
  }

  /**
   * Call this after everything was drained: an acknowledged message that never arrived is lost, unless it could expire.
   */
  finish(): void {
    for (const { id, channel, acknowledgedAt, last, kind } of this.#sent.values()) {
      if (acknowledgedAt === undefined || last !== undefined || kind.expirationMs > 0) continue
      this.#violations.add('lost', `${id} in ${channel}, acknowledged at ${Math.round(acknowledgedAt)} ms`)
    }
  }
}

/** An entry in the answer of `events_store_read`. */
export interface StoredEntry {
  readonly body: string
  readonly sequence: number
  readonly timestamp: string
}

/** The writes to one events store and its answers, over all lives of the server. */
export class StoreLedger {
  readonly channel: string
  readonly #violations: Violations
  /** The entries that readers saw; the entry with sequence 1 is at index 0. */
  readonly #seen: StoredEntry[] = []
  readonly #sequenceOf = new Map<string, number>()
  readonly #acknowledged = new Map<string, number>()
  #next = 1

  constructor(channel: string, violations: Violations) {
    this.channel = channel
    this.#violations = violations
  }

  nextBody(): string {
    return `${this.channel}#${this.#next++}`
  }

  acknowledge(body: string, sequence: number): void {
    this.#acknowledged.set(body, sequence)
  }

  get acknowledged(): number {
    return this.#acknowledged.size
  }

  /** Returns the last sequence that readers have seen. */
  get read(): number {
    return this.#seen.length
  }

  /** Records the result of a read from `from`. It may overlap earlier reads, whose entries must not have changed. */
  take(from: number, entries: readonly StoredEntry[]): void {
    let expected = from
    for (const entry of entries) {
      if (entry.sequence !== expected) {
        this.#violations.add('storeGap', `${this.channel}: sequence ${entry.sequence} where ${expected} was due`)
        return
      }
      expected++
      const before = this.#seen[entry.sequence - 1]
      if (before === undefined) this.#append(entry)
      else if (before.body !== entry.body || before.timestamp !== entry.timestamp) {
        this.#violations.add('storeChanged', `${this.channel}: ${entry.sequence} was ${before.body}, is ${entry.body}`)
      }
    }
  }

  #append(entry: StoredEntry): void {
    const twice = this.#sequenceOf.get(entry.body)
    if (twice !== undefined) {
      this.#violations.add('storeRepeat', `${this.channel}: ${entry.body} at ${twice} and at ${entry.sequence}`)
    }
    const previous = this.#seen.at(-1)
    if (previous !== undefined && entry.timestamp < previous.timestamp) {
      this.#violations.add('storeChanged', `${this.channel}: time runs backwards at ${entry.sequence}`)
    }
    this.#sequenceOf.set(entry.body, entry.sequence)
    this.#seen.push(entry)
  }

  /** Call this after a complete read from the start: `last` is the last sequence of the store. */
  finish(last: number): void {
    if (last < this.#seen.length) {
      this.#violations.add('storeChanged', `${this.channel}: ended at ${this.#seen.length}, now at ${last}`)
    }
    for (const [body, sequence] of this.#acknowledged) {
      const found = this.#sequenceOf.get(body)
      if (found === undefined) this.#violations.add('storeLost', `${this.channel}: ${body} with sequence ${sequence}`)
      else if (found !== sequence) {
        this.#violations.add('storeChanged', `${this.channel}: ${body} was acknowledged as ${sequence}, is at ${found}`)
      }
    }
  }
}

/** Checks that the entries of each writer, `{writer}#{n}`, are in the order of their writes. */
export class WriterOrder {
  readonly problems: string[] = []
  readonly #last = new Map<string, { readonly n: number; readonly sequence: number }>()
  #seen = 0

  /** Another reader may show entries again; each counts once. */
  take(sequence: number, body: string): void {
    if (sequence <= this.#seen) return
    this.#seen = sequence
    const [writer = '', n = ''] = body.split('#')
    const before = this.#last.get(writer)
    if (before !== undefined && Number(n) < before.n) {
      this.problems.push(`${body} at ${sequence} comes after ${writer}#${before.n} at ${before.sequence}`)
    }
    this.#last.set(writer, { n: Number(n), sequence })
  }
}

/** The promises about one kind of load on a cluster; `gone`: answered as lost, and never delivered again. */
export const BREACHES = ['lost', 'gone', 'doubled', 'outOfOrder', 'hung', 'unclear'] as const

type Breach = (typeof BREACHES)[number]

/** The results of one kind of load. */
export class Ledger extends BrokenPromises<Breach> {
  readonly kind: string
  attempted = 0
  acknowledged = 0
  /** Calls answered with an error that states its reason. */
  refused = 0
  /** Calls without an answer: each may have taken effect, at most once. */
  unknown = 0
  /** Permitted second deliveries. */
  again = 0
  /** The number of occurrences of each error code. */
  readonly refusals = new Map<string, number>()

  constructor(kind: string) {
    super(Object.fromEntries(BREACHES.map((breach) => [breach, `${kind}, ${breach}`])) as Record<Breach, string>)
    this.kind = kind
  }

  refuse(code: string): void {
    this.refused++
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1)
  }
}
