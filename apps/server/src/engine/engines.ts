import { hostname } from 'node:os'

import type { Engine } from '@signalbox/broker-core'
import * as natsSettings from '@signalbox/engine-nats/settings'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { Logger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { VERSION } from '../version.ts'
import type { EngineName } from './engine-settings.ts'
import { ENGINE_NAMES } from './engine-settings.ts'

/**
 * The engines that `ENGINE` selects. Only this file and `engine-settings.ts` know them by name. The
 * package of an engine is loaded when it is opened, about 50 ms of a start; its settings do not
 * load it.
 */

/** The reports of an engine, and the end of the wait for its storage. */
export interface EngineReports {
  readonly metrics: Metrics
  readonly log: Logger
  /** Aborting it ends the wait for a cluster. */
  readonly signal: AbortSignal | undefined
  /** Reports the reason why the cluster cannot be used. */
  readonly waiting: (reason: string) => void
}

/** A copy of a store. */
export interface StoreCopy {
  readonly file: string
  readonly bytes: number
}

/** An engine that `ENGINE` selects. */
interface EngineKind {
  /** Starts the parts of {@link EngineKind.open} that do not depend on the configuration. */
  prepare?(): Promise<void>
  /** @throws ServerError START_FAILED */
  open(config: Config, reports: EngineReports): Promise<Engine>
  /**
   * Copies the store to a file. Absent if the messages are stored on other machines. @throws
   * ServerError START_FAILED
   */
  readonly backUp?: (config: Config, file: string) => Promise<StoreCopy>
  /** Copies a backup into the empty folder of the store. @throws ServerError START_FAILED */
  readonly restore?: (config: Config, file: string) => Promise<StoreCopy>
  /** Logs warnings about storage that other users can access (S7). */
  readonly warn?: (config: EngineConfig, log: Logger) => void
}

const ENGINES: Readonly<Record<EngineName, EngineKind>> = {
  embedded: {
    async prepare() {
      const { prepareEmbeddedEngine } = await import('@signalbox/engine-embedded')
      prepareEmbeddedEngine()
    },
    open: openEmbedded,
    async backUp({ store }, file) {
      const { backupStore, EmbeddedEngineError } = await import('@signalbox/engine-embedded')
      return startFailure('backup', EmbeddedEngineError, () => backupStore(store.path, file))
    },
    async restore({ store }, file) {
      const { EmbeddedEngineError, restoreStore: restore } = await import('@signalbox/engine-embedded')
      return startFailure('restore', EmbeddedEngineError, () => restore(file, store.path))
    },
  },
  nats: {
    open: openNats,
    warn({ nats }, log) {
      const open = natsSettings.openConnection(nats)
      if (open) log.warn({ servers: open.servers }, open.message)
    },
  },
}

type EngineConfig = Pick<Config, 'engine' | 'nats'>

/**
 * Returns the configuration without passwords in URLs. Settings marked as secret are not masked
 * here.
 */
export function withoutPasswords(config: Config): Config {
  return { ...config, nats: natsSettings.withoutPasswords(config.nats) }
}

/**
 * Starts the parts of the selected engine that need no store, so that the rest of the server is loaded at the same
 * time. Opens nothing.
 */
export async function prepareEngine({ engine }: EngineConfig): Promise<void> {
  await ENGINES[engine].prepare?.()
}

/**
 * Opens the engine that the configuration selects. Waits for remote storage that cannot be reached
 * yet.
 * @throws ServerError START_FAILED if the store is in use, damaged or not writable, or the cluster
 * refuses
 */
export function openEngine(config: Config, reports: EngineReports): Promise<Engine> {
  return ENGINES[config.engine].open(config, reports)
}

/** Warns at each start if other users can use or read the engine's storage (S7). */
export function warnOfOpenEngine(log: Logger, config: EngineConfig): void {
  ENGINES[config.engine].warn?.(config, log)
}

/**
 * Copies the store to a file, while the server runs or not.
 * @throws ServerError CONFIG_INVALID for an engine whose messages are on other machines;
 * START_FAILED for a store that cannot be read or a file that cannot be written
 */
export function backUpStore(config: Config, file: string): Promise<StoreCopy> {
  return onThisMachine('backUp', 'backup', config)(config, file)
}

/**
 * Copies a backup into the empty folder of the store.
 * @throws ServerError CONFIG_INVALID for an engine whose messages are on other machines;
 * START_FAILED for a backup that cannot be read, or a folder that is in use or not empty
 */
export function restoreStore(config: Config, file: string): Promise<StoreCopy> {
  return onThisMachine('restore', 'restore', config)(config, file)
}

/** Returns the work of the engine on a store of this machine. @throws ServerError CONFIG_INVALID */
function onThisMachine(work: 'backUp' | 'restore', command: string, { engine }: Config) {
  const run = ENGINES[engine][work]
  if (run) return run
  const allowed = ENGINE_NAMES.filter((name) => ENGINES[name][work])
  throw new ServerError('CONFIG_INVALID', [
    `${command}: the engine is ${engine}, whose messages are not in a store of this machine; allowed is ${allowed.join(', ')}`,
  ])
}

/** The result of a recovery. */
export interface RecoveredStore extends StoreCopy {
  readonly channels: number
  readonly messages: number
  readonly leftOut: readonly string[]
}

/**
 * Copies the readable messages of a damaged store to a new folder.
 * @throws ServerError START_FAILED for a store that cannot be read at all or a folder that cannot
 * be written
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
      // The engine can store every message that a request can contain.
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
      node: { name: hostname(), version: VERSION },
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
        const details = { kind, ...(error === undefined ? {} : { err: error }) }
        if (kind === 'disconnected') {
          waiting(message)
          // Servers that are down are no bug: the reason is enough, without the stack of a library.
          log.error({ kind, ...(error instanceof Error ? { reason: error.message } : {}) }, `nats: ${message}`)
        } else if (kind === 'healed') log.info(`nats: ${message}`)
        else if (kind === 'warning') log.warn(`nats: ${message}`)
        else log.error(details, `nats: ${message}`)
      },
    }),
  )
}

const DEFAULT_MAX_MESSAGE_BYTES = 67_108_864

/** Returns the limits that every engine has. */
function limitsOf({ maxChannels, queue, store }: Config) {
  return {
    maxChannels,
    queueMaxMessages: queue.maxMessages,
    queueMaxBytes: queue.maxBytes,
    eventsStoreMaxAgeMs: store.maxAgeSeconds * 1000,
    eventsStoreMaxBytes: store.maxBytes,
  }
}

/**
 * Runs a call of an engine package. Converts the engine's own errors into START_FAILED, with the
 * prefix `what`.
 */
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
