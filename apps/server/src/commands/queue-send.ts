import { bodiesOf, messageOptions } from './body.ts'
import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import { printStored } from './stored-text.ts'

/** `signalbox send`: sends messages to a queue. */
export async function sendCommand(call: CommandCall): Promise<void> {
  const { line } = call
  const delay = line.time('delay')
  const expires = line.time('expires')
  const maxReceives = line.whole('max-receives', 1, 1_000_000)
  const deadLetter = line.value('dead-letter')
  const queueName = line.word(0)
  await using client = await connectClient(call)
  const queue = client.queue(queueName)
  for await (const body of bodiesOf(call, 1)) {
    const stored = await queue.send(body.data, {
      ...messageOptions(call, body),
      ...(delay === undefined ? {} : { delay }),
      ...(expires === undefined ? {} : { expires }),
      ...(maxReceives === undefined ? {} : { maxReceives }),
      ...(deadLetter === undefined ? {} : { deadLetter }),
    })
    await printStored(call, queueName, stored)
  }
}
