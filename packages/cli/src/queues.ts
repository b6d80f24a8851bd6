import type { Signalbox } from '@signalbox/client'

import { bodiesOf, messageOptions } from './body.ts'
import type { CommandCall } from './command.ts'
import { connectClient, connectManagement } from './connection.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import type { JsonObject } from './json.ts'
import { numberOf, objectsOf, toText } from './json.ts'
import { MessagePrinter, printResult, printStored } from './output.ts'

/** `signalbox send`: sends messages to a queue. */
export async function sendCommand(call: CommandCall): Promise<void> {
  const { line } = call
  const options = {
    delay: line.time('delay'),
    expires: line.time('expires'),
    maxReceives: line.whole('max-receives', 1, 1_000_000),
    deadLetter: line.value('dead-letter'),
  }
  const queueName = line.word(0)
  await using client = await connectClient(call)
  const queue = client.queue(queueName)
  for await (const body of bodiesOf(call, 1)) {
    const stored = await queue.send(body.data, { ...messageOptions(call, body), ...options })
    await printStored(call, queueName, stored)
  }
}

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
  const text = `messages sent back from ${channel}: ${redriven}${left.length > 0 ? `; left: ${left.length}` : ''}`
  await printResult(call, { channel, redriven, left }, text)
  for (const { id, reason } of left) await io.stderr.write(`signalbox redrive: left ${toText(id)}: ${toText(reason)}\n`)
  if (left.length > 0) return EXIT.FAILED
  return redriven === 0 ? EXIT.NOTHING : EXIT.OK
}
