import { bodiesOf, messageOptions } from './body.ts'
import type { CommandCall } from './command.ts'
import { connectClient } from './connection.ts'
import { dataJson, dataText, printResult, shown } from './output.ts'
import { warn } from './terminal.ts'

/** The time after which a person learns that the command waits, in ms. */
const NOTICE_MS = 2_000

/** `signalbox ask`: sends a query or a command to a responder. */
export async function askCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  const timeout = line.time('timeout')
  const channel = line.word(0)
  const waiting = `signalbox ask: no answer on ${channel} yet; waiting up to ${line.option('timeout')}, Ctrl-C ends`
  await using client = await connectClient(call)
  const notice = setTimeout(() => void warn(io, waiting), NOTICE_MS)
  using _ = { [Symbol.dispose]: () => clearTimeout(notice) }
  for await (const body of bodiesOf(call, 1)) {
    const options = { ...messageOptions(call, body), timeout }
    if (line.has('command')) {
      await client.command(channel, body.data, options)
      await printResult(call, { channel, executed: true }, `${channel}: executed`)
      return
    }
    const data = await client.query(channel, body.data, options)
    await printResult(call, { channel, ...dataJson(data) }, shown(dataText(data), io.stdout))
  }
}
