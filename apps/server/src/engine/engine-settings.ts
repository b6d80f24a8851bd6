import * as embeddedSettings from '@signalbox/engine-embedded/settings'
import * as natsSettings from '@signalbox/engine-nats/settings'
import { Type } from 'typebox'

import { count } from '../config/setting-types.ts'

/** The values of the setting `engine`. */
export const ENGINE_NAMES = ['embedded', 'nats'] as const

export type EngineName = (typeof ENGINE_NAMES)[number]

const DEFAULT_MAX_CHANNELS: Readonly<Record<EngineName, number>> = {
  embedded: embeddedSettings.DEFAULT_MAX_CHANNELS,
  nats: natsSettings.DEFAULT_MAX_CHANNELS,
}

/** The settings of the schema that belong to the engines. */
export const ENGINE_SETTINGS = {
  engine: Type.Enum(ENGINE_NAMES, {
    default: 'embedded',
    description:
      'The storage of messages. `embedded`: on the local disk, for a single process. `nats`: in a NATS JetStream cluster, which any number of nodes share.',
  }),
  nats: natsSettings.NATS_SETTINGS,
}

/** The setting `store.path`. */
export const STORE_PATH = Type.String(embeddedSettings.STORE_PATH_SETTING)

/** The setting `maxChannels`. */
export const MAX_CHANNELS = count(DEFAULT_MAX_CHANNELS.embedded, {
  description: `Maximum number of channels of all types; 0 means no limit. With \`engine: nats\` the default is ${DEFAULT_MAX_CHANNELS.nats}.`,
})

/** The prefixes of the environment variables for the engines' own settings. */
export const ENGINE_PREFIXES: readonly string[] = ['NATS_']

/** Returns the default of `maxChannels` for an engine; undefined for an unknown name. */
export function defaultMaxChannels(engine: unknown): number | undefined {
  const name = ENGINE_NAMES.find((known) => known === engine)
  return name && DEFAULT_MAX_CHANNELS[name]
}
