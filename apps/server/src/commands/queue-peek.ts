import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { MessagePrinter } from './message-text.ts'

/** `signalbox peek`: prints the next messages of a queue, which stay in it. */
export async function peekCommand(call: CommandCall): Promise<ExitCode> {
  const { line } = call
  const max = line.whole('max', 1, 1000) ?? 1
  await using client = await connectClient(call)
  const messages = await client.queue(line.word(0)).peek({ max })
  const printer = new MessagePrinter(call)
  for (const message of messages) await printer.print(message, { fields: { receives: message.receives } })
  return messages.length === 0 ? EXIT.NOTHING : EXIT.OK
}
