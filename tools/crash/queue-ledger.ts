import type { Violations } from './violations.ts'

/** The options of a producer, in addition to storing the message. */
export interface SendKind {
  readonly delayMs: number
  readonly expirationMs: number
  /** The `message_id` tag, with which a send without an answer may be repeated. */
  readonly retried: boolean
}

interface Sent {
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

  receive(body: string, life: number, callStartedAt: number, now: number): void {
    this.received++
    const [id = '', attemptText] = body.split('#')
    const attempt = Number(attemptText)
    const sent = this.#sent.get(id)
    if (sent === undefined || !(attempt <= sent.attempts)) {
      this.#violations.add('unknown', body)
      return
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

export type { Sent }
