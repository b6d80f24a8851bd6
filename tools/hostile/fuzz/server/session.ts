import { Buffer } from 'node:buffer'
import { connect } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'

import type { Pieces } from '../grammar/pieces.ts'
import { Finding } from '../target.ts'
import type { HostileReply } from './hostile-agent.ts'

/** A request whose head and length are correct for any content. */
export interface HttpStep {
  readonly kind: 'http'
  readonly listener: 'http' | 'api'
  readonly method: string
  /** May contain the placeholders of {@link Places}. */
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Pieces
  readonly encoding: 'utf8' | 'latin1'
  /** The time-out of an answer, and the time to read a stream, in milliseconds. */
  readonly patienceMs: number
  /** The agent's answer, if the request leads to the agent. */
  readonly reply: HostileReply | null
  readonly manner: Manner
}

/** The behavior of a client that sends a correct request. */
export type Manner =
  /** Writes at once, reads everything, and disconnects. */
  | 'plain'
  /** Reads nothing, and disconnects. */
  | 'stalled'
  /** Writes in two parts. */
  | 'halting'
  /** Disconnects in the middle of its request. */
  | 'aborting'
  /** Closes its side after the write. */
  | 'half-closed'

/** Raw bytes on a socket. */
export interface RawStep {
  readonly kind: 'raw'
  readonly listener: 'http' | 'api'
  readonly writes: readonly Pieces[]
  /** The delay between two writes, in milliseconds. */
  readonly pauseMs: number
  readonly end: 'finish' | 'reset' | 'wait'
  readonly patienceMs: number
}

export type Step = HttpStep | RawStep

/** Requests on separate connections, concurrent or in sequence. */
export interface Session {
  readonly parallel: boolean
  readonly steps: readonly Step[]
}

/** The values of the placeholders in inputs: addresses, and the server's latest values, which differ between runs. */
export interface Places {
  readonly http: string
  readonly api: string
  readonly agent: string
  /** A receipt of a delivery, the id of a command or query, a cursor. */
  readonly receipt: string
  readonly request: string
  readonly cursor: string
}

/** The places in an answer with values for later requests. */
const LATER_VALUES = {
  receipt: /"receipt":"([^"\\]+)"/g,
  request: /"brokerrequestid":"([^"\\]+)"/g,
  cursor: /"next_?[cC]ursor":"([^"\\]+)"/g,
}

/** Stores the values of an answer for later requests. */
export function learned(places: Places, answer: string): Places {
  const last = (pattern: RegExp, before: string): string => Array.from(answer.matchAll(pattern)).at(-1)?.[1] ?? before
  return {
    ...places,
    receipt: last(LATER_VALUES.receipt, places.receipt),
    request: last(LATER_VALUES.request, places.request),
    cursor: last(LATER_VALUES.cursor, places.cursor),
  }
}

/** Fills in `{{agent}}`, `{{receipt}}` and the like. */
export function filled(text: string, places: Places, replyKey: string): string {
  if (!text.includes('{{')) return text
  return text.replaceAll(/\{\{(\w+)\}\}/g, (placeholder, name: string) => {
    if (name === 'reply') return `reply-key-${replyKey}`
    const value: unknown = Reflect.get(places, name)
    return typeof value === 'string' ? value : placeholder
  })
}

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

/** Internal errors that the specification requires: they are not a fault of the server. */
const ALLOWED_INTERNAL = [
  /^server busy/,
  /^agent response too large/,
  /^the broker is not available/,
  /^stream interrupted/,
  /^slow consumer/,
  /^this endpoint allows \d+ open streams/,
]

/** Codes for which the specification requires status 500. */
const ALLOWED_500 = /"code":"(?:UPGRADE_FAILED|MONITOR_LIMIT)"/

/** @throws Finding for an answer that no input may get */
export function checkAnswer(what: string, received: Buffer): void {
  if (received.length === 0) return
  const text = received.toString('utf8')
  if (!text.startsWith('HTTP/1.1 '))
    throw new Finding('answer', `${what} got an answer that is not HTTP: got ${text.slice(0, 200)}`)
  for (const [, status = ''] of text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)) {
    if (status === '500' && !ALLOWED_500.test(text))
      throw new Finding('answer', `${what} is answered with 500: got ${text.slice(-1_000)}`)
  }
  for (const [, message = ''] of text.matchAll(/"code":-32603,"message":"((?:[^"\\]|\\.)*)"/g)) {
    if (!ALLOWED_INTERNAL.some((allowed) => allowed.test(message))) {
      throw new Finding('answer', `${what} is answered with -32603: got ${message.slice(0, 500)}`)
    }
  }
  checkJson(what, text)
}

/** A complete answer with a JSON content type must be valid JSON. */
function checkJson(what: string, text: string): void {
  const headEnd = text.indexOf('\r\n\r\n')
  const head = text.slice(0, headEnd)
  const body = text.slice(headEnd + 4)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length === undefined || !/\r\ncontent-type: *application\/[a-z+-]*json/i.test(head)) return
  if (Buffer.byteLength(body) !== Number(length) || body.includes('\ufffd')) return
  try {
    JSON.parse(body)
  } catch (error) {
    throw new Finding('answer', `${what} got invalid JSON: got ${body.slice(0, 500)}`, {
      cause: error,
    })
  }
}
