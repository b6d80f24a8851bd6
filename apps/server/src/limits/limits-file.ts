import { isDeepStrictEqual } from 'node:util'

import { watchFiles } from '@signalbox/http-kit'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { Logger } from '../logging/logger.ts'
import type { ServerFrontDoor } from './front-door.ts'

/** The configuration file of a running server. */
export interface ConfigFile {
  readonly path: string
  /** Reads all sources again. @throws ServerError CONFIG_INVALID, listing every problem */
  readonly load: () => Promise<Config>
}

/**
 * Applies new limits when the configuration file changes. Other settings need a restart. An invalid
 * file changes nothing.
 */
export function watchLimits(file: ConfigFile, door: ServerFrontDoor, log: Logger, lookMs?: number): Disposable {
  const { path } = file
  return watchFiles([path], {
    parse: () => door.limits,
    reparse: async () => (await file.load()).limits,
    changed(limits) {
      if (isDeepStrictEqual(limits, door.limits)) return
      door.setLimits(limits)
      log.info({ file: path, limits }, 'limits reloaded')
    },
    refused(error) {
      const problems = error instanceof ServerError ? error.problems : [error.message]
      log.error({ file: path, problems }, 'limits not reloaded: the previous limits remain in force')
    },
    lookMs,
  })
}
