import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'

import { expect, test } from 'vitest'

import { PROBED_ROUTES, REGISTER } from './support/routes.ts'
import { serve } from './support/server.ts'

/** JSON of 32 MB. */
const BOMB = Buffer.from(`{"a":"${'x'.repeat(32_000_000)}"}`)

const ENCODED = [
  ['gzip', gzipSync(BOMB)],
  ['x-gzip', gzipSync('{}')],
  ['deflate', deflateSync(BOMB)],
  ['br', brotliCompressSync(BOMB)],
  ['gzip, br', brotliCompressSync(gzipSync('{}'))],
] as const

const ROUTES = [...PROBED_ROUTES, REGISTER].filter(({ method, body }) => method === 'POST' && body !== undefined)

/** These take their arguments from the query, and discard a body unread. */
const WITHOUT_BODY = new Set(['receive', 'ack', 'nack', 'extend', 'ack_all'].map((name) => `POST /ce/queue/${name}`))

test('J3 - no route of either listener decodes a body: an encoded one is 415', async () => {
  const { http, api } = await serve()
  expect(ROUTES.length).toBeGreaterThan(20)
  for (const { listener, name, path, headers } of ROUTES) {
    const { url } = listener === 'shared' ? http : api
    for (const [encoding, body] of ENCODED) {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { ...headers, 'content-encoding': encoding },
        body,
      })
      await response.arrayBuffer()
      const { status } = response
      expect([name, encoding, status === 415]).toEqual([name, encoding, !WITHOUT_BODY.has(name)])
    }
  }
})
