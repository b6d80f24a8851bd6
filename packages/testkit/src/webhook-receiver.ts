import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'

import { onTestFinished } from 'vitest'

import { serveHttp } from './loopback.ts'

/** A request that the endpoint received. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export type Reply = (response: ServerResponse, received: Received) => void

/** An endpoint of webhooks, with the requests that it received. It agrees to all of them until `reply` is replaced. */
export interface Receiver {
  readonly url: string
  readonly port: number
  readonly received: Received[]
  readonly bodies: string[]
  reply: Reply
}

export function answer(status: number, headers: Readonly<Record<string, string>> = {}, body = ''): Reply {
  return (response) => response.writeHead(status, headers).end(body)
}

/** Opens an endpoint on loopback, which is gone when the test is over. */
export async function openReceiver(): Promise<Receiver> {
  const received: Received[] = []
  const bodies: string[] = []
  const server = await serveHttp((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      if (method === 'OPTIONS') {
        response.writeHead(200, { 'WebHook-Allowed-Origin': '*' }).end()
        return
      }
      const one = { method, path, headers, body }
      received.push(one)
      bodies.push(body)
      receiver.reply(response, one)
    })
  })
  onTestFinished(() => server[Symbol.asyncDispose]())
  const { url, port } = server
  const receiver: Receiver = { url: `${url}/hook`, port, received, bodies, reply: answer(204) }
  return receiver
}

/** Returns `true` if one of the signatures of a request was made with the secret. Written from Standard Webhooks 1.0. */
export function isSignedWith(secret: string, { headers, body }: Received): boolean {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const expected = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  return String(headers['webhook-signature']).split(' ').includes(expected)
}
