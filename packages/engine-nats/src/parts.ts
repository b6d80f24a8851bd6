import type { SettingsTable } from '@signalbox/broker-core/engine'

import type { CounterTable } from './channels/counter-table.ts'
import type { Counters } from './channels/counters.ts'
import type { LiveChannels } from './channels/live-channels.ts'
import type { Peers } from './channels/peers.ts'
import type { ChannelLimit, StoredChannels } from './channels/stored-channels.ts'
import type { Connection } from './connection.ts'
import type { KeyedRecords } from './keyed-records.ts'
import type { Settings } from './options.ts'
import type { Publisher } from './publisher.ts'
import type { Pulls } from './pulls.ts'
import type { ServerClock, ServerFeatures } from './servers.ts'
import type { StoredMessages } from './stored-messages.ts'
import type { Streams } from './streams.ts'
import type { Subjects } from './subjects.ts'

/** The objects that the message types of one node share. */
export interface Parts {
  /** The random id of this node; it changes with each start. */
  readonly node: string
  readonly settings: Settings
  readonly channelSettings: SettingsTable
  readonly connection: Connection
  readonly clock: ServerClock
  readonly features: ServerFeatures
  readonly subjects: Subjects
  readonly streams: Streams
  readonly channelLimit: ChannelLimit
  readonly storedChannels: StoredChannels
  readonly liveChannels: LiveChannels
  readonly counterTable: CounterTable
  readonly counters: Counters
  readonly peers: Peers
  readonly keyedRecords: KeyedRecords
  /** The ids of messages that were sent with a deduplication id. */
  readonly recent: KeyedRecords
  readonly publisher: Publisher
  readonly messages: StoredMessages
  readonly pulls: Pulls
}
