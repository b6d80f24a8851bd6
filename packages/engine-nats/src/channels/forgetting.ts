import type { ChannelCounts, CounterTable } from './counter-table.ts'
import type { LiveChannels } from './live-channels.ts'
import { isLiveKey } from './live-channels.ts'
import type { Peers } from './peers.ts'
import type { StoredChannels } from './stored-channels.ts'

/**
 * Removes the counts of channels that no longer exist. Without it, every agent stream and every deleted
 * queue would leave a record on each node.
 */
export class Forgetting {
  readonly #storedChannels: StoredChannels
  readonly #liveChannels: LiveChannels
  readonly #counterTable: CounterTable
  readonly #peers: Peers
  /**
   * Keys without a channel at the last check. Counts of another node may arrive before the channel itself
   * does.
   */
  #strays = new Set<string>()

  constructor(storedChannels: StoredChannels, liveChannels: LiveChannels, counterTable: CounterTable, peers: Peers) {
    this.#storedChannels = storedChannels
    this.#liveChannels = liveChannels
    this.#counterTable = counterTable
    this.#peers = peers
  }

  /** Removes the counts that had no channel at the last check either. */
  look(): void {
    const strays = new Set<string>()
    const isOver = (key: string, counts: ChannelCounts | undefined): boolean => {
      // Subscribers of a deleted channel remain, and create it again.
      if (this.#isKnown(key) || (isLiveKey(key) && (counts?.subscribers ?? 0) > 0)) return false
      strays.add(key)
      return this.#strays.has(key)
    }
    for (const key of this.#counterTable.keys())
      if (isOver(key, this.#counterTable.get(key))) this.#counterTable.forget(key)
    this.#peers.forgetCounts(isOver)
    this.#strays = strays
  }

  #isKnown(key: string): boolean {
    return this.#liveChannels.hasKey(key) || this.#storedChannels.byIncarnation(key) !== undefined
  }
}
