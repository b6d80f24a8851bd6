/** Every kind of broken promise that the harness detects. */
export const PROMISES = {
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

export type PromiseKind = keyof typeof PROMISES

const EXAMPLES = 5

/** The broken promises: the number of each kind, and a few examples. */
export class Violations {
  readonly #counts = new Map<PromiseKind, number>()
  readonly #examples: string[] = []

  add(kind: PromiseKind, example: string, count = 1): void {
    const before = this.count(kind)
    this.#counts.set(kind, before + count)
    if (before < EXAMPLES) this.#examples.push(`${PROMISES[kind]}: ${example}`)
  }

  count(kind: PromiseKind): number {
    return this.#counts.get(kind) ?? 0
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  get examples(): readonly string[] {
    return this.#examples
  }

  lines(): string[] {
    return Object.entries(PROMISES).map(
      ([kind, text]) => `${String(this.count(kind as PromiseKind)).padStart(8)}  ${text}`,
    )
  }
}
