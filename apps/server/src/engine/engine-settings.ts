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
      'Where messages live. `embedded`: on the local disk of this one process. `nats`: in a NATS JetStream cluster, which any number of nodes share.',
  }),
  nats: natsSettings.NATS_SETTINGS,
}

/** The setting `store.path`. */
export const STORE_PATH = Type.String(embeddedSettings.STORE_PATH_SETTING)

/** The setting `maxChannels`. */
export const MAX_CHANNELS = count(DEFAULT_MAX_CHANNELS.embedded, {
  description: `The most channels of all types together; 0 is no limit. With \`engine: nats\` the default is ${DEFAULT_MAX_CHANNELS.nats}.`,
})

/** Environment variables of the engines' own settings begin with these. */
export const ENGINE_PREFIXES: readonly string[] = ['NATS_']

/** The default of `maxChannels` for an engine; undefined for a name that is none. */
export function defaultMaxChannels(engine: unknown): number | undefined {
  const name = ENGINE_NAMES.find((known) => known === engine)
  return name && DEFAULT_MAX_CHANNELS[name]
}
