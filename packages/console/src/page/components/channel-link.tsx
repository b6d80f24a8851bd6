import { href } from '../router/location.ts'
import { UserText } from './user-text.tsx'

export const CHANNEL_TYPES = ['queues', 'events', 'events_store', 'commands', 'queries'] as const

export type ChannelType = (typeof CHANNEL_TYPES)[number]

/** The name of a channel of each type. */
export const TYPE_NAMES: Readonly<Record<ChannelType, string>> = {
  queues: 'Queue',
  events: 'Events',
  events_store: 'Events store',
  commands: 'Commands',
  queries: 'Queries',
}

export function isChannelType(text: string | undefined): text is ChannelType {
  return CHANNEL_TYPES.some((type) => type === text)
}

/** A channel's name that leads to its screen. */
export function ChannelLink({ type, name }: { readonly type: ChannelType; readonly name: string }) {
  return (
    <a href={href(['channels', type, name])}>
      <UserText>{name}</UserText>
    </a>
  )
}
