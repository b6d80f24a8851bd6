import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import { receiveSome } from './queue-receive.ts'

/** `signalbox drain`: empties a queue, and prints its messages. */
export async function drainCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  await using client = await connectClient(call)
  let drained = 0
  if (line.has('discard')) {
    drained = await client.queue(line.word(0)).purge()
    if (line.has('json')) await io.stdout.write(`${JSON.stringify({ channel: line.word(0), removed: drained })}\n`)
  } else {
    for (let some = -1; some !== 0; drained += some) {
      some = await receiveSome(call, client, { max: 100, waitMs: 0, leaseMs: 60_000 })
    }
  }
  await io.stderr.write(`signalbox drain: messages removed from ${line.word(0)}: ${drained}\n`)
}
