import type { StoredEvent, StoreStart, Subscription } from '@signalbox/client'
import { SignalboxError } from '@signalbox/client'

import { bodiesOf, messageOptions } from './body.ts'
import type { CommandCall } from './command.ts'
import { milliseconds } from './command-line.ts'
import { connectClient, messageOf } from './connection.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import { MessagePrinter, printResult, printStored } from './output.ts'
import { warn } from './terminal.ts'

/** `signalbox pub`: publishes events. */
export async function pubCommand(call: CommandCall): Promise<void> {
  const channel = call.line.word(0)
  await using client = await connectClient(call)
  const events = client.events(channel)
  for await (const body of bodiesOf(call, 1)) {
    const { id = crypto.randomUUID(), ...options } = messageOptions(call, body)
    await events.publish(body.data, { ...options, id })
    await printResult(call, { channel, id }, `${channel}: id ${id}`)
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
        group,
      },
    ),
  )
}

/** `signalbox log append`: appends events to an events store. */
export async function logAppendCommand(call: CommandCall): Promise<void> {
  const name = call.line.word(0)
  await using client = await connectClient(call)
  const store = client.store(name)
  for await (const body of bodiesOf(call, 1)) {
    await printStored(call, name, await store.append(body.data, messageOptions(call, body)))
  }
}

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
        { from, signal, onError, group },
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

/** The callbacks of a subscription that a command follows. */
export interface Followed {
  /** Reports an error that the subscription survives. */
  readonly onError: (error: unknown) => void
  /** Counts a message that was printed. */
  readonly counted: () => void
  /** Aborts when the command ends. */
  readonly signal: AbortSignal
}

/** Prints messages until Ctrl-C, the number of `--max`, or the silence of `--wait`. */
export async function follow(
  call: CommandCall,
  what: string,
  open: (followed: Followed) => Subscription,
): Promise<ExitCode> {
  const { line, io } = call
  const max = line.whole('max', 1, 1_000_000_000) ?? Infinity
  const waitMs = line.time('wait')
  const ended = Promise.withResolvers<ExitCode>()
  const stop = new AbortController()
  const say = (text: string): void => void warn(io, `signalbox ${line.command}: ${text}`)
  let count = 0
  let ready = false
  const timer =
    waitMs === undefined ? undefined : setTimeout(() => ended.resolve(count === 0 ? EXIT.NOTHING : EXIT.OK), waitMs)
  io.signal.addEventListener('abort', () => ended.resolve(EXIT.OK), { once: true })
  const subscription = open({
    signal: stop.signal,
    counted() {
      timer?.refresh()
      if (++count >= max) ended.resolve(EXIT.OK)
    },
    onError(error) {
      // A server that was never reached is an error. One that was lost may come back.
      if (!ready && error instanceof SignalboxError && error.code === 'UNREACHABLE') ended.reject(error)
      else if (!io.signal.aborted && !stop.signal.aborted) say(messageOf(error))
    },
  })
  subscription.closed.then(() => ended.resolve(EXIT.OK), ended.reject)
  subscription.ready.then(
    () => {
      ready = true
      if (!io.signal.aborted && !stop.signal.aborted) say(`waiting for messages of ${what}; Ctrl-C ends`)
    },
    () => {},
  )
  try {
    return await ended.promise
  } finally {
    clearTimeout(timer)
    stop.abort()
    await subscription.close()
  }
}
