import type { AuditEvent } from './audit-entry.ts'

/** Beyond so many callers and actions, further denials share one entry: memory must not grow with who attacks. */
const MAX_KINDS = 1_000

/** So many denials of an action to a caller are entries of their own: an operator sees what a broken client tried. */
const FIRST = 10

/** Denials of one action to one caller. */
interface Kind {
  /** Those with an entry of their own. */
  recorded: number
  /** What the others have in common. */
  event: AuditEvent
  further: number
}

/**
 * Bounds the entries that denials make. The first ten denials of an action to a caller are recorded at once, and further ones
 * within the time are one entry with a count.
 */
export class Denials {
  readonly #gatherMs: number
  readonly #record: (event: AuditEvent) => void
  readonly #kinds = new Map<string, Kind>()
  #others = 0
  #timer: NodeJS.Timeout | undefined

  constructor(gatherMs: number, record: (event: AuditEvent) => void) {
    this.#gatherMs = gatherMs
    this.#record = record
  }

  add(event: AuditEvent): void {
    this.#timer ??= setTimeout(() => this.#flush(), this.#gatherMs).unref()
    const { client, address = '', action, code = '' } = event
    const key = JSON.stringify([client, address, action, code])
    const kind = this.#kinds.get(key)
    if (kind === undefined) {
      if (this.#kinds.size >= MAX_KINDS) {
        this.#others++
        return
      }
      this.#kinds.set(key, { recorded: 1, event, further: 0 })
      this.#record(event)
    } else if (kind.recorded < FIRST) {
      kind.recorded++
      this.#record(event)
    } else {
      kind.event = kind.further === 0 ? event : common(kind.event, event)
      kind.further++
    }
  }

  /** Records what was gathered. Idempotent. */
  close(): void {
    clearTimeout(this.#timer)
    this.#flush()
  }

  #flush(): void {
    this.#timer = undefined
    for (const { event, further: count } of this.#kinds.values()) {
      if (count > 0) this.#record({ ...event, count, detail: 'further denials' })
    }
    this.#kinds.clear()
    if (this.#others > 0) {
      const event = { client: '', action: 'denied', outcome: 'denied', detail: 'denials of further callers' } as const
      this.#record({ ...event, count: this.#others })
    }
    this.#others = 0
  }
}

/** A denial that stands for both: without the channel or agent where they have different ones. */
function common(one: AuditEvent, { type, channel, agent }: AuditEvent): AuditEvent {
  if (one.type === type && one.channel === channel && one.agent === agent) return one
  const { client, action, outcome, address, code } = one
  return {
    client,
    action,
    outcome,
    ...(one.type !== undefined && one.type === type ? { type } : {}),
    ...(address === undefined ? {} : { address }),
    ...(code === undefined ? {} : { code }),
  }
}
