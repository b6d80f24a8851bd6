import process from 'node:process'

import { recoverStore } from '../engine/engines.ts'
import { ServerError } from '../errors.ts'
import { readCommandLine } from './arguments.ts'
import { helpWanted, USAGE } from './usage.ts'

/**
 * `signalbox recover`: copies the readable messages of a damaged store to a new one, and prints the
 * messages that it leaves out. The server that uses the damaged store must be stopped.
 * @throws ServerError CONFIG_INVALID; START_FAILED for a store that cannot be read at all or a
 * folder that cannot be written
 */
export async function recoverCommand(args: readonly string[]): Promise<void> {
  if (helpWanted('recover', args)) return
  const [from, to, ...more] = readCommandLine('recover', args, {}).positionals
  if (from === undefined || to === undefined || more.length > 0)
    throw new ServerError('CONFIG_INVALID', [`recover: allowed is ${USAGE.recover}`])
  const { file, bytes, channels, messages, leftOut } = await recoverStore(from, to)
  process.stdout.write(`${file}: ${channels} channels, ${messages} messages, ${bytes} bytes\n`)
  for (const line of leftOut) process.stdout.write(`left out: ${line}\n`)
}
