import type { ChannelType } from './channel.ts'
import type { ChannelName } from './engine/channel-engine.ts'
import { inTurns, sortInTurns } from './in-turns.ts'

/** The channels of one type by their names, with a list of the names in order. */
export class ChannelMap<Channel> extends Map<string, Channel> {
  readonly #type: ChannelType
  #ordered: Promise<readonly ChannelName[]> | undefined

  constructor(type: ChannelType) {
    super()
    this.#type = type
  }

  /** Returns the channels in the order of their names. All callers share the list until a channel comes or goes. */
  ordered(): Promise<readonly ChannelName[]> {
    return (this.#ordered ??= this.#order())
  }

  async #order(): Promise<readonly ChannelName[]> {
    const channels: ChannelName[] = []
    await inTurns(await sortInTurns([...this.keys()]), (name) => channels.push({ type: this.#type, name }))
    return channels
  }

  override set(name: string, channel: Channel): this {
    if (!this.has(name)) this.#ordered = undefined
    return super.set(name, channel)
  }

  override delete(name: string): boolean {
    this.#ordered = undefined
    return super.delete(name)
  }

  override clear(): void {
    this.#ordered = undefined
    super.clear()
  }
}
