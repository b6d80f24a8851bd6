import type { ChannelCounts, CounterTable } from './counter-table.ts'
import type { LiveChannels } from './live-channels.ts'
import { isLiveKey } from './live-channels.ts'
import type { Peers } from './peers.ts'
import type { StoredChannels } from './stored-channels.ts'

/**
 * Drops what was counted for channels that are gone: of each stream of an agent, and each queue that was deleted,
 * something would stay on every node.
 */
export class Forgetting {
  readonly #storedChannels: StoredChannels
  readonly #liveChannels: LiveChannels
  readonly #counterTable: CounterTable
  readonly #peers: Peers
  /** Without a channel at the last look. What another node counts may be heard of before the channel itself. */
  #strays = new Set<string>()

  constructor(storedChannels: StoredChannels, liveChannels: LiveChannels, counterTable: CounterTable, peers: Peers) {
    this.#storedChannels = storedChannels
    this.#liveChannels = liveChannels
    this.#counterTable = counterTable
    this.#peers = peers
  }

  /** Drops what was without a channel at the last look already. */
  look(): void {
    const strays = new Set<string>()
    const isOver = (key: string, counts: ChannelCounts | undefined): boolean => {
      // Subscribers to a channel that was deleted stay, and make it again.
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
