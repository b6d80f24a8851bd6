import { fromFlags } from '../config/flags.ts'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { backUpStore, restoreStore } from '../engine/engines.ts'
import type { StoreCopy } from '../engine/engines.ts'
import { ServerError } from '../errors.ts'
import type { CommandCall } from './command.ts'
import { contextOf, isLoopbackUrl } from './connection.ts'

/**
 * `signalbox backup`: copies the store to a file, while the server runs or not. The configuration
 * selects the store, as for the server.
 * @throws ServerError CONFIG_INVALID; START_FAILED for a store that cannot be read or a file that
 * cannot be written
 */
export async function backupCommand(call: CommandCall): Promise<void> {
  await print(call, await backUpStore(await configOf(call), call.line.word(0)))
}

/**
 * `signalbox restore`: copies a backup into the empty folder of the store.
 * @throws ServerError CONFIG_INVALID; START_FAILED for a backup that is damaged or has another
 * format, or a folder that is in use or not empty
 */
export async function restoreCommand(call: CommandCall): Promise<void> {
  await print(call, await restoreStore(await configOf(call), call.line.word(0)))
}

/** Returns the configuration of the store. @throws ServerError CONFIG_INVALID */
async function configOf(call: CommandCall): Promise<Config> {
  const { line, io } = call
  const isNamed = line.has('store-path') || line.has('config') || (io.env['STORE_PATH'] ?? '') !== ''
  const context = isNamed && !line.has('context') ? undefined : contextOf(call)
  if (context !== undefined && !isLoopbackUrl(context.url)) {
    throw new ServerError('CONFIG_INVALID', [
      `${line.command}: the context is the server ${context.url}, and this command needs the store's folder; run it on that machine, or name a store of this machine with --store-path`,
    ])
  }
  const flags = ['store-path', 'config'].flatMap((name) => (line.has(name) ? [`--${name}=${line.option(name)}`] : []))
  return (await loadConfig({ flags: fromFlags(flags), env: io.env })).config
}

async function print({ line, io }: CommandCall, { file, bytes }: StoreCopy): Promise<void> {
  await io.stdout.write(line.has('json') ? `${JSON.stringify({ file, bytes })}\n` : `${file}: ${bytes} bytes\n`)
}
