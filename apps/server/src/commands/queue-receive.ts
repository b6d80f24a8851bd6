import type { Signalbox } from '@signalbox/client'

import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { MessagePrinter } from './message-text.ts'

/** The longest wait of one call, in ms: the server's limit. */
const LONGEST_WAIT_MS = 60_000

/** `signalbox receive`: prints messages, and acknowledges each one that was printed. */
export async function receiveCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const follow = line.has('follow')
  const max = line.whole('max', 1, 1_000_000_000) ?? (follow ? Infinity : 1)
  const waitMs = line.time('wait') ?? 0
  if (waitMs > LONGEST_WAIT_MS) throw line.invalid('--wait', line.option('wait'), '0s to 60s')
  const leaseMs = line.time('lease') ?? 0
  await using client = await connectClient(call)
  let received = 0
  try {
    do {
      const wait = follow ? LONGEST_WAIT_MS : received === 0 ? waitMs : 0
      const some = await receiveSome(call, client, {
        max: Math.min(max - received, follow ? 1 : 100),
        waitMs: wait,
        leaseMs,
      })
      received += some
      if (some === 0 && !follow) break
    } while (received < max)
  } catch (error) {
    // A signal is the usual end of --follow.
    if (follow && io.interrupted !== undefined) return EXIT.OK
    throw error
  }
  return received === 0 ? EXIT.NOTHING : EXIT.OK
}

/** Receives once, and returns the number of messages. A message that cannot be printed returns to its queue. */
export async function receiveSome(
  call: CommandCall,
  client: Signalbox,
  { max, waitMs, leaseMs }: { readonly max: number; readonly waitMs: number; readonly leaseMs: number },
): Promise<number> {
  const { line, io } = call
  const printer = new MessagePrinter(call)
  let received = 0
  for await (const message of client.queue(line.word(0)).receive({ max, wait: waitMs, lease: leaseMs })) {
    try {
      await printer.print(message, { fields: { receives: message.receives } })
    } catch (error) {
      await message.nack()
      throw error
    }
    if (!(await message.ack())) {
      await io.stderr.write(`signalbox ${line.command}: the lease of ${message.id} ended: it is delivered again\n`)
    }
    received++
  }
  return received
}
