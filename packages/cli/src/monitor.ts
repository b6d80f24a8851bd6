import { SignalboxError } from '@signalbox/client'
import { WebSocket } from 'ws'

import type { CommandCall } from './command.ts'
import { connectManagement } from './connection.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import type { JsonObject } from './json.ts'
import { isObject, toText } from './json.ts'
import type { ManagementClient } from './management-client.ts'
import { shown, styles } from './output.ts'
import { warn } from './terminal.ts'

/** `signalbox monitor`: prints messages as they pass through the server. */
export async function monitorCommand(call: CommandCall): Promise<ExitCode> {
  const { line, io } = call
  const max = line.whole('max', 1, 1_000_000_000) ?? Infinity
  const waitMs = line.time('wait')
  const query = new URLSearchParams()
  for (const name of ['channel', 'type', 'direction']) {
    const value = line.value(name)
    if (value !== undefined) query.set(name, value)
  }
  const size = line.whole('body-size', 0, 65_536)
  if (size !== undefined) query.set('max_body_size', String(size))
  const api = await connectManagement(call)
  const path = `/api/monitor?${query.toString()}`
  const socket = new WebSocket(`${api.url.replace(/^http/, 'ws')}${path}`, { ...api.tls, headers: { ...api.headers } })
  const ended = Promise.withResolvers<ExitCode>()
  const print = printerOf(call)
  let count = 0
  let printing: Promise<void> = Promise.resolve()
  const timer =
    waitMs === undefined ? undefined : setTimeout(() => ended.resolve(count === 0 ? EXIT.NOTHING : EXIT.OK), waitMs)
  io.signal.addEventListener('abort', () => ended.resolve(EXIT.OK), { once: true })
  socket.addEventListener('message', ({ data }: { readonly data: unknown }) => {
    const frame = frameOf(data)
    if (frame === undefined || count >= max) return
    if (frame['kind'] === 'message') {
      count++
      timer?.refresh()
    }
    const last = count >= max
    printing = printing
      .then(() => print(frame))
      .then(() => {
        if (last) ended.resolve(EXIT.OK)
      })
    printing.catch(ended.reject)
  })
  socket.addEventListener('error', () => {
    refusal(api, path).then(ended.reject, ended.reject)
  })
  socket.addEventListener('close', () => {
    // After an error the reason is still being read.
    if (socket.readyState === WebSocket.CLOSED && opened) {
      ended.reject(new SignalboxError('UNREACHABLE', 'the server ended the monitor'))
    }
  })
  let opened = false
  socket.addEventListener('open', () => {
    opened = true
    void warn(io, 'signalbox monitor: waiting for messages; Ctrl-C ends')
  })
  try {
    return await ended.promise
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}

/** Returns the reason for which the server did not open the monitor: a failed handshake does not contain it. */
async function refusal(api: ManagementClient, path: string): Promise<unknown> {
  // Checks the address and the role first.
  await api.get('/api/snapshot')
  await api.get(path)
  return new SignalboxError('UNREACHABLE', `${api.url} opened no monitor`)
}

function frameOf(data: unknown): JsonObject | undefined {
  if (typeof data !== 'string') return undefined
  const frame: unknown = JSON.parse(data)
  return isObject(frame) ? frame : undefined
}

function printerOf({ line, io }: CommandCall): (frame: JsonObject) => Promise<void> {
  const style = styles(io, io.stdout)
  return async (frame) => {
    if (line.has('json')) {
      await io.stdout.write(`${JSON.stringify(frame)}\n`)
    } else if (frame['kind'] === 'message') {
      const { time, direction, type, channel, client, body } = frame
      const [at, way, kind, name, by] = [time, direction, type, channel, client].map((cell) =>
        shown(toText(cell), io.stdout),
      )
      const head = style('dim', `${at}\t${way}\t${kind}`)
      await io.stdout.write(`${head}\t${name}\t${style('dim', by ?? '')}\t${shown(toText(body), io.stdout)}\n`)
    } else if (frame['kind'] !== 'started') {
      await io.stderr.write(`signalbox monitor: ${JSON.stringify(frame)}\n`)
    }
  }
}
