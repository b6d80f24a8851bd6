import { bodiesOf, messageOptions } from './body.ts'
import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import { printStored } from './stored-text.ts'

/** `signalbox log append`: appends events to an events store. */
export async function logAppendCommand(call: CommandCall): Promise<void> {
  const name = call.line.word(0)
  await using client = await connectClient(call)
  const store = client.store(name)
  for await (const body of bodiesOf(call, 1)) {
    await printStored(call, name, await store.append(body.data, messageOptions(call, body)))
  }
}
