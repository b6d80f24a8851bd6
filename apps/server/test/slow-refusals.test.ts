import { once } from 'node:events'
import { connect } from 'node:net'

import { expect, test } from 'vitest'

import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

/** Sends the head of a request and the beginning of its body. Resolves with the answer when the connection is closed. */
async function dribble(url: string, head: string, length = 'Content-Length: 1000'): Promise<string> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  let answer = ''
  socket.on('data', (data) => (answer += data.toString()))
  socket.on('error', () => {})
  socket.write(`${head} HTTP/1.1\r\nHost: ${host}\r\n${length}\r\nContent-Type: application/json\r\n`)
  socket.write(length.startsWith('Transfer') ? '\r\n1\r\n{\r\n' : '\r\n{')
  await once(socket, 'close')
  return answer.slice(0, answer.indexOf('\r\n'))
}

test('front door - a refused request whose body does not arrive keeps no connection, on any path', async () => {
  const { http, api } = await serve({ ...trusting(issuer('key')), api: { authentication: { enable: true } } })
  const evil = '\r\nOrigin: https://evil.example'
  const cases: readonly (readonly [string, string, number])[] = [
    [http.url, 'POST /nothing', 404],
    [http.url, 'POST /ping', 404],
    [http.url, 'POST /mcp', 200],
    [http.url, 'PUT /mcp', 405],
    [http.url, 'POST /a2a/agent', 200],
    [http.url, 'GET /a2a/agent', 405],
    [http.url, 'POST /agents/register', 401],
    [http.url, 'POST /ce/queue/send', 401],
    [api.url, 'POST /nothing', 404],
    [api.url, 'POST /api/actions/create_channel', 401],
    [api.url, 'GET /api/config', 401],
  ]
  const lengths = ['Content-Length: 1000', 'Content-Length: 900000', 'Transfer-Encoding: chunked']
  const answers = cases.flatMap(([url, head, status]) =>
    lengths.map(async (length) => [head, length, status, await dribble(url, head, length)] as const),
  )
  const refused = ['POST /mcp', 'POST /a2a/agent', 'POST /agents/register', 'POST /ce/queue/send'].map(
    async (head) => [head, evil, 403, await dribble(http.url, head, `Content-Length: 1000${evil}`)] as const,
  )
  for (const [head, length, status, line] of await Promise.all([...answers, ...refused])) {
    expect([head, length, line]).toEqual([head, length, expect.stringContaining(`HTTP/1.1 ${status} `)])
  }
})
