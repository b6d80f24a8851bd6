import { unavailable } from '../errors.ts'
import { Semaphore } from '../semaphore.ts'

const WAIT_MS = 10_000

/**
 * The creations of stored channels, for an engine that cannot create many at the same time without a delay of other
 * calls. Accounts take turns: an account with many new channels delays the first message of another one by one
 * creation, also if both create the same channel.
 */
export class ChannelCreations {
  readonly #places: Semaphore
  readonly #waitMs: number
  /** The ends of the creations under way, by account and channel. They resolve after a failure too. */
  readonly #underWay = new Map<string, Promise<void>>()

  /**
   * @param most The number of creations at the same time
   * @param waitMs The longest time that a creation waits for others
   */
  constructor(most: number, waitMs = WAIT_MS) {
    this.#places = new Semaphore(most)
    this.#waitMs = waitMs
  }

  /**
   * Runs a call that creates the channel. Later calls of the account for the same channel wait for its end only, and
   * keep their order: if it failed, they fail together, and not each after another.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async run<T>(channel: string, account: string, call: () => Promise<T>): Promise<T> {
    const key = `${account} ${channel}`
    const other = this.#underWay.get(key)
    if (other !== undefined) {
      await other
      return call()
    }
    const created = this.#create(account, call)
    const end = (): void => void this.#underWay.delete(key)
    this.#underWay.set(key, created.then(end, end))
    return created
  }

  async #create<T>(account: string, call: () => Promise<T>): Promise<T> {
    await this.#places.acquire(AbortSignal.timeout(this.#waitMs), account).catch(() => {
      throw unavailable('it is still creating other channels')
    })
    try {
      return await call()
    } finally {
      this.#places.release(account)
    }
  }
}
