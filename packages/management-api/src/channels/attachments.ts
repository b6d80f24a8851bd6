import { isReservedChannel } from '@signalbox/broker-core'
import type { Attachment, BrokerObserver, ChannelName } from '@signalbox/broker-core'
import { channelMatcher, isWildcardPattern } from '@signalbox/broker-core/internal'

/** The attachments of one client that differ in nothing else. */
export interface AttachedClient {
  readonly clientId: string
  readonly kind: Attachment['kind']
  /** The pattern of the subscription; undefined if it names the channel. */
  readonly pattern: string | undefined
  readonly group: string | undefined
  count: number
}

/** The subscriptions and waiting receives of this node. Their number is bounded by that of connections and streams. */
export class Attachments implements BrokerObserver {
  /** By type and channel. */
  readonly #byChannel = new Map<string, Set<Attachment>>()
  readonly #patterns = new Map<Attachment, (channel: string) => boolean>()

  attached(attachment: Attachment): void {
    const { type, channel } = attachment
    if (isReservedChannel(channel)) return
    if (type === 'events' && isWildcardPattern(channel)) {
      this.#patterns.set(attachment, channelMatcher(channel))
      return
    }
    const key = `${type} ${channel}`
    let attachments = this.#byChannel.get(key)
    if (attachments === undefined) this.#byChannel.set(key, (attachments = new Set()))
    attachments.add(attachment)
  }

  detached(attachment: Attachment): void {
    if (this.#patterns.delete(attachment)) return
    const key = `${attachment.type} ${attachment.channel}`
    const attachments = this.#byChannel.get(key)
    if (attachments?.delete(attachment) === true && attachments.size === 0) this.#byChannel.delete(key)
  }

  /** Returns the clients of a channel, by name. */
  of({ type, name }: ChannelName): readonly AttachedClient[] {
    const clients = new Map<string, AttachedClient>()
    const add = ({ caller, kind, group }: Attachment, pattern?: string): void => {
      const key = JSON.stringify([caller.clientId, kind, pattern, group])
      const known = clients.get(key)
      if (known !== undefined) known.count++
      else clients.set(key, { clientId: caller.clientId, kind, pattern, group, count: 1 })
    }
    for (const attachment of this.#byChannel.get(`${type} ${name}`) ?? []) add(attachment)
    if (type === 'events') {
      for (const [attachment, matches] of this.#patterns) if (matches(name)) add(attachment, attachment.channel)
    }
    return [...clients].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, client]) => client)
  }
}
