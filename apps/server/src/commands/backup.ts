import { fromFlags } from '../config/flags.ts'
import { loadConfig } from '../config/load.ts'
import { backUpStore } from '../engine/engines.ts'
import type { CommandCall } from './command.ts'

/**
 * `signalbox backup`: copies the store to a file, while the server runs or not. The configuration
 * selects the store, as for the server.
 * @throws ServerError CONFIG_INVALID; START_FAILED for a store that cannot be read or a file that
 * cannot be written
 */
export async function backupCommand({ line, io }: CommandCall): Promise<void> {
  const flags = ['store-path', 'config'].flatMap((name) => (line.has(name) ? [`--${name}=${line.option(name)}`] : []))
  const { config } = await loadConfig({ flags: fromFlags(flags), env: io.env })
  const { file, bytes } = await backUpStore(config, line.word(0))
  await io.stdout.write(line.has('json') ? `${JSON.stringify({ file, bytes })}\n` : `${file}: ${bytes} bytes\n`)
}
