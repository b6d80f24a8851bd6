import { setTimeout as pause } from 'node:timers/promises'

import { EventStream } from '../harness/event-stream.ts'

/** Calls of the gateway's own dialect, or calls as official clients make them in A2A 1.0. */
export type CallKind = 'dialect' | 'native'

/** The outcomes of calls that were made one after the other. */
export interface Calls {
  readonly answered: number
  /** The message ids of calls that were refused as not executed. */
  readonly refused: readonly string[]
  /** The text of each error and of each answer that was not the agent's. */
  readonly failed: readonly string[]
}

let messages = 0

function request(kind: CallKind, streams: boolean): { readonly messageId: string; readonly body: string } {
  const messageId = `m-${++messages}`
  const message =
    kind === 'native'
      ? { messageId, role: 'ROLE_USER', parts: [{ text: 'hello' }] }
      : { kind: 'message', messageId, role: 'user', parts: [{ kind: 'text', text: 'hello' }] }
  const methods = { dialect: ['message/send', 'message/stream'], native: ['SendMessage', 'SendStreamingMessage'] }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: methods[kind][streams ? 1 : 0], params: { message } })
  return { messageId, body }
}

function headersOf(kind: CallKind): Record<string, string> {
  return kind === 'native' ? { 'a2a-version': '1.0' } : {}
}

/** Calls an agent again and again until the signal. */
export async function callForever(kind: CallKind, url: string, signal: AbortSignal): Promise<Calls> {
  const refused: string[] = []
  const failed: string[] = []
  let answered = 0
  while (!signal.aborted) {
    const { messageId, body } = request(kind, false)
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headersOf(kind) },
        body,
      })
      const text = await response.text()
      if (text.includes(messageId)) {
        answered++
      } else {
        failed.push(text)
        if (text.includes('"executed":"false"')) refused.push(messageId)
      }
    } catch (error) {
      failed.push(String(error))
    }
    await pause(5)
  }
  return { answered, refused, failed }
}

/** A stream of an agent. */
export interface UpgradeStream {
  /** Resolves when the stream is closed, with its last event: `completed`, `error` with its code, or `cut off`. */
  readonly ended: () => Promise<string>
}

/** Opens a stream of an agent; resolves when it has its first event. */
export async function openUpgradeStream(kind: CallKind, url: string): Promise<UpgradeStream> {
  let last = ''
  const first = Promise.withResolvers<void>()
  const { body } = request(kind, true)
  const stream = await EventStream.open(url, {
    method: 'POST',
    headers: headersOf(kind),
    body,
    headMs: 10_000,
    onEvent: ({ data }) => {
      last = data
      first.resolve()
    },
  })
  await first.promise
  return {
    ended: async () => {
      await stream.closed
      if (/completed/i.test(last)) return 'completed'
      const [, code] = /"code":(-\d+)/.exec(last) ?? []
      return code === undefined ? `cut off after ${last}` : `error ${code}`
    },
  }
}
