import { recoverStore } from '../engine/engines.ts'
import type { CommandCall } from './command.ts'

/**
 * `signalbox recover`: copies the readable messages of a damaged store to a new one, and prints the
 * messages that it leaves out. The server that uses the damaged store must be stopped.
 * @throws ServerError CONFIG_INVALID; START_FAILED for a store that cannot be read at all or a
 * folder that cannot be written
 */
export async function recoverCommand({ line, io }: CommandCall): Promise<void> {
  const { file, bytes, channels, messages, leftOut } = await recoverStore(line.word(0), line.word(1))
  if (line.has('json')) {
    await io.stdout.write(`${JSON.stringify({ file, bytes, channels, messages, left_out: leftOut })}\n`)
    return
  }
  await io.stdout.write(`${file}: ${channels} channels, ${messages} messages, ${bytes} bytes\n`)
  for (const text of leftOut) await io.stdout.write(`left out: ${text}\n`)
}
