import { connect } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'

export interface Sending {
  readonly writes: readonly Buffer[]
  readonly pauseMs: number
  readonly end: 'finish' | 'reset' | 'wait'
  readonly patienceMs: number
  /** False to read nothing of the answer, and to disconnect when the time is over. @default true */
  readonly reads?: boolean
  /** Returns `true` if the bytes so far are the whole answer. Without it the answer is complete after a silence. */
  readonly complete?: (received: Buffer) => boolean
}

/** The silence after which the answer counts as complete, in milliseconds. */
const QUIET_MS = 10

/** The largest part of an answer that is kept. */
const MAX_KEPT = 1_048_576

/** Writes bytes to a server, and resolves with the answer when it is complete or the time is over. */
export async function exchange(url: string, sending: Sending): Promise<Buffer> {
  const { hostname: host, port } = new URL(url)
  const socket = connect({ host, port: Number(port) })
  socket.setNoDelay(true)
  const received: Buffer[] = []
  let kept = 0
  const { promise: over, resolve } = Promise.withResolvers<void>()
  let quiet: NodeJS.Timeout | undefined
  const patience = setTimeout(resolve, sending.patienceMs)
  socket.on('error', () => resolve())
  socket.on('close', () => resolve())
  if (sending.reads === false) socket.pause()
  else
    socket.on('data', (chunk) => {
      if (kept < MAX_KEPT) received.push(chunk)
      kept += chunk.length
      if (sending.complete?.(Buffer.concat(received)) === true) resolve()
      else if (sending.complete === undefined) {
        clearTimeout(quiet)
        quiet = setTimeout(resolve, QUIET_MS + sending.pauseMs)
      }
    })
  for (const [i, bytes] of sending.writes.entries()) {
    if (i > 0 && sending.pauseMs > 0) await after(sending.pauseMs)
    if (socket.destroyed) break
    socket.write(bytes)
  }
  if (sending.end === 'reset') {
    // Waits until the bytes are sent.
    await after(1)
    socket.resetAndDestroy()
  } else if (sending.end === 'finish') socket.end()
  await over
  clearTimeout(patience)
  clearTimeout(quiet)
  if (sending.reads === false && !socket.destroyed) socket.resetAndDestroy()
  else socket.destroy()
  return Buffer.concat(received)
}

const HEAD_END = Buffer.from('\r\n\r\n')

/** Returns `true` if the bytes are one whole answer with a Content-Length, or without a body. */
export function isWholeAnswer(received: Buffer): boolean {
  const headEnd = received.indexOf(HEAD_END)
  if (headEnd === -1) return false
  const head = received.toString('latin1', 0, headEnd)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) return received.length >= headEnd + HEAD_END.length + Number(length)
  return /^HTTP\/1\.1 (?:1\d\d|204|304)/.test(head)
}
