import { connect } from 'node:net'

import type { Received } from '@signalbox/testkit/webhook-receiver'
import { onTestFinished } from 'vitest'

/** A request as a client writes it. */
export interface WireRequest {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

/** Returns a request that an endpoint of webhooks received, without the values that differ in each run. */
export function deliveryText({ path, headers, body }: Received): string {
  const shown = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`)
  const text = [`POST ${path} HTTP/1.1`, ...shown, '', body].join('\n')
  return DELIVERED.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), stable(text))
}

/** One connection to a server, with the text of one request and its answer. */
export class WireExchange {
  readonly #request: string
  readonly #response: Promise<void>
  readonly #close: () => void
  #received = ''
  #closedByClient = false
  #waiting: (() => void)[] = []

  constructor(base: string, { method = 'POST', path = '/mcp', headers = {}, body }: WireRequest) {
    const { hostname, port, host } = new URL(base)
    const json = body === undefined ? undefined : JSON.stringify(body)
    const all = {
      Host: host,
      ...(json === undefined ? {} : { 'Content-Type': 'application/json', Accept: ACCEPT }),
      ...headers,
      ...(json === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(json)) }),
    }
    const head = [`${method} ${path} HTTP/1.1`, ...Object.entries(all).map(([name, value]) => `${name}: ${value}`)]
    this.#request = `${head.join('\r\n')}\r\n\r\n${json ?? ''}`
    const socket = connect(Number(port), hostname)
    onTestFinished(() => void socket.destroy())
    socket.setEncoding('utf8').on('data', (text: string) => {
      this.#received += text
      for (const wake of this.#waiting.splice(0)) wake()
    })
    socket.once('connect', () => socket.write(this.#request))
    this.#response = this.until(isComplete).then(() => void socket.destroy())
    this.#close = () => socket.destroy()
    // A socket that fails leaves the test waiting, which its time limit ends.
    socket.on('error', () => {})
  }

  /** Resolves when the text received so far fits. */
  async until(fits: (received: string) => boolean): Promise<void> {
    while (!fits(this.#received)) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Closes the connection before the answer is complete. */
  abandon(): void {
    this.#closedByClient = true
    this.#close()
  }

  /** Resolves with the text of the request and of its answer, without the values that differ in each run. */
  async text(): Promise<string> {
    if (!this.#closedByClient) await this.#response
    const end = this.#closedByClient ? '\n\n(the client closes the connection)' : ''
    return `${stable(this.#request)}\n\n${stable(withoutChunks(this.#received))}${end}`
  }

  /** Resolves with the JSON of the answer. */
  async json<Answer>(): Promise<Answer> {
    await this.#response
    const body = withoutChunks(this.#received).split('\r\n\r\n').slice(1).join('')
    return JSON.parse(body.replace(/^[^]*?^data: /m, '')) as Answer
  }
}

const ACCEPT = 'application/json, text/event-stream'

function isComplete(received: string): boolean {
  const [head, body] = split(received)
  if (body === undefined) return false
  const length = /^content-length: (\d+)$/im.exec(head)?.[1]
  if (length !== undefined) return Buffer.byteLength(body) >= Number(length)
  return /^transfer-encoding: chunked$/im.test(head) ? body.endsWith('0\r\n\r\n') : true
}

function split(received: string): readonly [string, string | undefined] {
  const end = received.indexOf('\r\n\r\n')
  return end === -1 ? [received, undefined] : [received.slice(0, end), received.slice(end + 4)]
}

/** Joins the chunks of a body; all of them are ASCII here. */
function withoutChunks(received: string): string {
  const [head, body = ''] = split(received)
  if (!/^transfer-encoding: chunked$/im.test(head)) return received
  let text = ''
  for (let rest = body; ;) {
    const size = Number.parseInt(rest, 16)
    const start = rest.indexOf('\r\n') + 2
    if (Number.isNaN(size) || size === 0) return `${head}\r\n\r\n${text}`
    text += rest.slice(start, start + size)
    rest = rest.slice(start + size + 2)
  }
}

const DELIVERED: readonly (readonly [RegExp, string])[] = [
  [/^host: .*$/gm, 'host: app.example.com'],
  [/^webhook-id: msg_verification_.*$/gm, 'webhook-id: msg_verification_RANDOM'],
  [/^webhook-timestamp: .*$/gm, 'webhook-timestamp: 1795348800'],
  [/^webhook-signature: .*$/gm, 'webhook-signature: v1,SIGNATURE'],
  [/^x-mcp-subscription-id: .*$/gm, 'x-mcp-subscription-id: SUBSCRIPTION'],
  [/"challenge":"[\w-]+"/g, '"challenge":"CHALLENGE"'],
]

const CHANGING: readonly (readonly [RegExp, string])[] = [
  [/\r\n/g, '\n'],
  [/127\.0\.0\.1:\d+/g, '127.0.0.1:9090'],
  [/^Date: .*$/gm, 'Date: Sun, 22 Nov 2026 12:00:00 GMT'],
  [/^Content-Length: [1-9]\d*$/gim, 'Content-Length: N'],
  [/^Authorization: .*$/gm, 'Authorization: Bearer TOKEN'],
  [/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, 'UUID'],
  [/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, '2026-11-22T12:00:00.000Z'],
  [/"taskId":"[\w-]{32}"/g, '"taskId":"TASK"'],
  [/^Mcp-Name: [\w-]{32}$/gm, 'Mcp-Name: TASK'],
  [/"cursor":"[\w-]+"/g, '"cursor":"CURSOR"'],
  [/"id":"[\w-]{32}","refreshBefore"/g, '"id":"SUBSCRIPTION","refreshBefore"'],
  [/"secret":"whsec_[\w+/=]+"/g, '"secret":"whsec_SECRET"'],
  [/"eventId":"[\w-]{22}"/g, '"eventId":"ID"'],
  [/("events":\[\{"name":"[\w.]+",).*\}\](?=,"ttlMs")/g, '$1…}, …]'],
  [/"url":"http:\/\/127\.0\.0\.1:\d+/g, '"url":"https://app.example.com'],
  [/"requestState":"[^"]+"/g, '"requestState":"STATE"'],
  [/"ttlMs":36\d{5}\b/g, '"ttlMs":3600000'],
  [/"progress":[\d.]+/g, '"progress":0'],
  [/"version":"\d[^"]*"/g, '"version":"0.1.0"'],
  [/"instructions":"([^"]{40})[^"]*"/g, '"instructions":"$1…"'],
  [/("tools":\[\{"name":"\w+",).*\}\](?=,"|\})/g, '$1…}, …]'],
  [/\n+$/g, ''],
]

function stable(text: string): string {
  return CHANGING.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text)
}
