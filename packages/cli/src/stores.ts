import type { CommandCall, StoreChoice } from './command.ts'
import { contextOf, isLoopbackUrl } from './connection.ts'
import { CommandError } from './errors.ts'
import { printResult } from './output.ts'

/**
 * `signalbox backup`: copies the store to a file, while the server runs or not. The configuration
 * selects the store, as for the server.
 * @throws CommandError CONFIG_INVALID; START_FAILED for a store that cannot be read or a file that
 * cannot be written
 */
export async function backupCommand(call: CommandCall): Promise<void> {
  const { file, bytes } = await call.host.backUpStore(choiceOf(call), call.line.word(0))
  await printResult(call, { file, bytes }, `${file}: ${bytes} bytes`)
}

/**
 * `signalbox restore`: copies a backup into the empty folder of the store.
 * @throws CommandError CONFIG_INVALID; START_FAILED for a backup that is damaged or has another
 * format, or a folder that is in use or not empty
 */
export async function restoreCommand(call: CommandCall): Promise<void> {
  const { file, bytes } = await call.host.restoreStore(choiceOf(call), call.line.word(0))
  await printResult(call, { file, bytes }, `${file}: ${bytes} bytes`)
}

/** Returns what selects the store. @throws CommandError CONFIG_INVALID if that is a context of another machine */
function choiceOf(call: CommandCall): StoreChoice {
  const { line, io } = call
  const isNamed = line.has('store-path') || line.has('config') || (io.env['STORE_PATH'] ?? '') !== ''
  const context = isNamed && !line.has('context') ? undefined : contextOf(call)
  if (context !== undefined && !isLoopbackUrl(context.url)) {
    throw new CommandError('CONFIG_INVALID', [
      `${line.command}: the context is the server ${context.url}, and this command needs the store's folder; run it on that machine, or name a store of this machine with --store-path`,
    ])
  }
  const flags = ['store-path', 'config'].flatMap((name) => (line.has(name) ? [`--${name}=${line.option(name)}`] : []))
  return { flags, env: io.env }
}

/**
 * `signalbox recover`: copies the readable messages of a damaged store to a new one, and prints the
 * messages that it leaves out. The server that uses the damaged store must be stopped.
 * @throws CommandError CONFIG_INVALID; START_FAILED for a store that cannot be read at all or a
 * folder that cannot be written
 */
export async function recoverCommand(call: CommandCall): Promise<void> {
  const { line, host } = call
  const { file, bytes, channels, messages, leftOut } = await host.recoverStore(line.word(0), line.word(1))
  const summary = `${file}: ${channels} channels, ${messages} messages, ${bytes} bytes`
  const text = [summary, ...leftOut.map((each) => `left out: ${each}`)].join('\n')
  await printResult(call, { file, bytes, channels, messages, left_out: leftOut }, text)
}
