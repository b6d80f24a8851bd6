import type { CommandCall } from './command.ts'
import { connectManagement } from './connection.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import type { JsonObject } from './json.ts'
import { numberOf, objectsOf, textOf } from './json.ts'

/** The most messages of one call of the management API. */
const MOST = 1000

/** `signalbox redrive`: sends dead letters back to the queues that they came from. */
export async function redriveCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const channel = line.word(0)
  const max = line.whole('max', 1, 1_000_000_000) ?? Infinity
  const api = await connectManagement(call)
  let redriven = 0
  let left: readonly JsonObject[] = []
  while (redriven < max && left.length === 0) {
    const count = Math.min(MOST, max - redriven)
    const answer = await api.act('redrive_dead_letters', { channel, max_messages: count })
    left = objectsOf(answer['left'])
    redriven += numberOf(answer['redriven'])
    if (numberOf(answer['redriven']) < count) break
  }
  await io.stdout.write(
    line.has('json')
      ? `${JSON.stringify({ channel, redriven, left })}\n`
      : `messages sent back from ${channel}: ${redriven}${left.length > 0 ? `; left: ${left.length}` : ''}\n`,
  )
  for (const { id, reason } of left) await io.stderr.write(`signalbox redrive: left ${textOf(id)}: ${textOf(reason)}\n`)
  if (left.length > 0) return EXIT.FAILED
  return redriven === 0 ? EXIT.NOTHING : EXIT.OK
}
