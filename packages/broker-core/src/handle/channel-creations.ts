import { unavailable } from '../errors.ts'
import { Semaphore } from '../semaphore.ts'

/** The longest time that a creation waits for others, in ms. */
const WAIT_MS = 10_000

/**
 * The creations of stored channels, for an engine that cannot create many at the same time without a delay of other
 * calls. Accounts take turns: an account with many new channels delays the first message of another one by one
 * creation.
 */
export class ChannelCreations {
  readonly #places: Semaphore
  /** The ends of the creations under way, by channel. They resolve after a failure too. */
  readonly #underWay = new Map<string, Promise<void>>()

  /** @param most The number of creations at the same time */
  constructor(most: number) {
    this.#places = new Semaphore(most)
  }

  /**
   * Runs a call that creates the channel. Later calls for the same channel wait for its end, and keep their order.
   * @param exists Returns whether the channel exists by now
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async run<T>(channel: string, account: string, exists: () => boolean, call: () => Promise<T>): Promise<T> {
    for (let other = this.#underWay.get(channel); other; other = this.#underWay.get(channel)) await other
    if (exists()) return call()
    const created = this.#create(account, call)
    const end = (): void => void this.#underWay.delete(channel)
    this.#underWay.set(channel, created.then(end, end))
    return created
  }

  async #create<T>(account: string, call: () => Promise<T>): Promise<T> {
    await this.#places.acquire(AbortSignal.timeout(WAIT_MS), account).catch(() => {
      throw unavailable('it is still creating other channels')
    })
    try {
      return await call()
    } finally {
      this.#places.release()
    }
  }
}
