import process from 'node:process'

import { backupStore, EmbeddedEngineError } from '@signalbox/engine-embedded'

import { fromFlags } from '../config/flags.ts'
import { loadConfig } from '../config/load.ts'
import { ServerError } from '../errors.ts'
import { readCommandLine } from './arguments.ts'
import { helpWanted, USAGE } from './usage.ts'

/**
 * `signalbox backup`: copies the store to a file, while the server runs or not. Which store says the configuration, as it
 * does to the server.
 * @throws ServerError CONFIG_INVALID; START_FAILED for a store that cannot be read or a file that cannot be written
 */
export async function backupCommand(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  if (helpWanted('backup', args)) return
  const { option, positionals } = readCommandLine('backup', args, { 'store-path': '', config: '' })
  const [file, ...more] = positionals
  if (file === undefined || more.length > 0)
    throw new ServerError('CONFIG_INVALID', [`backup: allowed is ${USAGE.backup}`])
  const flags = ['store-path', 'config'].flatMap((name) => (option(name) === '' ? [] : [`--${name}=${option(name)}`]))
  const { config } = await loadConfig({ flags: fromFlags(flags), env })
  if (config.engine !== 'embedded') {
    throw new ServerError('CONFIG_INVALID', [
      `backup: the engine is ${config.engine}, whose messages are not in a store of this machine; allowed is embedded`,
    ])
  }
  try {
    const { file: written, bytes } = backupStore(config.store.path, file)
    process.stdout.write(`${written}: ${bytes} bytes\n`)
  } catch (error) {
    if (!(error instanceof EmbeddedEngineError)) throw error
    throw new ServerError('START_FAILED', [`backup: ${error.message}`], { cause: error })
  }
}
