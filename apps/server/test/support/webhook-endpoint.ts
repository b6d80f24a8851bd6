import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

/** A delivery that an endpoint received. */
export interface Delivery {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** An endpoint on loopback that agrees to all webhooks, and is gone when the test is over. */
export async function openEndpoint(): Promise<{ readonly url: string; readonly deliveries: Delivery[] }> {
  const deliveries: Delivery[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      if (request.method === 'POST') deliveries.push({ headers: request.headers, body })
      response.writeHead(200, { 'WebHook-Allowed-Origin': '*' }).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/hook`, deliveries }
}
