import type { StoredEvent, StoreStart } from '@signalbox/client'

import type { CommandCall } from './command.ts'
import { milliseconds } from './command-line.ts'
import { connectClient } from './connection.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { follow } from './followed.ts'
import { MessagePrinter } from './message-text.ts'

/** `signalbox log read`: prints stored events. */
export async function logReadCommand(call: CommandCall): Promise<ExitCode> {
  const { line } = call
  const follows = line.has('follow')
  const from = startOf(call) ?? (follows ? 'new' : 'first')
  const max = line.whole('max', 1, 1_000_000_000) ?? Infinity
  const group = line.value('group')
  if (!follows && group !== undefined) throw line.invalid('--group', group, 'a group together with --follow')
  const printer = new MessagePrinter(call)
  const print = (event: StoredEvent): Promise<void> => {
    const { sequence } = event
    return printer.print(event, { column: String(sequence), fields: { sequence } })
  }
  await using client = await connectClient(call)
  const store = client.store(line.word(0))
  if (follows) {
    return await follow(call, line.word(0), ({ counted, onError, signal }) =>
      store.on(
        async (event) => {
          if (signal.aborted) return
          await print(event)
          counted()
        },
        { from, signal, onError, ...(group === undefined ? {} : { group }) },
      ),
    )
  }
  let count = 0
  for await (const event of store.read({ from })) {
    await print(event)
    if (++count >= max) break
  }
  return count === 0 ? EXIT.NOTHING : EXIT.OK
}

function startOf({ line }: CommandCall): StoreStart | undefined {
  const text = line.value('from')
  if (text === undefined || text === 'first' || text === 'last' || text === 'new') return text
  if (/^[1-9]\d{0,14}$/.test(text)) return { sequence: Number(text) }
  const ago = milliseconds(text)
  if (ago !== undefined) return { ago }
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : undefined
  if (time !== undefined && !Number.isNaN(time.getTime())) return { time }
  throw line.invalid(
    '--from',
    text,
    'first, last, new, a sequence, a time such as 2026-01-31T09:30:00Z, or 1h for an hour ago',
  )
}
