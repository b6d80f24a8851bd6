import type { Engine } from '@signalbox/broker-core'
import * as embeddedSettings from '@signalbox/engine-embedded/settings'
import * as natsSettings from '@signalbox/engine-nats/settings'
import { Type } from 'typebox'

import type { Config } from '../config/schema.ts'
import { count } from '../config/setting-types.ts'
import { ServerError } from '../errors.ts'
import type { Logger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/metrics.ts'

/**
 * The engines that `ENGINE` selects. This is the only file of the server that knows them by name. Their packages are loaded
 * when one is opened, about 50 ms of a start; their settings do not load them.
 */

const ENGINE_NAMES = ['embedded', 'nats'] as const

type EngineName = (typeof ENGINE_NAMES)[number]

/** The reports of an engine, and the end of the wait for its storage. */
export interface EngineReports {
  readonly metrics: Metrics
  readonly log: Logger
  /** Ends the wait for a cluster. */
  readonly signal: AbortSignal | undefined
  /** Reports why the cluster cannot be used. */
  readonly waiting: (reason: string) => void
}

/** A copy of a store. */
export interface StoreCopy {
  readonly file: string
  readonly bytes: number
}

/** An engine that `ENGINE` selects. */
interface EngineKind {
  /** The limit of channels where nobody sets one. */
  readonly maxChannels: number
  /** @throws ServerError START_FAILED */
  open(config: Config, reports: EngineReports): Promise<Engine>
  /** Copies the store to a file. Left out: the messages are not in a store of this machine. @throws ServerError START_FAILED */
  readonly backUp?: (config: Config, file: string) => Promise<StoreCopy>
  /** Logs what is less safe than it looks (S7). */
  readonly warn?: (config: EngineConfig, log: Logger) => void
}

const ENGINES: Readonly<Record<EngineName, EngineKind>> = {
  embedded: {
    maxChannels: embeddedSettings.DEFAULT_MAX_CHANNELS,
    open: openEmbedded,
    async backUp({ store }, file) {
      const { backupStore, EmbeddedEngineError } = await import('@signalbox/engine-embedded')
      return startFailure('backup', EmbeddedEngineError, () => backupStore(store.path, file))
    },
  },
  nats: {
    maxChannels: natsSettings.DEFAULT_MAX_CHANNELS,
    open: openNats,
    warn({ nats }, log) {
      const open = natsSettings.openConnection(nats)
      if (open) log.warn({ servers: open.servers }, open.message)
    },
  },
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
export const MAX_CHANNELS = count(ENGINES.embedded.maxChannels, {
  description: `The most channels of all types together; 0 is no limit. With \`engine: nats\` the default is ${ENGINES.nats.maxChannels}.`,
})

/** Environment variables of the engines' own settings begin with these. */
export const ENGINE_PREFIXES: readonly string[] = ['NATS_']

/** The default of `maxChannels` for an engine; undefined for a name that is none. */
export function defaultMaxChannels(engine: unknown): number | undefined {
  const name = ENGINE_NAMES.find((known) => known === engine)
  return name && ENGINES[name].maxChannels
}

type EngineConfig = Pick<Config, 'engine' | 'nats'>

/** The configuration as it may be shown, but for the settings that are secret as a whole. */
export function withoutPasswords(config: Config): Config {
  return { ...config, nats: natsSettings.withoutPasswords(config.nats) }
}

/**
 * Opens the engine that the configuration selects. Waits for storage on other machines that cannot be reached yet.
 * @throws ServerError START_FAILED when the store is in use, damaged or not writable, or the cluster refuses
 */
export function openEngine(config: Config, reports: EngineReports): Promise<Engine> {
  return ENGINES[config.engine].open(config, reports)
}

/** Warns, at each start, when others can use or read the engine's storage (S7). */
export function warnOfOpenEngine(log: Logger, config: EngineConfig): void {
  ENGINES[config.engine].warn?.(config, log)
}

/**
 * Copies the store to a file, while the server runs or not.
 * @throws ServerError CONFIG_INVALID for an engine whose messages are on other machines; START_FAILED for a store that cannot
 * be read or a file that cannot be written
 */
export async function backUpStore(config: Config, file: string): Promise<StoreCopy> {
  const { engine } = config
  const { backUp } = ENGINES[engine]
  if (backUp) return backUp(config, file)
  const allowed = ENGINE_NAMES.filter((name) => ENGINES[name].backUp)
  throw new ServerError('CONFIG_INVALID', [
    `backup: the engine is ${engine}, whose messages are not in a store of this machine; allowed is ${allowed.join(', ')}`,
  ])
}

/** The copy that a recovery makes. */
export interface RecoveredStore extends StoreCopy {
  readonly channels: number
  readonly messages: number
  readonly leftOut: readonly string[]
}

/**
 * Copies what can be read of a damaged store to a new folder.
 * @throws ServerError START_FAILED for a store that cannot be read at all or a folder that cannot be written
 */
export async function recoverStore(from: string, to: string): Promise<RecoveredStore> {
  const { EmbeddedEngineError, recoverStore: recover } = await import('@signalbox/engine-embedded')
  return startFailure('recover', EmbeddedEngineError, () => recover(from, to))
}

async function openEmbedded(config: Config, { metrics, log }: EngineReports): Promise<Engine> {
  const { EmbeddedEngineError, openEmbeddedEngine } = await import('@signalbox/engine-embedded')
  return startFailure('store.path', EmbeddedEngineError, () =>
    openEmbeddedEngine({
      path: config.store.path,
      ...limitsOf(config),
      // Whatever a request may carry can be stored.
      maxMessageBytes: Math.max(config.maxBodyBytes, DEFAULT_MAX_MESSAGE_BYTES),
      onCommit: ({ operations, durationMs }) => metrics.commit(operations, durationMs / 1000),
      onProblem: ({ kind, message, error, channels }) => {
        const details = { kind, ...(error === undefined ? {} : { err: error }), ...(channels && { channels }) }
        if (kind === 'healed') log.info(`store: ${message}`)
        else log.error(details, `store: ${message}`)
      },
    }),
  )
}

async function openNats(config: Config, { log, signal, waiting }: EngineReports): Promise<Engine> {
  const { NatsEngineError, openNatsEngine } = await import('@signalbox/engine-nats')
  const { nats, maxBodyBytes } = config
  const { caFile, certFile, keyFile } = nats.tls
  return startFailure('nats', NatsEngineError, () =>
    openNatsEngine({
      servers: nats.servers,
      ...limitsOf(config),
      ...(signal && { signal }),
      ...(nats.credsFile !== '' && { credsFile: nats.credsFile }),
      tls: {
        ...(caFile !== '' && { caFile }),
        ...(certFile !== '' && { certFile }),
        ...(keyFile !== '' && { keyFile }),
      },
      replicas: nats.replicas,
      maxMessageBytes: maxBodyBytes,
      onProblem: ({ kind, message, error }) => {
        if (kind === 'disconnected') waiting(message)
        const details = { kind, ...(error === undefined ? {} : { err: error }) }
        if (kind === 'healed') log.info(`nats: ${message}`)
        else if (kind === 'warning') log.warn(`nats: ${message}`)
        else log.error(details, `nats: ${message}`)
      },
    }),
  )
}

const DEFAULT_MAX_MESSAGE_BYTES = 67_108_864

/** The limits that every engine has. */
function limitsOf({ maxChannels, queue, store }: Config) {
  return {
    maxChannels,
    queueMaxMessages: queue.maxMessages,
    queueMaxBytes: queue.maxBytes,
    logMaxAgeMs: store.maxAgeSeconds * 1000,
    logMaxBytes: store.maxBytes,
  }
}

/** Runs a call of an engine package; its own errors become a START_FAILED that begins with `what`. */
async function startFailure<T>(
  what: string,
  EngineError: new (...args: never[]) => Error,
  call: () => T | Promise<T>,
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    throw new ServerError('START_FAILED', [`${what}: ${error.message}`], { cause: error })
  }
}
