import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import { onTestFinished } from 'vitest'

/** What tests look for in events: of agents' streams, and of CloudEvents. */
export interface EventJson {
  readonly stream_id?: string
  readonly type?: string
  readonly payload?: { readonly n?: number }
  readonly id?: string
  readonly brokerrequestid?: string
  readonly data?: unknown
}

export interface SeenEvent {
  readonly event: string
  readonly id: string | undefined
  readonly json: EventJson
}

/** An open stream of server-sent events; it ends with the test. */
export interface Events {
  readonly status: number
  /** All so far. */
  readonly seen: readonly SeenEvent[]
  /** The next one that was not asked for yet; rejects when the stream ends before it. */
  next(): Promise<SeenEvent>
  /** Resolves when the stream has ended, or broke. */
  readonly ended: Promise<void>
  /** Reads nothing from here on, so that the sender's socket fills. */
  pause(): void
  resume(): void
  close(): void
}

interface OpenOptions {
  readonly method?: string
  readonly body?: string
}

/** Resolves when the head of the answer is there. */
export function openEvents(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  { method = 'GET', body = '' }: OpenOptions = {},
): Promise<Events> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers: { accept: 'text/event-stream', ...headers }, agent: false })
    outgoing.once('response', (response) => resolve(follow(response, () => outgoing.destroy())))
    outgoing.on('error', reject)
    outgoing.end(body)
    onTestFinished(() => void outgoing.destroy())
  })
}

function follow(response: IncomingMessage, close: () => void): Events {
  const seen: SeenEvent[] = []
  let asked = 0
  let rest = ''
  let over = false
  let changed = Promise.withResolvers<void>()
  const tell = (): void => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1]
      const data = field('data')
      if (data !== undefined) seen.push({ event: field('event') ?? 'message', id: field('id'), json: JSON.parse(data) })
    }
    tell()
  })
  response.on('error', () => {})
  const ended = new Promise<void>((resolve) => {
    response.once('close', () => {
      over = true
      tell()
      resolve()
    })
  })
  return {
    status: response.statusCode ?? 0,
    seen,
    ended,
    async next() {
      const at = asked++
      for (;;) {
        const event = seen[at]
        if (event) return event
        if (over) throw new Error(`the stream ended after ${seen.length} events`)
        await changed.promise
      }
    },
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close,
  }
}
