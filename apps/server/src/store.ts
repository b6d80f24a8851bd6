import type { Engine } from '@signalbox/broker-core'

import type { Config } from './config/schema.ts'
import { ServerError } from './errors.ts'
import type { Logger } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'

const DEFAULT_MAX_MESSAGE_BYTES = 67_108_864

/** What goes along with the opening of an engine. */
export interface EngineReports {
  readonly metrics: Metrics
  readonly log: Logger
  /** Ends the wait for a cluster. */
  readonly signal: AbortSignal | undefined
  /** Told what keeps the cluster from being used. */
  readonly waiting: (reason: string) => void
}

/**
 * Opens the engine that the configuration asks for; waits for a cluster that is not there yet. The other engine and its
 * client library are not loaded: some 50 ms of a start.
 * @throws ServerError START_FAILED when the store is in use, damaged or not writable, or the cluster refuses
 */
export function openConfiguredEngine(config: Config, reports: EngineReports): Promise<Engine> {
  return config.engine === 'nats' ? openCluster(config, reports) : openStore(config, reports)
}

async function openCluster(config: Config, { log, signal, waiting }: EngineReports): Promise<Engine> {
  const { NatsEngineError, openNatsEngine } = await import('@signalbox/engine-nats')
  const { nats, queue, store, maxChannels, maxBodyBytes } = config
  const { caFile, certFile, keyFile } = nats.tls
  try {
    return await openNatsEngine({
      servers: nats.servers,
      ...(signal && { signal }),
      ...(nats.credsFile !== '' && { credsFile: nats.credsFile }),
      tls: {
        ...(caFile !== '' && { caFile }),
        ...(certFile !== '' && { certFile }),
        ...(keyFile !== '' && { keyFile }),
      },
      replicas: nats.replicas,
      maxMessageBytes: maxBodyBytes,
      maxChannels,
      queueMaxMessages: queue.maxMessages,
      queueMaxBytes: queue.maxBytes,
      eventsStoreMaxAgeMs: store.maxAgeSeconds * 1000,
      eventsStoreMaxBytes: store.maxBytes,
      onProblem: ({ kind, message, error }) => {
        if (kind === 'disconnected') waiting(message)
        const details = { kind, ...(error === undefined ? {} : { err: error }) }
        if (kind === 'healed') log.info(`nats: ${message}`)
        else if (kind === 'warning') log.warn(`nats: ${message}`)
        else log.error(details, `nats: ${message}`)
      },
    })
  } catch (error) {
    if (!(error instanceof NatsEngineError)) throw error
    throw new ServerError('START_FAILED', [`nats: ${error.message}`], { cause: error })
  }
}

async function openStore(config: Config, { metrics, log }: EngineReports): Promise<Engine> {
  const { EmbeddedEngineError, openEmbeddedEngine } = await import('@signalbox/engine-embedded')
  const { store, queue, maxChannels, maxBodyBytes } = config
  try {
    return await openEmbeddedEngine({
      path: store.path,
      // Whatever a request may carry can be stored.
      maxMessageBytes: Math.max(maxBodyBytes, DEFAULT_MAX_MESSAGE_BYTES),
      maxChannels,
      queueMaxMessages: queue.maxMessages,
      queueMaxBytes: queue.maxBytes,
      eventsStoreMaxAgeMs: store.maxAgeSeconds * 1000,
      eventsStoreMaxBytes: store.maxBytes,
      onCommit: ({ operations, durationMs }) => metrics.commit(operations, durationMs / 1000),
      onProblem: ({ kind, message, error, channels }) => {
        const details = { kind, ...(error === undefined ? {} : { err: error }), ...(channels && { channels }) }
        if (kind === 'healed') log.info(`store: ${message}`)
        else log.error(details, `store: ${message}`)
      },
    })
  } catch (error) {
    if (!(error instanceof EmbeddedEngineError)) throw error
    throw new ServerError('START_FAILED', [`store.path: ${error.message}`], { cause: error })
  }
}
