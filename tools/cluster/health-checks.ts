/** Interval and time-out of the checks, in milliseconds. */
const EVERY_MS = 250
const ANSWER_MS = 500

/** Resolves when the node with this management address reports that it is ready. */
export async function assertReady(api: string, milliseconds: number): Promise<void> {
  const signal = AbortSignal.timeout(milliseconds)
  const response = await fetch(`${api}/ready`, { headers: { connection: 'close' }, signal })
  await response.body?.cancel()
  if (!response.ok) throw new Error(`not ready: HTTP ${response.status}`)
}

/** Checks the `/ready` of the nodes periodically, as a balancer does. */
export class HealthChecks implements Disposable {
  readonly #apis: () => readonly string[]
  readonly #unready = new Set<string>()
  readonly #timer: NodeJS.Timeout

  /** `apis` returns the management addresses of the existing nodes. */
  constructor(apis: () => readonly string[]) {
    this.#apis = apis
    this.#timer = setInterval(() => {
      for (const api of this.#apis()) void this.#check(api)
    }, EVERY_MS).unref()
  }

  /** A node counts as ready until a check fails. */
  isReady(api: string): boolean {
    return !this.#unready.has(api)
  }

  async #check(api: string): Promise<void> {
    try {
      await assertReady(api, ANSWER_MS)
      this.#unready.delete(api)
    } catch {
      this.#unready.add(api)
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}
