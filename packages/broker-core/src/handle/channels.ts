import { channelListMatcher } from '../channel-pattern.ts'
import type { ChannelType } from '../channel.ts'
import type { ChannelOptions, ChannelState } from '../engine.ts'
import { BrokerError } from '../errors.ts'
import type { Access } from './access.ts'

/** A channel without traffic or a subscriber for this long is not active any more (C3). */
export const ACTIVE_MS = 5 * 60_000

/** What callers see of a channel: the engine's state, and whether it is active. */
export interface ChannelInfo extends ChannelState {
  /** Traffic or a subscriber within the last 5 minutes (C3). */
  readonly isActive: boolean
}

/**
 * Finding and managing channels, for one caller. The broker's own are not there for users, nor are those that the policy
 * does not let them list (S4).
 */
export class Channels {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  /** In the order of type and name. `pattern` with `*` or `?` is a glob, otherwise a prefix (M9). */
  list(filter: { type?: ChannelType; pattern?: string } = {}): Promise<readonly ChannelInfo[]> {
    const access = this.#access
    return access.run('list', filter.type, filter.pattern ?? '', async () => {
      const matches = channelListMatcher(filter.pattern ?? '')
      const states = await access.engine.channels.list(filter.type)
      return states.filter((state) => matches(state.name) && access.sees(state.type, state.name)).map(withActivity)
    })
  }

  /** @throws BrokerError CHANNEL_NOT_FOUND */
  info(type: ChannelType, channel: string): Promise<ChannelInfo> {
    const access = this.#access
    return access.run('list', type, channel, async () => {
      access.channel('list', type, channel)
      const state = await access.engine.channels.info(type, channel)
      if (!state) {
        throw new BrokerError('CHANNEL_NOT_FOUND', `there is no channel ${JSON.stringify(channel)} of type ${type}`, {
          channel,
          type,
        })
      }
      return withActivity(state)
    })
  }

  /** False when it exists already. Channels also come into being when first used. */
  create(type: ChannelType, channel: string, options: ChannelOptions = {}): Promise<boolean> {
    const access = this.#access
    return access.run('create', type, channel, async () => {
      access.channel('manage', type, channel)
      const created = await access.engine.channels.create(type, channel, options)
      if (created) access.observers.managed('create', type, channel, access.caller)
      return created
    })
  }

  /** Removes the channel and all it holds. False when there is none. */
  delete(type: ChannelType, channel: string): Promise<boolean> {
    const access = this.#access
    return access.run('delete', type, channel, async () => {
      access.channel('manage', type, channel)
      const deleted = await access.engine.channels.delete(type, channel)
      if (deleted) access.observers.managed('delete', type, channel, access.caller)
      return deleted
    })
  }
}

function withActivity(state: ChannelState): ChannelInfo {
  return { ...state, isActive: state.subscribers > 0 || Date.now() - state.lastActivity < ACTIVE_MS }
}
