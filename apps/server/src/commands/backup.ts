import process from 'node:process'

import { fromFlags } from '../config/flags.ts'
import { loadConfig } from '../config/load.ts'
import { backUpStore } from '../engine/engines.ts'
import { ServerError } from '../errors.ts'
import { readCommandLine } from './arguments.ts'
import { helpWanted, USAGE } from './usage.ts'

/**
 * `signalbox backup`: copies the store to a file, while the server runs or not. The configuration
 * selects the store, as for the server.
 * @throws ServerError CONFIG_INVALID; START_FAILED for a store that cannot be read or a file that
 * cannot be written
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
  const { file: written, bytes } = await backUpStore(config, file)
  process.stdout.write(`${written}: ${bytes} bytes\n`)
}
