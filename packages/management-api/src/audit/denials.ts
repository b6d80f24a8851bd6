import type { AuditEvent } from './audit-entry.ts'

/** Beyond so many callers and actions, further denials share one entry: memory must not grow with who attacks. */
const MAX_KINDS = 1_000

/** Denials of one caller and action that follow the first one. */
interface Further {
  /** What they have in common with the first one. */
  event: AuditEvent
  count: number
}

/**
 * Bounds the entries that denials make. The first denial of an action to a caller is recorded at once, and further ones within
 * the time are one entry with a count.
 */
export class Denials {
  readonly #gatherMs: number
  readonly #record: (event: AuditEvent) => void
  readonly #kinds = new Map<string, Further>()
  #others = 0
  #timer: NodeJS.Timeout | undefined

  constructor(gatherMs: number, record: (event: AuditEvent) => void) {
    this.#gatherMs = gatherMs
    this.#record = record
  }

  add(event: AuditEvent): void {
    this.#timer ??= setTimeout(() => this.#flush(), this.#gatherMs).unref()
    const { client, address = '', action, code = '' } = event
    const kind = JSON.stringify([client, address, action, code])
    const further = this.#kinds.get(kind)
    if (further) {
      further.event = common(further.event, event)
      further.count++
    } else if (this.#kinds.size < MAX_KINDS) {
      this.#kinds.set(kind, { event, count: 0 })
      this.#record(event)
    } else {
      this.#others++
    }
  }

  /** Records what was gathered. Idempotent. */
  close(): void {
    clearTimeout(this.#timer)
    this.#flush()
  }

  #flush(): void {
    this.#timer = undefined
    for (const { event, count } of this.#kinds.values()) {
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
