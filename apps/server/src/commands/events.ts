import { bodiesOf, messageOptions } from './body.ts'
import type { CommandCall } from './command.ts'
import { warn } from './command-io.ts'
import { connectClient } from './connection.ts'
import type { ExitCode } from './exit-codes.ts'
import { follow } from './followed.ts'
import { MessagePrinter } from './message-text.ts'

/** `signalbox pub`: publishes events. */
export async function pubCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  await using client = await connectClient(call)
  const events = client.events(line.word(0))
  for await (const body of bodiesOf(call, 1)) {
    const options = { id: crypto.randomUUID(), ...messageOptions(call, body) }
    await events.publish(body.data, options)
    await io.stdout.write(
      line.has('json')
        ? `${JSON.stringify({ channel: line.word(0), id: options.id })}\n`
        : `${line.word(0)}: id ${options.id}\n`,
    )
  }
}

/** `signalbox sub`: prints events as they are published. */
export async function subCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const group = line.value('group')
  const printer = new MessagePrinter(call)
  await using client = await connectClient(call)
  return await follow(call, line.word(0), ({ counted, onError, signal }) =>
    client.events(line.word(0)).on(
      async (event) => {
        if (signal.aborted) return
        await printer.print(event, { column: event.channel })
        counted()
      },
      {
        signal,
        onError,
        onGap: ({ reason, dropped }) =>
          void warn(io, `signalbox sub: events were missed (${reason}${dropped === undefined ? '' : `, ${dropped}`})`),
        ...(group === undefined ? {} : { group }),
      },
    ),
  )
}
