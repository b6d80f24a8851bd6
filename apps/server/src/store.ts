import type { EmbeddedEngine } from '@signalbox/engine-embedded'
import { EmbeddedEngineError, openEmbeddedEngine } from '@signalbox/engine-embedded'

import type { Config } from './config/schema.ts'
import { ServerError } from './errors.ts'
import type { Logger } from './log.ts'
import type { Metrics } from './metrics/metrics.ts'

const DEFAULT_MAX_MESSAGE_BYTES = 67_108_864

/**
 * Opens the engine that the configuration asks for.
 * @throws ServerError START_FAILED when the store is in use, damaged or not writable
 */
export async function openEngine(config: Config, metrics: Metrics, log: Logger): Promise<EmbeddedEngine> {
  const { store, queue, maxChannels, maxBodyBytes } = config
  try {
    return await openEmbeddedEngine({
      path: store.path,
      // Whatever a request may carry can be stored.
      maxMessageBytes: Math.max(maxBodyBytes, DEFAULT_MAX_MESSAGE_BYTES),
      maxChannels,
      queueMaxMessages: queue.maxMessages,
      queueMaxBytes: queue.maxBytes,
      logMaxAgeMs: store.maxAgeSeconds * 1000,
      logMaxBytes: store.maxBytes,
      onCommit: ({ operations, durationMs }) => metrics.commit(operations, durationMs / 1000),
      onProblem: ({ kind, message, error }) => {
        if (kind === 'healed') log.info(`store: ${message}`)
        else log.error({ kind, ...(error === undefined ? {} : { err: error }) }, `store: ${message}`)
      },
    })
  } catch (error) {
    if (!(error instanceof EmbeddedEngineError)) throw error
    throw new ServerError('START_FAILED', [`store.path: ${error.message}`], { cause: error })
  }
}
